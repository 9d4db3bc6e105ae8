//! Whose question is asked next.

use super::*;

const SIZES: PermitLimits = PermitLimits { all: 3, each: 2, doubtful: 1 };

/// The pages of a caller, and its programs.
const GREEDY: Option<QuotaOwner> = Some(QuotaOwner { number: 2, is_page: true });
const OTHER: Option<QuotaOwner> = Some(QuotaOwner { number: 2, is_page: false });

/// Takes a place at once, if there is one.
async fn try_acquire(permits: &Arc<RequestPermits>, owner: Option<QuotaOwner>) -> Option<RequestPermit> {
    tokio::time::timeout(Duration::ZERO, permits.acquire(owner)).await.ok().flatten()
}

/// Asks many questions of a caller, each of which a peer leaves unanswered for 6 s.
fn flood(permits: &Arc<RequestPermits>, owner: Option<QuotaOwner>, questions: usize) {
    for _ in 0..questions {
        let permits = permits.clone();
        tokio::spawn(async move {
            let Some(permit) = permits.acquire(owner).await else { return };
            tokio::time::sleep(Duration::from_secs(6)).await;
            permit.unanswered();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn one_caller_leaves_a_place_to_others() {
    let permits = RequestPermits::new(SIZES);
    let own = [try_acquire(&permits, GREEDY).await.unwrap(), try_acquire(&permits, GREEDY).await.unwrap()];
    assert!(try_acquire(&permits, GREEDY).await.is_none());
    let other = try_acquire(&permits, OTHER).await.unwrap();
    assert!(try_acquire(&permits, None).await.is_none(), "no more than the peer takes");
    drop((own, other));
    assert!(try_acquire(&permits, None).await.is_some());
}

/// Another caller is answered at once, however many unanswered questions a caller has.
#[tokio::test(start_paused = true)]
async fn unanswered_questions_of_a_caller_keep_no_other_waiting() {
    let permits = RequestPermits::new(SIZES);
    flood(&permits, GREEDY, 500);
    tokio::task::yield_now().await;
    for _ in 0..100 {
        let started = Instant::now();
        let permit = permits.acquire(OTHER).await.unwrap();
        assert!(started.elapsed() < Duration::from_millis(1), "{:?}", started.elapsed());
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(permit);
    }
}

/// Callers without doubt have the other places, even if several callers' questions are left unanswered.
#[tokio::test(start_paused = true)]
async fn callers_whose_questions_are_left_unanswered_share_one_place() {
    let permits = RequestPermits::new(SIZES);
    for caller in 10..15 {
        flood(&permits, Some(caller.into()), 50);
    }
    // The first unanswered question of each.
    tokio::time::sleep(Duration::from_secs(20)).await;
    for _ in 0..50 {
        let started = Instant::now();
        let taken = tokio::join!(permits.acquire(OTHER), permits.acquire(OTHER));
        assert!(started.elapsed() < Duration::from_millis(1), "{:?}", started.elapsed());
        drop(taken);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn callers_take_turns_and_doubt_ends() {
    let permits = RequestPermits::new(PermitLimits { all: 1, each: 1, doubtful: 1 });
    let first = permits.acquire(None).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    for owner in [GREEDY, GREEDY, GREEDY, GREEDY, OTHER, Some(3.into())] {
        let (permits, order) = (permits.clone(), order.clone());
        tokio::spawn(async move {
            let permit = permits.acquire(owner).await.unwrap();
            order.lock().unwrap().push(owner);
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(permit);
        });
        tokio::task::yield_now().await;
    }
    drop(first);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(order.lock().unwrap()[..3], [OTHER, GREEDY, Some(3.into())]);
    let permits = RequestPermits::new(SIZES);
    permits.acquire(GREEDY).await.unwrap().unanswered();
    let taken = permits.acquire(GREEDY).await.unwrap();
    assert!(try_acquire(&permits, GREEDY).await.is_none());
    tokio::time::advance(DOUBT).await;
    assert!(try_acquire(&permits, GREEDY).await.is_some());
    drop(taken);
}

#[tokio::test(start_paused = true)]
async fn callers_that_have_gone_hold_nothing_and_queues_are_bounded() {
    let permits = RequestPermits::new(SIZES);
    let taken = [try_acquire(&permits, GREEDY).await, try_acquire(&permits, GREEDY).await];
    for _ in 0..2 * MAX_WAITING {
        assert!(try_acquire(&permits, GREEDY).await.is_none());
    }
    assert!(permits.state().waiting.of(GREEDY).len() <= MAX_WAITING);
    drop(taken);
    let state = permits.state();
    assert!(state.taken.is_empty() && state.waiting.in_turn().next().is_none());
}
