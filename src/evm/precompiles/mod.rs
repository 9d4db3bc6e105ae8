//! Native contracts, which the node implements itself: the rules under which they exist, their prices and their results. `evm/native.rs`
//! calls [`Precompile::price`] and [`Precompile::run`].
//!
//! These contracts call cryptographic code directly, because `revm`'s own table would link every curve that it supports.

mod abi;
mod bitcoin;
mod blake2f;
mod block_header;
mod bn254;
pub mod bridge;
mod contract;
mod ecrecover;
mod environment;
mod hashes;
mod hd_wallet;
mod host;
mod modexp;
mod padded;
mod provider;
mod remasc;
mod secp256k1;

use alloc::vec::Vec;

use alloy_primitives::Bytes;

use crate::consensus::{Rule, RuleSet};

pub use contract::Precompile;
pub use host::{CallType, NativeBlock, NativeCall, NativeFailure, NativeHost, RunTransaction, Unsimulated};
use padded::padded;
pub(super) use provider::NoPrecompiles;
pub use remasc::cell_slot;

/// Price of a call.
#[derive(Clone, Debug, Default)]
pub struct Price {
    /// Gas.
    pub gas: u64,
    /// Cells that computing the price changed, to be written if the call succeeds.
    carried: Vec<(alloy_primitives::U256, Bytes)>,
}

impl Precompile {
    /// Most bytes of input that a contract's call passes; longer input is cut (RSKIP-516). Input of a
    /// transaction's direct call is not cut.
    pub fn max_input(self, rules: RuleSet) -> Option<usize> {
        if !rules.has(Rule::Rskip516) {
            return None;
        }
        match self {
            Self::EcRecover | Self::BnAdd | Self::Secp256k1Add => Some(128),
            Self::BnMul | Self::Secp256k1Mul => Some(96),
            Self::Blake2F => Some(blake2f::INPUT),
            _ => None,
        }
    }

    /// Gas of a call, charged before the call runs. Some prices depend on the state. Computing a price can
    /// also change the state, at once or together with the call.
    pub fn price(self, call: &NativeCall<'_>, host: &mut dyn NativeHost) -> Result<Price, NativeFailure> {
        let gas = match self {
            Self::HdWalletUtils => hd_wallet::price(call.input),
            Self::BlockHeader => block_header::price(call.input, call.rules),
            Self::Bridge => {
                let (gas, carried) = bridge::price(call, host)?;
                return Ok(Price { gas, carried });
            }
            _ => self.plain_price(call.input),
        };
        Ok(Price { gas, carried: Vec::new() })
    }

    /// Price of a contract whose price depends only on its input.
    fn plain_price(self, input: &[u8]) -> u64 {
        let words = input.len().div_ceil(32) as u64;
        match self {
            Self::EcRecover => 3_000,
            Self::Sha256 => words.saturating_mul(12).saturating_add(60),
            Self::Ripemd160 => words.saturating_mul(120).saturating_add(600),
            Self::Identity => words.saturating_mul(3).saturating_add(15),
            Self::ModExp => modexp::price(input),
            Self::BnAdd => 150,
            Self::BnMul => 6_000,
            Self::BnPairing => bn254::pairing_price(input),
            Self::Blake2F => blake2f::price(input),
            Self::Secp256k1Add => 150,
            Self::Secp256k1Mul => 3_000,
            // `price` has the prices of the last three.
            Self::Environment | Self::Remasc | Self::Bridge | Self::HdWalletUtils | Self::BlockHeader => 0,
        }
    }

    /// Runs the contract. Its price must have been computed before.
    pub fn run(
        self,
        call: &NativeCall<'_>,
        host: &mut dyn NativeHost,
        price: Price,
    ) -> Result<Bytes, NativeFailure> {
        let NativeCall { input, rules, .. } = *call;
        let output: Vec<u8> = match self {
            Self::EcRecover => ecrecover::run(input),
            Self::Sha256 => hashes::sha256(input),
            Self::Ripemd160 => hashes::ripemd160(input),
            Self::Identity => input.to_vec(),
            Self::ModExp => modexp::run(input),
            Self::BnAdd => lenient(bn254::add(input), rules)?,
            Self::BnMul => lenient(bn254::mul(input), rules)?,
            Self::BnPairing => lenient(bn254::pairing(input, &|| host.interrupted())?, rules)?,
            Self::Blake2F => blake2f::run(input, &|| host.interrupted())?,
            // A direct call, of depth 0, counts as depth 1.
            Self::Environment => environment::run(input, call.depth.max(1)).ok_or(NativeFailure::Failed)?,
            Self::Secp256k1Add => secp256k1::add(input).ok_or(NativeFailure::Failed)?,
            Self::Secp256k1Mul => secp256k1::mul(input).ok_or(NativeFailure::Failed)?,
            Self::HdWalletUtils => return hd_wallet::run(input).ok_or(NativeFailure::Failed),
            Self::BlockHeader => return block_header::run(call, host),
            Self::Remasc => return remasc::run(input, host),
            Self::Bridge => return bridge::run(call, host, price.carried),
        };
        Ok(output.into())
    }
}

/// Converts the result of a curve contract. Before RSKIP-197, invalid points gave an empty output and a
/// success.
fn lenient(output: Option<Vec<u8>>, rules: RuleSet) -> Result<Vec<u8>, NativeFailure> {
    match output {
        Some(output) => Ok(output),
        None if rules.has(Rule::Rskip197) => Err(NativeFailure::Failed),
        None => Ok(Vec::new()),
    }
}
