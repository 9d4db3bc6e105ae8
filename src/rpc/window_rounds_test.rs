//! A start by window with several upstreams: how long the client waits for one that hangs, and when the others
//! are asked.

use std::sync::Arc;

use super::{
    mined_chain::Mined,
    window_start_test::{AllDated, Stored, client, dated, started},
    work_start_test::{Behavior, grow, honest, run},
};
use crate::{
    consensus::ChainView,
    light::{Now, SyncStep, WindowJudge, WindowVerdict, bitcoin::BitcoinFollower},
    rpc::Client,
};

/// Finds all work dated, and a chain supported if it is told so.
#[derive(Debug)]
struct Supporting(bool);

impl WindowJudge for Supporting {
    fn judge(&self, chain: &ChainView, bitcoin: Option<&BitcoinFollower>, now: Now) -> WindowVerdict {
        AllDated.judge(chain, bitcoin, now)
    }

    fn supports(&self, _: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> bool {
        self.0
    }
}

/// Follows two upstreams, of which the second one answers as many exchanges and then hangs. Returns the time in milliseconds
/// at which the head was reached.
fn reached_beside_one_that_hangs(client: &mut Client, mined: &mut Mined, answered: usize) -> u64 {
    reached_later(client, mined, answered, 0)
}

/// The same, so many seconds after the newest block.
fn reached_later(client: &mut Client, mined: &mut Mined, answered: usize, later: u64) -> u64 {
    let now = Now { unix: mined.now().unix + later, millis: 0 };
    for _ in 0..answered {
        let SyncStep::Fetch(calls) = client.sync_next(1, now) else { panic!("nothing is asked") };
        client.sync_feed(1, calls.iter().map(|call| mined.answer(call)).collect(), now);
    }
    let mut ways = [Behavior::Answers(mined), Behavior::Silent];
    (0..400_u64)
        .map(|step| step * 500)
        .find(|millis| {
            run(client, &mut ways, now.unix + millis / 1_000, *millis, millis + 500);
            client.sync().is_synced()
        })
        .expect("the other upstream is of use")
}

/// An upstream that hangs or drips from any moment on keeps no honest one waiting, if Bitcoin's blocks support its window.
#[test]
fn an_upstream_that_hangs_does_not_hold_up_a_window_that_bitcoin_supports() {
    for answered in [0, 1, 2, 4, 6] {
        let mut mined = honest();
        let mut client = dated(2, Arc::new(Supporting(true)));
        let reached = reached_beside_one_that_hangs(&mut client, &mut mined, answered);
        assert!((3_000..4_500).contains(&reached), "{answered}: others have had time, {reached} ms");
        assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
        // Without that, the other one may have the true chain.
        let mut client = dated(2, Arc::new(Supporting(false)));
        let reached = reached_beside_one_that_hangs(&mut client, &mut mined, answered);
        assert!(reached >= 30_000, "{answered}: {reached} ms");
    }
}

#[test]
fn a_restart_waits_for_an_upstream_that_hangs_as_long_as_it_must() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    grow(&mut mined, 100);
    for (answered, is_supported, within) in
        [(0, false, 3_000..4_500), (1, true, 3_000..4_500), (1, false, 30_000..40_000)]
    {
        let mut second = dated(2, Arc::new(Supporting(is_supported)));
        stored.restore(&second, mined.now()).unwrap();
        let reached = reached_beside_one_that_hangs(&mut second, &mut mined, answered);
        assert!(within.contains(&reached), "{answered}, {is_supported}: {reached} ms");
        assert_eq!(second.sync().chain().unwrap().head().hash(), mined.head().hash());
    }
}

/// Other upstreams may have many blocks above a head that is old.
#[test]
fn a_restart_below_an_old_head_waits_longer_for_an_upstream_that_hangs() {
    let mut mined = honest();
    let stored = Stored::of(&started(&mut mined));
    for (later, within) in [(590, 3_000..4_500), (601, 30_000..40_000)] {
        let mut second = dated(2, Arc::new(Supporting(false)));
        stored.restore(&second, mined.now()).unwrap();
        let reached = reached_later(&mut second, &mut mined, 0, later);
        assert!(within.contains(&reached), "{later}: {reached} ms");
    }
}

/// One window has all that is new, so that a restart takes few round trips. Of several upstreams one is asked for it.
#[test]
fn a_restart_asks_one_upstream_for_the_headers_of_an_hour_at_once() {
    let (mut mined, mut same) = (honest(), honest());
    let stored = Stored::of(&started(&mut mined));
    let newest = mined.head().number;
    grow(&mut mined, 146);
    grow(&mut same, 146);
    for upstreams in [1, 2] {
        let (mut second, now) = (client(upstreams), mined.now());
        stored.restore(&second, now).unwrap();
        let asked = [mined.windows().count(), same.windows().count()];
        let mut ways = [Behavior::Answers(&mut mined), Behavior::Answers(&mut same)];
        run(&mut second, &mut ways[..upstreams], now.unix, 0, 500);
        assert!(second.sync().is_synced());
        let counts = mined.windows().skip(asked[0]).chain(same.windows().skip(asked[1]));
        let mut counts: Vec<u64> =
            counts.filter(|(first, _)| *first >= newest).map(|(_, count)| count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert!(counts[0] >= 146 && counts[1..].iter().all(|count| *count < 8), "{upstreams}: {counts:?}");
    }
}

/// One upstream fetches what is new, and then the others are asked whether they have more, without a pause.
#[test]
fn upstreams_are_due_when_the_turn_of_another_one_ends() {
    let (mut mined, mut same) = (honest(), honest());
    let stored = Stored::of(&started(&mut mined));
    grow(&mut mined, 146);
    grow(&mut same, 146);
    let (mut second, now) = (client(2), mined.now());
    stored.restore(&second, now).unwrap();
    let mut ways = [Behavior::Answers(&mut mined), Behavior::Answers(&mut same)];
    run(&mut second, &mut ways, now.unix, now.millis, now.millis + 500);
    assert!(second.sync().is_synced());
}
