//! A call whose method exists and may be called.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::{
    connection::Connection,
    error::RpcError,
    message::Call,
    method::{Handler, HandlerResult, Method, PageAccess},
    mode::Mode,
    params::{Params, Parsed},
    table,
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

    /// Turns a call of a connection into a request.
    pub(super) fn of(call: Call, connection: &Connection) -> Result<Self, RpcError> {
        let row = call.row.ok_or_else(|| table::unknown(&call.method))?;
        // The operator has these methods under every profile.
        if row.pages == PageAccess::Operator {
            return match connection.is_operator() {
                true => Self::new(row, call.params),
                false => Err(RpcError::NotAvailable(call.method)),
            };
        }
        let row = connection.row(row).ok_or(RpcError::NotAvailable(call.method))?;
        if matches!(row.handler, Handler::Subscribe(_) | Handler::Unsubscribe(_)) && !connection.is_notified()
        {
            return Err(RpcError::NoNotifications);
        }
        #[cfg(feature = "dev")]
        if let Some(origin) = connection.refuses(row.pages) {
            return Err(RpcError::ForeignPage { method: row.name, origin: origin.into(), pages: row.pages });
        }
        // Scripts run in an engine that a page of strangers is not to reach.
        #[cfg(all(feature = "dev", feature = "catalogue"))]
        if let Some(origin) = connection.refuses(PageAccess::Own)
            && super::debug::has_script(row, &call.params)
        {
            let pages = PageAccess::Own;
            return Err(RpcError::ForeignPage { method: row.name, origin: origin.into(), pages });
        }
        Self::new(row, call.params)
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

    /// Runs the request on a view. A method that changes a chain is refused; without filters, so is a method that
    /// needs them. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`Failure::Stop`] when the view misses facts or refuses, [`Failure::Error`] when the answer is an error.
    pub(super) fn run(&self, view: &dyn View, filters: Option<&mut Filters>, now: u64) -> HandlerResult {
        match (self.row.handler, self.row.handler.watching().zip(filters)) {
            (Handler::Read(read), _) => read(view, self.params()),
            (_, Some((watch, filters))) => watch(filters, view, now, self.params()),
            // Nodes run what changes a chain by [`Self::run_on`].
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
