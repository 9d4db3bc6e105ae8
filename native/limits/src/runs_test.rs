//! Which waiting run gets the next permit, on a stopped clock.

use rootlight::rpc::Dispatcher;
use rootlight::rpc::envelope::MAX_BATCH;

use super::*;

fn caller(address: [u8; 4], connection: u64) -> CallerId {
    CallerId { address: address.into(), page: 0, connection }
}

/// Returns the order in which connections get the permits for busy connections when all are taken at first.
async fn order(asked: &[CallerId]) -> Vec<u64> {
    let runs = RunQueue::new(2);
    // Gives every connection a debt, so that none is fresh.
    let until = Instant::now() + Duration::from_secs(60);
    let first = caller([9; 4], 0);
    runs.state().debt_free_at.extend(asked.iter().chain([&first]).map(|caller| (*caller, until)));
    let taken = runs.enter(first, Size::Single).await;
    let finished = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for caller in asked {
        let (runs, finished, caller) = (runs.clone(), finished.clone(), *caller);
        tasks.push(tokio::spawn(async move {
            let permit = runs.enter(caller, Size::Single).await;
            finished.lock().unwrap().push(caller.connection);
            tokio::task::yield_now().await;
            drop(permit);
        }));
        tokio::task::yield_now().await;
    }
    drop(taken);
    for task in tasks {
        task.await.unwrap();
    }
    let finished = finished.lock().unwrap().clone();
    assert_eq!(runs.state().busy.taken, 0);
    finished
}

#[tokio::test(start_paused = true)]
async fn connections_take_turns() {
    let (greedy, other) = (caller([127, 0, 0, 1], 1), caller([127, 0, 0, 1], 2));
    let finished = order(&[greedy, greedy, greedy, greedy, other]).await;
    assert!(finished.iter().position(|connection| *connection == 2).unwrap() <= 1, "{finished:?}");
}

#[tokio::test(start_paused = true)]
async fn addresses_take_turns_however_many_connections_they_have() {
    let many = (1..=6).map(|connection| caller([10, 0, 0, 1], connection));
    let asked: Vec<CallerId> = many.chain([caller([10, 0, 0, 2], 99)]).collect();
    let finished = order(&asked).await;
    assert!(finished.iter().position(|connection| *connection == 99).unwrap() <= 1, "{finished:?}");
}

/// All pages in a browser, and all programs of this machine, have one address.
#[tokio::test(start_paused = true)]
async fn programs_take_turns_with_all_pages_of_their_address_and_pages_with_each_other() {
    let page = |page, connection| CallerId { page, ..caller([127, 0, 0, 1], connection) };
    let greedy = || (1..=6).map(|connection| page(7, connection));
    let at = |finished: &[u64], wanted| finished.iter().position(|connection| *connection == wanted).unwrap();
    let asked: Vec<CallerId> = greedy().chain([page(0, 99)]).collect();
    let finished = order(&asked).await;
    assert!(at(&finished, 99) <= 1, "{finished:?}");
    let asked: Vec<CallerId> = greedy().chain([page(5, 98), page(9, 99)]).collect();
    let finished = order(&asked).await;
    assert!(at(&finished, 98) <= 2 && at(&finished, 99) <= 2, "{finished:?}");
    let many = (1..=6).map(|number| page(number.into(), number)).chain([page(0, 98), page(0, 99)]);
    let finished = order(&many.collect::<Vec<_>>()).await;
    assert!(at(&finished, 98) <= 1 && at(&finished, 99) <= 3, "{finished:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_leave_a_fresh_permit_to_the_programs_of_their_address() {
    let runs = RunQueue::new(2);
    let at = |page, connection| CallerId { page, ..caller([127, 0, 0, 1], connection) };
    let one = runs.enter(at(7, 1), Size::Single).await;
    let two = runs.enter(at(8, 2), Size::Single).await;
    assert!(one.is_fresh && !two.is_fresh);
    let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(at(9, 3), Size::Single)).await;
    assert!(third.is_err());
    assert!(runs.enter(at(0, 4), Size::Single).await.is_fresh, "a program does not wait");
}

#[tokio::test(start_paused = true)]
async fn a_busy_connection_leaves_permits_to_fresh_ones() {
    let runs = RunQueue::new(2);
    let greedy = caller([127, 0, 0, 1], 1);
    let one = runs.enter(greedy, Size::Single).await;
    let two = runs.enter(greedy, Size::Single).await;
    assert!(one.is_fresh && !two.is_fresh, "a connection gets one fresh permit");
    let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy, Size::Single)).await;
    assert!(third.is_err(), "and no third permit");
    let other =
        tokio::time::timeout(Duration::from_secs(5), runs.enter(caller([127, 0, 0, 1], 2), Size::Single))
            .await;
    assert!(other.unwrap().is_fresh);
    drop((one, two));
    assert!(runs.enter(greedy, Size::Single).await.is_fresh, "short runs leave little debt");
    runs.state().note_run(greedy, false, Duration::from_millis(300));
    assert!(!runs.enter(greedy, Size::Single).await.is_fresh, "the connection has debt after a long run");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(runs.enter(greedy, Size::Single).await.is_fresh, "the debt has decreased with time");
}

/// An address that opens a connection for each run has no debt on any of them.
#[tokio::test(start_paused = true)]
async fn an_address_leaves_a_permit_to_others_however_many_connections_it_has() {
    let runs = RunQueue::new(2);
    let greedy = |connection| caller([127, 0, 0, 1], connection);
    let other = |connection| caller([127, 0, 0, 2], connection);
    let soon = |caller| tokio::time::timeout(Duration::from_secs(5), runs.enter(caller, Size::Single));
    let one = runs.enter(greedy(1), Size::Single).await;
    let two = runs.enter(greedy(2), Size::Single).await;
    let three = runs.enter(greedy(3), Size::Single).await;
    assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
    let waiting = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy(4), Size::Single)).await;
    assert!(waiting.is_err());
    assert!(soon(other(5)).await.unwrap().is_fresh, "another address does not wait");
    // The same holds if connections of the first address have waited for longer.
    drop((one, two));
    let reserved = [
        runs.enter(other(6), Size::Single).await,
        runs.enter(other(7), Size::Single).await,
        runs.enter(caller([9; 4], 8), Size::Single).await,
    ];
    let queued = [9, 10, 11].map(|connection| {
        let (runs, caller) = (runs.clone(), greedy(connection));
        tokio::spawn(async move { runs.enter(caller, Size::Single).await })
    });
    tokio::task::yield_now().await;
    drop(reserved);
    assert!(soon(other(12)).await.unwrap().is_fresh);
    let mut fresh = 0;
    for task in queued {
        fresh += u32::from(tokio::time::timeout(Duration::from_millis(100), task).await.is_ok());
    }
    assert_eq!(fresh, 3, "each of the others in its turn");
    drop(three);
}

/// A permit that was given to a client that no longer waits goes to the next one.
#[tokio::test(start_paused = true)]
async fn a_client_that_stopped_waiting_gets_no_permit() {
    let runs = RunQueue::new(1);
    let until = Instant::now() + Duration::from_secs(60);
    let (one, two) = (caller([127, 0, 0, 1], 1), caller([127, 0, 0, 1], 2));
    runs.state().debt_free_at.extend([(one, until), (two, until)]);
    let taken = runs.enter(one, Size::Single).await;
    let given_up = tokio::time::timeout(Duration::from_millis(10), runs.enter(two, Size::Single)).await;
    assert!(given_up.is_err());
    let waiting = tokio::spawn({
        let runs = runs.clone();
        async move { runs.enter(one, Size::Single).await }
    });
    tokio::task::yield_now().await;
    drop(taken);
    drop(waiting.await.unwrap());
    assert_eq!(runs.state().busy.taken, 0);
}

/// Batches of an address have all permits that the address may have. A single call from a new connection of the address waits
/// for one batch to end, not for the batches that wait already, and takes the first permit that becomes free.
#[tokio::test(start_paused = true)]
async fn a_single_call_does_not_wait_for_all_batches_of_its_address() {
    let runs = RunQueue::new(2);
    let at = |connection| caller([127, 0, 0, 1], connection);
    for first_to_end in [0, 2] {
        let mut running = Vec::new();
        for connection in 1..=3 {
            running.push(runs.enter(at(connection), Size::Batch).await);
        }
        let ended = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (connection, size) in
            (4..=9).map(|connection| (connection, Size::Batch)).chain([(10, Size::Single)])
        {
            let (runs, ended) = (runs.clone(), ended.clone());
            tasks.push(tokio::spawn(async move {
                let permit = runs.enter(at(connection), size).await;
                ended.lock().unwrap().push(connection);
                drop(permit);
            }));
            tokio::task::yield_now().await;
        }
        drop(running.remove(first_to_end));
        for task in tasks {
            tokio::time::timeout(Duration::from_secs(5), task).await.unwrap().unwrap();
        }
        let ended = ended.lock().unwrap().clone();
        assert!(ended.iter().position(|connection| *connection == 10).unwrap() <= 1, "{ended:?}");
    }
}

/// One client controls all addresses of an IPv6 network of 64 bits.
#[tokio::test(start_paused = true)]
async fn addresses_of_one_ipv6_network_share_their_permits() {
    let runs = RunQueue::new(2);
    let at = |address: &str| CallerId::new(address.parse().unwrap());
    let one = runs.enter(at("2001:db8:0:1::1"), Size::Single).await;
    let two = runs.enter(at("2001:db8:0:1::2"), Size::Single).await;
    let three = runs.enter(at("2001:db8:0:1:ffff::3"), Size::Single).await;
    assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
    assert!(runs.enter(at("2001:db8:0:2::1"), Size::Single).await.is_fresh, "another network");
}

/// A customer with many addresses has no more permits than one with a single address, and customers behind one address
/// do not wait for each other.
#[tokio::test(start_paused = true)]
async fn the_addresses_of_an_api_key_share_its_permits() {
    let runs = RunQueue::new(2);
    let of_key = |address: &str, key| CallerId::new(address.parse().unwrap()).of_key(key);
    let one = runs.enter(of_key("192.0.2.1", 1), Size::Single).await;
    let two = runs.enter(of_key("198.51.100.1", 1), Size::Single).await;
    let three = runs.enter(of_key("203.0.113.1", 1), Size::Single).await;
    assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
    assert!(
        runs.enter(of_key("192.0.2.1", 2), Size::Single).await.is_fresh,
        "another key at the same address"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_waited_with_two_messages_gets_one_fresh_permit() {
    let runs = RunQueue::new(2);
    let mut reserved = Vec::new();
    for address in 1..=3 {
        reserved.push(runs.enter(caller([10, 0, 0, address], 1), Size::Single).await);
    }
    let queued = [Size::Single, Size::Batch].map(|size| {
        let runs = runs.clone();
        tokio::spawn(async move { runs.enter(caller([10, 0, 0, 9], 2), size).await })
    });
    tokio::task::yield_now().await;
    reserved.pop();
    let mut fresh = Vec::new();
    for task in queued {
        // The second message takes the free permit for busy connections, before another fresh permit is free.
        fresh.push(tokio::time::timeout(Duration::from_secs(5), task).await.unwrap().unwrap());
    }
    assert_eq!(fresh.iter().filter(|permit| permit.is_fresh).count(), 1);
    drop((reserved, fresh));
    let state = runs.state();
    assert_eq!((state.fresh.taken, state.busy.taken), (0, 0));
}

#[test]
fn a_batch_is_a_size_of_its_own() {
    let methods = Dispatcher::default();
    let read = |text: &str| Message::read(text.as_bytes(), &methods, MAX_BATCH);
    let sizes = ["[{}]", "{}", ""].map(|text| Size::of(&read(text)));
    assert_eq!(sizes, [Size::Batch, Size::Single, Size::Single]);
}
