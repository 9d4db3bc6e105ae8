//! Who is asked, who rests and for how long, and what is believed of whom.

use alloc::{sync::Arc, vec, vec::Vec};

use super::{machine::Sync, peer::Phase, Observation, SyncOptions};
use crate::{
    consensus::{ChainError, Checkpoint, Network},
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        task::{Cause, METHOD_NOT_FOUND},
        upstream::{CallFailure, UpstreamCall},
        SyncStep,
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
}

#[test]
fn the_best_are_asked_first() {
    assert_eq!(sync(3).roster(), [0, 1, 2]);
    let first = |change: &dyn Fn(&mut Sync)| {
        let mut three = sync(3);
        change(&mut three);
        three.roster()
    };
    // Up to two blocks behind is as good as any.
    assert_eq!(first(&|sync| sync.peers[2].announced = Some(START + 2)), [0, 1, 2]);
    assert_eq!(first(&|sync| sync.peers[2].announced = Some(START + 3)), [2, 0, 1]);
    assert_eq!(first(&|sync| sync.peers[0].announced = None), [1, 2, 0]);
    assert_eq!(first(&|sync| sync.peers[0].record.lies = 1), [1, 2, 0]);
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

/// By hash there is one true answer; by number, or of where a transaction is, there may be several.
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
    let mut one = sync(1);
    observe(&mut one, "eth_getProof", Err(Cause::Withheld));
    assert_eq!((one.peers[0].record.lies, one.peers[0].record.demerits), (0, 1));
}

#[test]
fn whoever_is_refuted_again_and_again_is_left_alone() {
    let mut two = sync(2);
    (0..3).for_each(|_| observe(&mut two, "eth_getProof", Err(refuted())));
    assert!(!two.peers[0].is_resting());
    observe(&mut two, "eth_getProof", Err(refuted()));
    let Phase::Resting(_, fault) = &two.peers[0].phase else { panic!("{:?}", two.peers[0].phase) };
    assert!(matches!(fault.cause, SyncCause::Dishonest(_)), "{fault}");
    // Silence alone is never that; and without another one there is nobody else to ask.
    let mut two = sync(2);
    (0..200).for_each(|_| observe(&mut two, "eth_getProof", Err(Cause::Withheld)));
    assert!(!two.peers[0].is_resting());
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
    one.feed(0, Vec::new(), one.now);
    assert!(!one.is_synced() && one.peers[0].record.in_row == 0);
}
