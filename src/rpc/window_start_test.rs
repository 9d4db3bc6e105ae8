//! A client that starts by window: what it asks for before the first answer and behind it, what it stores, how the next
//! run continues, and which windows it refuses because of what an earlier run proved.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use super::{
    mined_chain::{BASE_DIFFICULTY, Mined, START, ask},
    work_start_test::{Behavior, HEADERS, grow, honest, light, network, refused_for, run, sum},
};
use crate::{
    consensus::{
        ChainView, difficulty,
        testing::{child, mine},
    },
    light::{
        ClientConfig, HeaderPage, HeaderSync, Now, SyncOptions, SyncStep, WindowJudge, WindowRecord,
        WindowVerdict, bitcoin::BitcoinFollower,
    },
    rpc::Client,
    types::{Header, SealedHeader, U256},
};

/// Headers of a window whose work is dated.
const SHORT: u64 = HEADERS as u64 / 4;

pub(super) fn client(upstreams: usize) -> Client {
    let (network, options) = (network(), SyncOptions::default());
    let work = network.start_by_work().unwrap();
    let config = ClientConfig { upstreams: vec!["upstream".into(); upstreams], ..ClientConfig::default() };
    Client::following(HeaderSync::by_window(Arc::new(network), work, upstreams, options), config)
}

/// Says what it is told to say, and counts the headers of the chains that it judges.
#[derive(Debug)]
struct Dated(Mutex<WindowVerdict>);

impl Dated {
    fn saying(verdict: WindowVerdict) -> Arc<Self> {
        Arc::new(Self(Mutex::new(verdict)))
    }

    fn say(&self, verdict: WindowVerdict) {
        *self.0.lock().unwrap() = verdict;
    }
}

impl WindowJudge for Dated {
    fn judge(&self, _: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> WindowVerdict {
        self.0.lock().unwrap().clone()
    }
}

/// Work is what the chain's headers show.
#[derive(Debug)]
pub(super) struct AllDated;

impl WindowJudge for AllDated {
    fn judge(&self, chain: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> WindowVerdict {
        WindowVerdict::Enough(chain.header_work(&chain.head().hash()).unwrap())
    }
}

pub(super) fn dated(upstreams: usize, dated: Arc<dyn WindowJudge>) -> Client {
    let client = client(upstreams);
    client.sync_mut().judge_windows_by(dated);
    client
}

#[derive(Clone)]
pub(super) struct Stored {
    pages: Vec<HeaderPage>,
    record: WindowRecord,
}

impl Stored {
    pub(super) fn of(client: &Client) -> Self {
        let mut sync = client.sync_mut();
        Self { pages: sync.export(), record: sync.window_record().unwrap() }
    }

    /// Restores the pages into a client, as a host does.
    pub(super) fn restore(
        &self,
        client: &Client,
        now: Now,
    ) -> Result<Option<u64>, crate::light::HeaderStoreFault> {
        let record = WindowRecord::decode(&self.record.encode()).unwrap();
        let mut sync = client.sync_mut();
        if !sync.resume_window(&record, now.unix) {
            return Ok(None);
        }
        let count = self.pages.last().unwrap().index + 1;
        let page = |index| self.pages.iter().find(|page| page.index == index).map(|page| page.bytes.clone());
        sync.restore(count, &mut |index| Ok(page(index)))
    }
}

/// Follows one upstream for some seconds, up to the time of its head and `late` seconds.
fn follow(client: &mut Client, mined: &mut Mined, late: u64) {
    let (unix, from) = (mined.now().unix + late, client.sync().now().millis + 120_000);
    run(client, &mut [Behavior::Answers(mined)], unix, from, from + 15_000);
}

/// A client that has followed the chain from a window on.
pub(super) fn started(mined: &mut Mined) -> Client {
    let mut client = client(1);
    follow(&mut client, mined, 0);
    assert!(client.sync().is_synced(), "{:?}", client.sync().fault());
    client
}

/// The lowest header that was asked for, of those that the upstream has.
fn lowest_asked(mined: &Mined) -> u64 {
    mined.windows().map(|(first, _)| first).filter(|first| *first >= START).min().unwrap()
}

#[test]
fn a_window_is_a_start_by_work_that_says_its_name() {
    let mut mined = honest();
    let mut client = started(&mut mined);
    let anchor = mined.head().number - HEADERS as u64;
    assert_eq!(client.sync().checkpoint().number, anchor);
    let height = ask(&mut client, "eth_blockNumber", json!([]));
    assert_eq!(height["start"], "window", "{height}");
    let status = ask(&mut client, "rootlight_syncStatus", json!([]))["result"].clone();
    let cost: U256 = status["attackCost"].as_str().unwrap().parse().unwrap();
    assert_eq!((&status["start"], cost), (&json!("window"), sum(&mined, HEADERS)));
    let base = ask(&mut client, "rootlight_verification", json!([format!("{anchor:#x}")]));
    assert_eq!((&base["start"], &base["result"]["origin"]), (&json!("window"), &json!("window")), "{base}");
}

/// With dated work, a quarter of the headers and the ancestors of the base are enough for answers. The rest is fetched
/// while the upstream has nothing newer to show.
#[test]
fn dated_work_needs_a_quarter_of_the_headers_before_the_first_answer() {
    let mut mined = honest();
    let mut client = dated(1, Arc::new(AllDated));
    let (now, head) = (mined.now(), mined.head().number);
    while !client.sync().is_synced() {
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
    }
    assert_eq!(client.sync().checkpoint().number, head - SHORT);
    assert_eq!(lowest_asked(&mined), head - SHORT - 449, "fork detection data of the first blocks");
    let asked: u64 = mined.windows().map(|(_, count)| count).sum();
    assert!(asked < SHORT + 449 + 100, "{asked} headers");
    assert_eq!(ask(&mut client, "eth_blockNumber", json!([]))["result"], format!("{head:#x}"));
    // New blocks come first, then older ones.
    grow(&mut mined, 2);
    follow(&mut client, &mut mined, 0);
    let sync = client.sync();
    let view = sync.chain().unwrap().view();
    assert_eq!((view.head().number, view.lowest()), (head + 2, head - HEADERS as u64));
    assert_eq!(view.hash_at(head - 800), Some(mined.blocks[(head - 800 - START) as usize].0.hash()));
    assert!(sync.is_synced());
}

#[test]
fn dated_work_that_is_refused_gives_no_start_and_work_that_cannot_be_dated_is_judged_as_before() {
    let mut mined = honest();
    let mut refused = dated(1, Dated::saying(WindowVerdict::Refused("not on Bitcoin's tips".into())));
    follow(&mut refused, &mut mined, 0);
    refused_for(&mut refused, "not on Bitcoin's tips");
    let mut undated = dated(1, Dated::saying(WindowVerdict::Unavailable));
    follow(&mut undated, &mut mined, 0);
    assert!(undated.sync().is_synced());
    assert_eq!(undated.sync().checkpoint().number, mined.head().number - HEADERS as u64);
    // A chain of little work is not saved by that.
    let mut slow = Mined::from(START, network());
    slow.grow(HEADERS, 300);
    let mut undated = dated(1, Dated::saying(WindowVerdict::Unavailable));
    follow(&mut undated, &mut slow, 0);
    refused_for(&mut undated, "% of the expected work");
}

/// While the chain that dates the work is fetched, the headers wait; none is asked for twice.
#[test]
fn a_window_waits_for_the_chain_that_dates_its_work() {
    let mut mined = honest();
    let judge = Dated::saying(WindowVerdict::Wait);
    let mut client = dated(1, judge.clone());
    let (unix, mut ways) = (mined.now().unix, [Behavior::Answers(&mut mined)]);
    run(&mut client, &mut ways, unix, 0, 3_000);
    assert!(!client.sync().is_synced() && client.sync().fault().is_none());
    judge.say(WindowVerdict::Enough(U256::ONE));
    run(&mut client, &mut ways, unix, 3_000, 4_000);
    assert!(client.sync().is_synced());
}

/// Stored headers that are enough without dates wait for none; fewer do.
#[test]
fn a_restart_waits_for_dates_only_if_they_are_needed() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    let mut second = dated(1, Dated::saying(WindowVerdict::Wait));
    stored.restore(&second, mined.now()).unwrap();
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced(), "{:?}", second.sync().fault());

    let (short, now) = (dated(1, Arc::new(AllDated)), mined.now());
    while !short.sync().is_synced() {
        let SyncStep::Fetch(calls) = short.sync_next(0, now) else { panic!("nothing is asked") };
        short.sync_feed(0, calls.iter().map(|call| mined.answer(call)).collect(), now);
    }
    let stored = Stored::of(&short);
    let judge = Dated::saying(WindowVerdict::Wait);
    let mut second = dated(1, judge.clone());
    stored.restore(&second, mined.now()).unwrap();
    follow(&mut second, &mut mined, 0);
    assert!(!second.sync().is_synced() && second.sync().fault().is_none());
    judge.say(WindowVerdict::Enough(U256::ONE));
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced());
    assert_eq!(second.sync().checkpoint().number, mined.head().number - SHORT);
}

/// The first answer needs no uncles, and total difficulties, which are not known above an elected block, no wait.
#[test]
fn uncles_are_asked_for_after_the_first_answer() {
    let mut mined = honest();
    let uncle = mined.blocks[mined.blocks.len() - 2].0.clone();
    mined.adopt(6, uncle);
    grow(&mut mined, 3);
    mined.omits_uncles = true;
    let (mut client, now) = (client(1), mined.now());
    while !client.sync().is_synced() {
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        assert!(calls.iter().all(|call| !call.method.contains("Uncle")));
        client.sync_feed(0, calls.iter().map(|call| mined.answer(call)).collect(), now);
    }
    assert!(!client.sync().uncles_complete());
    let head = mined.ask(&mut client, "eth_getBlockByNumber", json!(["latest", false]));
    assert!(!head.to_string().contains("synchronizing"), "{head}");
    let asked = AtomicBool::new(false);
    for _ in 0..10 {
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { break };
        asked.fetch_or(calls.iter().any(|call| call.method.contains("Uncle")), Ordering::Relaxed);
        client.sync_feed(0, calls.iter().map(|call| mined.answer(call)).collect(), now);
    }
    assert!(asked.into_inner());
}

#[test]
fn a_restart_continues_from_the_stored_headers() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    let old = mined.head().number;
    assert_eq!(stored.record.base.number, old - HEADERS as u64);
    assert_eq!((stored.record.mark.number, stored.record.mark.time), (old - 120, mined.head().timestamp));
    grow(&mut mined, 20);
    mined.asked.clear();
    let mut second = client(1);
    assert_eq!(stored.restore(&second, mined.now()), Ok(Some(old)));
    assert!(!second.sync().is_synced(), "it is judged once the newest headers are there");
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
    assert!(lowest_asked(&mined) >= old - 1, "only what is new: {}", lowest_asked(&mined));
    assert_eq!(second.sync().checkpoint().number, old - HEADERS as u64);
    assert!(!second.sync().is_separate());
    let height = ask(&mut second, "eth_blockNumber", json!([]));
    assert_eq!((&height["result"], &height["start"]), (&json!(format!("{:#x}", old + 20)), &json!("window")));
    // The headers that are stored then cover both runs.
    let again = Stored::of(&second);
    assert_eq!(again.record.mark.time, mined.head().timestamp);
    assert_eq!(again.record.base, stored.record.base);
}

/// The proofs of work of stored headers are checked again, in part at once and the rest in the background.
#[test]
fn all_stored_headers_are_proven_again() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    let mut second = client(1);
    stored.restore(&second, mined.now()).unwrap();
    follow(&mut second, &mut mined, 0);
    while second.prove_restored(&mut |_| Ok(None)).unwrap() {}
    assert_eq!(second.sync().unproven(), None);
    assert!(second.sync().is_synced());
}

/// Without an upstream that shows the newest hours, nothing is answered from what is stored, however good it is.
#[test]
fn stored_headers_are_not_answered_from_while_the_newest_hours_are_withheld() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    let mut second = client(1);
    let later = Now { unix: mined.now().unix + 7_200, millis: 0 };
    stored.restore(&second, later).unwrap();
    follow(&mut second, &mut mined, 7_200);
    refused_for(&mut second, "s old");
    grow(&mut mined, 72);
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
}

#[test]
fn an_older_window_than_the_one_proven_before_is_refused() {
    let mut mined = honest();
    let whole = mined.blocks.clone();
    grow(&mut mined, 40);
    let mut record = Stored::of(&started(&mut mined)).record;
    mined.blocks = whole;
    // The clock agrees with the old window.
    let old = client(1);
    record.mark.time = mined.head().timestamp + 1_801;
    assert!(old.sync_mut().resume_window(&record, mined.now().unix));
    let mut old = old;
    follow(&mut old, &mut mined, 60);
    refused_for(&mut old, "1801 s older than the head that an earlier run proved");
}

#[test]
fn a_clock_that_went_back_is_told() {
    let mut mined = honest();
    let mut record = Stored::of(&started(&mut mined)).record;
    record.mark.time += 10_000;
    let mut second = client(1);
    second.sync_mut().resume_window(&record, mined.now().unix);
    follow(&mut second, &mut mined, 0);
    refused_for(&mut second, "this computer's clock is ");
    // A clock that is ahead makes the newest window look old.
    let mut third = client(1);
    follow(&mut third, &mut mined, 3_600);
    refused_for(&mut third, "s old");
}

/// A chain that has another block where an earlier run proved one must show more work than that run saw.
#[test]
fn a_window_that_contradicts_an_earlier_run_needs_more_work() {
    for honest_was_first in [true, false] {
        let (mut first, mut other) = if honest_was_first { (honest(), light()) } else { (light(), honest()) };
        let record = Stored::of(&started(&mut first)).record;
        let mut second = client(1);
        second.sync_mut().resume_window(&record, other.now().unix);
        follow(&mut second, &mut other, 0);
        if honest_was_first {
            refused_for(&mut second, "which an earlier run proved");
        } else {
            assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
            assert!(second.sync().is_separate(), "it has another block there");
        }
    }
}

/// A store that another program wrote is worth the work that it shows, and a heavier chain takes its place.
#[test]
fn a_forged_store_gives_way_to_a_heavier_window() {
    let (mut forged, mut mined) = (light(), honest());
    let stored = Stored::of(&started(&mut forged));
    let mut second = client(1);
    stored.restore(&second, mined.now()).unwrap();
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
    assert_eq!(second.sync().chain().unwrap().head().hash(), mined.head().hash());
}

#[test]
fn a_window_after_a_long_pause_is_a_separate_one() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    grow(&mut mined, 1_800);
    let mut second = client(1);
    assert_eq!(stored.restore(&second, mined.now()), Ok(None), "its headers are not used");
    assert!(second.sync().chain().is_none());
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
    assert!(second.sync().is_separate());
    let again = Stored::of(&second).record;
    assert_eq!(again.base.number, mined.head().number - HEADERS as u64);
}

/// If the headers are lost but the record is not, a window is asked for down to the block that was proven.
#[test]
fn a_window_reaches_down_to_what_was_proven() {
    let mut mined = honest();
    let record = Stored::of(&started(&mut mined)).record;
    grow(&mut mined, 1_300);
    let withheld = {
        let base = mined.head().number - HEADERS as u64;
        let mut other = Mined::from(START, network());
        other.blocks = mined.blocks.iter().filter(|(header, _)| header.number >= base).cloned().collect();
        other
    };
    for (mut upstream, shows) in [(mined, true), (withheld, false)] {
        let mut second = client(1);
        second.sync_mut().resume_window(&record, upstream.now().unix);
        follow(&mut second, &mut upstream, 0);
        if shows {
            assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
            assert!(!second.sync().is_separate());
        } else {
            refused_for(&mut second, "does not show block");
        }
    }
}

/// The numbers of a false window are its makers' choice. Far above what was proven, they would skip it.
#[test]
fn a_window_cannot_be_further_above_what_was_proven_than_a_chain_grows() {
    let mut mined = honest();
    let record = Stored::of(&started(&mut mined)).record;
    let base = mined.head().number - HEADERS as u64;
    for (seconds, grows) in [(600, false), (200_000, true)] {
        let mut earlier = record;
        earlier.mark.number = base - HEADERS as u64 - 1;
        earlier.mark.time -= seconds;
        let mut second = client(1);
        second.sync_mut().resume_window(&earlier, mined.now().unix);
        follow(&mut second, &mut mined, 0);
        if grows {
            assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
        } else {
            refused_for(&mut second, "an earlier run proved");
        }
    }
}

/// A run that was deceived may have stored a block above all that honest windows have. They need more work than that run
/// saw, as those do that have another block.
#[test]
fn a_window_that_ends_below_what_was_proven_needs_more_work() {
    let mut mined = honest();
    let record = Stored::of(&started(&mut mined)).record;
    for (work, is_more) in [(U256::ONE, true), (U256::MAX, false)] {
        let mut other = record;
        (other.mark.number, other.mark.work) = (mined.head().number + 500, work);
        let mut second = client(1);
        second.sync_mut().resume_window(&other, mined.now().unix);
        follow(&mut second, &mut mined, 0);
        if is_more {
            assert!(second.sync().is_synced(), "{:?}", second.sync().fault());
        } else {
            refused_for(&mut second, "which an earlier run proved, and not more work");
        }
    }
}

/// Pages that are damaged, missing or of another chain are not used; the client begins with a new window.
#[test]
fn a_store_that_is_damaged_cut_or_foreign_is_not_used() {
    let (mut mined, mut other) = (honest(), light());
    let good = Stored::of(&started(&mut mined));
    let foreign = Stored { record: good.record, ..Stored::of(&started(&mut other)) };
    let (mut damaged, mut cut, mut renumbered) = (good.clone(), good.clone(), good.clone());
    damaged.pages[3].bytes[100] ^= 1;
    cut.pages.remove(5);
    renumbered.pages.iter_mut().for_each(|page| page.index += 1);
    for (name, stored) in [("foreign", foreign), ("damaged", damaged), ("cut", cut), ("moved", renumbered)] {
        let mut second = client(1);
        assert!(stored.restore(&second, mined.now()).is_err(), "{name}");
        assert!(second.sync().chain().is_none(), "{name}");
        follow(&mut second, &mut mined, 0);
        assert!(second.sync().is_synced(), "{name}: {:?}", second.sync().fault());
        assert_eq!(second.sync().chain().unwrap().head().hash(), mined.head().hash());
    }
    // A store that lost its newest pages is one of an earlier moment.
    let mut short = good;
    short.pages.truncate(short.pages.len() - 3);
    let mut second = client(1);
    assert!(short.restore(&second, mined.now()).unwrap().unwrap() < mined.head().number);
    follow(&mut second, &mut mined, 0);
    assert!(second.sync().is_synced());
}

#[test]
fn of_two_windows_the_one_with_more_dated_work_wins() {
    for honest_first in [true, false] {
        let (mut honest, mut light) = (honest(), light());
        let (unix, head) = (honest.now().unix, honest.head().hash());
        let mut client = dated(2, Arc::new(AllDated));
        let mut ways = [Behavior::Answers(&mut honest), Behavior::Answers(&mut light)];
        if !honest_first {
            ways.reverse();
        }
        run(&mut client, &mut ways, unix, 0, 20_000);
        assert!(client.sync().is_synced());
        assert_eq!(client.sync().chain().unwrap().head().hash(), head);
    }
}

/// A chain that was followed from a trusted block lifts the mark, if it contains the window's base.
#[test]
fn a_window_that_a_trusted_block_leads_to_has_no_mark() {
    let (mut mined, mut other) = (honest(), light());
    let mut client = started(&mut mined);
    for (chain, leads) in [(&mut other, false), (&mut mined, true)] {
        let trusted = chain.client();
        let view = trusted.sync().chain().unwrap().snapshot();
        assert_eq!(client.sync_mut().confirm_window(&view), leads);
    }
    let height = ask(&mut client, "eth_blockNumber", json!([]));
    assert!(height["result"].is_string() && height.get("start").is_none(), "{height}");
    let status = ask(&mut client, "rootlight_syncStatus", json!([]))["result"].clone();
    assert_eq!((&status["start"], &status["attackCost"]), (&json!("checkpoint"), &json!(null)));
    assert_eq!(Stored::of(&client).record.base, *client.sync().checkpoint(), "it is stored as before");
}

/// Dates the work of the chain that has this block.
#[derive(Debug)]
struct DatedFrom(SealedHeader);

impl WindowJudge for DatedFrom {
    fn judge(&self, chain: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> WindowVerdict {
        match chain.hash_at(self.0.number) == Some(self.0.hash()) {
            true => WindowVerdict::Enough(U256::ONE),
            false => WindowVerdict::Refused("saved up".into()),
        }
    }
}

/// Work that was saved up does not outweigh dated work, not even that of a chain which was elected before work could be
/// dated.
#[test]
fn work_that_is_not_dated_outweighs_nothing() {
    for late in [false, true] {
        let (mut saved_up, mut dated_chain) = (honest(), light());
        let (unix, head) = (saved_up.now().unix, dated_chain.head().hash());
        let mark = dated_chain.blocks[800].0.clone();
        let mut client = dated(2, Arc::new(DatedFrom(mark)));
        let second = |mined| if late { Behavior::Silent } else { Behavior::Answers(mined) };
        run(&mut client, &mut [Behavior::Answers(&mut dated_chain), second(&mut saved_up)], unix, 0, 60_000);
        assert_eq!(client.sync().chain().unwrap().head().hash(), head);
        let mut both = [Behavior::Answers(&mut dated_chain), Behavior::Answers(&mut saved_up)];
        run(&mut client, &mut both, unix, 60_000, 200_000);
        assert!(client.sync().is_synced());
        assert_eq!(client.sync().chain().unwrap().head().hash(), head);
    }
}

/// A false window that leaves the honest chain, whose first header is changed.
fn forged_on_an_honest_block(change: impl Fn(&mut Header, &Header)) -> Mined {
    let mut forged = honest();
    let parent = forged.head().header().clone();
    let mut first = Header { gas_used: 5, ..child(&network(), forged.head()) };
    change(&mut first, &parent);
    forged.blocks.push((mine(first), Vec::new()));
    grow(&mut forged, HEADERS);
    forged
}

/// The makers of a false window do not choose its first difficulty where they leave the honest chain.
#[test]
fn a_window_on_an_honest_block_has_its_difficulty() {
    let mut forged =
        forged_on_an_honest_block(|first, _| first.difficulty = (BASE_DIFFICULTY * 2 / 3).into());
    let (unix, mut client) = (forged.now().unix + 60, client(1));
    run(&mut client, &mut [Behavior::Answers(&mut forged)], unix, 0, 60_000);
    assert!(client.sync().chain().is_none());
}

/// A false window may stand on an honest block, whose ancestors it then shares. That does not make it the honest chain.
#[test]
fn a_false_window_on_an_honest_block_gives_way() {
    let mut mined = honest();
    // A late block lowers the difficulty by a step.
    let mut forged = forged_on_an_honest_block(|first, parent| {
        first.timestamp += 16;
        first.difficulty = difficulty::expected(first, parent, &network()).into();
    });
    grow(&mut mined, HEADERS);
    let (unix, head) = (mined.now().unix + 60, mined.head().hash());
    let mut client = client(2);
    run(&mut client, &mut [Behavior::Answers(&mut forged), Behavior::Silent], unix, 0, 60_000);
    assert_eq!(client.sync().chain().unwrap().head().hash(), forged.head().hash());
    let mut both = [Behavior::Answers(&mut forged), Behavior::Answers(&mut mined)];
    run(&mut client, &mut both, unix, 60_000, 300_000);
    assert!(client.sync().is_synced());
    assert_eq!(client.sync().chain().unwrap().head().hash(), head);
}

/// A start by work goes on without a store, whatever is recorded.
#[test]
fn a_start_by_work_takes_no_record() {
    let mut mined = honest();
    let record = Stored::of(&started(&mut mined)).record;
    let network = network();
    let work = network.start_by_work().unwrap();
    let config = ClientConfig { upstreams: vec!["upstream".into()], ..ClientConfig::default() };
    let sync = HeaderSync::by_work(Arc::new(network), work, 1, SyncOptions::default());
    let plain = Client::following(sync, config);
    assert!(!plain.sync_mut().resume_window(&record, mined.now().unix));
    assert_eq!(plain.sync().window_record(), None);
}
