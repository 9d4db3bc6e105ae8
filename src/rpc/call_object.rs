//! Call objects and state overrides as callers write them.

use alloc::{collections::BTreeMap, string::String, sync::Arc};

use alloy_primitives::{Address, U256};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    entries::Entries,
    error::ParamError,
    method::Failure,
    params::{Params, parse_address, parse_data, parse_number},
};
use crate::{
    exec::CallMessage,
    state::{AccountOverride, OverrideStorage, StateOverride},
    types::json::Object,
};

/// Longest state overrides of a call, and longest list of calls with its overrides, in bytes of JSON: enough for twenty codes of
/// the greatest length (24,576 bytes each, in hex). The limit bounds memory: an overridden account without values takes ten times the memory of its text once parsed.
pub(super) const MAX_OVERRIDES: usize = 1024 * 1024;

/// Most objects in a list of calls with its overrides. The limit bounds memory: an empty call (`{}`) takes three hundred times
/// the memory of its text once parsed.
const MAX_CALL_OBJECTS: usize = 32_768;

/// Checks how long the list of calls in the first parameter is, before it is parsed.
pub(super) fn check_calls(params: Params<'_>) -> Result<(), ParamError> {
    if params.length(0) > MAX_OVERRIDES {
        return Err(ParamError::CallsTooLong(MAX_OVERRIDES));
    }
    if params.objects(0) > MAX_CALL_OBJECTS {
        return Err(ParamError::TooManyCalls(MAX_CALL_OBJECTS));
    }
    Ok(())
}

/// A transaction call object. Unknown fields are ignored; `input` takes precedence over `data`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallObject {
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    gas: Option<Number>,
    #[serde(default)]
    gas_price: Option<Number>,
    #[serde(default)]
    value: Option<Number>,
    /// Checked to be a number and otherwise ignored by calls, which have no nonce; simulations use it.
    #[serde(default)]
    nonce: Option<Number>,
    /// Checked to be a number and otherwise ignored: a call runs on this chain.
    #[serde(default)]
    chain_id: Option<Number>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    input: Option<String>,
    /// The member by which the parameter of `eth_simulateV1` differs from a call object. Some methods take either.
    #[serde(default)]
    block_state_calls: Option<IgnoredAny>,
}

/// A number as a string or as a JSON number.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Text(String),
    Integer(u64),
}

impl Number {
    /// Whether this is an empty string, which the reference node treats as a missing field.
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// The number, of at most 256 bits.
    pub(super) fn value(&self) -> Result<U256, ParamError> {
        match self {
            Self::Text(text) => parse_number(text),
            Self::Integer(number) => Ok(U256::from(*number)),
        }
    }

    /// The number, if it has at most 64 bits.
    pub(super) fn short(&self) -> Result<u64, ParamError> {
        let value = self.value()?;
        u64::try_from(value).map_err(|_| ParamError::Number(alloc::format!("{value}")))
    }
}

impl CallObject {
    /// The nonce; `None` if it is missing or empty.
    pub(super) fn nonce(&self) -> Result<Option<u64>, ParamError> {
        self.nonce.as_ref().filter(|nonce| !nonce.is_empty()).map(Number::short).transpose()
    }

    /// The message that the object describes.
    pub(super) fn message(&self) -> Result<CallMessage, ParamError> {
        let address = |text: &Option<String>| text.as_deref().map(parse_address).transpose();
        let given = |value: &Option<Number>| {
            value.as_ref().filter(|value| !value.is_empty()).map(Number::value).transpose()
        };
        let number = |value: &Option<Number>| given(value).map(Option::unwrap_or_default);
        let gas = given(&self.gas)?;
        number(&self.nonce)?;
        number(&self.chain_id)?;
        let data = self.input.as_deref().or(self.data.as_deref());
        Ok(CallMessage {
            from: address(&self.from)?,
            to: address(&self.to)?,
            // A gas limit above 64 bits exceeds the gas cap of the run anyway.
            gas: gas.map(|gas| u64::try_from(gas).unwrap_or(u64::MAX)),
            gas_price: number(&self.gas_price)?,
            value: number(&self.value)?,
            data: data.map(parse_data).transpose()?.unwrap_or_default(),
        })
    }
}

/// The overrides of one account as a caller writes them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OverrideObject {
    #[serde(default)]
    balance: Option<Number>,
    #[serde(default)]
    nonce: Option<Number>,
    #[serde(default)]
    code: Option<String>,
    /// All cells of the account's storage.
    #[serde(default)]
    state: Option<Entries<String>>,
    /// The cells that change; the others keep their values.
    #[serde(default)]
    state_diff: Option<Entries<String>>,
    #[serde(default)]
    move_precompile_to_address: Option<String>,
}

impl OverrideObject {
    /// The parsed overrides; `address` is for error messages.
    fn parse(&self, address: Address) -> Result<AccountOverride, ParamError> {
        if self.move_precompile_to_address.is_some() {
            return Err(ParamError::MovePrecompile);
        }
        let storage = match (&self.state, &self.state_diff) {
            (Some(_), Some(_)) => return Err(ParamError::OverrideBoth(address)),
            (Some(slots), None) => OverrideStorage::Replace(slot_map(slots)?),
            (None, Some(slots)) => OverrideStorage::Patch(slot_map(slots)?),
            (None, None) => OverrideStorage::Keep,
        };
        Ok(AccountOverride {
            balance: self.balance.as_ref().map(Number::value).transpose()?,
            nonce: self.nonce.as_ref().map(Number::short).transpose()?,
            code: self.code.as_deref().map(parse_data).transpose()?,
            storage,
        })
    }
}

/// Parses slots and their values.
fn slot_map(slots: &Entries<String>) -> Result<BTreeMap<U256, U256>, ParamError> {
    let mut words = BTreeMap::new();
    for (slot, value) in &slots.0 {
        words.insert(hex_word(slot)?, hex_word(value)?);
    }
    Ok(words)
}

/// Up to 32 bytes in hex, `0x` optional.
fn hex_word(text: &str) -> Result<U256, ParamError> {
    U256::try_from_be_slice(&parse_data(text)?).ok_or(ParamError::Data)
}

/// The message in the first parameter.
pub(super) fn message(params: Params<'_>) -> Result<Arc<CallMessage>, ParamError> {
    params.once(0, || {
        let object = call_object(params)?;
        if object.block_state_calls.is_some() {
            return Err(ParamError::Type { position: 0, expected: "a call object" });
        }
        object.message()
    })
}

/// The first parameter as a call object; an empty one if it is missing.
fn call_object(params: Params<'_>) -> Result<CallObject, ParamError> {
    Ok(params.object(0, "a call object")?.unwrap_or_default())
}

/// Whether the first parameter is a simulation and no call.
#[cfg(feature = "local")]
pub(super) fn is_simulation(params: Params<'_>) -> bool {
    call_object(params).is_ok_and(|object| object.block_state_calls.is_some())
}

/// The list of calls in the first parameter.
#[cfg(feature = "local")]
pub(super) fn call_list<'a, T: Deserialize<'a>>(
    params: Params<'a>,
    expected: &'static str,
) -> Result<alloc::vec::Vec<T>, ParamError> {
    check_calls(params)?;
    params.value(0, expected)?.ok_or(ParamError::Type { position: 0, expected })
}

/// The state overrides in the parameter at a position.
pub(super) fn overrides(params: Params<'_>, position: usize) -> Result<Arc<StateOverride>, Failure> {
    params.once(position, || parse_overrides(params, position))
}

fn parse_overrides(params: Params<'_>, position: usize) -> Result<StateOverride, Failure> {
    if params.length(position) > MAX_OVERRIDES {
        return Err(ParamError::OverridesTooLong(MAX_OVERRIDES).into());
    }
    let given: Option<OverrideObjects> = params.object(position, "a map of addresses to overrides")?;
    Ok(state_override(given.as_ref())?)
}

/// Overrides of state by account address, as the caller wrote them.
pub(super) type OverrideObjects = Entries<Object<OverrideObject>>;

/// The overrides of accounts, or none.
pub(super) fn state_override(given: Option<&OverrideObjects>) -> Result<StateOverride, ParamError> {
    let mut accounts = BTreeMap::new();
    for (address, Object(object)) in given.iter().flat_map(|given| &given.0) {
        let address = parse_address(address)?;
        accounts.insert(address, object.parse(address)?);
    }
    Ok(StateOverride { accounts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_string_is_a_missing_number() {
        let text = r#"{"gas":"","gasPrice":"","value":"","nonce":"","chainId":""}"#;
        let object: CallObject = serde_json::from_str(text).unwrap();
        assert_eq!((object.message(), object.nonce()), (CallObject::default().message(), Ok(None)));
        let object: CallObject = serde_json::from_str(r#"{"nonce":" "}"#).unwrap();
        assert_eq!(object.message(), Err(ParamError::Number(" ".into())));
    }
}
