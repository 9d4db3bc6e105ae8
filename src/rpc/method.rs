//! One row of the method table, and what a handler gets and gives.

use alloc::boxed::Box;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{error::RpcError, params::Params};
use crate::engine::{Filters, Level, Node, Stop, View};

/// A JSON-RPC method: everything the dispatcher, the catalogue and the docs say about it.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The specification's name.
    pub name: &'static str,
    /// Other names it answers to (`rsk_` for `ext_`).
    pub aliases: &'static [&'static str],
    /// Parameters in order; the required ones come first.
    pub params: &'static [Param],
    /// What the result is.
    pub result: &'static str,
    /// The level a complete answer has.
    pub level: Level,
    /// Relative cost; a constant answer is 1, and what is done on the connection's own thread at most [`BRIEF_COST`].
    pub cost: u32,
    /// Which web pages may call it.
    pub pages: Pages,
    /// One line of documentation.
    pub doc: &'static str,
    /// The implementation.
    pub handler: Handler,
}

/// Highest sum of [`Method::cost`] of a message that is answered at once: a receipt, a few balances, a transaction and
/// the block that it is mined in.
pub const BRIEF_COST: u32 = 20;

/// Which web pages may call a method. Programs that are no web pages may call all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Any page: the method only reads, or takes what its author has signed.
    Any,
    /// Pages of this machine and those the operator names: the method holds or uses keys, or changes the chain by hand.
    Own,
}

/// A parameter of a method.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in the catalogue.
    pub name: &'static str,
    /// What it is: ADDRESS, HASH, QUANTITY, BLOCK ...
    pub kind: &'static str,
    /// Whether it may be left out.
    pub required: bool,
}

/// A handler that only reads: a pure function of the view and the parameters.
pub type Read = fn(&dyn View, Params<'_>) -> Result<Done, Failure>;

/// A handler of filters: it gets them, a view of the present head, and the time in seconds since 1970.
pub type Watching = fn(&mut Filters, &dyn View, u64, Params<'_>) -> Result<Done, Failure>;

/// A handler that changes a local chain, its pool, keys or clock.
pub type Write = fn(&mut dyn Node, Params<'_>) -> Result<Done, Failure>;

/// The implementation of a method.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// Runs on any view, in every mode, beside others.
    Read(Read),
    /// Installs, asks or removes filters, in every mode.
    Watch(Watching),
    /// As [`Self::Watch`], but only for connections that can be sent notifications; makes a subscription.
    Subscribe(Watching),
    /// As [`Self::Subscribe`]; ends a subscription.
    Unsubscribe(Watching),
    /// Runs alone on the node of a local chain; a light client refuses it.
    Write(Write),
    /// A signed transaction: runs as [`Self::Write`] on a local chain; a light client hands it to upstreams.
    Forward(Write),
}

/// A finished answer.
#[derive(Debug)]
pub struct Done {
    /// The `result`, in JSON.
    pub value: Box<RawValue>,
    /// The level of its weakest part.
    pub level: Level,
}

/// Why a handler did not finish.
#[derive(Debug)]
pub enum Failure {
    /// It needs facts, or the engine refuses.
    Stop(Stop),
    /// The answer is an error.
    Error(RpcError),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl<E: Into<RpcError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl Method {
    /// How many parameters must be given.
    pub fn required(&self) -> usize {
        self.params.iter().filter(|p| p.required).count()
    }

    /// Whether it changes a local chain.
    pub fn writes(&self) -> bool {
        matches!(self.handler, Handler::Write(_) | Handler::Forward(_))
    }

    /// Whether it needs the filters.
    pub fn watches(&self) -> bool {
        matches!(self.handler, Handler::Watch(_) | Handler::Subscribe(_) | Handler::Unsubscribe(_))
    }

    /// The part of the name before `_`.
    pub fn namespace(&self) -> &'static str {
        self.name.split_once('_').map_or(self.name, |(namespace, _)| namespace)
    }
}

/// A text of the catalogue: of no use to a browser, and too long for it.
pub(super) const fn told(text: &'static str) -> &'static str {
    if cfg!(feature = "catalogue") { text } else { "" }
}

/// A required parameter.
pub(super) const fn required(name: &'static str, kind: &'static str) -> Param {
    Param { name, kind, required: true }
}

/// An optional parameter.
pub(super) const fn optional(name: &'static str, kind: &'static str) -> Param {
    Param { name, kind, required: false }
}

/// An answer at level `verified`.
///
/// # Errors
/// Only if the value cannot be written as JSON.
pub(super) fn verified<T: Serialize>(value: &T) -> Result<Done, Failure> {
    done(value, Level::Verified)
}

/// An answer at a given level.
///
/// # Errors
/// Only if the value cannot be written as JSON.
pub(super) fn done<T: Serialize>(value: &T, level: Level) -> Result<Done, Failure> {
    Ok(Done { value: serde_json::value::to_raw_value(value)?, level })
}

/// `null`: nothing there, as far as the upstreams say.
///
/// # Errors
/// None in practice.
pub(super) fn absent() -> Result<Done, Failure> {
    done(&(), Level::UnprovenAbsence)
}
