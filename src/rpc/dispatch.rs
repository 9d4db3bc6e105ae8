//! From a call to an answer: find the method, check the count of parameters, run the handler.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::{
    envelope::Call,
    error::RpcError,
    method::{Done, Failure, Method},
    params::Params,
    table,
};
use crate::engine::View;

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
        let mut index: Vec<(&'static str, &'static Method)> = table::methods()
            .flat_map(|method| {
                core::iter::once(method.name)
                    .chain(method.aliases.iter().copied())
                    .map(move |name| (name, method))
            })
            .collect();
        index.sort_unstable_by_key(|(name, _)| *name);
        Self { index }
    }

    /// The row of this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Method> {
        let position = self.index.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.index.get(position).map(|(_, method)| *method)
    }

    /// Runs one call on the view.
    ///
    /// # Errors
    /// [`Failure::Stop`] when the view lacks facts or refuses, [`Failure::Error`] when the answer is an error.
    pub fn run(&self, view: &dyn View, call: &Call) -> Result<Done, Failure> {
        let method = self.find(&call.method).ok_or_else(|| unknown(&call.method))?;
        let params = params(method, &call.params)?;
        (method.handler)(view, params)
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
