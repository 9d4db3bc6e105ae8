//! Judges whether the client may start at a block that is not trusted, by the work of the headers above it.

use alloc::{format, string::String};

use super::{
    followed::FollowedChain, proposal::ElectionRule, window_judge::WindowVerdict, window_record::MARK_DEPTH,
};
use crate::{
    consensus::{ChainView, VerifiedHeader, WorkStart},
    light::{bitcoin::BitcoinFollower, clock::Now, work_floor::LONGEST_STRETCH},
    types::U256,
};

/// Longest time without a block, in seconds, up to the host's present time. At a block every 30 s, honest miners leave
/// such a gap about once in 10^26 blocks.
pub(super) const LONGEST_GAP: u64 = 1_800;

/// Fewest seconds per block of a chain over hours; mainnet showed 25 to 33. The block numbers of a false chain may grow faster.
const SHORTEST_SPACING: u64 = 10;

/// Divisor of the number of headers that a start needs, if Bitcoin's chain dates their work: on mainnet 12 hours of headers
/// instead of two days.
const DATED_SHARE: u64 = 4;

/// Judges chains at one moment.
pub(super) struct Judge<'a> {
    pub(super) rule: &'a ElectionRule,
    /// Whether the network's built-in numbers decide, because work cannot be dated.
    pub(super) undated: bool,
    /// Whether the chain was restored from an earlier run and extended, so that its oldest headers may have left memory.
    pub(super) restored: bool,
    /// The Bitcoin chain that the client follows.
    pub(super) bitcoin: Option<&'a BitcoinFollower>,
    pub(super) now: Now,
}

impl ElectionRule {
    /// Number of headers of a short window, which suffices if their work is dated.
    pub(super) fn short_window(&self) -> u64 {
        self.work.headers / DATED_SHARE
    }

    /// Whether one chain shows more work than another. A chain with enough dated work wins against one without, and more dated work
    /// against less. Only if neither has dated work, the work of their newest headers decides.
    pub(super) fn prefers(
        &self,
        one: &ChainView,
        other: &ChainView,
        bitcoin: Option<&BitcoinFollower>,
        now: Now,
    ) -> bool {
        use WindowVerdict::Enough;
        let verdict = |view| self.dated.as_ref().map(|dated| dated.judge(view, bitcoin, now));
        match (verdict(one), verdict(other)) {
            (Some(Enough(one)), Some(Enough(other))) => return one > other,
            (Some(Enough(_)), _) => return true,
            (_, Some(Enough(_))) => return false,
            _ => {}
        }
        let headers = if self.dated.is_some() { self.short_window() } else { self.work.headers };
        let works = recent_work(one, headers).zip(recent_work(other, headers));
        works.is_some_and(|(one, other)| one > other)
    }
}

impl Judge<'_> {
    /// Number of headers that are needed above the block at which a chain starts.
    pub(super) fn headers(&self) -> u64 {
        match &self.rule.dated {
            Some(_) if !self.undated => self.rule.short_window(),
            _ => self.rule.work.headers,
        }
    }

    /// Judges all headers of a chain above its base. `floor` is the required percentage of the expected work.
    pub(super) fn verdict(&self, followed: &FollowedChain, floor: u64) -> WindowVerdict {
        let Some(view) = followed.chain.as_ref().map(|chain| chain.view()) else {
            return WindowVerdict::Refused("it has no headers".into());
        };
        if let Err(reason) = self.is_present(view).and_then(|()| self.agrees_with_mark(view)) {
            return WindowVerdict::Refused(reason);
        }
        let dated = self.rule.dated.as_ref().map(|dated| dated.judge(view, self.bitcoin, self.now));
        match dated {
            Some(verdict @ (WindowVerdict::Enough(_) | WindowVerdict::Refused(_))) => verdict,
            Some(pending) if !self.undated => pending,
            _ => match self.shows_work(followed, view, &self.rule.work, floor) {
                // `Enough` states the dated work, and none is dated here.
                Ok(()) => WindowVerdict::Enough(U256::ZERO),
                Err(reason) => WindowVerdict::Refused(reason),
            },
        }
    }

    /// Judges a chain of restored headers, which may be longer than a start needs. If its headers are enough without dated work, the
    /// client does not wait for the dates.
    pub(super) fn restored_verdict(&self, followed: &FollowedChain, floor: u64) -> WindowVerdict {
        let verdict = self.verdict(followed, floor);
        if !matches!(verdict, WindowVerdict::Wait | WindowVerdict::Unavailable) {
            return verdict;
        }
        match (Judge { undated: true, ..*self }.verdict(followed, floor), verdict) {
            // The headers may be too few without dates, and enough with dates that are still to come.
            (WindowVerdict::Refused(_), WindowVerdict::Wait) => WindowVerdict::Wait,
            (undated, _) => undated,
        }
    }

    /// Whether the headers reach from the base to the present without long gaps.
    fn is_present(&self, view: &ChainView) -> Result<(), String> {
        let first = self.first_header(view)?;
        let mut time = first.timestamp;
        for header in (first.number..=view.head().number).filter_map(|number| view.by_number(number)) {
            let gap = header.timestamp.saturating_sub(time);
            if gap > LONGEST_GAP {
                return Err(format!("there is no block for {gap} s before block {}", header.number));
            }
            time = time.max(header.timestamp);
        }
        let age = self.now.unix.saturating_sub(time);
        if age > LONGEST_GAP {
            return Err(format!("its newest block {} is {age} s old", view.head().number));
        }
        Ok(())
    }

    /// Whether the headers show the work that the network's numbers demand.
    fn shows_work(
        &self,
        followed: &FollowedChain,
        view: &ChainView,
        work: &WorkStart,
        floor: u64,
    ) -> Result<(), String> {
        let first = self.first_header(view)?;
        let (base, difficulty, least) = (first.number, first.difficulty.value(), work.difficulty);
        if difficulty < least {
            return Err(format!("block {base} has difficulty {difficulty}; at least {least} is required"));
        }
        // On a shorter chain the work floor could not judge its longest stretch.
        if self.now.unix.saturating_sub(first.timestamp) < LONGEST_STRETCH {
            return Err(format!("the blocks from {base} on span less than a day"));
        }
        match followed.floor.low_work_at(self.now.unix).or(followed.floor.low().copied()) {
            Some(low) => Err(format!(
                "the {} s up to block {} show {} % of the expected work; {} % is required",
                low.seconds, low.number, low.percent, floor
            )),
            None => Ok(()),
        }
    }

    /// Whether a chain agrees with the mark of an earlier run, as far as its headers show.
    fn agrees_with_mark(&self, view: &ChainView) -> Result<(), String> {
        let Some(mark) = &self.rule.mark else { return Ok(()) };
        let (number, time) = (mark.number, mark.time);
        let clock_lag = time.saturating_sub(self.now.unix);
        if clock_lag > LONGEST_GAP {
            return Err(format!(
                "this computer's clock is {clock_lag} s behind the head that an earlier run proved above block {number}; \
                 if that run's clock was wrong, remove the stored headers"
            ));
        }
        let head = view.head();
        let older = time.saturating_sub(head.timestamp);
        if older > LONGEST_GAP {
            return Err(format!(
                "its newest block {} is {older} s older than the head that an earlier run proved",
                head.number
            ));
        }
        let Some(above_mark) = head.number.checked_sub(number).filter(|_| view.hash_at(number).is_none())
        else {
            // The chain has a block of the mark's number, or ends below it. Another block there needs more work than the mark's chain
            // had.
            let own = recent_work(view, self.rule.short_window());
            if view.hash_at(number) != Some(mark.hash) && own.is_none_or(|own| own <= mark.work) {
                return Err(format!(
                    "it has not block {number} {}, which an earlier run proved, and not more work; if that run was \
                     deceived, remove the stored headers",
                    mark.hash
                ));
            }
            return Ok(());
        };
        // The mark is below the headers in memory. If it is not far below, its block was requested as an ancestor of the base.
        if number.saturating_add(self.rule.work.headers) >= view.base().number {
            return Err(format!("it does not show block {number}, which an earlier run proved"));
        }
        // The mark's block is `MARK_DEPTH` below the head whose time the mark has.
        let seconds = head.timestamp.saturating_sub(time);
        if above_mark.saturating_sub(MARK_DEPTH) > seconds / SHORTEST_SPACING {
            return Err(format!(
                "its newest block is {above_mark} above block {number}, which an earlier run proved {seconds} s before"
            ));
        }
        Ok(())
    }

    /// The header of a chain's base; of a restored chain, the lowest header in memory that is not below the base.
    fn first_header<'a>(&self, view: &'a ChainView) -> Result<&'a VerifiedHeader, String> {
        let base = view.base().number;
        let first = if self.restored { base.max(view.lowest()) } else { base };
        let first = view.by_number(first).filter(|first| view.lowest() <= first.number);
        first.ok_or_else(|| format!("more headers are above block {base} than fit into memory"))
    }
}

/// The proven work of the newest `headers` headers of a chain. `None` if not all of them are in memory.
pub(super) fn recent_work(view: &ChainView, headers: u64) -> Option<U256> {
    let work = |number: u64| view.header_work(&view.hash_at(number)?);
    let head = view.head().number;
    let below = head.saturating_sub(headers).max(view.base().number);
    Some(work(head)?.saturating_sub(work(below)?))
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::{ElectionRule, recent_work};
    use crate::{
        consensus::{
            ChainView, HeaderCandidate, HeaderChain, WorkStart,
            testing::{chain, child, easy_network, mine},
        },
        light::{
            bitcoin::BitcoinFollower,
            clock::Now,
            sync::window_judge::{WindowJudge, WindowVerdict},
        },
        types::U256,
    };

    fn extend(chain: &mut HeaderChain, headers: u64) {
        for _ in 0..headers {
            let header = child(chain.view().network(), chain.head().sealed());
            chain.insert(HeaderCandidate::from(mine(header)), None).unwrap();
        }
    }

    /// A header that is no longer in memory does not count as a header without work below it.
    #[test]
    fn recent_work_is_unknown_if_its_first_header_is_not_in_memory() {
        let mut chain = chain(easy_network(&[], &[]), 10).with_window(5);
        extend(&mut chain, 20);
        let newest = [30, 29].map(|number| chain.by_number(number).unwrap().difficulty.value());
        assert_eq!(recent_work(chain.view(), 2), Some(newest[0] + newest[1]));
        assert_eq!(recent_work(chain.view(), 10), None);
    }

    /// Dates the work of short chains; to long ones it says this.
    #[derive(Debug)]
    struct ToLongOnes(WindowVerdict);

    impl WindowJudge for ToLongOnes {
        fn judge(&self, chain: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> WindowVerdict {
            if chain.head().number < 20 { WindowVerdict::Enough(U256::ONE) } else { self.0.clone() }
        }
    }

    /// Headers that name none of Bitcoin's blocks may be saved up for weeks.
    #[test]
    fn dated_work_outweighs_all_other_work() {
        let (mut dated, mut heavy) = (chain(easy_network(&[], &[]), 10), chain(easy_network(&[], &[]), 10));
        extend(&mut dated, 5);
        extend(&mut heavy, 15);
        for verdict in [WindowVerdict::Unavailable, WindowVerdict::Refused("saved up".into())] {
            let rule = ElectionRule {
                work: WorkStart { difficulty: U256::ONE, from: 1, headers: 400 },
                is_window: true,
                dated: Some(Arc::new(ToLongOnes(verdict.clone()))),
                mark: None,
            };
            let prefers = |one, other| rule.prefers(one, other, None, Now::default());
            assert!(prefers(dated.view(), heavy.view()), "{verdict:?}");
            assert!(!prefers(heavy.view(), dated.view()), "{verdict:?}");
        }
    }
}
