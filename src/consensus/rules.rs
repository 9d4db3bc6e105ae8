//! The rules that headers decide, one function each.
//!
//! None is stricter than the reference: a header that full nodes accept must never be refused. In particular the time
//! of a block of the chain need not be later than its parent's; only an uncle's must.

use thiserror::Error;

use super::bitcoin::BitcoinHeader;
use super::difficulty;
use super::fork_detection::{compared_data, ForkContext, ForkDetection, ForkDetectionError};
use super::network::{
    Network, EXECUTION_THREADS, GAS_LIMIT_DIVISOR, MAX_EXTRA_DATA, MIN_GAS_LIMIT, MIN_GAS_PRICE_DIVISOR,
};
use super::pow::{verify_with_hash, PowError, Seal};
use super::rule::{Rule, RuleSet};
use super::verified::Candidate;
use crate::types::{Header, B256, U256};

/// A header rule that is broken: the field, the rule and the values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Laid out by the rules of another height or network.
    #[error("header {number}: laid out for other rules")]
    Shape {
        /// The header's number.
        number: u64,
    },
    /// Not a child of the parent it is checked against.
    #[error("parentHash: {found}, the parent is {expected}")]
    ParentHash {
        /// The parent's hash.
        expected: B256,
        /// What the header has.
        found: B256,
    },
    /// Not the parent's number plus one.
    #[error("number: {found}, after block {parent}")]
    Number {
        /// The parent's number.
        parent: u64,
        /// What the header has.
        found: u64,
    },
    /// Not the difficulty that follows from the parent.
    #[error("difficulty: {found}, expected {expected}")]
    Difficulty {
        /// What follows from parent, times and stated uncles.
        expected: U256,
        /// What the header has.
        found: U256,
    },
    /// Too far from the parent's gas limit.
    #[error("gasLimit: {found}, allowed {low} to {high}")]
    GasLimitStep {
        /// Least allowed.
        low: U256,
        /// Most allowed.
        high: U256,
        /// What the header has.
        found: U256,
    },
    /// Below the least gas limit of any block.
    #[error("gasLimit: {found}, at least {MIN_GAS_LIMIT}")]
    GasLimitMinimum {
        /// What the header has.
        found: U256,
    },
    /// More gas used than the limit.
    #[error("gasUsed: {used}, gas limit {limit}")]
    GasUsed {
        /// Gas used.
        used: u64,
        /// Gas limit.
        limit: U256,
    },
    /// No minimum gas price.
    #[error("minimumGasPrice: absent")]
    MinimumGasPriceAbsent,
    /// Too far from the parent's minimum gas price.
    #[error("minimumGasPrice: {found}, allowed {low} to {high}")]
    MinimumGasPriceStep {
        /// Least allowed.
        low: U256,
        /// Most allowed.
        high: U256,
        /// What the header has.
        found: U256,
    },
    /// Too much extra data.
    #[error("extraData: {found} bytes, at most {MAX_EXTRA_DATA}")]
    ExtraData {
        /// Its length.
        found: usize,
    },
    /// Ahead of the clock: to be tried again later, nobody's fault.
    #[error("timestamp: {time} is more than {bound} s ahead of {now}")]
    Future {
        /// The header's time.
        time: u64,
        /// The clock.
        now: u64,
        /// Allowed lead in seconds.
        bound: u64,
    },
    /// Block time and Bitcoin time too far apart (RSKIP-179).
    #[error(
        "timestamp: {time}, the Bitcoin header has {bitcoin}, less than {bound} s apart needed (RSKIP-179)"
    )]
    BitcoinTime {
        /// The header's time.
        time: u64,
        /// The Bitcoin header's time.
        bitcoin: u32,
        /// Bound in seconds.
        bound: u64,
    },
    /// An uncle that is not later than its parent.
    #[error("timestamp: uncle's {time} not after its parent's {parent}")]
    NotAfterParent {
        /// The uncle's time.
        time: u64,
        /// Its parent's time.
        parent: u64,
    },
    /// More parallel lists than execution has.
    #[error("rskPteEdges: {found} edges, at most {EXECUTION_THREADS} (RSKIP-144)")]
    EdgeCount {
        /// Their number.
        found: usize,
    },
    /// Edges that are not positive and rising (as signed 16-bit numbers).
    #[error("rskPteEdges: {found} not above {previous} (RSKIP-144)")]
    EdgeOrder {
        /// The edge before, 0 before the first.
        previous: i16,
        /// The edge.
        found: i16,
    },
    /// Fork detection data that the ancestors contradict.
    #[error("fork detection data: {0} (RSKIP-110)")]
    ForkDetection(#[from] ForkDetectionError),
    /// No proof of work.
    #[error(transparent)]
    Work(#[from] PowError),
}

/// What a rule may look at.
pub(super) struct Check<'a> {
    pub(super) candidate: &'a Candidate,
    /// A believed header, absent where only the header itself is judged.
    pub(super) parent: Option<(&'a Header, B256)>,
    pub(super) network: &'a Network,
    pub(super) rules: RuleSet,
    /// What the parent's ancestors say about fork detection data, and the uncles they state.
    pub(super) fork: Option<(&'a ForkContext, Option<i32>)>,
    /// The clock in seconds, none where it does not matter.
    pub(super) now: Option<u64>,
}

type RuleFn = fn(&Check<'_>) -> Result<(), RuleError>;

/// Rules of a block of the chain that need no proof of work; cheap ones first.
const LINK_RULES: &[RuleFn] = &[
    shape,
    parent_hash,
    number,
    gas_limit_step,
    gas_limit_minimum,
    gas_used,
    minimum_gas_price,
    extra_data,
    edges,
    bitcoin_time,
    difficulty_rule,
    fork_detection,
];

/// What a mined block has to show besides; the clock last so that a header ahead of it is otherwise good.
const MINED_RULES: &[RuleFn] = &[work, future];

/// Rules of an uncle: the reference checks neither extra data nor edges nor the least gas limit there, but the order
/// of times.
const UNCLE_RULES: &[RuleFn] = &[
    shape,
    parent_hash,
    number,
    gas_limit_step,
    gas_used,
    minimum_gas_price,
    bitcoin_time,
    after_parent,
    difficulty_rule,
    fork_detection,
    work,
    future,
];

impl<'a> Check<'a> {
    pub(super) fn new(candidate: &'a Candidate, network: &'a Network, now: Option<u64>) -> Self {
        let rules = network.rules(candidate.header().number);
        Self { candidate, parent: None, network, rules, fork: None, now }
    }

    fn header(&self) -> &Header {
        self.candidate.header()
    }

    /// Runs the rules of a block; gives what was compared of the fork detection data.
    pub(super) fn block(&self) -> Result<(Seal, ForkDetection), RuleError> {
        self.linked()?;
        self.run(MINED_RULES)
    }

    /// Runs the rules of a block of the chain, but not those of its work and of the clock.
    pub(super) fn linked(&self) -> Result<ForkDetection, RuleError> {
        self.run(LINK_RULES).map(|(_, fork_detection)| fork_detection)
    }

    /// Checks the proof of work alone.
    pub(super) fn mined(&self) -> Result<Seal, RuleError> {
        work(self).map(|()| self.seal())
    }

    /// Runs the rules of an uncle.
    pub(super) fn uncle(&self) -> Result<(Seal, ForkDetection), RuleError> {
        self.run(UNCLE_RULES)
    }

    fn run(&self, rules: &[RuleFn]) -> Result<(Seal, ForkDetection), RuleError> {
        rules.iter().try_for_each(|rule| rule(self))?;
        Ok((self.seal(), self.compare_fork_detection()?))
    }

    /// A fallback block has no coinbase, which no merge-mined one lacks.
    fn seal(&self) -> Seal {
        if self.header().coinbase_tx.is_empty() {
            Seal::FallbackSignature
        } else {
            Seal::MergedMining
        }
    }

    /// Every broken rule of a block, for tests.
    #[cfg(test)]
    pub(super) fn broken_block_rules(&self) -> alloc::vec::Vec<RuleError> {
        LINK_RULES.iter().chain(MINED_RULES).filter_map(|rule| rule(self).err()).collect()
    }

    /// Every broken rule of an uncle, for tests.
    #[cfg(test)]
    pub(super) fn broken_uncle_rules(&self) -> alloc::vec::Vec<RuleError> {
        UNCLE_RULES.iter().filter_map(|rule| rule(self).err()).collect()
    }

    fn compare_fork_detection(&self) -> Result<ForkDetection, RuleError> {
        let header = self.header();
        // Without fork detection data in the hash there is nothing to compare; where it lacks, `work` says so.
        let Ok(hash) = self.candidate.mining_hash() else { return Ok(ForkDetection::NotRequired) };
        let Some(data) = compared_data(header, hash) else { return Ok(ForkDetection::NotRequired) };
        let nothing_known = ForkContext::default();
        let (context, uncles) = self.fork.unwrap_or((&nothing_known, None));
        Ok(context.check(header.number, &data, uncles)?)
    }
}

fn shape(check: &Check<'_>) -> Result<(), RuleError> {
    let header = check.header();
    if header.shape == check.network.header_shape(header.number) {
        return Ok(());
    }
    Err(RuleError::Shape { number: header.number })
}

fn parent_hash(check: &Check<'_>) -> Result<(), RuleError> {
    match check.parent {
        Some((_, expected)) if expected != check.header().parent_hash => {
            Err(RuleError::ParentHash { expected, found: check.header().parent_hash })
        }
        _ => Ok(()),
    }
}

fn number(check: &Check<'_>) -> Result<(), RuleError> {
    match check.parent {
        Some((parent, _)) if parent.number.checked_add(1) != Some(check.header().number) => {
            Err(RuleError::Number { parent: parent.number, found: check.header().number })
        }
        _ => Ok(()),
    }
}

fn difficulty_rule(check: &Check<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = check.parent else { return Ok(()) };
    let expected = difficulty::expected(check.header(), parent, check.network);
    let found = check.header().difficulty.value();
    if expected == found {
        return Ok(());
    }
    Err(RuleError::Difficulty { expected, found })
}

fn gas_limit_step(check: &Check<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = check.parent else { return Ok(()) };
    let (limit, found) = (parent.gas_limit.value(), check.header().gas_limit.value());
    // floor(limit * 1023 / 1024) and floor(limit * 1025 / 1024) without leaving 256 bits.
    let divisor = U256::from(GAS_LIMIT_DIVISOR);
    let low = limit.saturating_sub(limit.div_ceil(divisor));
    let high = limit.saturating_add(limit.checked_div(divisor).unwrap_or_default());
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(RuleError::GasLimitStep { low, high, found })
}

fn gas_limit_minimum(check: &Check<'_>) -> Result<(), RuleError> {
    let found = check.header().gas_limit.value();
    if found >= U256::from(MIN_GAS_LIMIT) {
        return Ok(());
    }
    Err(RuleError::GasLimitMinimum { found })
}

fn gas_used(check: &Check<'_>) -> Result<(), RuleError> {
    let (used, limit) = (check.header().gas_used, check.header().gas_limit.value());
    // The reference keeps the low 64 bits of the limit, as a signed number.
    let [low, ..] = limit.as_limbs();
    if used as i64 >= 0 && used as i64 <= *low as i64 {
        return Ok(());
    }
    Err(RuleError::GasUsed { used, limit })
}

fn minimum_gas_price(check: &Check<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = check.parent else { return Ok(()) };
    if check.header().minimum_gas_price.is_absent() {
        return Err(RuleError::MinimumGasPriceAbsent);
    }
    let (center, found) = (parent.minimum_gas_price.value(), check.header().minimum_gas_price.value());
    let hundredth = center.checked_div(U256::from(MIN_GAS_PRICE_DIVISOR)).unwrap_or_default();
    let step = hundredth.max(U256::from(1));
    let (low, high) = (center.saturating_sub(step), center.saturating_add(step));
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(RuleError::MinimumGasPriceStep { low, high, found })
}

fn extra_data(check: &Check<'_>) -> Result<(), RuleError> {
    let found = check.header().extra_data.len();
    if found <= MAX_EXTRA_DATA {
        return Ok(());
    }
    Err(RuleError::ExtraData { found })
}

fn edges(check: &Check<'_>) -> Result<(), RuleError> {
    let edges = &check.header().edges;
    if edges.len() > EXECUTION_THREADS {
        return Err(RuleError::EdgeCount { found: edges.len() });
    }
    let mut previous = 0i16;
    for edge in edges {
        let found = *edge as i16;
        if found <= previous {
            return Err(RuleError::EdgeOrder { previous, found });
        }
        previous = found;
    }
    Ok(())
}

fn future(check: &Check<'_>) -> Result<(), RuleError> {
    let (bound, time) = (check.network.params.future_bound, check.header().timestamp);
    match check.now {
        Some(now) if bound > 0 && time > now.saturating_add(bound) => {
            Err(RuleError::Future { time, now, bound })
        }
        _ => Ok(()),
    }
}

fn bitcoin_time(check: &Check<'_>) -> Result<(), RuleError> {
    let params = &check.network.params;
    if params.future_bound == 0 || !check.rules.has(Rule::Rskip179) {
        return Ok(());
    }
    // A field that holds no Bitcoin header is refused by `work`.
    let Some(bitcoin) = BitcoinHeader::first_of(&check.header().bitcoin_header) else { return Ok(()) };
    let wide = check.rules.has(Rule::Rskip297);
    let bound = if wide { params.btc_time_bound_rskip297 } else { params.btc_time_bound };
    let (time, bitcoin) = (check.header().timestamp, bitcoin.time());
    if time.abs_diff(u64::from(bitcoin)) < bound {
        return Ok(());
    }
    Err(RuleError::BitcoinTime { time, bitcoin, bound })
}

fn after_parent(check: &Check<'_>) -> Result<(), RuleError> {
    let time = check.header().timestamp;
    match check.parent {
        Some((parent, _)) if check.network.params.future_bound > 0 && time <= parent.timestamp => {
            Err(RuleError::NotAfterParent { time, parent: parent.timestamp })
        }
        _ => Ok(()),
    }
}

fn fork_detection(check: &Check<'_>) -> Result<(), RuleError> {
    check.compare_fork_detection().map(|_| ())
}

fn work(check: &Check<'_>) -> Result<(), RuleError> {
    verify_with_hash(check.header(), check.candidate.mining_hash(), check.network, check.rules)?;
    Ok(())
}

/// Checks a header by itself: proof of work and every rule that needs no ancestor. Its difficulty is not checked, so
/// this says nothing about the chain it belongs to.
pub fn verify_standalone(
    candidate: &Candidate,
    network: &Network,
    now: Option<u64>,
) -> Result<Seal, RuleError> {
    Ok(Check::new(candidate, network, now).block()?.0)
}

/// Checks a header as the child of `parent`, without ancestors for its fork detection data.
pub fn verify_child(
    candidate: &Candidate,
    parent: &crate::types::SealedHeader,
    network: &Network,
    now: Option<u64>,
) -> Result<Seal, RuleError> {
    let parent = Some((parent.header(), parent.hash()));
    Ok(Check { parent, ..Check::new(candidate, network, now) }.block()?.0)
}
