//! Who is asked, who rests and for how long, and what is believed of whom.

use alloc::{sync::Arc, vec, vec::Vec};

use super::{Observation, SyncOptions, peer::Phase, state::Sync};
use crate::{
    consensus::{ChainError, Checkpoint, Network},
    light::{
        Identity, Pin, SyncStep,
        clock::Now,
        fault::{SyncCause, SyncFault},
        task::{Cause, METHOD_NOT_FOUND},
        upstream::{CallFailure, UpstreamCall},
    },
};

const START: u64 = 1_000;

/// A machine at its checkpoint, 1 s after its start, with upstreams that announce it.
fn sync(upstreams: usize) -> Sync {
    let network = Arc::new(Network::regtest());
    let checkpoint = Checkpoint { number: START, hash: network.genesis_hash, total_difficulty: None };
    let mut sync = Sync::with_upstreams(network, checkpoint, upstreams, SyncOptions::default());
    sync.now = Now { unix: 0, millis: 1_000 };
    sync.peers.iter_mut().for_each(|peer| peer.announced = Some(START));
    sync
}

fn call(method: &'static str) -> UpstreamCall {
    UpstreamCall::new(method, "[]".into())
}

fn silence() -> SyncCause {
    SyncCause::Call(CallFailure::Transport("gone".into()))
}

fn rest(sync: &mut Sync, upstream: usize, cause: SyncCause) -> u64 {
    sync.rest(upstream, SyncFault { number: START, cause });
    match &sync.peers[upstream].phase {
        Phase::Resting(until, _) => until - sync.now.millis,
        other => panic!("{other:?}"),
    }
}

fn observe(sync: &mut Sync, method: &'static str, outcome: Result<Option<u64>, Cause>) {
    sync.observe([Observation { upstream: 0, call: call(method), outcome }]);
}

fn refuted() -> Cause {
    Cause::Refuted("wrong".into())
}

#[test]
fn a_pause_doubles_and_has_an_end() {
    let mut one = sync(1);
    let pauses: Vec<u64> = (0..9).map(|_| rest(&mut one, 0, silence())).collect();
    assert_eq!(pauses[..3], [5_000, 10_000, 20_000]);
    assert_eq!(pauses[8], 600_000);
    assert_eq!((0..80).map(|_| rest(&mut one, 0, silence())).last(), Some(600_000));
    let busy = |seconds| SyncCause::Call(CallFailure::Busy { seconds });
    assert_eq!(rest(&mut sync(2), 0, busy(Some(30))), 30_000);
    assert_eq!(rest(&mut sync(2), 0, busy(Some(1))), 5_000);
    assert_eq!(rest(&mut sync(2), 0, busy(None)), 5_000);
    assert_eq!(rest(&mut sync(2), 0, busy(Some(100_000))), 600_000);
}

/// Others can do without a liar for long; where there are none it is tried again soon.
#[test]
fn a_liar_rests_long_where_there_are_others() {
    assert_eq!(rest(&mut sync(2), 0, SyncCause::BadHeight), 600_000);
    assert_eq!(rest(&mut sync(1), 0, SyncCause::BadHeight), 5_000);
    let mut two = sync(2);
    rest(&mut two, 0, SyncCause::BadHeight);
    assert_eq!((two.peers[0].record.lies, two.peers[0].record.demerits), (1, 16));
    rest(&mut two, 1, silence());
    assert_eq!((two.peers[1].record.lies, two.peers[1].record.demerits), (0, 1));
}

/// Who follows rules that this program does not know yet has done nothing wrong.
#[test]
fn newer_rules_are_nobody_s_fault() {
    let mut two = sync(2);
    rest(&mut two, 0, SyncCause::Header(ChainError::UpdateNeeded { number: START + 1, known_until: START }));
    let record = &two.peers[0].record;
    assert_eq!((record.lies, record.demerits, record.evidence.len()), (0, 0, 0));
    let cause = ChainError::UpdateNeeded { number: START + 1, known_until: START };
    assert_eq!(rest(&mut sync(2), 0, SyncCause::Header(cause)), 5_000, "nor does it rest as a liar does");
}

#[test]
fn the_best_are_asked_first() {
    assert_eq!(sync(3).roster(), [0, 1, 2]);
    let first = |change: &dyn Fn(&mut Sync)| {
        let mut three = sync(3);
        change(&mut three);
        three.roster()
    };
    // Up to two blocks behind the head is as good as any, and more blocks than the head has are no better.
    assert_eq!(first(&|sync| sync.peers[0].announced = Some(START - 2)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].announced = Some(START - 3)), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[2].announced = Some(START + 3)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].announced = None), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].record.lies = 1), [1, 2, 0]);
    let boast = |sync: &mut Sync| (sync.peers[0].record.lies, sync.peers[0].announced) = (1, Some(1 << 63));
    assert_eq!(first(&boast), [1, 2, 0], "no height makes up for a lie");
    assert_eq!(first(&|sync| sync.peers[0].can.proofs = Some(false)), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].can.proofs = Some(true)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].record.demerits = 4), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].record.latency = 64), [1, 2, 0]);
    assert_eq!(first(&|sync| assert_eq!(rest(sync, 0, silence()), 5_000)), [1, 2, 0]);
    // Liars are not asked, unless nobody else is left.
    assert_eq!(first(&|sync| assert_eq!(rest(sync, 0, SyncCause::BadHeight), 600_000)), [1, 2]);
    let all = first(&|sync| {
        (0..3).for_each(|upstream| assert_eq!(rest(sync, upstream, SyncCause::BadHeight), 600_000))
    });
    assert_eq!(all, [0, 1, 2]);
}

#[test]
fn what_those_that_rest_announce_does_not_count() {
    let mut two = sync(2);
    two.peers[1].announced = Some(START + 50);
    assert_eq!((two.announced(), two.healthy()), (START + 50, vec![0, 1]));
    rest(&mut two, 1, silence());
    assert_eq!((two.announced(), two.healthy()), (START, vec![0]));
    assert!(two.fault().is_none(), "one is well");
    rest(&mut two, 0, silence());
    assert!(two.fault().is_some());
}

#[test]
fn what_an_upstream_can_do_is_found_out() {
    let mut one = sync(1);
    observe(&mut one, "eth_getBlockByNumber", Ok(Some(5)));
    assert_eq!(one.peers[0].can.proofs, None);
    for block in [70, 60, 80] {
        observe(&mut one, "eth_getProof", Ok(Some(block)));
    }
    let can = |sync: &Sync| sync.peers[0].can.clone();
    assert_eq!((can(&one).proofs, can(&one).oldest_state), (Some(true), Some(60)));
    observe(&mut one, "eth_getProof", Err(Cause::NoAbsence("-".into())));
    assert_eq!((can(&one).proofs, can(&one).absence), (Some(true), Some(false)));

    let unknown = || Cause::Call(CallFailure::Rpc { code: METHOD_NOT_FOUND, message: "-".into() });
    let mut one = sync(1);
    observe(&mut one, "eth_getTransactionReceipt", Err(unknown()));
    assert_eq!(can(&one).proofs, None);
    observe(&mut one, "eth_getProof", Err(unknown()));
    assert_eq!(can(&one).proofs, Some(false));
    observe(&mut one, "rootlight_getWitness", Err(unknown()));
    assert_eq!(can(&one).witness, Some(false));
    assert_eq!(one.peers[0].record.demerits, 0, "less able is not worse");

    let mut one = sync(1);
    observe(&mut one, "rootlight_getWitness", Ok(None));
    observe(&mut one, "rootlight_getWitness", Err(unknown()));
    assert_eq!(can(&one).witness, Some(true), "only not of this");
}

/// A block's hash has one block behind it. Other refuted answers are faults too, but no proof of a lie; answers about
/// another branch are neither.
#[test]
fn a_lie_is_what_no_honest_upstream_says() {
    for (method, lies, demerits) in [
        ("eth_getBlockByHash", 1, 16),
        ("eth_getUncleByBlockHashAndIndex", 0, 8),
        ("eth_getBlockByNumber", 0, 8),
        ("eth_getTransactionByHash", 0, 8),
        ("eth_getProof", 0, 8),
    ] {
        let mut one = sync(1);
        observe(&mut one, method, Err(refuted()));
        let record = &one.peers[0].record;
        assert_eq!((record.lies, record.demerits), (lies, demerits), "{method}");
    }
    for cause in [Cause::Withheld, Cause::OtherBranch("wrong".into())] {
        let mut one = sync(1);
        observe(&mut one, "eth_getProof", Err(cause));
        assert_eq!((one.peers[0].record.lies, one.peers[0].record.demerits), (0, 1));
    }
}

#[test]
fn whoever_is_refuted_again_and_again_is_left_alone() {
    let mut three = sync(3);
    (0..3).for_each(|_| observe(&mut three, "eth_getProof", Err(refuted())));
    assert!(!three.peers[0].is_resting());
    observe(&mut three, "eth_getProof", Err(refuted()));
    let Phase::Resting(until, fault) = &three.peers[0].phase else { panic!("{:?}", three.peers[0].phase) };
    assert!(matches!(fault.cause, SyncCause::Dishonest(_)), "{fault}");
    // What it still answers meanwhile makes that no longer.
    let until = *until;
    three.now.millis += 1_000;
    observe(&mut three, "eth_getProof", Err(refuted()));
    assert!(matches!(three.peers[0].phase, Phase::Resting(same, _) if same == until));
    // Silence, or answers about another branch, are never that, nor do they add to what is; and without another one
    // there is nobody else to ask.
    for cause in [Cause::Withheld, Cause::OtherBranch("wrong".into())] {
        let mut two = sync(2);
        (0..200).for_each(|_| observe(&mut two, "eth_getProof", Err(cause.clone())));
        (0..3).for_each(|_| observe(&mut two, "eth_getProof", Err(refuted())));
        assert!(!two.peers[0].is_resting());
        observe(&mut two, "eth_getProof", Err(refuted()));
        assert!(two.peers[0].is_resting());
    }
    let mut one = sync(1);
    (0..20).for_each(|_| observe(&mut one, "eth_getProof", Err(refuted())));
    assert!(!one.peers[0].is_resting());
}

/// One at a time fetches many headers: the fastest, and everybody once to show its speed.
#[test]
fn turns_at_fetching_many_headers() {
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.announced = Some(START + 65));
    assert!(two.is_bulk(START + 65) && !two.is_bulk(START + 64) && !sync(1).is_bulk(START + 65));
    assert!(two.take_lease(0) && !two.take_lease(1));
    two.now.millis += 10_000;
    assert!(!two.take_lease(1) && !two.lease_is_over(0));
    two.now.millis += 1;
    assert!(two.lease_is_over(0) && !two.lease_is_over(0));
    assert_eq!(two.peers[0].record.rate, Some(0));
    assert!(!two.take_lease(0), "the other has not shown its speed yet");
    assert!(two.take_lease(1) && two.lease_is_over(0) && !two.lease_is_over(1));
    rest(&mut two, 1, silence());
    assert!(two.take_lease(0), "whoever rests has no turn");
}

/// A turn is over after so long whether its holder ends it or not; only its own headers count for it.
#[test]
fn turns_end_by_themselves() {
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.announced = Some(START + 65));
    assert!(two.take_lease(0));
    two.lease.as_mut().unwrap().headers = 50;
    two.count(1, 0);
    assert_eq!(two.lease.unwrap().headers, 50);
    two.count(0, START - 7);
    assert_eq!(two.lease.unwrap().headers, 57);
    two.drop_lease(1);
    assert!(two.lease.is_some() && two.lease_is_over(1), "the other one has it");
    two.peers[1].announced = Some(START + 64);
    assert!(!two.lease_is_over(1), "it has no need of one");
    two.peers[1].announced = Some(START + 65);
    two.now.millis += 10_001;
    assert!(two.take_lease(1), "the holder has never come back");
    assert_eq!(two.peers[0].record.rate, Some(5));
    two.drop_lease(1);
    // Faster ones go first, as long as they are there and have something to give.
    two.peers[1].record.rate = Some(6);
    assert!(!two.take_lease(0));
    two.peers[1].announced = Some(START + 64);
    assert!(two.take_lease(0));
    two.drop_lease(0);
    (two.peers[0].record.rate, two.peers[1].announced) = (Some(5), Some(START + 65));
    assert!(!two.take_lease(0));
    rest(&mut two, 1, silence());
    assert!(two.take_lease(0));
}

/// Who has shown everything is asked again when blocks are due; who waits for its turn, soon.
#[test]
fn how_long_an_upstream_waits() {
    let mut two = sync(2);
    two.peers[1].at_end = true;
    for (upstream, pause) in [(0, 500), (1, 5_000)] {
        let Phase::Idle(until) = two.after(upstream, Vec::new()) else { panic!("nothing to do") };
        assert_eq!(until - two.now.millis, pause);
    }
}

/// Blocks below the checkpoint are fetched by one at a time.
#[test]
fn one_at_a_time_fetches_what_is_below() {
    let mut two = sync(2);
    two.below.start(START, 10);
    assert!(two.below_work(0).is_some() && two.below_work(1).is_none());
    two.below.release(1);
    assert!(two.below_work(1).is_none(), "it was not the one");
    two.peers[0].at_end = true;
    rest(&mut two, 0, silence());
    assert!(two.below_work(1).is_some() && !two.peers[0].at_end, "who fails leaves it to others");
}

/// What an upstream had no method for is asked of it again when its host wants a new look.
#[test]
fn a_new_look_forgets_what_there_was_no_method_for() {
    let mut one = sync(1);
    one.peers[0].no_uncles = true;
    one.poll();
    assert!(!one.peers[0].no_uncles);
}

/// Those that keep no old blocks are asked again once nobody is left.
#[test]
fn refusals_of_old_blocks_are_forgotten_when_nobody_is_left() {
    let mut two = sync(2);
    two.below.start(START, 10);
    two.below.refuse(0);
    rest(&mut two, 0, silence());
    assert!(two.below_work(0).is_none(), "the other one may have them");
    rest(&mut two, 1, silence());
    assert!(two.below_work(0).is_some());
}

/// Whoever is slow keeps the client from calling itself synchronized for so long.
#[test]
fn the_slow_are_waited_for() {
    let mut two = sync(2);
    assert!(!two.all_seen());
    two.peers[0].at_end = true;
    assert!(!two.all_seen());
    two.now.millis += 30_000;
    assert!(!two.all_seen());
    two.now.millis += 1;
    assert!(two.all_seen());
    let mut two = sync(2);
    two.peers[0].at_end = true;
    assert!(!two.all_seen());
    rest(&mut two, 1, silence());
    assert!(two.all_seen(), "the other one rests");
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.at_end = true);
    assert!(two.all_seen());
}

/// Only an exchange without failures is a good one; without a chain there is no head to have reached.
#[test]
fn failed_exchanges_are_not_good_ones() {
    let mut one = sync(1);
    one.peers[0].record.in_row = 3;
    let SyncStep::Fetch(calls) = one.next(0, one.now) else { panic!("due") };
    one.feed(0, calls.iter().map(|_| Err(CallFailure::NotRecorded)).collect(), one.now);
    assert_eq!((one.peers[0].record.in_row, one.is_synced()), (3, false));
    one.peers[0].at_end = true;
    let later = Now { unix: 7, millis: one.now.millis + 30 };
    one.feed(0, Vec::new(), later);
    assert!(!one.is_synced() && one.peers[0].record.in_row == 0);
    assert_eq!(one.now(), later);
}

/// Windows grow by half while answers are fast, and are halved where they are slow or fail.
#[test]
fn windows_follow_the_speed() {
    let mut one = sync(1);
    one.peers[0].window = 40;
    let mut after = |failed: bool, elapsed: u64| {
        one.resize(0, failed, elapsed);
        one.peers[0].window
    };
    assert_eq!(
        [after(false, 0), after(false, 1_999), after(false, 2_000), after(false, 4_000)],
        [60, 90, 90, 90]
    );
    assert_eq!([after(false, 4_001), after(true, 0), after(true, 0), after(true, 0)], [45, 22, 11, 8]);
    assert_eq!((0..12).map(|_| after(false, 0)).last(), Some(200), "no larger than the host allows");
    for (allowed, own, len) in [(0, 50, 1), (4, 50, 4), (1_000, 50, 50), (1_000, 1_000, 256)] {
        one.set_batch(allowed);
        (one.peers[0].window, one.peers[0].announced) = (own, Some(START + 5_000));
        let Phase::Work(work) = one.next_work(0) else { panic!("work") };
        assert_eq!(work.window.map(|(_, window)| window.len()), Some(len));
    }
}

#[test]
fn who_has_shown_to_have_no_binary_headers_is_not_asked_for_them() {
    let mut one = sync(1);
    for (known, asked) in [(None, true), (Some(true), true), (Some(false), false)] {
        one.peers[0].can.headers = known;
        assert_eq!((one.binary(0), one.binary(1)), (asked, false));
    }
}

/// Who gives witnesses is asked for them, unless it rests.
#[test]
fn whom_to_ask_for_a_witness() {
    let asked = |sync: &Sync| Pin::new(sync, Arc::new(Identity::default()), sync.now()).witness_from();
    let mut two = sync(2);
    assert_eq!(asked(&two), Some((0, false)), "nobody knows yet");
    two.peers[0].can.witness = Some(false);
    assert_eq!(asked(&two), Some((1, false)));
    two.peers[1].can.witness = Some(true);
    assert_eq!(asked(&two), Some((1, true)));
    rest(&mut two, 1, silence());
    assert_eq!(asked(&two), None);
}

#[test]
fn before_the_head_is_reached_nothing_is_settled() {
    let mut one = sync(1);
    assert!(!one.is_settled());
    one.synced_once = true;
    assert!(one.is_settled());
    assert_eq!(sync(0).upstreams().len(), 1, "there is always one to wait for");
}
