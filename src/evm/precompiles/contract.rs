//! The native contracts, their addresses, and the rules under which they exist.

use alloy_primitives::Address;

use crate::consensus::{Rule, RuleSet};

/// A native contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precompile {
    /// 0x01, recovery of a signature's address.
    EcRecover,
    /// 0x02, the SHA-256 hash.
    Sha256,
    /// 0x03, the RIPEMD-160 hash.
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
    /// 0x09, the compression function F of BLAKE2b (EIP-152).
    Blake2F,
    /// 0x01000006, the Bridge to Bitcoin.
    Bridge,
    /// 0x01000008, REMASC, which pays fees to miners.
    Remasc,
    /// 0x01000009, Bitcoin addresses and keys (RSKIP-106).
    HdWalletUtils,
    /// 0x01000010, header fields of ancestors (RSKIP-119).
    BlockHeader,
    /// 0x01000011, the call depth (RSKIP-203).
    Environment,
    /// 0x01000016, addition on secp256k1 (RSKIP-516).
    Secp256k1Add,
    /// 0x01000017, multiplication on secp256k1 (RSKIP-516).
    Secp256k1Mul,
}

/// Low four bytes of the address, the contract, and the rule that introduced the contract (`None`: it exists since genesis).
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

    /// Address of the contract.
    pub fn address(self) -> Address {
        let low = TABLE.iter().find(|(_, precompile, _)| *precompile == self).map_or(0, |(low, ..)| *low);
        Address::left_padding_from(&low.to_be_bytes())
    }
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
