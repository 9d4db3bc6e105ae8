//! From a call to an answer: find the method, check the count of parameters, run the handler.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::{
    envelope::Call,
    error::RpcError,
    method::{Done, Failure, Handler, Method},
    params::Params,
    table,
};
use crate::engine::{Filters, Node, View};

/// The method table with look-up by name.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    /// Sorted by name; aliases point to the same row.
    index: Vec<(&'static str, &'static Method)>,
    /// Whether callers can be sent notifications.
    notifies: bool,
}

impl Default for Dispatcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Dispatcher {
    /// A dispatcher over the whole table.
    pub fn new() -> Self {
        let mut index: Vec<(&'static str, &'static Method)> = Vec::new();
        for method in table::methods() {
            for name in core::iter::once(method.name).chain(method.aliases.iter().copied()) {
                let place = index.partition_point(|(before, _)| *before < name);
                index.insert(place, (name, method));
            }
        }
        Self { index, notifies: false }
    }

    /// A dispatcher for callers to whom notifications can be sent.
    pub fn with_notifications() -> Self {
        Self { notifies: true, ..Self::new() }
    }

    /// The row of this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Method> {
        let position = self.index.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.index.get(position).map(|(_, method)| *method)
    }

    /// The row that a call means.
    ///
    /// # Errors
    /// [`RpcError::MethodNotFound`], [`RpcError::NotAvailable`], [`RpcError::NoNotifications`].
    fn row(&self, call: &Call) -> Result<&'static Method, RpcError> {
        match self.find(&call.method) {
            None => Err(unknown(&call.method)),
            Some(method) if matches!(method.handler, Handler::Subscribe(_)) && !self.notifies => {
                Err(RpcError::NoNotifications)
            }
            Some(method) => Ok(method),
        }
    }

    /// Whether a call changes a local chain or the filters, so that it runs alone.
    pub fn writes(&self, call: &Call) -> bool {
        self.find(&call.method).is_some_and(|method| method.writes() || method.watches())
    }

    /// Whether a call needs the filters.
    pub fn watches(&self, call: &Call) -> bool {
        self.find(&call.method).is_some_and(Method::watches)
    }

    /// Runs one call on the view; a method that changes a chain is refused.
    ///
    /// # Errors
    /// [`Failure::Stop`] when the view lacks facts or refuses, [`Failure::Error`] when the answer is an error.
    pub fn run(&self, view: &dyn View, call: &Call) -> Result<Done, Failure> {
        let method = self.row(call)?;
        let params = params(method, &call.params)?;
        match method.handler {
            Handler::Read(read) => read(view, params),
            Handler::Watch(_) | Handler::Subscribe(_) | Handler::Write(_) => {
                Err(RpcError::NeedsLocalChain(method.name).into())
            }
        }
    }

    /// As [`Self::run`], with filters; `now` is in seconds since 1970.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with(
        &self,
        view: &dyn View,
        filters: Option<&mut Filters>,
        now: u64,
        call: &Call,
    ) -> Result<Done, Failure> {
        let method = self.row(call)?;
        match (method.handler, filters) {
            (Handler::Watch(watch) | Handler::Subscribe(watch), Some(filters)) => {
                watch(filters, view, now, params(method, &call.params)?)
            }
            _ => self.run(view, call),
        }
    }

    /// Runs one call on a local chain: what reads on the node's present snapshot, what writes on the node.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_on(
        &self,
        node: &mut dyn Node,
        interrupt: &dyn Fn() -> bool,
        call: &Call,
    ) -> Result<Done, Failure> {
        let method = self.row(call)?;
        let params = params(method, &call.params)?;
        match method.handler {
            Handler::Read(read) => {
                let (snapshot, now) = (node.snapshot(), node.now());
                let view = snapshot.view(now, interrupt);
                read(&*view, params)
            }
            Handler::Watch(watch) | Handler::Subscribe(watch) => {
                let (snapshot, now) = (node.snapshot(), node.now());
                let view = snapshot.view(now, interrupt);
                watch(node.filters(), &*view, now, params)
            }
            Handler::Write(write) => write(node, params),
        }
    }
}

fn params<'a>(method: &Method, values: &'a [Box<RawValue>]) -> Result<Params<'a>, RpcError> {
    Params::new(values, method.required(), method.params.len())
}

/// Names that the reference serves but Rootlight does not (yet) are told from names nobody knows.
fn unknown(name: &str) -> RpcError {
    if table::UNAVAILABLE.contains(&name) {
        return RpcError::NotAvailable(name.into());
    }
    RpcError::MethodNotFound
}
