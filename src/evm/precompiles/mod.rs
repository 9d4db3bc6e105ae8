//! Native contracts: the rules under which they exist, their prices and their results.
//!
//! They call cryptographic code directly, because `revm`'s own table would link every curve that it supports.

mod abi;
mod bitcoin;
mod blake2f;
mod block_header;
mod bn254;
pub mod bridge;
mod ecrecover;
mod environment;
mod hashes;
mod hd_wallet;
mod host;
mod modexp;
mod provider;
mod remasc;
mod secp256k1;

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes};

use crate::consensus::{Rule, RuleSet};

pub use host::{CallType, NativeBlock, NativeCall, NativeHost, Refusal, RunTransaction, Unsimulated};
pub(super) use provider::NoPrecompiles;
pub use remasc::cell_slot;

/// A native contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precompile {
    /// 0x01, recovery of a signature's address.
    EcRecover,
    /// 0x02
    Sha256,
    /// 0x03
    Ripemd160,
    /// 0x04, returns its input.
    Identity,
    /// 0x05, modular exponentiation (EIP-198).
    ModExp,
    /// 0x06, addition on alt_bn128 (EIP-196).
    BnAdd,
    /// 0x07, multiplication on alt_bn128 (EIP-196).
    BnMul,
    /// 0x08, pairing check on alt_bn128 (EIP-197).
    BnPairing,
    /// 0x09, BLAKE2 F (EIP-152).
    Blake2F,
    /// 0x01000006
    Bridge,
    /// 0x01000008
    Remasc,
    /// 0x01000009 (RSKIP-106)
    HdWalletUtils,
    /// 0x01000010 (RSKIP-119)
    BlockHeader,
    /// 0x01000011 (RSKIP-203)
    Environment,
    /// 0x01000016, addition on secp256k1 (RSKIP-516).
    Secp256k1Add,
    /// 0x01000017, multiplication on secp256k1 (RSKIP-516).
    Secp256k1Mul,
}

/// Price of a call.
#[derive(Clone, Debug, Default)]
pub struct Price {
    /// Gas.
    pub gas: u64,
    /// Cells that computing the price changed, to be written if the call succeeds.
    carried: Vec<(alloy_primitives::U256, Bytes)>,
}

/// Low four bytes of the address, contract, and the rule that introduced it (`None`: genesis).
const TABLE: [(u32, Precompile, Option<Rule>); 16] = [
    (0x01, Precompile::EcRecover, None),
    (0x02, Precompile::Sha256, None),
    (0x03, Precompile::Ripemd160, None),
    (0x04, Precompile::Identity, None),
    (0x05, Precompile::ModExp, None),
    (0x06, Precompile::BnAdd, Some(Rule::Rskip137)),
    (0x07, Precompile::BnMul, Some(Rule::Rskip137)),
    (0x08, Precompile::BnPairing, Some(Rule::Rskip137)),
    (0x09, Precompile::Blake2F, Some(Rule::Rskip153)),
    (0x0100_0006, Precompile::Bridge, None),
    (0x0100_0008, Precompile::Remasc, None),
    (0x0100_0009, Precompile::HdWalletUtils, Some(Rule::Rskip106)),
    (0x0100_0010, Precompile::BlockHeader, Some(Rule::Rskip119)),
    (0x0100_0011, Precompile::Environment, Some(Rule::Rskip203)),
    (0x0100_0016, Precompile::Secp256k1Add, Some(Rule::Rskip516)),
    (0x0100_0017, Precompile::Secp256k1Mul, Some(Rule::Rskip516)),
];

impl Precompile {
    /// The native contract at an address under these rules, if any.
    pub fn at(address: &Address, rules: RuleSet) -> Option<Self> {
        let [zeros @ .., a, b, c, d] = &address.0.0;
        if zeros.iter().any(|byte| *byte != 0) {
            return None;
        }
        let low = u32::from_be_bytes([*a, *b, *c, *d]);
        let (_, precompile, rule) = TABLE.iter().find(|(key, ..)| *key == low)?;
        rule.is_none_or(|rule| rules.has(rule)).then_some(*precompile)
    }

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

    /// Address of the contract.
    pub fn address(self) -> Address {
        let low = TABLE.iter().find(|(_, precompile, _)| *precompile == self).map_or(0, |(low, ..)| *low);
        Address::left_padding_from(&low.to_be_bytes())
    }

    /// Gas of a call, charged before the call runs. Some prices depend on the state. Computing a price can
    /// also change the state, at once or together with the call.
    pub fn price(self, call: &NativeCall<'_>, host: &mut dyn NativeHost) -> Result<Price, Refusal> {
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
            Self::Environment | Self::Bridge | Self::Remasc | Self::HdWalletUtils | Self::BlockHeader => 0,
        }
    }

    /// Runs the contract. Its price must have been computed before.
    pub fn run(
        self,
        call: &NativeCall<'_>,
        host: &mut dyn NativeHost,
        price: Price,
    ) -> Result<Bytes, Refusal> {
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
            Self::Environment => environment::run(input, call.depth.max(1)).ok_or(Refusal::Failed)?,
            Self::Secp256k1Add => secp256k1::add(input).ok_or(Refusal::Failed)?,
            Self::Secp256k1Mul => secp256k1::mul(input).ok_or(Refusal::Failed)?,
            Self::HdWalletUtils => return hd_wallet::run(input).ok_or(Refusal::Failed),
            Self::BlockHeader => return block_header::run(call, host),
            Self::Remasc => return remasc::run(input, host),
            Self::Bridge => return bridge::run(call, host, price.carried),
        };
        Ok(output.into())
    }
}

/// Converts the result of a curve contract. Before RSKIP-197, invalid points gave an empty output and a
/// success.
fn lenient(output: Option<Vec<u8>>, rules: RuleSet) -> Result<Vec<u8>, Refusal> {
    match output {
        Some(output) => Ok(output),
        None if rules.has(Rule::Rskip197) => Err(Refusal::Failed),
        None => Ok(Vec::new()),
    }
}

/// `N` bytes of input from an offset; missing bytes read as zero.
fn padded<const N: usize>(input: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    let rest = input.get(offset..).unwrap_or_default();
    out.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(low: u64) -> Address {
        Address::left_padding_from(&low.to_be_bytes())
    }

    #[test]
    fn contracts_exist_only_under_their_rule() {
        let none = RuleSet::NONE;
        let all = Rule::ALL.iter().copied().collect();
        assert_eq!(Precompile::at(&address(5), none), Some(Precompile::ModExp));
        assert_eq!(Precompile::at(&address(9), none), None);
        assert_eq!(Precompile::at(&address(9), all), Some(Precompile::Blake2F));
        assert_eq!(Precompile::at(&address(10), all), None);
        assert_eq!(Precompile::at(&address(0x1_0000_0005), all), None, "high bytes count");
    }
}
