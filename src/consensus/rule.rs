//! Consensus rules and the hard forks that activate them.
//!
//! A rule is an RSKIP (a Rootstock improvement proposal) and activates at a height that the network's table gives, by default that of its
//! hard fork. Code checks rules, never heights.
//!
//! Many rules are about two native contracts. The Bridge moves coins between Bitcoin and Rootstock: a peg-in to Rootstock, a peg-out
//! back. A federation, the powpeg, holds the coins on Bitcoin, and migrates them when its members change. A flyover peg-in is one whose
//! coins a provider pays out in advance. REMASC pays the fees of blocks to miners.

/// Defines an enum whose values have names in the reference node's configuration.
macro_rules! named {
    ($(#[$meta:meta])* $what:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $what { $($(#[$doc])* #[doc = concat!("\n`", $name, "`")] $variant,)* }

        impl $what {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the reference node's configuration files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The value with this configuration name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|x| x.name() == name)
            }
        }
    };
}

/// Defines the rules with their names and the hard forks that activate them. The first two arms, which begin with `@`, give the hard fork
/// of one rule.
macro_rules! rules {
    (@) => { None };
    (@ $fork:ident) => { Some(Fork::$fork) };
    ($($(#[$doc:meta])* $variant:ident = $name:literal $(in $fork:ident)?,)*) => {
        named! {
            /// Consensus rules: those of headers and blocks, and those that affect execution alone.
            Rule { $($(#[$doc])* $variant = $name,)* }
        }

        impl Rule {
            /// The hard fork that activates the rule, unless a network's table gives another height. `None` for rules
            /// that only such tables activate.
            #[must_use]
            pub const fn fork(self) -> Option<Fork> {
                match self { $(Self::$variant => rules!(@ $($fork)?),)* }
            }
        }
    };
}

named! {
    /// Hard forks in the order of their mainnet heights.
    Fork {
        Bahamas = "bahamas",
        AfterBridgeSync = "afterBridgeSync",
        Orchid = "orchid",
        Orchid060 = "orchid060",
        Wasabi100 = "wasabi100",
        TwoToThree = "twoToThree",
        Papyrus200 = "papyrus200",
        Iris300 = "iris300",
        Hop400 = "hop400",
        Hop401 = "hop401",
        Fingerroot500 = "fingerroot500",
        Arrowhead600 = "arrowhead600",
        Arrowhead631 = "arrowhead631",
        Lovell700 = "lovell700",
        Reed800 = "reed800",
        Reed810 = "reed810",
        Vetiver900 = "vetiver900",
        Tbd1000 = "tbd1000",
    }
}

rules! {
    /// Bridge transactions pay for their gas.
    BridgeTxsPaid = "areBridgeTxsPaid" in AfterBridgeSync,
    /// REMASC improvements.
    Rskip85 = "rskip85" in Orchid,
    /// Peg-in whitelist without limit per entry.
    Rskip87 = "rskip87" in Orchid,
    /// Bridge and REMASC call rules for contracts.
    Rskip88 = "rskip88" in Orchid,
    /// Bridge methods that query Bitcoin blocks.
    Rskip89 = "rskip89" in Orchid,
    /// Read-only Bridge methods.
    Rskip90 = "rskip90" in Orchid,
    /// STATICCALL.
    Rskip91 = "rskip91" in Orchid,
    /// Merkle proof of the Bitcoin coinbase as a list of hashes; the block hash no longer covers it and the coinbase.
    Rskip92 = "rskip92" in Orchid,
    /// End of the ten-minute difficulty reset.
    Rskip97 = "rskip97" in Orchid,
    /// End of signed fallback blocks; Bitcoin header of exactly 80 bytes.
    Rskip98 = "rskip98" in Orchid,
    /// STATICCALL argument fix.
    Rskip103 = "rskip103" in Orchid060,
    /// HDWalletUtils precompile.
    Rskip106 = "rskip106" in Wasabi100,
    /// Fork detection data in the merge-mining tag.
    Rskip110 = "rskip110" in Wasabi100,
    /// BlockHeader precompile.
    Rskip119 = "rskip119" in Wasabi100,
    /// Shift opcodes.
    Rskip120 = "rskip120" in Wasabi100,
    /// Bridge getBtcTransactionConfirmations.
    Rskip122 = "rskip122" in Wasabi100,
    /// Federation members with several keys.
    Rskip123 = "rskip123" in Wasabi100,
    /// Bridge receiveHeader.
    Rskip124 = "rskip124" in Wasabi100,
    /// CREATE2.
    Rskip125 = "rskip125" in Wasabi100,
    /// Unitrie state, transaction and receipt roots.
    Rskip126 = "rskip126" in Wasabi100,
    /// Bridge receiveHeaders cost.
    Rskip132 = "rskip132" in Wasabi100,
    /// Locking cap.
    Rskip134 = "rskip134" in Papyrus200,
    /// Bridge transaction fee fix.
    Rskip136 = "rskip136" in Bahamas,
    /// Precompiles 6, 7 and 8 (alt_bn128).
    Rskip137 = "rskip137" in Papyrus200,
    /// EXTCODEHASH.
    Rskip140 = "rskip140" in Papyrus200,
    /// Peg-in from segwit addresses.
    Rskip143 = "rskip143" in Papyrus200,
    /// Parallel transaction execution.
    Rskip144 = "rskip144" in Reed810,
    /// Bridge events as Solidity events.
    Rskip146 = "rskip146" in Papyrus200,
    /// Call depth and memory rules of native contract calls.
    Rskip150 = "rskip150" in TwoToThree,
    /// SELFBALANCE.
    Rskip151 = "rskip151" in Papyrus200,
    /// CHAINID.
    Rskip152 = "rskip152" in Papyrus200,
    /// Precompile 9 (Blake2b compression).
    Rskip153 = "rskip153" in Iris300,
    /// Difficulty divisor 400.
    Rskip156 = "rskip156" in Papyrus200,
    /// Root of umbrella merged mining (UMM) in the header.
    Umm = "rskipUMM" in Papyrus200,
    /// EXTCODEHASH of contracts without code.
    Rskip169 = "rskip169" in Iris300,
    /// Peg-in to any address.
    Rskip170 = "rskip170" in Iris300,
    /// Return-data buffer cleared by call-like opcodes.
    Rskip171 = "rskip171" in Iris300,
    /// Contract creation leaves the balance that the new address has.
    Rskip174 = "rskip174" in Iris300,
    /// Flyover peg-ins.
    Rskip176 = "rskip176" in Iris300,
    /// Block time tied to Bitcoin time.
    Rskip179 = "rskip179" in Iris300,
    /// Merge-mining proof of at most 960 bytes.
    Rskip180 = "rskip180" in Iris300,
    /// Peg-in rejection events.
    Rskip181 = "rskip181" in Iris300,
    /// Peg-out refunds and events.
    Rskip185 = "rskip185" in Iris300,
    /// Height at which a federation was created, stored by the Bridge.
    Rskip186 = "rskip186" in Iris300,
    /// Opcodes unknown to Ethereum removed.
    Rskip191 = "rskip191" in Iris300,
    /// Precompile errors follow CALL semantics.
    Rskip197 = "rskip197" in Iris300,
    /// Bridge registerBtcTransaction is public.
    Rskip199 = "rskip199" in Iris300,
    /// receiveHeaders limits.
    Rskip200 = "rskip200" in Iris300,
    /// Time-locked emergency multisignature.
    Rskip201 = "rskip201" in Iris300,
    /// Environment precompile (call stack depth).
    Rskip203 = "rskip203" in Arrowhead600,
    /// New reward address of the developers' fund.
    Rskip218 = "rskip218" in Iris300,
    /// Peg-in and peg-out minimum values.
    Rskip219 = "rskip219" in Iris300,
    /// Bridge methods for Bitcoin block data.
    Rskip220 = "rskip220" in Iris300,
    /// Gas price at most 100 times the minimum.
    Rskip252 = "rskip252" in Fingerroot500,
    /// Peg-out batching.
    Rskip271 = "rskip271" in Hop400,
    /// Flyover refund address deserialization.
    Rskip284 = "rskip284" in Hop400,
    /// Testnet minimum difficulty.
    Rskip290 = "rskip290" in Hop400,
    /// Active powpeg redeem script; flyover checks.
    Rskip293 = "rskip293" in Hop400,
    /// Limit of inputs in a migration transaction.
    Rskip294 = "rskip294" in Hop400,
    /// Testnet: wider bound between block and Bitcoin time.
    Rskip297 = "rskip297" in Hop400,
    /// Segwit peg-outs.
    Rskip305 = "rskip305" in Reed800,
    /// Peg-out event improvements.
    Rskip326 = "rskip326" in Fingerroot500,
    /// Header extension (version 1).
    Rskip351 = "rskip351" in Reed810,
    /// Powpeg redeem script fit for Bitcoin's standard checks.
    Rskip353 = "rskip353" in Hop401,
    /// Confirmations of a powpeg migration.
    Rskip357 = "rskip357" in Hop401,
    /// Confirmations of a powpeg migration, restored.
    Rskip374 = "rskip374" in Fingerroot500,
    /// Peg-outs keyed by their creation transaction.
    Rskip375 = "rskip375" in Fingerroot500,
    /// Migration transactions of version 2.
    Rskip376 = "rskip376" in Arrowhead600,
    /// Last retired federation script.
    Rskip377 = "rskip377" in Fingerroot500,
    /// Peg-out transaction index.
    Rskip379 = "rskip379" in Arrowhead600,
    /// Powpeg activation age.
    Rskip383 = "rskip383" in Fingerroot500,
    /// Fee estimate of the next peg-out event.
    Rskip385 = "rskip385" in Fingerroot500,
    /// PUSH0.
    Rskip398 = "rskip398" in Arrowhead600,
    /// Call data cost of 16 per non-zero byte.
    Rskip400 = "rskip400" in Arrowhead600,
    /// BASEFEE.
    Rskip412 = "rskip412" in Arrowhead600,
    /// Address derivation of powpeg members.
    Rskip415 = "rskip415" in Arrowhead600,
    /// Empty Bridge answers do not revert.
    Rskip417 = "rskip417" in Arrowhead600,
    /// Powpeg spendability validation.
    Rskip419 = "rskip419" in Lovell700,
    /// Peg-out event values in wei.
    Rskip427 = "rskip427" in Lovell700,
    /// Peg-out creation event with outpoint values.
    Rskip428 = "rskip428" in Lovell700,
    /// Bitcoin chain work of up to 12 bytes.
    Rskip434 = "rskip434" in Arrowhead631,
    /// Init code size limit and cost.
    Rskip438 = "rskip438" in Lovell700,
    /// MCOPY.
    Rskip445 = "rskip445" in Lovell700,
    /// TLOAD and TSTORE.
    Rskip446 = "rskip446" in Lovell700,
    /// No account left by a failed CREATE.
    Rskip453 = "rskip453" in Lovell700,
    /// Bitcoin chain work of up to 32 bytes.
    Rskip454 = "rskip454" in Lovell700,
    /// Rejected peg-ins marked as processed.
    Rskip459 = "rskip459" in Lovell700,
    /// Witness commitment search skips non-standard outputs.
    Rskip460 = "rskip460" in Lovell700,
    /// Union Bridge methods.
    Rskip502 = "rskip502" in Reed810,
    /// secp256k1 add and mul precompiles.
    Rskip516 = "rskip516" in Reed800,
    /// Base and super event cells.
    Rskip529 = "rskip529" in Reed810,
    /// Base event in the header (version 2).
    Rskip535 = "rskip535",
    /// Further BlockHeader precompile methods.
    Rskip536 = "rskip536" in Reed810,
    /// Peg-out fee estimate with a parameter.
    Rskip540 = "rskip540" in Vetiver900,
    /// New code starting with 0xEF refused.
    Rskip544 = "rskip544" in Vetiver900,
    /// End of RSKIP-459.
    Rskip551 = "rskip551" in Vetiver900,
    /// Blake2b input checks.
    Rskip552 = "rskip552" in Vetiver900,
    /// Peg-outs in a fixed order.
    Rskip559 = "rskip559" in Tbd1000,
}

impl Rule {
    /// The bit of the rule in a [`RuleSet`].
    const fn bit(self) -> u128 {
        1 << (self as u8)
    }
}

/// The rules that are active at one height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleSet(u128);

// `RuleSet` has one bit per rule.
const _: () = assert!(Rule::ALL.len() <= 128);

impl RuleSet {
    /// The set without rules.
    pub const NONE: Self = Self(0);

    /// Whether the rule is active.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }

    /// The same set with this rule added.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | rule.bit())
    }

    /// The same set with this rule removed.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Self {
        Self(self.0 & !rule.bit())
    }

    /// The rules of the set, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().copied().filter(move |rule| self.has(*rule))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        rules.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_own_bit_and_name() {
        let all: RuleSet = Rule::ALL.iter().copied().collect();
        assert_eq!(all.iter().count(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert_eq!(Rule::from_name(rule.name()), Some(*rule));
            assert!(!all.without(*rule).has(*rule));
        }
        for fork in Fork::ALL {
            assert_eq!(Fork::from_name(fork.name()), Some(*fork));
        }
    }
}
