//! Parameters by name. Callers give parameters in order, except where a client library has no other form.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::{error::RpcError, method::Method};

/// The parameters of a call in the order of the method's row; one that is left out is null.
///
/// # Errors
/// [`RpcError::ParameterCount`] for a method without names, and for other names.
#[cfg(all(feature = "dev", feature = "catalogue"))]
pub(super) fn in_order(row: Option<&Method>, given: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    use alloc::{borrow::Cow, borrow::ToOwned as _, collections::BTreeMap};

    let row = row.filter(|row| row.takes_names).ok_or(RpcError::ParameterCount)?;
    let mut given: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(given.get()).map_err(|_| RpcError::InvalidRequest)?;
    let names = row.params.iter().map(|param| param.name);
    let ordered = names.map(|name| given.remove(name).unwrap_or(RawValue::NULL).to_owned()).collect();
    if given.is_empty() { Ok(ordered) } else { Err(RpcError::ParameterCount) }
}

/// Browser modules take parameters in order only.
#[cfg(not(all(feature = "dev", feature = "catalogue")))]
pub(super) const fn in_order(_: Option<&Method>, _: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    Err(RpcError::ParameterCount)
}
