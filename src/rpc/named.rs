//! Parameters by name. Callers give parameters in order, except where a client library has no other form.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

use super::error::RpcError;

/// Methods that are called with parameters by name, and the names in the order of the parameters.
#[cfg(all(feature = "dev", feature = "catalogue"))]
const NAMED: &[(&str, &[&str])] = &[
    // alloy sends the members of its options.
    ("anvil_reorg", &["depth", "tx_block_pairs"]),
];

/// The parameters of a method in their order; one that is left out is null.
///
/// # Errors
/// [`RpcError::ParameterCount`] for another method, and for other names.
#[cfg(all(feature = "dev", feature = "catalogue"))]
pub(super) fn in_order(method: &str, given: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    use alloc::{borrow::Cow, borrow::ToOwned as _, collections::BTreeMap};

    let (_, names) = NAMED.iter().find(|(name, _)| *name == method).ok_or(RpcError::ParameterCount)?;
    let mut given: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(given.get()).map_err(|_| RpcError::InvalidRequest)?;
    let ordered = names.iter().map(|name| given.remove(*name).unwrap_or(RawValue::NULL).to_owned()).collect();
    if given.is_empty() { Ok(ordered) } else { Err(RpcError::ParameterCount) }
}

/// Browser modules take parameters in order only.
#[cfg(not(all(feature = "dev", feature = "catalogue")))]
pub(super) const fn in_order(_: &str, _: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    Err(RpcError::ParameterCount)
}
