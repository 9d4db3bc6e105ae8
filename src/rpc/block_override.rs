//! Block overrides: values that a call, a traced call or a simulation uses in place of those of its block. Here they are
//! parsed as callers write them.

use alloc::string::String;

use alloy_primitives::U256;
use serde::{Deserialize, de::IgnoredAny};

use super::{call_object::Number, error::ParamError, params::parse_address};
use crate::{exec::BlockEnvironment, types::json::Object};

/// The block overrides as a caller writes them. Known fields of Ethereum's blocks that Rootstock's do not have are refused;
/// unknown fields are ignored.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockOverrideObject {
    #[serde(default)]
    number: Option<Number>,
    #[serde(default, alias = "timestamp")]
    time: Option<Number>,
    #[serde(default)]
    gas_limit: Option<Number>,
    #[serde(default, alias = "coinbase")]
    fee_recipient: Option<String>,
    #[serde(default)]
    difficulty: Option<Number>,
    /// The block's minimum gas price.
    #[serde(default, alias = "baseFee", alias = "minimumGasPrice")]
    base_fee_per_gas: Option<Number>,
    #[serde(default)]
    prev_randao: Option<IgnoredAny>,
    #[serde(default)]
    blob_base_fee: Option<IgnoredAny>,
    #[serde(default)]
    beacon_root: Option<IgnoredAny>,
    #[serde(default)]
    withdrawals: Option<IgnoredAny>,
}

/// Parsed block overrides; `None` keeps the block's own value.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockOverride {
    pub(super) number: Option<u64>,
    /// Seconds since 1970.
    pub(super) timestamp: Option<u64>,
    gas_limit: Option<u64>,
    coinbase: Option<alloy_primitives::Address>,
    difficulty: Option<U256>,
    /// In wei.
    minimum_gas_price: Option<U256>,
}

/// Parses block overrides; without them, nothing is overridden.
pub(super) fn block_override(
    given: Option<&Object<BlockOverrideObject>>,
) -> Result<BlockOverride, ParamError> {
    given.map_or_else(|| Ok(BlockOverride::default()), |Object(block)| block.parse())
}

impl BlockOverrideObject {
    /// Parses the overrides.
    pub(super) fn parse(&self) -> Result<BlockOverride, ParamError> {
        let foreign = [
            (&self.prev_randao, "prevRandao"),
            (&self.blob_base_fee, "blobBaseFee"),
            (&self.beacon_root, "beaconRoot"),
            (&self.withdrawals, "withdrawals"),
        ];
        if let Some((_, name)) = foreign.iter().find(|(given, _)| given.is_some()) {
            return Err(ParamError::BlockOverride(name));
        }
        let bits64 = |given: &Option<Number>| given.as_ref().map(Number::short).transpose();
        let bits256 = |given: &Option<Number>| given.as_ref().map(Number::value).transpose();
        // Numbers and timestamps of blocks are signed 64-bit integers in the reference node.
        let bits63 = |given: &Option<Number>| match bits64(given)? {
            Some(above) if i64::try_from(above).is_err() => {
                Err(ParamError::Number(alloc::format!("{above}")))
            }
            number => Ok(number),
        };
        Ok(BlockOverride {
            number: bits63(&self.number)?,
            timestamp: bits63(&self.time)?,
            gas_limit: bits64(&self.gas_limit)?,
            coinbase: self.fee_recipient.as_deref().map(parse_address).transpose()?,
            difficulty: bits256(&self.difficulty)?,
            minimum_gas_price: bits256(&self.base_fee_per_gas)?,
        })
    }
}

impl BlockOverride {
    /// Replaces the overridden values in the environment of a block.
    pub(super) fn apply(&self, block: &mut BlockEnvironment) {
        block.number = self.number.unwrap_or(block.number);
        block.timestamp = self.timestamp.unwrap_or(block.timestamp);
        block.gas_limit = self.gas_limit.map_or(block.gas_limit, U256::from);
        block.coinbase = self.coinbase.unwrap_or(block.coinbase);
        block.difficulty = self.difficulty.unwrap_or(block.difficulty);
        block.minimum_gas_price = self.minimum_gas_price.unwrap_or(block.minimum_gas_price);
    }
}
