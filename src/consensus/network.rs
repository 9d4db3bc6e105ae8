//! [`Network`]: the parameters, activation heights and genesis hash that all rules read.

use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use crate::types::{Address, B256, HeaderShape, HeaderVersion, U256};

use super::bitcoin::BitcoinNetwork;
use super::rule::{Fork, Rule, RuleSet};

/// Activation height of a rule that is never switched on.
pub const NEVER: u64 = u64::MAX;

/// First block whose hash for merged mining contains fork detection data if RSKIP-110 is active. The data need seven commitments, 64 blocks
/// apart, to blocks above genesis, which has no Bitcoin header.
pub const FORK_DETECTION_FIRST: u64 = 449;

/// Parameters of rules. Units are seconds, wei, gas or blocks, as stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Target spacing of blocks without uncles, in seconds; multiplied in 32-bit signed arithmetic.
    pub duration_limit: i32,
    /// Lowest difficulty.
    pub minimum_difficulty: U256,
    /// Lowest difficulty from RSKIP-290 on. Only the test networks have another one than before.
    pub minimum_difficulty_rskip290: U256,
    /// Highest difficulty of a signed fallback block (before RSKIP-98).
    pub fallback_max_difficulty: U256,
    /// The difficulty moves by one part in this number; at least 1.
    pub difficulty_divisor: u64,
    /// The difficulty divisor from RSKIP-156 on; at least 1.
    pub difficulty_divisor_rskip156: u64,
    /// Most seconds that a header may be ahead of the clock; 0 disables all timestamp rules.
    pub future_bound: u64,
    /// Block time and Bitcoin time must differ by less than this from RSKIP-179 on, in seconds.
    pub btc_time_bound: u64,
    /// The bound on that difference from RSKIP-297 on, in seconds.
    pub btc_time_bound_rskip297: u64,
    /// Depth at which REMASC, the native contract that pays miners, pays a block's fees; in blocks.
    pub remasc_maturity: u64,
    /// Number of payments over which REMASC spreads a block's fees; at least 1.
    pub remasc_span: u64,
    /// Receivers of the share of the fees of RSK Labs, who develop Rootstock: before RSKIP-218, and from it on.
    pub labs: [Address; 2],
    /// Bitcoin blocks that must confirm a peg-in, a transfer of coins from Bitcoin to Rootstock.
    pub pegin_confirmations: u64,
    /// Rootstock blocks that must confirm a peg-out, a transfer back, before the Bitcoin transaction is signed.
    pub pegout_confirmations: u64,
    /// Lowest gas limit of the sequential list of RSKIP-144.
    pub min_sequential_gas_limit: u64,
    /// Uncompressed public keys that sign fallback blocks of even and odd height (before RSKIP-98).
    pub fallback_keys: [[u8; 65]; 2],
    /// Below this height a header may lack its base event (RSKIP-535), which then counts as empty; 0 except on the test network.
    pub base_event_optional_below: u64,
}

/// Most bytes of extra data in a header other than genesis.
pub const MAX_EXTRA_DATA: usize = 32;
/// Lowest gas limit of a block, in gas.
pub const MIN_GAS_LIMIT: u64 = 3_000_000;
/// The gas limit moves by at most one part in this number from block to block.
pub const GAS_LIMIT_DIVISOR: u64 = 1024;
/// The minimum gas price moves by at most one part in this number, or by 1 wei if that is more.
pub const MIN_GAS_PRICE_DIVISOR: u64 = 100;
/// Most uncles of a block.
pub const MAX_UNCLES: usize = 10;
/// Greatest distance in blocks between an uncle's parent and the block that includes the uncle.
pub const UNCLE_GENERATIONS: u64 = 7;
/// Most sublists of a block's transactions that may run in parallel (RSKIP-144). A header has an edge for the end of each.
pub const EXECUTION_THREADS: usize = 2;
/// Without RSKIP-97, a block this many seconds after its parent has the minimum difficulty.
pub const RESET_GAP: u64 = 600;

/// A network: everything that a verifier must know about it in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Short name, as used on the command line.
    pub name: String,
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// Hash of block 0.
    pub genesis_hash: B256,
    /// Parameters of rules.
    pub params: Params,
    /// The last block number whose rules this software has. Later blocks need an update.
    pub known_until: Option<u64>,
    /// Conditions of a start by work alone; `None` if work proves nothing on this network or they are unknown.
    pub work_start: Option<WorkStart>,
    /// The Bitcoin network whose miners mine this one; `None` if no block of it is known in advance.
    pub bitcoin: Option<BitcoinNetwork>,
    /// Activation height of each rule, `NEVER` if it is not activated; indexed by the rule.
    activations: Vec<u64>,
    /// Heights at which the set of active rules changes, in ascending order, each with the set from there on.
    /// The first height is 0.
    eras: Vec<(u64, RuleSet)>,
}

/// The work that a network is known to show, by which a client starts without a trusted block. These conditions are part of the software or
/// of a network file; no upstream supplies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkStart {
    /// Lowest difficulty of the block at which a chain starts. The work floor uses it instead of the difficulty
    /// of a checkpoint.
    pub difficulty: U256,
    /// Lowest block to start at, not below the newest hard fork, because older rules require less work.
    pub from: u64,
    /// Number of headers between that block and the upstream's head. Their blocks must span at least a day.
    pub headers: u64,
}

/// Default number of headers in a start by work alone: those of two days at a block every 30 seconds, or of about one day at the target
/// spacing of 14 seconds.
pub const WORK_START_HEADERS: u64 = 5_760;

/// Why a network has no start by work alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkStartError {
    /// Without RSKIP-97 the work is nearly free.
    #[error(
        "{0}: no start by work alone: difficulty falls to the minimum after ten minutes without a block (no RSKIP-97), \
         so work is nearly free; give a checkpoint, NUMBER:HASH"
    )]
    CheapWork(String),
    /// Without rules on timestamps, work cannot be measured over time.
    #[error("{0}: no start by work alone: its blocks may have any time; give a checkpoint, NUMBER:HASH")]
    FreeTimes(String),
    /// Nothing is known of the network's difficulty.
    #[error(
        "{0}: no start by work alone: the least difficulty of its blocks is not known (\"workStart\" in a network file); \
         give a checkpoint, NUMBER:HASH"
    )]
    Unknown(String),
}

/// The input from which a network is built.
#[derive(Debug, Clone)]
pub struct NetworkSpec<'a> {
    /// Short name.
    pub name: &'a str,
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// Hash of block 0.
    pub genesis_hash: B256,
    /// Parameters of rules.
    pub params: Params,
    /// See [`Network::known_until`].
    pub known_until: Option<u64>,
    /// Heights of hard forks. A fork that is missing never activates.
    pub forks: &'a [(Fork, u64)],
    /// Rules whose heights differ from those of their hard forks.
    pub overrides: &'a [(Rule, u64)],
}

impl Network {
    /// Builds a network. A rule activates at its own height, else at that of its hard fork, else never.
    #[must_use]
    pub fn new(spec: &NetworkSpec<'_>) -> Self {
        let height_of = |rule: Rule| {
            let own = spec.overrides.iter().find(|(r, _)| *r == rule).map(|(_, h)| *h);
            let fork = || rule.fork().and_then(|f| spec.forks.iter().find(|(x, _)| *x == f)).map(|(_, h)| *h);
            own.or_else(fork).unwrap_or(NEVER)
        };
        let activations: Vec<u64> = Rule::ALL.iter().map(|rule| height_of(*rule)).collect();
        Self {
            name: spec.name.into(),
            chain_id: spec.chain_id,
            genesis_hash: spec.genesis_hash,
            params: spec.params,
            known_until: spec.known_until,
            work_start: None,
            bitcoin: None,
            eras: eras(&activations),
            activations,
        }
    }

    /// The same network without some hard forks: the rules that these activate are never active. The genesis hash stays.
    #[must_use]
    pub fn without(mut self, forks: &[Fork]) -> Self {
        for (rule, height) in Rule::ALL.iter().zip(&mut self.activations) {
            if rule.fork().is_some_and(|fork| forks.contains(&fork)) {
                *height = NEVER;
            }
        }
        self.eras = eras(&self.activations);
        self
    }

    /// The same network for blocks that a development chain mines on top of one of its blocks. Each of these blocks has difficulty 1,
    /// whatever the difficulty of its parent, and any time after its parent.
    #[cfg(feature = "dev")]
    #[must_use]
    pub fn mined_here(mut self) -> Self {
        let one = U256::from_limbs([1, 0, 0, 0]);
        self.params = Params {
            // The difficulty of a block later than its parent falls by one part in 1, so to the minimum.
            duration_limit: 0,
            difficulty_divisor: 1,
            difficulty_divisor_rskip156: 1,
            minimum_difficulty: one,
            minimum_difficulty_rskip290: one,
            future_bound: 0,
            ..self.params
        };
        (self.known_until, self.work_start, self.bitcoin) = (None, None, None);
        self
    }

    /// The height from which a rule is active; `None` if it is never active.
    pub fn activation(&self, rule: Rule) -> Option<u64> {
        self.activations.get(rule as usize).copied().filter(|height| *height != NEVER)
    }

    /// The rules that are active at a height.
    pub fn rules(&self, number: u64) -> RuleSet {
        let next = self.eras.partition_point(|(start, _)| *start <= number);
        next.checked_sub(1).and_then(|i| self.eras.get(i)).map_or(RuleSet::NONE, |(_, rules)| *rules)
    }

    /// Whether a rule is active at a height.
    pub fn active(&self, rule: Rule, number: u64) -> bool {
        self.rules(number).has(rule)
    }

    /// Layout of headers at this height. Genesis always has version 0 and no UMM root.
    pub fn header_shape(&self, number: u64) -> HeaderShape {
        let rules = self.rules(number);
        let later = number > 0;
        let extended = later && rules.has(Rule::Rskip351);
        let version = match (extended, rules.has(Rule::Rskip535)) {
            (false, _) => HeaderVersion::V0,
            (true, false) => HeaderVersion::V1,
            (true, true) => HeaderVersion::V2,
        };
        HeaderShape {
            version,
            umm_root: later && rules.has(Rule::Umm),
            edges: extended && rules.has(Rule::Rskip144),
            hash_covers_proof: !rules.has(Rule::Rskip92),
            fork_detection: rules.has(Rule::Rskip110) && number >= FORK_DETECTION_FIRST,
            base_event_optional: version == HeaderVersion::V2
                && number < self.params.base_event_optional_below,
        }
    }

    /// Lowest difficulty under these rules.
    pub fn minimum_difficulty(&self, rules: RuleSet) -> U256 {
        if rules.has(Rule::Rskip290) {
            self.params.minimum_difficulty_rskip290
        } else {
            self.params.minimum_difficulty
        }
    }

    /// The highest block at which rules change.
    pub fn newest_fork(&self) -> u64 {
        self.eras.last().map_or(0, |(height, _)| *height)
    }

    /// Whether work is nearly free, because the difficulty drops to the minimum after ten minutes without a block.
    #[must_use]
    pub fn has_cheap_work(&self) -> bool {
        self.params.future_bound > 0 && self.activation(Rule::Rskip97).is_none()
    }

    /// Conditions of a start by work alone.
    ///
    /// # Errors
    /// Work on this network proves no start.
    pub fn start_by_work(&self) -> Result<WorkStart, WorkStartError> {
        let name = || self.name.clone();
        if self.params.future_bound == 0 {
            return Err(WorkStartError::FreeTimes(name()));
        }
        if self.has_cheap_work() {
            return Err(WorkStartError::CheapWork(name()));
        }
        self.work_start.ok_or_else(|| WorkStartError::Unknown(name()))
    }

    /// Whether block `number` is above [`Network::known_until`].
    pub fn needs_update_for(&self, number: u64) -> bool {
        self.known_until.is_some_and(|last| number > last)
    }
}

/// The sets of active rules by starting height, the lowest first.
fn eras(activations: &[u64]) -> Vec<(u64, RuleSet)> {
    let rules_at = |height: u64| {
        let active = Rule::ALL.iter().zip(activations).filter(|(_, start)| **start <= height);
        active.map(|(rule, _)| *rule).collect::<RuleSet>()
    };
    // There are a few dozen heights. A sorted list compiles to a fortieth of the code of a `BTreeMap`.
    let mut eras: Vec<(u64, RuleSet)> = Vec::new();
    for start in activations.iter().copied().filter(|height| *height != NEVER).chain([0]) {
        if let Err(at) = eras.binary_search_by_key(&start, |(height, _)| *height) {
            eras.insert(at, (start, rules_at(start)));
        }
    }
    eras
}
