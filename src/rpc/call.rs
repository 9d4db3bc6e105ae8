//! `eth_call`: local execution on proven state.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use alloy_primitives::{hex, Address, B256, U256};
use serde::Deserialize;

use super::{
    error::{ParamError, RpcError},
    lookup::find,
    method::{optional, required, verified, Done, Failure, Method},
    params::{parse_address, parse_data, parse_number, BlockSelector, Params},
    revert::reason,
};
use crate::{
    consensus::VerifiedHeader,
    engine::{Level, Refusal, Stop, View},
    exec::{
        call as execute, BlockEnvironment, BlockHashes, CallContext, CallMessage, CallOutcome, CallStop,
        OverrideError, RunLimits,
    },
    light::{BlockRef, Fact, Facts},
    state::{AccountOverride, OverrideStorage, StateError, StateKey, StateOverride},
    types::{Header, SealedHeader},
};

pub(super) const METHODS: &[Method] = &[Method {
    name: "eth_call",
    aliases: &[],
    params: &[required("call", "CALL"), optional("block", "BLOCK"), optional("stateOverride", "OVERRIDE")],
    result: "DATA",
    level: Level::Verified,
    cost: 50,
    doc: "Runs a message on the state after a block, without a transaction.",
    handler: eth_call,
}];

/// A transaction call object; unknown fields are ignored, `input` wins over `data`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CallObject {
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
    /// Checked and ignored: a call has no nonce.
    #[serde(default)]
    nonce: Option<Number>,
    /// Checked and ignored: the chain is this one.
    #[serde(default)]
    chain_id: Option<Number>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    input: Option<String>,
}

/// A number as a string or as a JSON number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Integer(u64),
}

impl Number {
    /// An empty string, which the reference takes for a missing field.
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn value(&self) -> Result<U256, ParamError> {
        match self {
            Self::Text(text) => parse_number(text),
            Self::Integer(number) => Ok(U256::from(*number)),
        }
    }
}

impl CallObject {
    fn message(&self) -> Result<CallMessage, ParamError> {
        let address = |text: &Option<String>| text.as_deref().map(parse_address).transpose();
        let number = |value: &Option<Number>| value.as_ref().map_or(Ok(U256::ZERO), Number::value);
        let gas = self.gas.as_ref().filter(|gas| !gas.is_empty()).map(Number::value).transpose()?;
        number(&self.nonce)?;
        number(&self.chain_id)?;
        let data = self.input.as_deref().or(self.data.as_deref());
        Ok(CallMessage {
            from: address(&self.from)?,
            to: address(&self.to)?,
            // More than fits is more than the cap.
            gas: gas.map(|gas| u64::try_from(gas).unwrap_or(u64::MAX)),
            gas_price: number(&self.gas_price)?,
            value: number(&self.value)?,
            data: data.map(parse_data).transpose()?.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OverrideObject {
    #[serde(default)]
    balance: Option<String>,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    state: Option<BTreeMap<String, String>>,
    #[serde(default)]
    state_diff: Option<BTreeMap<String, String>>,
    #[serde(default)]
    move_precompile_to_address: Option<String>,
}

impl OverrideObject {
    fn account(&self, address: Address) -> Result<AccountOverride, ParamError> {
        if self.move_precompile_to_address.is_some() {
            return Err(ParamError::MovePrecompile);
        }
        let storage = match (&self.state, &self.state_diff) {
            (Some(_), Some(_)) => return Err(ParamError::OverrideBoth(address)),
            (Some(slots), None) => OverrideStorage::Replace(slot_map(slots)?),
            (None, Some(slots)) => OverrideStorage::Patch(slot_map(slots)?),
            (None, None) => OverrideStorage::Keep,
        };
        let nonce = self.nonce.as_deref().map(parse_number).transpose()?;
        Ok(AccountOverride {
            balance: self.balance.as_deref().map(parse_number).transpose()?,
            nonce: nonce
                .map(|n| u64::try_from(n).map_err(|_| ParamError::Number(alloc::format!("{n}"))))
                .transpose()?,
            code: self.code.as_deref().map(parse_data).transpose()?,
            storage,
        })
    }
}

fn slot_map(slots: &BTreeMap<String, String>) -> Result<BTreeMap<U256, U256>, ParamError> {
    slots.iter().map(|(slot, value)| Ok((hex_word(slot)?, hex_word(value)?))).collect()
}

/// Up to 32 bytes in hex, `0x` optional.
fn hex_word(text: &str) -> Result<U256, ParamError> {
    U256::try_from_be_slice(&parse_data(text)?).ok_or(ParamError::Data)
}

fn overrides(params: Params<'_>) -> Result<StateOverride, Failure> {
    let given: BTreeMap<String, OverrideObject> =
        params.object(2, "a map of addresses to overrides")?.unwrap_or_default();
    let mut accounts = BTreeMap::new();
    for (address, object) in &given {
        let address = parse_address(address)?;
        accounts.insert(address, object.account(address)?);
    }
    Ok(StateOverride { accounts })
}

/// Hashes of ancestors, from the verified chain. What the view cannot give is missing, and named by the run.
struct Ancestors<'a> {
    view: &'a dyn View,
    block: &'a VerifiedHeader,
}

impl BlockHashes for Ancestors<'_> {
    fn block_hash(&self, number: u64) -> Option<B256> {
        if number.checked_add(1)? == self.block.number {
            return Some(self.block.parent_hash);
        }
        let header = self.view.header_by_number(number).ok()??;
        Some(header.hash())
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        Some(self.view.header_by_number(number).ok()??.sealed().clone())
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = self.view.uncles(&self.view.header_by_number(number).ok()??).ok()?;
        Some(uncles.headers().iter().map(|uncle| Header::clone(uncle)).collect())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        let header = self.view.header_by_number(number).ok()??;
        self.view.total_difficulty(header.hash()).ok()?
    }
}

/// Why a run lacks what it does. What it lacks of ancestors the view knows how to get, or refuses.
fn lacking(view: &dyn View, header: &VerifiedHeader, keys: BTreeSet<StateKey>) -> Failure {
    let block = BlockRef { number: header.number, hash: header.hash() };
    let mut facts = Facts::new();
    for key in keys {
        match ancestor_stop(view, &key) {
            None => drop(facts.insert(Fact::State(block, key))),
            Some(Stop::Lacking(more)) => facts.extend(more),
            Some(refused) => return Failure::Stop(refused),
        }
    }
    Failure::Stop(Stop::Lacking(facts))
}

fn ancestor_stop(view: &dyn View, key: &StateKey) -> Option<Stop> {
    let (StateKey::BlockHash(number)
    | StateKey::Header(number)
    | StateKey::Uncles(number)
    | StateKey::TotalDifficulty(number)) = key
    else {
        return None;
    };
    let read = view.header_by_number(*number).and_then(|ancestor| {
        let Some(ancestor) = ancestor else { return Ok(()) };
        match key {
            StateKey::Uncles(_) => view.uncles(&ancestor).map(drop),
            StateKey::TotalDifficulty(_) => match view.total_difficulty(ancestor.hash())? {
                Some(_) => Ok(()),
                None => Err(Stop::Refused(Refusal::NoTotalDifficulty(*number))),
            },
            _ => Ok(()),
        }
    });
    read.err()
}

fn eth_call(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let object: CallObject = params.object(0, "a call object")?.unwrap_or_default();
    let message = object.message()?;
    let selector = params.call_block(1)?;
    let overrides = overrides(params)?;
    let header = block(view, &selector)?;
    match run(view, &header, &message, &overrides)? {
        CallOutcome::Success { output, .. } => verified(&hex::encode_prefixed(&output)),
        CallOutcome::Revert { output, .. } => {
            Err(RpcError::Reverted { reason: reason(&output), data: output }.into())
        }
        CallOutcome::Halt { reason, .. } => Err(RpcError::Halted(alloc::format!("{reason}")).into()),
    }
}

/// The block of a call; the reference prints unknown numbers in decimal here.
fn block(view: &dyn View, selector: &BlockSelector) -> Result<VerifiedHeader, Failure> {
    if let Some(header) = find(view, selector)? {
        return Ok(header);
    }
    Err(Failure::Error(match selector {
        BlockSelector::Hash { hash, .. } => RpcError::BlockHashNotFound(*hash),
        BlockSelector::Number(Some(number), _) => RpcError::CallBlockNumber(*number),
        other => RpcError::BlockNotFound(alloc::format!("{other:?}")),
    }))
}

fn run(
    view: &dyn View,
    header: &VerifiedHeader,
    message: &CallMessage,
    overrides: &StateOverride,
) -> Result<CallOutcome, Failure> {
    let state = view.state(header)?;
    let context = CallContext {
        state: &*state,
        hashes: &Ancestors { view, block: header },
        block: &environment(header),
        rules: view.network().rules(header.number),
        chain_id: view.network().chain_id,
    };
    let interrupt = || view.interrupted();
    let limits = RunLimits { interrupt: &interrupt, ..RunLimits::default() };
    match execute(&context, message, overrides, &limits) {
        Ok(result) => Ok(result.into_outcome()),
        Err(CallStop::Lacking(keys)) => Err(lacking(view, header, keys)),
        Err(CallStop::Override(OverrideError::Precompile(_))) => Err(ParamError::OverridePrecompile.into()),
        Err(stop) => Err(Failure::Stop(Stop::Refused(refusal(stop)))),
    }
}

fn refusal(stop: CallStop) -> Refusal {
    match stop {
        CallStop::Interrupted => Refusal::Interrupted,
        CallStop::NotSimulated(method) => Refusal::NotSimulated(method),
        CallStop::TooManyKeys { limit } => Refusal::TooManyFacts { max: limit },
        CallStop::Corrupt { key, fault } => Refusal::CorruptState(StateError::Corrupt { key, fault }),
        other => Refusal::Execution(other),
    }
}

fn environment(header: &VerifiedHeader) -> BlockEnvironment {
    BlockEnvironment {
        number: header.number,
        timestamp: header.timestamp,
        coinbase: header.coinbase.unwrap_or_default(),
        difficulty: header.difficulty.value(),
        gas_limit: header.gas_limit.value(),
        minimum_gas_price: header.minimum_gas_price.value(),
    }
}
