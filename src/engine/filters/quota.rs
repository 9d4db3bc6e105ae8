//! The limits of all filters and subscriptions together, and which filters are dropped where a new one would exceed them.

use alloc::{collections::BTreeMap, vec::Vec};

use thiserror::Error;

use super::installed::InstalledFilter;
use crate::types::Asker;

/// Most filters and subscriptions that are kept. On a light client each takes some 16 KiB for the blocks that it remembers, so
/// that this many reach the limit of bytes.
pub const MAX_FILTERS: usize = 4_096;
/// Most bytes of all filters and subscriptions, approximately. The limit bounds the memory of filters that remember many logs or
/// pending transactions.
const MAX_FILTER_BYTES: usize = 64 << 20;
/// The web pages of one caller together have at most 1/`PAGES_PART` of the filters and of their bytes: any page that the
/// operator opens in a browser has the operator's address.
const PAGES_PART: usize = 4;

/// The limit that a new filter would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FilterLimit {
    /// The limit of all filters. No other caller's filters take more memory than those of the caller with the new filter.
    #[error("all filters together may be {MAX_FILTERS} with {} MiB; uninstall some", MAX_FILTER_BYTES >> 20)]
    All,
    /// The limit of the web pages of one caller. No other page's filters take more memory than those of the page with the new filter.
    #[error(
        "all web pages at one address together may have {} filters with {} MiB; uninstall some, or close other pages",
        MAX_FILTERS / PAGES_PART,
        (MAX_FILTER_BYTES / PAGES_PART) >> 20
    )]
    Pages,
}

/// A number of filters, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
struct FilterUsage {
    count: usize,
    bytes: usize,
}

impl FilterUsage {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Whether the sum is more than a `part`th of what is allowed: more than a quarter for 4.
    fn exceeds(&self, part: usize) -> bool {
        self.count.saturating_mul(part) > MAX_FILTERS || self.bytes.saturating_mul(part) > MAX_FILTER_BYTES
    }
}

/// Drops filters until all limits hold with `count` new filters of an asker, which take `bytes`. Without new filters it drops
/// those beyond the limits and never fails.
///
/// # Errors
/// The asker itself has the most filters, so the new ones cannot be installed.
pub(super) fn make_room(
    installed: &mut Vec<InstalledFilter>,
    asker: Asker,
    count: usize,
    bytes: usize,
) -> Result<(), FilterLimit> {
    let (asker, new) = (asker.counts_as(), FilterUsage { count, bytes });
    loop {
        let mut sums = BTreeMap::<Asker, FilterUsage>::new();
        for one in &*installed {
            let sum = FilterUsage { count: 1, bytes: one.bytes };
            sums.entry(one.asker.counts_as()).or_default().add(sum);
        }
        if count > 0 {
            sums.entry(asker).or_default().add(new);
        }
        let Some((loser, limit)) = loser(&sums, asker) else { return Ok(()) };
        if count > 0 && loser == asker {
            return Err(limit);
        }
        let own = installed.iter().enumerate().filter(|(_, one)| one.asker.counts_as() == loser);
        // The one that was polled longest ago is dropped.
        let Some((index, _)) = own.min_by_key(|(_, one)| one.polled) else { return Err(limit) };
        installed.remove(index);
    }
}

/// The asker that has to lose a filter, and the limit that is exceeded; `None` if all limits hold. The caller
/// with the most bytes loses; of its askers, the page with the most, and its programs only if none of its pages has a filter. Among
/// equals `newcomer` loses.
fn loser(sums: &BTreeMap<Asker, FilterUsage>, newcomer: Asker) -> Option<(Asker, FilterLimit)> {
    let (mut all, mut pages, mut callers) = (FilterUsage::default(), BTreeMap::new(), BTreeMap::new());
    for (asker, sum) in sums {
        all.add(*sum);
        callers.entry(asker.number).or_insert_with(FilterUsage::default).add(*sum);
        if asker.page != 0 {
            pages.entry(asker.number).or_insert_with(FilterUsage::default).add(*sum);
        }
    }
    let over_quarter = pages.iter().find(|(_, sum)| sum.exceeds(PAGES_PART)).map(|(number, _)| *number);
    let most = || callers.iter().max_by_key(|(number, sum)| (sum.bytes, **number == newcomer.number));
    let (caller, limit) = match over_quarter {
        Some(caller) => (caller, FilterLimit::Pages),
        None if all.exceeds(1) => (*most()?.0, FilterLimit::All),
        None => return None,
    };
    let own = sums.iter().filter(|(asker, _)| asker.number == caller);
    let loser = own.max_by_key(|(asker, sum)| (asker.page != 0, sum.bytes, **asker == newcomer));
    loser.map(|(asker, _)| (*asker, limit))
}
