//! A call whose method exists and may be called.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::{
    error::RpcError,
    method::{Handler, HandlerResult, Method},
    mode::Mode,
    params::{Params, Parsed},
};
#[cfg(feature = "local")]
use crate::engine::LocalNode;
use crate::engine::{Filters, View};

/// A call with its row of the method table.
#[derive(Debug)]
pub struct Request {
    pub(super) row: &'static Method,
    values: Vec<Box<RawValue>>,
    /// Parameters that an earlier run has parsed.
    parsed: Parsed,
}

impl Request {
    /// A request of this method.
    ///
    /// # Errors
    /// [`RpcError::ParameterCount`].
    pub fn new(row: &'static Method, values: Vec<Box<RawValue>>) -> Result<Self, RpcError> {
        Params::new(&values, row.required(), row.params.len())?;
        Ok(Self { row, values, parsed: Parsed::default() })
    }

    /// The method.
    pub fn row(&self) -> &'static Method {
        self.row
    }

    /// The parameters.
    pub fn params(&self) -> Params<'_> {
        Params::of_request(&self.values, &self.parsed)
    }

    /// The parameters as received.
    pub fn values(&self) -> &[Box<RawValue>] {
        &self.values
    }

    /// Runs the request on a view. A method that changes a chain is refused, and without filters also a method that
    /// needs them. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`Failure::Stop`] when the view misses facts or refuses, [`Failure::Error`] when the answer is an error.
    pub(super) fn run(&self, view: &dyn View, filters: Option<&mut Filters>, now: u64) -> HandlerResult {
        match (self.row.handler, self.row.handler.filter_handler().zip(filters)) {
            (Handler::Read(read), _) => read(view, self.params()),
            (_, Some((watch, filters))) => watch(filters, view, now, self.params()),
            // On a node, `run_on` runs the methods that change a chain. Here the request is on a light client, or without filters.
            _ => {
                let error = self.row.refusal(Mode::Light);
                Err(error.unwrap_or(RpcError::NeedsLocalChain(self.row.name)).into())
            }
        }
    }

    /// Runs the request on a local chain: methods that read on the node's present snapshot, methods that write on the
    /// node.
    #[cfg(feature = "local")]
    pub(super) fn run_on(&self, node: &mut dyn LocalNode, interrupt: &dyn Fn() -> bool) -> HandlerResult {
        #[cfg(feature = "dev")]
        if let Handler::Write(write) | Handler::Forward(write) = self.row.handler {
            return write(node, self.params());
        }
        let (snapshot, now, asker) = (node.snapshot(), node.now(), node.filters().owner().asker);
        let view = snapshot.view_of(asker, now, interrupt);
        self.run(&*view, Some(node.filters()), now)
    }
}
