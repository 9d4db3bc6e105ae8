//! Parameters by name, for the methods that client libraries call in no other form. Other methods take parameters in order.

use alloc::{boxed::Box, vec::Vec};

use serde_json::value::RawValue;

#[cfg(all(feature = "dev", feature = "catalogue"))]
use super::method::Param;
use super::{error::RpcError, method::Method};

/// The parameters of a call in the order of the method's row; one that is left out is null.
///
/// # Errors
/// [`RpcError::ParameterCount`] for a method that takes parameters in order only, and for unknown names.
#[cfg(all(feature = "dev", feature = "catalogue"))]
pub(super) fn in_order(row: Option<&Method>, given: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    use alloc::borrow::ToOwned as _;
    use serde::Deserializer as _;

    let row = row.filter(|row| row.takes_names).ok_or(RpcError::ParameterCount)?;
    let read = serde_json::Deserializer::from_str(given.get()).deserialize_map(NamedParams(row.params));
    let values = read.map_err(|_| RpcError::ParameterCount)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(RawValue::NULL).to_owned()).collect())
}

/// Reads the values of these parameters in the order of the row. Fails at the first name that is not one of them.
#[cfg(all(feature = "dev", feature = "catalogue"))]
struct NamedParams(&'static [Param]);

#[cfg(all(feature = "dev", feature = "catalogue"))]
impl<'de> serde::de::Visitor<'de> for NamedParams {
    type Value = Vec<Option<&'de RawValue>>;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("parameters by name")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = alloc::vec![None; self.0.len()];
        while let Some(name) = map.next_key::<alloc::borrow::Cow<'de, str>>()? {
            let position = self.0.iter().position(|param| param.name == name);
            let value = position.and_then(|position| values.get_mut(position));
            let unknown = || serde::de::Error::custom("there is no such parameter");
            *value.ok_or_else(unknown)? = Some(map.next_value()?);
        }
        Ok(values)
    }
}

/// Browser modules take parameters in order only.
#[cfg(not(all(feature = "dev", feature = "catalogue")))]
pub(super) const fn in_order(_: Option<&Method>, _: &RawValue) -> Result<Vec<Box<RawValue>>, RpcError> {
    Err(RpcError::ParameterCount)
}
