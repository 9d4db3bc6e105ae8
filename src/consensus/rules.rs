//! The rules of headers, one function each, and the lists of rules for blocks and for uncles. The header chain runs them on each header.
//!
//! No rule is stricter than in the reference node, because a header that full nodes accept must not be
//! refused. In particular, a block of the chain need not be later than its parent; only an uncle must be later.

use thiserror::Error;

use super::bitcoin::BitcoinHeader;
use super::candidate::HeaderCandidate;
use super::difficulty;
use super::fork_detection::{ForkContext, ForkDetection, ForkDetectionError, checked_data};
use super::network::{
    EXECUTION_THREADS, GAS_LIMIT_DIVISOR, MAX_EXTRA_DATA, MIN_GAS_LIMIT, MIN_GAS_PRICE_DIVISOR, Network,
};
use super::pow::{PowError, Seal, verify_with_hash};
use super::rule::{Rule, RuleSet};
use crate::types::number::{Decimal, div_rem};
use crate::types::{B256, Header, U256};

/// The header rule that is broken: the field, the rule and the values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum RuleError {
    /// The header has the fields of another height or network.
    #[error("header {number}: laid out for other rules")]
    Shape { number: u64 },
    /// The header is not a child of this parent.
    #[error("parentHash: {found}, the parent is {expected}")]
    ParentHash { expected: B256, found: B256 },
    /// The number is not the parent's number plus one.
    #[error("number: {found}, after block {parent}")]
    Number { parent: u64, found: u64 },
    /// The difficulty is not the one computed from the parent.
    #[error("difficulty: {found}, expected {expected}", found = Decimal(.found), expected = Decimal(.expected))]
    Difficulty {
        /// The value computed from the parent, both times and the stated uncles.
        expected: U256,
        found: U256,
    },
    /// The gas limit is too far from the parent's.
    #[error("gasLimit: {found}, allowed {low} to {high}", found = Decimal(.found), low = Decimal(.low), high = Decimal(.high))]
    GasLimitStep { low: U256, high: U256, found: U256 },
    /// The gas limit is below the minimum of all blocks.
    #[error("gasLimit: {found}, at least {MIN_GAS_LIMIT}", found = Decimal(.found))]
    GasLimitMinimum { found: U256 },
    #[error("gasUsed: {used}, gas limit {limit}", limit = Decimal(.limit))]
    GasUsed { used: u64, limit: U256 },
    #[error("minimumGasPrice: absent")]
    MinimumGasPriceAbsent,
    /// The minimum gas price is too far from the parent's.
    #[error("minimumGasPrice: {found}, allowed {low} to {high}", found = Decimal(.found), low = Decimal(.low), high = Decimal(.high))]
    MinimumGasPriceStep { low: U256, high: U256, found: U256 },
    /// The extra data are too long.
    #[error("extraData: {found} bytes, at most {MAX_EXTRA_DATA}")]
    ExtraData { found: usize },
    /// The header is ahead of the clock. The header may become valid later, so the error proves no fault.
    #[error("timestamp: {time} is more than {bound} s ahead of {now}")]
    Future { time: u64, now: u64, bound: u64 },
    /// Block time and Bitcoin time are too far apart (RSKIP-179).
    #[error(
        "timestamp: {time}, the Bitcoin header has {bitcoin}, less than {bound} s apart needed (RSKIP-179)"
    )]
    BitcoinTime { time: u64, bitcoin: u32, bound: u64 },
    /// The uncle is not later than its parent.
    #[error("timestamp: uncle's {time} not after its parent's {parent}")]
    NotAfterParent { time: u64, parent: u64 },
    /// The header has more edges than there are parallel sublists.
    #[error("rskPteEdges: {found} edges, at most {EXECUTION_THREADS} (RSKIP-144)")]
    EdgeCount { found: usize },
    /// The edges, the ends of the parallel sublists, are not positive and ascending (as signed 16-bit numbers).
    #[error("rskPteEdges: {found} not above {previous} (RSKIP-144)")]
    EdgeOrder { previous: i16, found: i16 },
    /// The fork detection data contradict the ancestors.
    #[error("fork detection data: {0} (RSKIP-110)")]
    ForkDetection(#[from] ForkDetectionError),
    /// The proof of work is invalid.
    #[error(transparent)]
    Work(#[from] PowError),
}

/// The input of the rules: the header to check, its network, its parent and the clock. A rule whose input is `None` passes.
pub(super) struct RuleInput<'a> {
    pub(super) candidate: &'a HeaderCandidate,
    /// The verified parent with its hash; `None` if the header is checked by itself.
    pub(super) parent: Option<(&'a Header, B256)>,
    pub(super) network: &'a Network,
    /// The rules that are active at the header's height.
    pub(super) rules: RuleSet,
    /// The fork detection context of the parent, and the number of uncles that the 32 headers up to the parent state, if the chain has
    /// them all. Without a context only the block number in the data is checked.
    pub(super) fork: Option<(&'a ForkContext, Option<i32>)>,
    /// The clock in seconds; `None` disables the rule on future blocks.
    pub(super) now: Option<u64>,
}

type RuleFn = fn(&RuleInput<'_>) -> Result<(), RuleError>;

/// Rules of a block of the chain that need neither proof of work nor the clock. The rules that cost most are last.
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

/// Rules of a mined block besides [`LINK_RULES`]. The clock is checked last, so a header that is refused as ahead of the clock has passed
/// all other rules.
const MINED_RULES: &[RuleFn] = &[work, future];

/// Rules of an uncle. The reference node does not check extra data, edges and the minimum gas limit of
/// uncles, but requires them to be later than their parents.
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

impl<'a> RuleInput<'a> {
    pub(super) fn new(candidate: &'a HeaderCandidate, network: &'a Network, now: Option<u64>) -> Self {
        let rules = network.rules(candidate.header().number);
        Self { candidate, parent: None, network, rules, fork: None, now }
    }

    fn header(&self) -> &Header {
        self.candidate.header()
    }

    /// Checks the rules of a block. Returns the kind of its proof, and which fork detection data were checked.
    pub(super) fn block(&self) -> Result<(Seal, ForkDetection), RuleError> {
        self.linked()?;
        self.run(MINED_RULES)
    }

    /// Checks the rules of a block of the chain, except those on work and on the clock.
    pub(super) fn linked(&self) -> Result<ForkDetection, RuleError> {
        self.run(LINK_RULES).map(|(_, fork_detection)| fork_detection)
    }

    /// Checks the proof of work alone.
    pub(super) fn mined(&self) -> Result<Seal, RuleError> {
        work(self).map(|()| self.seal())
    }

    /// Checks the rules of an uncle. The result is as for [`Self::block`].
    pub(super) fn uncle(&self) -> Result<(Seal, ForkDetection), RuleError> {
        self.run(UNCLE_RULES)
    }

    /// Checks these rules, and compares the fork detection data as far as possible.
    fn run(&self, rules: &[RuleFn]) -> Result<(Seal, ForkDetection), RuleError> {
        rules.iter().try_for_each(|rule| rule(self))?;
        Ok((self.seal(), self.compare_fork_detection()?))
    }

    /// The kind of proof: only a fallback block has no coinbase.
    fn seal(&self) -> Seal {
        if self.header().coinbase_tx.is_empty() { Seal::FallbackSignature } else { Seal::MergedMining }
    }

    #[cfg(test)]
    pub(super) fn broken_block_rules(&self) -> alloc::vec::Vec<RuleError> {
        LINK_RULES.iter().chain(MINED_RULES).filter_map(|rule| rule(self).err()).collect()
    }

    #[cfg(test)]
    pub(super) fn broken_uncle_rules(&self) -> alloc::vec::Vec<RuleError> {
        UNCLE_RULES.iter().filter_map(|rule| rule(self).err()).collect()
    }

    /// Compares the fork detection data of the header with the context of its parent.
    fn compare_fork_detection(&self) -> Result<ForkDetection, RuleError> {
        let header = self.header();
        // If the hash contains no fork detection data, there is nothing to check. If they are required and
        // missing, `work` reports it.
        let Ok(hash) = self.candidate.mining_hash() else { return Ok(ForkDetection::NotRequired) };
        let Some(data) = checked_data(header, hash) else { return Ok(ForkDetection::NotRequired) };
        let no_ancestors = ForkContext::default();
        let (context, uncles) = self.fork.unwrap_or((&no_ancestors, None));
        Ok(context.check(header.number, &data, uncles)?)
    }
}

fn shape(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let header = input.header();
    if header.shape == input.network.header_shape(header.number) {
        return Ok(());
    }
    Err(RuleError::Shape { number: header.number })
}

fn parent_hash(input: &RuleInput<'_>) -> Result<(), RuleError> {
    match input.parent {
        Some((_, expected)) if expected != input.header().parent_hash => {
            Err(RuleError::ParentHash { expected, found: input.header().parent_hash })
        }
        _ => Ok(()),
    }
}

fn number(input: &RuleInput<'_>) -> Result<(), RuleError> {
    match input.parent {
        Some((parent, _)) if parent.number.checked_add(1) != Some(input.header().number) => {
            Err(RuleError::Number { parent: parent.number, found: input.header().number })
        }
        _ => Ok(()),
    }
}

fn difficulty_rule(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = input.parent else { return Ok(()) };
    let expected = difficulty::expected(input.header(), parent, input.network);
    let found = input.header().difficulty.value();
    if expected == found {
        return Ok(());
    }
    Err(RuleError::Difficulty { expected, found })
}

fn gas_limit_step(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = input.parent else { return Ok(()) };
    let (limit, found) = (parent.gas_limit.value(), input.header().gas_limit.value());
    // floor(limit * 1023 / 1024) and floor(limit * 1025 / 1024) without leaving 256 bits.
    let (step, rest) = div_rem(limit, GAS_LIMIT_DIVISOR);
    let low = limit.saturating_sub(step).saturating_sub(U256::from(rest != 0));
    let high = limit.saturating_add(step);
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(RuleError::GasLimitStep { low, high, found })
}

fn gas_limit_minimum(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let found = input.header().gas_limit.value();
    if found >= U256::from(MIN_GAS_LIMIT) {
        return Ok(());
    }
    Err(RuleError::GasLimitMinimum { found })
}

fn gas_used(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let (used, limit) = (input.header().gas_used, input.header().gas_limit.value());
    // The reference node keeps the low 64 bits of the limit, as a signed number.
    let [low, ..] = limit.as_limbs();
    if used as i64 >= 0 && used as i64 <= *low as i64 {
        return Ok(());
    }
    Err(RuleError::GasUsed { used, limit })
}

fn minimum_gas_price(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let Some((parent, _)) = input.parent else { return Ok(()) };
    if input.header().minimum_gas_price.is_absent() {
        return Err(RuleError::MinimumGasPriceAbsent);
    }
    let (center, found) = (parent.minimum_gas_price.value(), input.header().minimum_gas_price.value());
    let (hundredth, _) = div_rem(center, MIN_GAS_PRICE_DIVISOR);
    let step = hundredth.max(U256::from(1));
    let (low, high) = (center.saturating_sub(step), center.saturating_add(step));
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(RuleError::MinimumGasPriceStep { low, high, found })
}

fn extra_data(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let found = input.header().extra_data.len();
    if found <= MAX_EXTRA_DATA {
        return Ok(());
    }
    Err(RuleError::ExtraData { found })
}

fn edges(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let edges = &input.header().edges;
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

fn future(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let (bound, time) = (input.network.params.future_bound, input.header().timestamp);
    match input.now {
        Some(now) if bound > 0 && time > now.saturating_add(bound) => {
            Err(RuleError::Future { time, now, bound })
        }
        _ => Ok(()),
    }
}

fn bitcoin_time(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let params = &input.network.params;
    if params.future_bound == 0 || !input.rules.has(Rule::Rskip179) {
        return Ok(());
    }
    // A field that is too short for a Bitcoin header is refused by `work`.
    let Some(bitcoin) = BitcoinHeader::first_of(&input.header().bitcoin_header) else { return Ok(()) };
    let wide = input.rules.has(Rule::Rskip297);
    let bound = if wide { params.btc_time_bound_rskip297 } else { params.btc_time_bound };
    let (time, bitcoin) = (input.header().timestamp, bitcoin.time());
    if time.abs_diff(u64::from(bitcoin)) < bound {
        return Ok(());
    }
    Err(RuleError::BitcoinTime { time, bitcoin, bound })
}

fn after_parent(input: &RuleInput<'_>) -> Result<(), RuleError> {
    let time = input.header().timestamp;
    match input.parent {
        Some((parent, _)) if input.network.params.future_bound > 0 && time <= parent.timestamp => {
            Err(RuleError::NotAfterParent { time, parent: parent.timestamp })
        }
        _ => Ok(()),
    }
}

fn fork_detection(input: &RuleInput<'_>) -> Result<(), RuleError> {
    input.compare_fork_detection().map(|_| ())
}

fn work(input: &RuleInput<'_>) -> Result<(), RuleError> {
    verify_with_hash(input.header(), input.candidate.mining_hash(), input.network, input.rules)?;
    Ok(())
}

/// Checks a header by itself: proof of work and all rules that need no ancestor. Its difficulty is not
/// checked, so this proves nothing about the chain of the header.
pub fn verify_standalone(
    candidate: &HeaderCandidate,
    network: &Network,
    now: Option<u64>,
) -> Result<Seal, RuleError> {
    Ok(RuleInput::new(candidate, network, now).block()?.0)
}

/// Checks a header as a child of `parent`. Without further ancestors, its fork detection data are checked in
/// part.
pub fn verify_child(
    candidate: &HeaderCandidate,
    parent: &crate::types::SealedHeader,
    network: &Network,
    now: Option<u64>,
) -> Result<Seal, RuleError> {
    let parent = Some((parent.header(), parent.hash()));
    Ok(RuleInput { parent, ..RuleInput::new(candidate, network, now) }.block()?.0)
}
