//! Dated work against chains that are not what they look like.

use super::testing::{LOWEST, WORK, bitcoin, dated, hash, hash_on, reorganised};
use super::{
    DatedHeader, DatedReport, DatedWork, FLOORS, MAX_DATED_HEADERS, MAX_LAG, MAX_SUFFIX, MIN_SUFFIX,
};
use crate::consensus::bitcoin::BitcoinChain;
use crate::types::{B256, U256};

/// Headers on each Bitcoin block.
const HEADERS: u64 = 20;
/// Work of a header that gives a chain a quarter of Bitcoin's.
const QUARTER: u64 = WORK / 4 / HEADERS;

/// A Rootstock chain with this much work in each header, 20 headers on each Bitcoin block from `first` to `last`.
fn grow(dates: &mut DatedWork, chain: &BitcoinChain, first: u32, last: u32, work: u64) {
    for parent in first..=last {
        add(dates, chain, hash(parent), work);
    }
}

fn add(dates: &mut DatedWork, chain: &BitcoinChain, parent: B256, work: u64) {
    for _ in 0..HEADERS {
        let number = dates.len() as u64;
        dates.push(dated(number, parent, work), chain);
    }
}

fn judged(chain: &BitcoinChain, dates: &DatedWork) -> DatedReport {
    dates.report(chain, chain.tip().height)
}

fn passes(report: &DatedReport) -> bool {
    !report.lags() && report.low().is_none() && report.judged >= MIN_SUFFIX
}

#[test]
fn an_honest_chain_shows_its_share() {
    let tip = LOWEST + 100;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    let report = judged(&chain, &dates);
    assert!(passes(&report));
    // All parents but the lowest one, up to the tip, on which work is still done.
    assert_eq!((report.judged, report.lag, report.tip), (99, Some(0), tip));
    let lowest = report.lowest.unwrap();
    assert_eq!(lowest.basis_points(), QUARTER * HEADERS * 10_000 / WORK);
}

/// Headers of a saved-up chain name the Bitcoin blocks at which they were mined, whatever their Rootstock times say.
#[test]
fn saved_up_work_is_too_old() {
    let tip = LOWEST + 300;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, LOWEST + 200, 100 * QUARTER);
    let report = judged(&chain, &dates);
    assert_eq!(report.lag, Some(100));
    assert!(report.lags());
    // One header on the newest block does not help.
    dates.push(dated(9_999, hash(tip), QUARTER), &chain);
    let report = judged(&chain, &dates);
    assert!(!report.lags());
    let low = report.low().unwrap();
    assert!(low.blocks >= MIN_SUFFIX && low.work < U256::from(2 * QUARTER));
}

#[test]
fn work_of_the_newest_block_does_not_count_for_older_ones() {
    let tip = LOWEST + 100;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    let mut saved = DatedWork::new(0);
    grow(&mut saved, &chain, LOWEST, LOWEST + 60, QUARTER);
    add(&mut saved, &chain, hash(tip), 10_000 * QUARTER);
    assert!(passes(&judged(&chain, &dates)));
    assert!(judged(&chain, &saved).low().is_some(), "the tip's own work is not mined under a block yet");
}

#[test]
fn parents_that_go_back_count_nothing() {
    let tip = LOWEST + 60;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, LOWEST + 20, QUARTER);
    // Saved-up headers on old blocks after one on a new block.
    dates.push(dated(8_888, hash(tip), QUARTER), &chain);
    grow(&mut dates, &chain, LOWEST + 21, tip - 1, QUARTER);
    let report = judged(&chain, &dates);
    assert!(report.low().is_some_and(|low| low.work.is_zero()));
    let parents: Vec<u32> = dates.parents().map(|(height, _)| height).collect();
    assert_eq!(parents, (LOWEST..=LOWEST + 20).chain([tip]).collect::<Vec<_>>());
}

#[test]
fn parents_that_name_no_block_count_nothing() {
    let tip = LOWEST + 60;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    for height in LOWEST..=tip {
        // Stale blocks, blocks of another chain, no proof.
        for parent in [hash_on(1, height), B256::repeat_byte(9), B256::repeat_byte(8)] {
            add(&mut dates, &chain, parent, QUARTER);
        }
    }
    let report = judged(&chain, &dates);
    assert_eq!((report.lag, report.judged, report.lowest), (None, 0, None));
    assert!(report.lags());
}

/// A branch made in one go names the newest Bitcoin blocks, whatever times it states.
#[test]
fn a_header_that_is_older_than_its_parent_has_no_date() {
    let tip = LOWEST + 60;
    let chain = bitcoin(tip);
    for (before, holds) in [(7_200, true), (7_201, false)] {
        let mut dates = DatedWork::new(0);
        for height in LOWEST..=tip {
            let time = u64::from(chain.at(height).unwrap().time) - before;
            let header = dated(u64::from(height), hash(height), WORK / 4);
            dates.push(DatedHeader { time, ..header }, &chain);
        }
        assert_eq!(passes(&judged(&chain, &dates)), holds, "{before} s before");
    }
}

/// A header states the time at which its parent was Bitcoin's newest block.
#[test]
fn a_header_that_is_much_younger_than_the_next_block_has_no_date() {
    let tip = LOWEST + 60;
    let chain = bitcoin(tip);
    for (after, holds) in [(7_200, true), (7_201, false)] {
        let mut dates = DatedWork::new(0);
        for height in LOWEST..tip {
            let time = u64::from(chain.at(height + 1).unwrap().time) + after;
            let header = dated(u64::from(height), hash(height), WORK / 4);
            dates.push(DatedHeader { time, ..header }, &chain);
        }
        assert_eq!(passes(&judged(&chain, &dates)), holds, "{after} s after");
    }
}

/// Any miner of the chain can name an old block in the header at which a window happens to begin.
#[test]
fn one_old_parent_does_not_stretch_what_is_judged() {
    let tip = LOWEST + 400;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    let first = tip - 72;
    let time = u64::from(chain.at(first).unwrap().time);
    dates.push(DatedHeader { time, ..dated(9_999, hash(LOWEST), QUARTER) }, &chain);
    grow(&mut dates, &chain, first, tip, QUARTER);
    let report = judged(&chain, &dates);
    assert!(passes(&report), "{report:?}");
    assert_eq!(report.judged, 71);
}

/// Dates do not depend on whether a header came before or after the block on top of its parent.
#[test]
fn a_header_is_dated_anew_by_the_block_on_top_of_its_parent() {
    let tip = LOWEST + 60;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    let late = DatedHeader { time: u64::from(600 * tip) + 7_801, ..dated(9_999, hash(tip), QUARTER) };
    dates.follow_bitcoin(&chain);
    dates.push(late, &chain);
    let named = |dates: &DatedWork| dates.parents().last().unwrap();
    assert_eq!(named(&dates), (tip, U256::from(QUARTER * (HEADERS + 1))));
    dates.follow_bitcoin(&bitcoin(tip + 1));
    assert_eq!(named(&dates), (tip, U256::from(QUARTER * HEADERS)));
}

#[test]
fn a_few_unknown_parents_do_no_harm() {
    let tip = LOWEST + 60;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    for height in LOWEST..=tip {
        dates.push(dated(5_000 + u64::from(height), hash_on(1, height), QUARTER), &chain);
        add(&mut dates, &chain, hash(height), QUARTER);
    }
    let report = judged(&chain, &dates);
    assert!(passes(&report));
    assert_eq!(report.lowest.unwrap().basis_points(), QUARTER * HEADERS * 10_000 / WORK);
}

#[test]
fn a_head_may_lag_a_little() {
    let tip = LOWEST + 60;
    let chain = bitcoin(tip);
    for lag in 0..6 {
        let mut dates = DatedWork::new(0);
        grow(&mut dates, &chain, LOWEST, tip - lag, QUARTER);
        let report = judged(&chain, &dates);
        assert_eq!((report.lag, report.lags()), (Some(lag), lag > MAX_LAG));
    }
}

/// A chain just at its floor passes, one below is refused, for every length of suffix that is judged.
#[test]
fn each_suffix_has_its_floor() {
    let tip = LOWEST + 500;
    let chain = bitcoin(tip);
    for floor in FLOORS {
        let at = WORK * u64::from(floor.percent) / 100;
        for (work, holds) in [(at + 1, true), (at - 1, false)] {
            let mut dates = DatedWork::new(0);
            for parent in LOWEST..=tip {
                // Only the newest `floor.blocks` blocks have little work.
                let little = parent >= tip - floor.blocks;
                dates.push(dated(0, hash(parent), if little { work } else { 100 * WORK }), &chain);
            }
            let report = judged(&chain, &dates);
            let exact = dates.suffixes(&chain, tip).find(|suffix| suffix.blocks == floor.blocks).unwrap();
            assert_eq!((exact.floor(), exact.is_low()), (floor.percent, !holds));
            assert_eq!(report.low().is_none(), holds, "{floor:?} {work}: {report:?}");
        }
    }
    let mut dates = DatedWork::new(0);
    for parent in LOWEST..=tip {
        dates.push(dated(0, hash(parent), WORK), &chain);
    }
    assert_eq!(judged(&chain, &dates).judged, MAX_SUFFIX);
}

#[test]
fn too_few_blocks_are_not_judged() {
    let tip = LOWEST + 12;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    let report = judged(&chain, &dates);
    assert_eq!((report.judged, report.lowest), (11, None));
}

/// The dates are the same whether headers come first or Bitcoin's blocks.
#[test]
fn later_bitcoin_blocks_date_earlier_headers() {
    let tip = LOWEST + 60;
    let (whole, mut dates, mut late) = (bitcoin(tip), DatedWork::new(0), DatedWork::new(0));
    grow(&mut dates, &whole, LOWEST, tip, QUARTER);
    let young = bitcoin(LOWEST + 30);
    late.follow_bitcoin(&young);
    grow(&mut late, &young, LOWEST, tip, QUARTER);
    assert_eq!(judged(&young, &late).lag, Some(0));
    late.follow_bitcoin(&whole);
    assert_eq!(judged(&whole, &late), judged(&whole, &dates));
    assert_eq!(late.reorganisation(tip), None, "it is longer, not another one");
}

#[test]
fn a_reorganisation_of_bitcoin_dates_anew() {
    let tip = LOWEST + 60;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    dates.follow_bitcoin(&chain);
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    let other = reorganised(tip - 3, tip + 1);
    dates.follow_bitcoin(&other);
    assert_eq!(dates.reorganisation(tip + 1), Some(3));
    let report = judged(&other, &dates);
    assert_eq!(report.lag, Some(4), "headers on stale blocks count no longer");
    for height in tip - 2..=tip + 1 {
        add(&mut dates, &other, hash_on(1, height), QUARTER);
    }
    assert!(passes(&judged(&other, &dates)));
    // And back.
    let longest = bitcoin(tip + 2);
    dates.follow_bitcoin(&longest);
    assert_eq!(dates.reorganisation(tip + 2), Some(4));
    assert_eq!(judged(&longest, &dates).lag, Some(2));
    assert_eq!(dates.reorganisation(tip + 2 + 144), None, "a day later");
}

#[test]
fn a_deep_reorganisation_is_seen_as_such() {
    let tip = LOWEST + 100;
    let mut dates = DatedWork::new(0);
    dates.follow_bitcoin(&bitcoin(tip));
    dates.follow_bitcoin(&reorganised(tip - 6, tip + 1));
    assert_eq!(dates.reorganisation(tip), Some(6));
    let mut dates = DatedWork::new(0);
    dates.follow_bitcoin(&bitcoin(tip));
    dates.follow_bitcoin(&reorganised(LOWEST, tip + 1));
    assert_eq!(dates.reorganisation(tip), Some(64), "or more");
}

#[test]
fn the_number_of_dated_headers_is_limited() {
    let tip = LOWEST + 1_000;
    let (chain, mut dates) = (bitcoin(tip), DatedWork::new(0));
    grow(&mut dates, &chain, LOWEST, tip, QUARTER);
    assert_eq!(dates.len(), MAX_DATED_HEADERS);
    let total = dates.parents().fold(U256::ZERO, |sum, (_, work)| sum + work);
    assert_eq!(total, U256::from(MAX_DATED_HEADERS as u64 * QUARTER));
}
