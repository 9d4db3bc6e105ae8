//! Which upstreams are asked, which rest and for how long, and which of their claims count.

use alloc::{string::ToString, sync::Arc, vec, vec::Vec};

use super::{
    Observation, SyncOptions,
    exchange::UpstreamExchange,
    lease_state::LeaseState,
    phase::{AskAbove, AskBackfill, AskUncles, Phase},
    state::HeaderSync,
};
use crate::{
    consensus::{ChainError, Checkpoint, Network},
    light::{
        ClientConfig, PinnedHead, SyncStep,
        clock::Now,
        fault::{SyncCause, SyncFault},
        upstream::{RequestFailure, UpstreamRequest},
        upstream_fetch::{Cause, METHOD_NOT_FOUND},
    },
};

const START: u64 = 1_000;

/// A machine at its checkpoint, 1 s after its start, whose upstreams announce the checkpoint's height.
fn sync(upstreams: usize) -> HeaderSync {
    let network = Arc::new(Network::regtest());
    let checkpoint = Checkpoint { number: START, hash: network.genesis_hash, total_difficulty: None };
    let mut sync = HeaderSync::with_upstreams(network, checkpoint, upstreams, SyncOptions::default());
    sync.now = Now { unix: 0, millis: 1_000 };
    sync.peers.iter_mut().for_each(|peer| peer.source.announced = Some(START));
    sync
}

fn request(method: &'static str) -> UpstreamRequest {
    UpstreamRequest::new(method, "[]".into())
}

fn silence() -> SyncCause {
    SyncCause::Call(RequestFailure::Transport("gone".into()))
}

fn with(sync: &mut HeaderSync, upstream: usize) -> UpstreamExchange<'_> {
    sync.exchange(upstream).unwrap()
}

/// The upstreams that are not resting.
fn healthy(sync: &HeaderSync) -> Vec<usize> {
    (0..sync.peers.len()).filter(|upstream| !sync.is_resting(*upstream)).collect()
}

fn rest(sync: &mut HeaderSync, upstream: usize, cause: SyncCause) -> u64 {
    with(sync, upstream).rest(SyncFault { number: START, cause });
    match &sync.peers[upstream].phase {
        Phase::Resting(until, _) => until - sync.now.millis,
        other => panic!("{other:?}"),
    }
}

fn observe(sync: &mut HeaderSync, method: &'static str, outcome: Result<Option<u64>, Cause>) {
    sync.observe([Observation { upstream: 0, request: request(method), outcome }]);
}

fn refuted() -> Cause {
    Cause::Refuted("wrong".into())
}

#[test]
fn options_that_would_make_hosts_ask_without_a_pause_are_raised() {
    let none =
        SyncOptions { poll: 0, retry: 0, longest_retry: 0, work_floor: 1_000, ..SyncOptions::default() };
    let one = sync(1);
    let mut one = HeaderSync::with_upstreams(one.followed.network, one.followed.checkpoint, 1, none);
    assert_eq!((one.options.poll, one.options.work_floor), (1, 100));
    assert_eq!(rest(&mut one, 0, silence()), 1);
}

/// Faults that are not about a block do not name one.
#[test]
fn a_fault_names_a_block_only_if_it_is_about_one() {
    let words = |cause| SyncFault { number: 5, cause }.to_string();
    assert_eq!(words(SyncCause::Dishonest("x".into())), "its responses do not verify: x");
    assert_eq!(words(SyncCause::BadHeight), "eth_blockNumber did not return a number");
    assert_eq!(words(SyncCause::Missing), "block 5: the upstream did not return this block");
}

#[test]
fn a_pause_doubles_up_to_a_limit() {
    let mut two = sync(2);
    let pauses: Vec<u64> = (0..9).map(|_| rest(&mut two, 0, silence())).collect();
    assert_eq!(pauses[..3], [5_000, 10_000, 20_000]);
    assert_eq!(pauses[8], 600_000);
    assert_eq!((0..80).map(|_| rest(&mut two, 0, silence())).last(), Some(600_000));
    let busy = |seconds| SyncCause::Call(RequestFailure::Busy { seconds });
    assert_eq!(rest(&mut sync(2), 0, busy(Some(30))), 30_000);
    assert_eq!(rest(&mut sync(2), 0, busy(Some(1))), 5_000);
    assert_eq!(rest(&mut sync(2), 0, busy(None)), 5_000);
    assert_eq!(rest(&mut sync(2), 0, busy(Some(100_000))), 600_000);
}

#[test]
fn upstreams_that_are_silent_do_not_rest_for_long_while_no_other_can_be_asked() {
    let mut one = sync(1);
    assert_eq!((0..9).map(|_| rest(&mut one, 0, silence())).last(), Some(30_000));
    let busy = |seconds| SyncCause::Call(RequestFailure::Busy { seconds });
    assert_eq!(rest(&mut one, 0, busy(None)), 30_000);
    assert_eq!(rest(&mut one, 0, busy(Some(1))), 30_000);
    assert_eq!(rest(&mut one, 0, busy(Some(100))), 100_000);

    let mut three = sync(3);
    assert_eq!((0..9).map(|_| rest(&mut three, 0, silence())).last(), Some(600_000));
    assert_eq!(rest(&mut three, 1, SyncCause::BadHeight), 600_000);
    assert_eq!(rest(&mut three, 2, silence()), 5_000);
    let left = |upstream: usize| match three.peers[upstream].phase {
        Phase::Resting(until, _) => until - three.now.millis,
        ref other => panic!("{other:?}"),
    };
    assert_eq!([0, 1, 2].map(left), [30_000, 600_000, 5_000], "one that lied rests on");
}

/// A liar rests for long if there are other upstreams; the only one is tried again soon.
#[test]
fn a_liar_rests_for_long_if_there_are_other_upstreams() {
    assert_eq!(rest(&mut sync(2), 0, SyncCause::BadHeight), 600_000);
    assert_eq!(rest(&mut sync(1), 0, SyncCause::BadHeight), 5_000);
    let mut two = sync(2);
    rest(&mut two, 0, SyncCause::BadHeight);
    assert_eq!((two.peers[0].source.record.lies, two.peers[0].source.record.demerits), (1, 16));
    rest(&mut two, 1, silence());
    assert_eq!((two.peers[1].source.record.lies, two.peers[1].source.record.demerits), (0, 1));
}

/// An upstream that follows rules which this program does not know yet has done nothing wrong.
#[test]
fn a_block_with_newer_rules_is_not_a_fault() {
    let mut two = sync(2);
    rest(&mut two, 0, SyncCause::Header(ChainError::UpdateNeeded { number: START + 1, known_until: START }));
    let record = &two.peers[0].source.record;
    assert_eq!((record.lies, record.demerits, record.evidence.len()), (0, 0, 0));
    let cause = ChainError::UpdateNeeded { number: START + 1, known_until: START };
    assert_eq!(rest(&mut sync(2), 0, SyncCause::Header(cause)), 5_000, "it does not rest as long as a liar");
}

#[test]
fn the_best_upstreams_are_asked_first() {
    assert_eq!(sync(3).roster(), [0, 1, 2]);
    let first = |change: &dyn Fn(&mut HeaderSync)| {
        let mut three = sync(3);
        change(&mut three);
        three.roster()
    };
    // An upstream up to two blocks behind the head is as good as one at the head, and more blocks than the head has are
    // no advantage.
    assert_eq!(first(&|sync| sync.peers[0].source.announced = Some(START - 2)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].source.announced = Some(START - 3)), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[2].source.announced = Some(START + 3)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].source.announced = None), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].source.record.lies = 1), [1, 2, 0]);
    let boast = |sync: &mut HeaderSync| {
        (sync.peers[0].source.record.lies, sync.peers[0].source.announced) = (1, Some(1 << 63))
    };
    assert_eq!(first(&boast), [1, 2, 0], "no height makes up for a lie");
    assert_eq!(first(&|sync| sync.peers[0].source.can.proofs = Some(false)), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].source.can.proofs = Some(true)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[0].source.record.demerits = 4), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].source.record.latency = 64), [1, 2, 0]);
    assert_eq!(first(&|sync| assert_eq!(rest(sync, 0, silence()), 5_000)), [1, 2, 0]);
    // Liars are not asked, unless no other upstream is left.
    assert_eq!(first(&|sync| assert_eq!(rest(sync, 0, SyncCause::BadHeight), 600_000)), [1, 2]);
    let all = first(&|sync| {
        (0..3).for_each(|upstream| assert_eq!(rest(sync, upstream, SyncCause::BadHeight), 600_000))
    });
    assert_eq!(all, [0, 1, 2]);
}

#[test]
fn heights_of_resting_upstreams_do_not_count() {
    let mut two = sync(2);
    two.peers[1].source.announced = Some(START + 50);
    assert_eq!((two.announced(), healthy(&two)), (START + 50, vec![0, 1]));
    rest(&mut two, 1, silence());
    assert_eq!((two.announced(), healthy(&two)), (START, vec![0]));
    assert!(two.fault().is_none(), "one upstream is healthy");
    rest(&mut two, 0, silence());
    assert!(two.fault().is_some());
}

#[test]
fn the_capabilities_of_an_upstream_are_learned() {
    let mut one = sync(1);
    observe(&mut one, "eth_getBlockByNumber", Ok(Some(5)));
    assert_eq!(one.peers[0].source.can.proofs, None);
    for block in [70, 60, 80] {
        observe(&mut one, "eth_getProof", Ok(Some(block)));
    }
    let can = |sync: &HeaderSync| sync.peers[0].source.can.clone();
    assert_eq!((can(&one).proofs, can(&one).oldest_state), (Some(true), Some(60)));
    observe(&mut one, "eth_getProof", Err(Cause::NoAbsence("-".into())));
    assert_eq!((can(&one).proofs, can(&one).absence), (Some(true), Some(false)));

    let unknown = || Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, message: "-".into() });
    let mut one = sync(1);
    observe(&mut one, "eth_getTransactionReceipt", Err(unknown()));
    assert_eq!(can(&one).proofs, None);
    observe(&mut one, "eth_getProof", Err(unknown()));
    observe(&mut one, "rsk_getProof", Err(unknown()));
    assert_eq!(can(&one).proofs, Some(false));
    observe(&mut one, "rsk_getProof", Ok(Some(60)));
    assert_eq!((can(&one).proofs, can(&one).oldest_state), (Some(true), Some(60)));
    observe(&mut one, "rootlight_getWitness", Err(unknown()));
    assert_eq!(can(&one).witness, Some(false));
    assert_eq!(one.peers[0].source.record.demerits, 0, "a missing method is not a fault");

    let mut one = sync(1);
    observe(&mut one, "rootlight_getWitness", Ok(None));
    observe(&mut one, "rootlight_getWitness", Err(unknown()));
    assert_eq!(can(&one).witness, Some(true), "it has the method, but not this witness");
}

/// Only one block has the hash that was named, so another block is a lie. Other refuted responses are faults too, but
/// they do not prove a lie. Responses about another branch are neither.
#[test]
fn only_responses_that_no_honest_upstream_gives_are_lies() {
    for (method, lies, demerits) in [
        ("eth_getBlockByHash", 1, 16),
        ("eth_getUncleByBlockHashAndIndex", 0, 8),
        ("eth_getBlockByNumber", 0, 8),
        ("eth_getTransactionByHash", 0, 8),
        ("eth_getProof", 0, 8),
    ] {
        let mut one = sync(1);
        observe(&mut one, method, Err(refuted()));
        let record = &one.peers[0].source.record;
        assert_eq!((record.lies, record.demerits), (lies, demerits), "{method}");
    }
    for cause in [Cause::Withheld, Cause::OtherBranch("wrong".into())] {
        let mut one = sync(1);
        observe(&mut one, "eth_getProof", Err(cause));
        assert_eq!((one.peers[0].source.record.lies, one.peers[0].source.record.demerits), (0, 1));
    }
}

/// Callers can name anything, and can use up what an upstream answers in a minute.
#[test]
fn what_callers_ask_for_lengthens_no_pause_of_synchronization() {
    let (mut one, mut other) = (sync(1), sync(1));
    for cause in [Cause::Withheld, Cause::Call(RequestFailure::NotAvailable("nothing".into()))] {
        (0..200).for_each(|_| observe(&mut one, "eth_getProof", Err(cause.clone())));
    }
    assert_eq!(one.peers[0].source.record.in_row, 0);
    assert_eq!(rest(&mut one, 0, silence()), rest(&mut other, 0, silence()));
}

#[test]
fn a_request_that_was_not_sent_is_no_fault() {
    let mut one = sync(1);
    observe(&mut one, "eth_getProof", Err(Cause::Call(RequestFailure::NotSent("not now".into()))));
    assert_eq!((one.peers[0].source.record.demerits, one.peers[0].source.record.evidence.len()), (0, 0));
}

#[test]
fn an_upstream_that_is_refuted_repeatedly_rests() {
    let mut three = sync(3);
    (0..3).for_each(|_| observe(&mut three, "eth_getProof", Err(refuted())));
    assert!(!three.peers[0].is_resting());
    observe(&mut three, "eth_getProof", Err(refuted()));
    let Phase::Resting(until, fault) = &three.peers[0].phase else { panic!("{:?}", three.peers[0].phase) };
    assert!(matches!(fault.cause, SyncCause::Dishonest(_)), "{fault}");
    // Wrong responses that arrive while it rests do not prolong the rest.
    let until = *until;
    three.now.millis += 1_000;
    observe(&mut three, "eth_getProof", Err(refuted()));
    assert!(matches!(three.peers[0].phase, Phase::Resting(same, _) if same == until));
    // Silence and responses about another branch never lead to this, and do not add to it. Without another upstream
    // there is none to ask instead.
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

fn is_bulk(sync: &mut HeaderSync, height: u64) -> bool {
    with(sync, 0).is_bulk(height)
}

/// One upstream at a time fetches many headers: the fastest one, and each one once to show its speed.
#[test]
fn upstreams_take_turns_at_fetching_many_headers() {
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.source.announced = Some(START + 65));
    assert!(
        is_bulk(&mut two, START + 65) && !is_bulk(&mut two, START + 64) && !is_bulk(&mut sync(1), START + 65)
    );
    assert!(with(&mut two, 0).take_lease() && !with(&mut two, 1).take_lease());
    // Its holder has not added a header.
    two.now.millis += 5_000;
    assert!(!with(&mut two, 1).take_lease() && !with(&mut two, 0).lease_is_over());
    two.now.millis += 1;
    assert!(with(&mut two, 0).lease_is_over() && !with(&mut two, 0).lease_is_over());
    assert_eq!(two.peers[0].source.record.rate, Some(0));
    assert!(!with(&mut two, 0).take_lease(), "the other has not shown its speed yet");
    assert!(
        with(&mut two, 1).take_lease()
            && with(&mut two, 0).lease_is_over()
            && !with(&mut two, 1).lease_is_over()
    );
    rest(&mut two, 1, silence());
    assert!(with(&mut two, 0).take_lease(), "a resting upstream has no turn");
}

/// A turn ends after a fixed time, even if its holder does not end it. Only the holder's own headers count for it.
#[test]
fn turns_end_by_themselves() {
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.source.announced = Some(START + 65));
    assert!(with(&mut two, 0).take_lease());
    two.leases.lease.as_mut().unwrap().headers = 50;
    with(&mut two, 1).count(0);
    assert_eq!(two.leases.lease.unwrap().headers, 50);
    with(&mut two, 0).count(START - 7);
    assert_eq!(two.leases.lease.unwrap().headers, 57);
    with(&mut two, 1).drop_lease();
    assert!(
        two.leases.lease.is_some() && with(&mut two, 1).lease_is_over(),
        "the other upstream has the turn"
    );
    two.peers[1].source.announced = Some(START + 64);
    assert!(!with(&mut two, 1).lease_is_over(), "it needs no turn for so few headers");
    two.peers[1].source.announced = Some(START + 65);
    two.now.millis += 10_001;
    assert!(with(&mut two, 1).take_lease(), "the holder did not come back");
    assert_eq!(two.peers[0].source.record.rate, Some(5));
    with(&mut two, 1).drop_lease();
    // Faster upstreams go first if they are healthy and have headers to fetch.
    two.peers[1].source.record.rate = Some(6);
    assert!(!with(&mut two, 0).take_lease());
    two.peers[1].source.announced = Some(START + 64);
    assert!(with(&mut two, 0).take_lease());
    with(&mut two, 0).drop_lease();
    (two.peers[0].source.record.rate, two.peers[1].source.announced) = (Some(5), Some(START + 65));
    assert!(!with(&mut two, 0).take_lease());
    rest(&mut two, 1, silence());
    assert!(with(&mut two, 0).take_lease());
}

/// An upstream that has shown everything is asked again when blocks are due, and until the client is synchronized when others have
/// had time to answer; one that waits for its turn is asked again soon.
#[test]
fn how_long_an_upstream_waits() {
    let mut two = sync(2);
    two.peers[1].search.at_end = true;
    for (upstream, synced, pause) in [(0, false, 500), (0, true, 500), (1, false, 3_000), (1, true, 5_000)] {
        two.followed.synced_once = synced;
        let Phase::Idle(until) = AskUncles::default().or_pause(&mut with(&mut two, upstream)) else {
            panic!("nothing to do")
        };
        assert_eq!(until - two.now.millis, pause);
    }
}

/// One upstream at a time fetches the backfill.
#[test]
fn one_upstream_at_a_time_fetches_the_backfill() {
    let mut two = sync(2);
    two.followed.backfill.start(START, 10);
    assert!(
        AskBackfill::new(&mut with(&mut two, 0)).is_some()
            && AskBackfill::new(&mut with(&mut two, 1)).is_none()
    );
    two.followed.backfill.release(1);
    assert!(AskBackfill::new(&mut with(&mut two, 1)).is_none(), "another upstream has it");
    two.peers[0].search.at_end = true;
    rest(&mut two, 0, silence());
    assert!(
        AskBackfill::new(&mut with(&mut two, 1)).is_some() && !two.peers[0].search.at_end,
        "a failed upstream leaves the backfill to others"
    );
}

/// An upstream that lacked a method is asked again with it when the host polls.
#[test]
fn a_poll_forgets_missing_methods() {
    let mut one = sync(1);
    one.peers[0].source.no_uncles = true;
    one.poll();
    assert!(!one.peers[0].source.no_uncles);
}

/// Upstreams that keep no old blocks are asked again once no other is left.
#[test]
fn refusals_of_old_blocks_are_forgotten_when_no_upstream_is_left() {
    let mut two = sync(2);
    two.followed.backfill.start(START, 10);
    two.followed.backfill.refuse(0);
    rest(&mut two, 0, silence());
    assert!(AskBackfill::new(&mut with(&mut two, 0)).is_none(), "the other upstream may have the blocks");
    rest(&mut two, 1, silence());
    assert!(AskBackfill::new(&mut with(&mut two, 0)).is_some());
}

fn all_seen(sync: &mut HeaderSync) -> bool {
    sync.leases.all_seen(&sync.peers, true, sync.now)
}

#[test]
fn waiting_proposals_are_judged_at_most_once_a_second() {
    let mut leases = LeaseState::default();
    let at = |millis| Now { unix: 0, millis };
    leases.note_shown(at(0));
    let judged: Vec<u64> = (0..6_000).step_by(100).filter(|millis| leases.may_judge(at(*millis))).collect();
    assert_eq!(judged, [3_000, 4_000, 5_000]);
}

/// A slow upstream delays the moment when the client counts as synchronized, but not for longer than this.
#[test]
fn slow_upstreams_are_waited_for_up_to_a_limit() {
    let mut two = sync(2);
    assert!(!all_seen(&mut two));
    two.peers[0].search.at_end = true;
    assert!(!all_seen(&mut two));
    two.now.millis += 30_000;
    assert!(!all_seen(&mut two));
    two.now.millis += 1;
    assert!(all_seen(&mut two));
    let mut two = sync(2);
    two.peers[0].search.at_end = true;
    assert!(!all_seen(&mut two));
    rest(&mut two, 1, silence());
    assert!(all_seen(&mut two), "the other upstream rests");
    let mut two = sync(2);
    two.peers.iter_mut().for_each(|peer| peer.search.at_end = true);
    assert!(all_seen(&mut two));
}

/// Only an exchange without failures is good. Without a chain, no head is reached.
#[test]
fn failed_exchanges_do_not_count_as_good() {
    let mut one = sync(1);
    one.peers[0].source.record.in_row = 3;
    let SyncStep::Fetch(requests) = one.next(0, one.now) else { panic!("due") };
    one.feed(0, requests.iter().map(|_| Err(RequestFailure::NotRecorded)).collect(), one.now);
    assert_eq!((one.peers[0].source.record.in_row, one.is_synced()), (3, false));
    one.peers[0].search.at_end = true;
    let later = Now { unix: 7, millis: one.now.millis + 30 };
    one.feed(0, Vec::new(), later);
    assert!(!one.is_synced() && one.peers[0].source.record.in_row == 0);
    assert_eq!(one.now(), later);
}

/// Windows grow by half while responses are fast, and are halved if they are slow or fail.
#[test]
fn windows_follow_the_speed() {
    let mut one = sync(1);
    one.peers[0].search.window = Some(40);
    let mut after = |failed: bool, elapsed: u64| {
        one.peers[0].search.resize(failed, elapsed, 200);
        one.peers[0].search.window_size(false)
    };
    assert_eq!(
        [after(false, 0), after(false, 1_999), after(false, 2_000), after(false, 4_000)],
        [60, 90, 90, 90]
    );
    assert_eq!([after(false, 4_001), after(true, 0), after(true, 0), after(true, 0)], [45, 22, 11, 8]);
    assert_eq!((0..12).map(|_| after(false, 0)).last(), Some(200), "no larger than the host allows");
    for (allowed, own, len) in [(0, 50, 1), (4, 50, 4), (1_000, 50, 50), (1_000, 1_000, 256)] {
        one.set_batch(allowed);
        (one.peers[0].search.window, one.peers[0].source.announced) = (Some(own), Some(START + 5_000));
        assert_eq!(AskAbove::new(&mut with(&mut one, 0)).window.len(), len);
    }
}

#[test]
fn an_upstream_without_binary_headers_is_not_asked_for_them() {
    let mut one = sync(1);
    for (known, asked) in [(None, true), (Some(true), true), (Some(false), false)] {
        one.peers[0].source.can.headers = known;
        assert_eq!(one.peers[0].source.may_give_binary(), asked);
    }
    assert!(one.exchange(1).is_none(), "nor is one that does not exist");
}

/// An upstream that gives witnesses is asked for them, unless it rests.
#[test]
fn a_witness_is_requested_from_an_upstream_that_gives_witnesses() {
    let asked = |sync: &HeaderSync| {
        PinnedHead::new(sync, Arc::new(ClientConfig::default()), sync.now()).witness_from()
    };
    let mut two = sync(2);
    assert_eq!(asked(&two), Some((0, false)), "not known yet");
    two.peers[0].source.can.witness = Some(false);
    assert_eq!(asked(&two), Some((1, false)));
    two.peers[1].source.can.witness = Some(true);
    assert_eq!(asked(&two), Some((1, true)));
    rest(&mut two, 1, silence());
    assert_eq!(asked(&two), None);
}

#[test]
fn total_difficulties_are_not_settled_before_the_head_is_reached() {
    let mut one = sync(1);
    assert!(!one.uncles_complete());
    one.followed.synced_once = true;
    assert!(one.uncles_complete());
    assert_eq!(sync(0).upstreams().len(), 1, "there is always at least one upstream");
}

/// A source that takes another's place starts afresh, and what a session saw of the earlier one does not count for it.
#[test]
fn a_successor_does_not_inherit_the_record() {
    let mut two = sync(2);
    let config =
        Arc::new(ClientConfig { upstreams: vec!["a".into(), "b".into()], ..ClientConfig::default() });
    let before = PinnedHead::new(&two, config.clone(), two.now);
    assert_eq!(before.upstream_name(1), Some("b"));
    rest(&mut two, 1, SyncCause::BadHeight);
    assert!(two.is_resting(1) && two.upstreams()[1].record.lies == 1);
    two.followed.backfill.refuse(1);

    two.replace(1, "the honest node".into());
    let state = &two.upstreams()[1];
    assert_eq!((state.record.lies, state.record.evidence.len(), two.is_resting(1)), (0, 0, false));
    let after = PinnedHead::new(&two, config, two.now);
    assert_eq!(after.upstream_name(1), Some("the honest node"));
    assert_eq!((before.source_generations(), after.source_generations()), (vec![0, 0], vec![0, 1]));

    let lie =
        |upstream| Observation { upstream, request: request("eth_getBlockByHash"), outcome: Err(refuted()) };
    two.observe_since(&before.source_generations(), [lie(0), lie(1)]);
    let lies = |sync: &HeaderSync| sync.upstreams().iter().map(|state| state.record.lies).collect::<Vec<_>>();
    assert_eq!(lies(&two), [1, 0]);
    two.observe_since(&after.source_generations(), [lie(1)]);
    assert_eq!(lies(&two), [1, 1]);
}
