//! The choice of the connection that is closed, and the time limits of messages and answers.

use super::*;

fn connection(address: [u8; 4]) -> Arc<ClientConnection> {
    ClientConnection::new(Some(address.into()), &Counts::default())
}

async fn is_told_to_close(connection: &ClientConnection) -> bool {
    tokio::time::timeout(Duration::from_millis(10), connection.close_requested()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_connection_of_the_address_with_the_most_is_closed() {
    let slots = ConnectionSlots::new(4);
    let (one, two, other) = (connection([10, 0, 0, 1]), connection([10, 0, 0, 1]), connection([10, 0, 0, 2]));
    let mut slots_taken = Vec::new();
    for connection in [&other, &one, &two] {
        slots_taken.push(slots.enter(connection).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let newcomer = connection([10, 0, 0, 3]);
    assert!(!slots.make_room(&newcomer, 0), "no connection has been idle for long");
    tokio::time::sleep(GRACE).await;
    let working = one.work();
    assert!(slots.make_room(&newcomer, 0));
    assert!(is_told_to_close(&two).await && !is_told_to_close(&one).await && !is_told_to_close(&other).await);
    drop(working);
    assert!(!slots.make_room(&connection([10, 0, 0, 1]), 1), "not for a connection of the same address");
    drop(slots_taken);
    slots.empty().await;
}

/// One client controls all addresses of an IPv6 network of 64 bits.
#[tokio::test(start_paused = true)]
async fn addresses_of_one_ipv6_network_are_counted_together() {
    let slots = ConnectionSlots::new(3);
    let at = |address: &str| ClientConnection::new(Some(address.parse().unwrap()), &Counts::default());
    let (other, one, two) = (at("2001:db8::1"), at("2001:db8:0:1::1"), at("2001:db8:0:1::2"));
    let mut slots_taken = Vec::new();
    for connection in [&other, &one, &two] {
        slots_taken.push(slots.enter(connection).await);
    }
    // The connection of the other network has been idle for longest.
    for connection in [&other, &one, &two] {
        drop(connection.work());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(GRACE).await;
    assert!(slots.make_room(&at("2001:db8:0:2::1"), 0));
    assert!(!is_told_to_close(&other).await, "its network has one connection, the other one two");
    assert!(is_told_to_close(&one).await || is_told_to_close(&two).await);
}

/// A client with an IPv6 /48 network has 65,536 addresses with one connection each.
#[tokio::test(start_paused = true)]
async fn the_networks_of_a_site_are_counted_together() {
    let slots = ConnectionSlots::new(6);
    let at = |address: &str| ClientConnection::new(Some(address.parse().unwrap()), &Counts::default());
    let house = ["192.0.2.1", "192.0.2.1"].map(at);
    let many = [1, 2, 3, 4].map(|net| at(&format!("2001:db8:0:{net}::1")));
    let mut slots_taken = Vec::new();
    for connection in house.iter().chain(&many) {
        slots_taken.push(slots.enter(connection).await);
        drop(connection.work());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(slots.make_room(&at("198.51.100.1"), 1));
    assert!(is_told_to_close(&many[0]).await, "its site has more than half of all slots");
    assert!(!slots.make_room(&at("2001:db8:0:9::1"), 1), "nobody has as many");
    let working: Vec<Work> = house.iter().chain(&many).map(|connection| connection.work()).collect();
    assert!(slots.make_room(&at("198.51.100.1"), 1));
    for connection in &house {
        assert!(!is_told_to_close(connection).await);
    }
    drop(working);
}

#[tokio::test(start_paused = true)]
async fn an_address_with_most_places_loses_a_connection_that_was_idle_for_a_moment() {
    let slots = ConnectionSlots::new(4);
    let (hoarder, other) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let connections = [other, hoarder, hoarder, hoarder].map(connection);
    let mut slots_taken = Vec::new();
    for connection in &connections {
        slots_taken.push(slots.enter(connection).await);
        drop(connection.work());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(slots.make_room(&connection([10, 0, 0, 3]), 0));
    assert!(is_told_to_close(&connections[1]).await, "the one that was idle for longest");
    for kept in [&connections[0], &connections[2], &connections[3]] {
        assert!(!is_told_to_close(kept).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_unsent_answers_has_no_timer() {
    let connection = connection([10, 0, 0, 1]);
    let mut polls = 0;
    {
        let stalled = connection.stalled(Duration::from_millis(1));
        tokio::pin!(stalled);
        let counted = std::future::poll_fn(|context| {
            polls += 1;
            stalled.as_mut().poll(context)
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), counted).await.is_err());
    }
    // The second poll is that of the time limit of this test.
    assert!(polls <= 2, "polled {polls} times");
    let unsent = connection.sending_uncounted(vec![0; 1 << 20].into());
    connection.stalled(Duration::from_millis(1)).await;
    drop(unsent);
}

/// The time limit of messages in these tests, and time enough for [`ClientConnection::message_overdue`] to look again.
const LIMIT: Duration = Duration::from_secs(2);

/// Bytes of the budget of requests that one client gets.
const PART: usize = 16 << 20;

/// Makes the client's part of the budget contended for some seconds.
fn contend(client: &ClientConnection) {
    let (owner, requests) = (client.quota_owner(), client.counts.limits.requests());
    let part = requests.take_or_refuse(owner, PART);
    assert!(part.is_some() && requests.take_or_refuse(owner, FREE_BYTES).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_pings_for_long_has_no_incomplete_message() {
    let connection = connection([10, 0, 0, 8]);
    connection.count_messages();
    let pings = async {
        for number in 0..4_000 {
            if number % 500 == 0 {
                contend(&connection);
            }
            assert!(connection.received(CLIENT_HEADER + 4));
            connection.control_frame(4);
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::select! {
        () = connection.message_overdue(LIMIT) => panic!("pings are no message"),
        () = pings => {}
    }
    // Pings amid a message do not hide how long that takes.
    assert!(connection.received(2 * FREE_BYTES));
    let pings = async {
        loop {
            assert!(connection.received(CLIENT_HEADER));
            connection.control_frame(0);
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::select! {
        () = connection.message_overdue(LIMIT) => {}
        () = pings => {}
    }
    assert!(connection.message().bytes() > 0);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_message_begins_with_its_first_byte() {
    let connection = connection([10, 0, 0, 9]);
    connection.count_messages();
    let overdue = connection.message_overdue(LIMIT);
    tokio::pin!(overdue);
    for _ in 0..3 {
        let idle = Duration::from_millis(60_700);
        assert!(tokio::time::timeout(idle, overdue.as_mut()).await.is_err(), "an idle client");
        contend(&connection);
        assert!(connection.received(2 * FREE_BYTES));
        let short = CONTENDED_WRITE / 2;
        assert!(tokio::time::timeout(short, overdue.as_mut()).await.is_err(), "the message has just begun");
        assert!(connection.message().bytes() > 0);
    }
    contend(&connection);
    assert!(connection.received(2 * FREE_BYTES));
    assert!(tokio::time::timeout(2 * LIMIT, overdue).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_too_slowly_is_stalled() {
    let connection = connection([10, 0, 0, 1]);
    let limit = Duration::from_millis(100);
    let patience = Duration::from_secs(5);
    assert!(
        tokio::time::timeout(limit * 5, connection.stalled(limit)).await.is_err(),
        "there is nothing to send"
    );
    let unsent = connection.sending_uncounted(vec![0; 1 << 20].into());
    assert_eq!(connection.unsent(), 1 << 20);
    connection.wrote(1000);
    assert!(tokio::time::timeout(patience, connection.stalled(limit)).await.is_ok());
    drop(unsent);
    assert_eq!(connection.unsent(), 0);
}

#[test]
fn messages_of_a_websocket_count_for_its_page() {
    let connection = connection([10, 0, 0, 11]);
    let program = connection.client();
    let page = CallerId { page: 7, ..program };
    connection.count_messages();
    let _part = connection.counts.limits.requests().take_or_refuse(page.quota_owner(), 8 << 20).unwrap();
    connection.count_for(page);
    assert!(!connection.received(2 * FREE_BYTES), "the part of pages is used up");
    connection.count_for(program);
    assert!(connection.received(2 * FREE_BYTES));
}
