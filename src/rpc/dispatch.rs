//! Finds the row of the method table for a request.

use alloc::vec::Vec;

use super::method::Pages;
use super::{
    connection::Connection,
    envelope::Call,
    error::RpcError,
    method::{Handler, Method},
    request::Request,
    table,
};

/// The method table with look-up by name.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    /// Sorted by name; aliases point to the same row.
    index: Vec<(&'static str, &'static Method)>,
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
        Self { index }
    }

    /// The row of this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Method> {
        let position = self.index.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.index.get(position).map(|(_, method)| *method)
    }

    /// Turns a call of a connection into a request.
    ///
    /// # Errors
    /// [`RpcError::MethodNotFound`], [`RpcError::NotAvailable`], [`RpcError::NoNotifications`],
    /// [`RpcError::ForeignPage`], [`RpcError::ParameterCount`].
    pub(super) fn request(&self, call: Call, connection: &Connection) -> Result<Request, RpcError> {
        let row = call.row.ok_or_else(|| unknown(&call.method))?;
        // The operator has these methods under every profile.
        if row.pages == Pages::Operator {
            return match connection.is_operator() {
                true => Request::new(row, call.params),
                false => Err(RpcError::NotAvailable(call.method)),
            };
        }
        #[cfg(feature = "hosted")]
        let row = connection.profile().row(row).ok_or(RpcError::NotAvailable(call.method))?;
        if matches!(row.handler, Handler::Subscribe(_) | Handler::Unsubscribe(_)) && !connection.is_notified()
        {
            return Err(RpcError::NoNotifications);
        }
        #[cfg(feature = "dev")]
        if let Some(origin) = connection.refuses(row.pages) {
            return Err(RpcError::ForeignPage { method: row.name, origin: origin.into(), pages: row.pages });
        }
        Request::new(row, call.params)
    }
}

/// Distinguishes names that the reference node serves and Rootlight does not from unknown names.
fn unknown(name: &str) -> RpcError {
    if table::UNAVAILABLE.contains(&name) {
        return RpcError::NotAvailable(name.into());
    }
    RpcError::MethodNotFound
}
