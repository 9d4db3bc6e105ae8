//! Consensus rules and the hard forks that activate them.
//!
//! A rule is an RSKIP and activates at a height that the network's table gives, by default that of its hard
//! fork. Code checks rules, never heights.

macro_rules! named {
    ($(#[$meta:meta])* $what:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $what { $($(#[$doc])* $variant,)* }

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

named! {
    /// Hard forks in the order of their mainnet heights.
    Fork {
        /// `bahamas`.
        Bahamas = "bahamas",
        /// `afterBridgeSync`.
        AfterBridgeSync = "afterBridgeSync",
        /// `orchid`.
        Orchid = "orchid",
        /// `orchid060`.
        Orchid060 = "orchid060",
        /// `wasabi100`.
        Wasabi100 = "wasabi100",
        /// `twoToThree`.
        TwoToThree = "twoToThree",
        /// `papyrus200`.
        Papyrus200 = "papyrus200",
        /// `iris300`.
        Iris300 = "iris300",
        /// `hop400`.
        Hop400 = "hop400",
        /// `hop401`.
        Hop401 = "hop401",
        /// `fingerroot500`.
        Fingerroot500 = "fingerroot500",
        /// `arrowhead600`.
        Arrowhead600 = "arrowhead600",
        /// `arrowhead631`.
        Arrowhead631 = "arrowhead631",
        /// `lovell700`.
        Lovell700 = "lovell700",
        /// `reed800`.
        Reed800 = "reed800",
        /// `reed810`.
        Reed810 = "reed810",
        /// `vetiver900`.
        Vetiver900 = "vetiver900",
        /// `tbd1000`.
        Tbd1000 = "tbd1000",
    }
}

named! {
    /// Consensus rules: those of headers and blocks, and those that only affect execution.
    Rule {
        /// Bridge transactions pay for their gas.
        BridgeTxsPaid = "areBridgeTxsPaid",
        /// REMASC improvements.
        Rskip85 = "rskip85",
        /// Peg-in whitelist without limit per entry.
        Rskip87 = "rskip87",
        /// Bridge and REMASC call rules for contracts.
        Rskip88 = "rskip88",
        /// Bridge methods that query Bitcoin blocks.
        Rskip89 = "rskip89",
        /// Read-only Bridge methods.
        Rskip90 = "rskip90",
        /// STATICCALL.
        Rskip91 = "rskip91",
        /// Merge-mining proof as a list of hashes, left out of the block hash.
        Rskip92 = "rskip92",
        /// End of the ten-minute difficulty reset.
        Rskip97 = "rskip97",
        /// End of signed fallback blocks; Bitcoin header of exactly 80 bytes.
        Rskip98 = "rskip98",
        /// STATICCALL argument fix.
        Rskip103 = "rskip103",
        /// HDWalletUtils precompile.
        Rskip106 = "rskip106",
        /// Fork detection data in the merge-mining tag.
        Rskip110 = "rskip110",
        /// BlockHeader precompile.
        Rskip119 = "rskip119",
        /// Shift opcodes.
        Rskip120 = "rskip120",
        /// Bridge getBtcTransactionConfirmations.
        Rskip122 = "rskip122",
        /// Federation members with several keys.
        Rskip123 = "rskip123",
        /// Bridge receiveHeader.
        Rskip124 = "rskip124",
        /// CREATE2.
        Rskip125 = "rskip125",
        /// Unitrie state, transaction and receipt roots.
        Rskip126 = "rskip126",
        /// Bridge receiveHeaders cost.
        Rskip132 = "rskip132",
        /// Locking cap.
        Rskip134 = "rskip134",
        /// Bridge transaction fee fix.
        Rskip136 = "rskip136",
        /// Precompiles 6, 7 and 8 (alt_bn128).
        Rskip137 = "rskip137",
        /// EXTCODEHASH.
        Rskip140 = "rskip140",
        /// Peg-in from segwit addresses.
        Rskip143 = "rskip143",
        /// Parallel transaction execution.
        Rskip144 = "rskip144",
        /// Bridge events as Solidity events.
        Rskip146 = "rskip146",
        /// Call depth and memory rules of native contract calls.
        Rskip150 = "rskip150",
        /// SELFBALANCE.
        Rskip151 = "rskip151",
        /// CHAINID.
        Rskip152 = "rskip152",
        /// Precompile 9 (Blake2b compression).
        Rskip153 = "rskip153",
        /// Difficulty divisor 400.
        Rskip156 = "rskip156",
        /// UMM root in the header.
        Umm = "rskipUMM",
        /// EXTCODEHASH of contracts without code.
        Rskip169 = "rskip169",
        /// Peg-in to any address.
        Rskip170 = "rskip170",
        /// Return-data buffer cleared by call-like opcodes.
        Rskip171 = "rskip171",
        /// Balance kept by contract creation.
        Rskip174 = "rskip174",
        /// Flyover peg-ins.
        Rskip176 = "rskip176",
        /// Block time tied to Bitcoin time.
        Rskip179 = "rskip179",
        /// Merge-mining proof of at most 960 bytes.
        Rskip180 = "rskip180",
        /// Peg-in rejection events.
        Rskip181 = "rskip181",
        /// Peg-out refunds and events.
        Rskip185 = "rskip185",
        /// Federation creation height kept.
        Rskip186 = "rskip186",
        /// Opcodes unknown to Ethereum removed.
        Rskip191 = "rskip191",
        /// Precompile errors follow CALL semantics.
        Rskip197 = "rskip197",
        /// Bridge registerBtcTransaction is public.
        Rskip199 = "rskip199",
        /// receiveHeaders limits.
        Rskip200 = "rskip200",
        /// Time-locked emergency multisignature.
        Rskip201 = "rskip201",
        /// Environment precompile (call stack depth).
        Rskip203 = "rskip203",
        /// New reward address of the developers' fund.
        Rskip218 = "rskip218",
        /// Peg-in and peg-out minimum values.
        Rskip219 = "rskip219",
        /// Bridge methods for Bitcoin block data.
        Rskip220 = "rskip220",
        /// Gas price at most 100 times the minimum.
        Rskip252 = "rskip252",
        /// Peg-out batching.
        Rskip271 = "rskip271",
        /// Flyover refund address deserialization.
        Rskip284 = "rskip284",
        /// Testnet minimum difficulty.
        Rskip290 = "rskip290",
        /// Active powpeg redeem script; flyover checks.
        Rskip293 = "rskip293",
        /// Limit of inputs in a migration transaction.
        Rskip294 = "rskip294",
        /// Testnet: wider bound between block and Bitcoin time.
        Rskip297 = "rskip297",
        /// Segwit peg-outs.
        Rskip305 = "rskip305",
        /// Peg-out event improvements.
        Rskip326 = "rskip326",
        /// Header extension (version 1).
        Rskip351 = "rskip351",
        /// Powpeg redeem script fit for Bitcoin's standard checks.
        Rskip353 = "rskip353",
        /// Confirmations of a powpeg migration.
        Rskip357 = "rskip357",
        /// Confirmations of a powpeg migration, restored.
        Rskip374 = "rskip374",
        /// Peg-outs keyed by their creation transaction.
        Rskip375 = "rskip375",
        /// Migration transactions of version 2.
        Rskip376 = "rskip376",
        /// Last retired federation script.
        Rskip377 = "rskip377",
        /// Peg-out transaction index.
        Rskip379 = "rskip379",
        /// Powpeg activation age.
        Rskip383 = "rskip383",
        /// Fee estimate of the next peg-out event.
        Rskip385 = "rskip385",
        /// PUSH0.
        Rskip398 = "rskip398",
        /// Call data cost of 16 per non-zero byte.
        Rskip400 = "rskip400",
        /// BASEFEE.
        Rskip412 = "rskip412",
        /// Address derivation of powpeg members.
        Rskip415 = "rskip415",
        /// Empty Bridge answers do not revert.
        Rskip417 = "rskip417",
        /// Powpeg spendability validation.
        Rskip419 = "rskip419",
        /// Peg-out event values in wei.
        Rskip427 = "rskip427",
        /// Peg-out creation event with outpoint values.
        Rskip428 = "rskip428",
        /// Bitcoin chain work of up to 12 bytes.
        Rskip434 = "rskip434",
        /// Init code size limit and cost.
        Rskip438 = "rskip438",
        /// MCOPY.
        Rskip445 = "rskip445",
        /// TLOAD and TSTORE.
        Rskip446 = "rskip446",
        /// No account left by a failed CREATE.
        Rskip453 = "rskip453",
        /// Bitcoin chain work of up to 32 bytes.
        Rskip454 = "rskip454",
        /// Rejected peg-ins marked as processed.
        Rskip459 = "rskip459",
        /// Witness commitment search skips non-standard outputs.
        Rskip460 = "rskip460",
        /// Union Bridge methods.
        Rskip502 = "rskip502",
        /// secp256k1 add and mul precompiles.
        Rskip516 = "rskip516",
        /// Base and super event cells.
        Rskip529 = "rskip529",
        /// Base event in the header (version 2).
        Rskip535 = "rskip535",
        /// Further BlockHeader precompile methods.
        Rskip536 = "rskip536",
        /// Peg-out fee estimate with a parameter.
        Rskip540 = "rskip540",
        /// New code starting with 0xEF refused.
        Rskip544 = "rskip544",
        /// End of RSKIP-459.
        Rskip551 = "rskip551",
        /// Blake2b input checks.
        Rskip552 = "rskip552",
        /// Peg-outs in a fixed order.
        Rskip559 = "rskip559",
    }
}

impl Rule {
    /// The hard fork that activates the rule, unless a network's table gives another height. `None` for rules
    /// that only such tables activate.
    #[must_use]
    pub const fn fork(self) -> Option<Fork> {
        Some(match self {
            Self::Rskip136 => Fork::Bahamas,
            Self::BridgeTxsPaid => Fork::AfterBridgeSync,
            Self::Rskip85
            | Self::Rskip87
            | Self::Rskip88
            | Self::Rskip89
            | Self::Rskip90
            | Self::Rskip91
            | Self::Rskip92
            | Self::Rskip97
            | Self::Rskip98 => Fork::Orchid,
            Self::Rskip103 => Fork::Orchid060,
            Self::Rskip106
            | Self::Rskip110
            | Self::Rskip119
            | Self::Rskip120
            | Self::Rskip122
            | Self::Rskip123
            | Self::Rskip124
            | Self::Rskip125
            | Self::Rskip126
            | Self::Rskip132 => Fork::Wasabi100,
            Self::Rskip150 => Fork::TwoToThree,
            Self::Rskip134
            | Self::Rskip137
            | Self::Rskip140
            | Self::Rskip143
            | Self::Rskip146
            | Self::Rskip151
            | Self::Rskip152
            | Self::Rskip156
            | Self::Umm => Fork::Papyrus200,
            Self::Rskip153
            | Self::Rskip169
            | Self::Rskip170
            | Self::Rskip171
            | Self::Rskip174
            | Self::Rskip176
            | Self::Rskip179
            | Self::Rskip180
            | Self::Rskip181
            | Self::Rskip185
            | Self::Rskip186
            | Self::Rskip191
            | Self::Rskip197
            | Self::Rskip199
            | Self::Rskip200
            | Self::Rskip201
            | Self::Rskip218
            | Self::Rskip219
            | Self::Rskip220 => Fork::Iris300,
            Self::Rskip271
            | Self::Rskip284
            | Self::Rskip290
            | Self::Rskip293
            | Self::Rskip294
            | Self::Rskip297 => Fork::Hop400,
            Self::Rskip353 | Self::Rskip357 => Fork::Hop401,
            Self::Rskip252
            | Self::Rskip326
            | Self::Rskip374
            | Self::Rskip375
            | Self::Rskip377
            | Self::Rskip383
            | Self::Rskip385 => Fork::Fingerroot500,
            Self::Rskip203
            | Self::Rskip376
            | Self::Rskip379
            | Self::Rskip398
            | Self::Rskip400
            | Self::Rskip412
            | Self::Rskip415
            | Self::Rskip417 => Fork::Arrowhead600,
            Self::Rskip434 => Fork::Arrowhead631,
            Self::Rskip419
            | Self::Rskip427
            | Self::Rskip428
            | Self::Rskip438
            | Self::Rskip445
            | Self::Rskip446
            | Self::Rskip453
            | Self::Rskip454
            | Self::Rskip459
            | Self::Rskip460 => Fork::Lovell700,
            Self::Rskip305 | Self::Rskip516 => Fork::Reed800,
            Self::Rskip144 | Self::Rskip351 | Self::Rskip502 | Self::Rskip529 | Self::Rskip536 => {
                Fork::Reed810
            }
            Self::Rskip540 | Self::Rskip544 | Self::Rskip551 | Self::Rskip552 => Fork::Vetiver900,
            Self::Rskip559 => Fork::Tbd1000,
            Self::Rskip535 => return None,
        })
    }

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
