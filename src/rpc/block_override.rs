//! Block overrides as callers write them.

use alloc::string::String;

use alloy_primitives::U256;
use serde::{Deserialize, de::IgnoredAny};

use super::{call_object::Number, error::ParamError, params::parse_address};
use crate::{exec::BlockEnvironment, types::json::Object};

/// Fields of a block that a simulation changes. Those that blocks of Rootstock do not have are refused; unknown ones are
/// ignored.
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

/// Fields of a block that are changed.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockOverride {
    pub(super) number: Option<u64>,
    pub(super) timestamp: Option<u64>,
    gas_limit: Option<u64>,
    coinbase: Option<alloy_primitives::Address>,
    difficulty: Option<U256>,
    minimum_gas_price: Option<U256>,
}

/// The changes of a block, or none.
pub(super) fn block_override(
    given: Option<&Object<BlockOverrideObject>>,
) -> Result<BlockOverride, ParamError> {
    given.map_or_else(|| Ok(BlockOverride::default()), |Object(block)| block.parse())
}

impl BlockOverrideObject {
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
        let short = |given: &Option<Number>| given.as_ref().map(Number::short).transpose();
        let long = |given: &Option<Number>| given.as_ref().map(Number::value).transpose();
        // Heights and times have 63 bits.
        let height = |given: &Option<Number>| match short(given)? {
            Some(above) if i64::try_from(above).is_err() => {
                Err(ParamError::Number(alloc::format!("{above}")))
            }
            number => Ok(number),
        };
        Ok(BlockOverride {
            number: height(&self.number)?,
            timestamp: height(&self.time)?,
            gas_limit: short(&self.gas_limit)?,
            coinbase: self.fee_recipient.as_deref().map(parse_address).transpose()?,
            difficulty: long(&self.difficulty)?,
            minimum_gas_price: long(&self.base_fee_per_gas)?,
        })
    }
}

impl BlockOverride {
    /// Changes the environment of a block.
    pub(super) fn apply(&self, block: &mut BlockEnvironment) {
        block.number = self.number.unwrap_or(block.number);
        block.timestamp = self.timestamp.unwrap_or(block.timestamp);
        block.gas_limit = self.gas_limit.map_or(block.gas_limit, U256::from);
        block.coinbase = self.coinbase.unwrap_or(block.coinbase);
        block.difficulty = self.difficulty.unwrap_or(block.difficulty);
        block.minimum_gas_price = self.minimum_gas_price.unwrap_or(block.minimum_gas_price);
    }
}
