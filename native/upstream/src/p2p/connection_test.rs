//! Time limits of requests to a peer, on a stopped clock, and the lengths of its messages.

use super::*;

/// Adds a request that has just been sent.
fn ask(open_requests: &mut OpenRequests) -> oneshot::Receiver<Result<Option<ReceivedBytes>, PeerError>> {
    let (reply, answer) = oneshot::channel();
    let id = open_requests.next_id.saturating_add(1);
    open_requests.next_id = id;
    let until = Instant::now() + RESPONSE_TIMEOUT;
    open_requests
        .waiting
        .insert(id, OpenRequest { request: Request::SnapStatus, reply, permit: None, until });
    answer
}

async fn ended(
    open_requests: &mut OpenRequests,
    mut answer: oneshot::Receiver<Result<Option<ReceivedBytes>, PeerError>>,
) -> (u64, PeerError) {
    let begun = Instant::now();
    loop {
        if let Ok(answer) = answer.try_recv() {
            return (begun.elapsed().as_secs(), answer.unwrap_err());
        }
        open_requests.overdue().await;
        open_requests.give_up();
    }
}

#[tokio::test(start_paused = true)]
async fn time_limits_of_requests_stop_while_the_peer_is_not_read() {
    let silent = PeerError::NoResponse(RESPONSE_TIMEOUT);
    let mut open_requests = OpenRequests::default();
    let answer = ask(&mut open_requests);
    assert_eq!(ended(&mut open_requests, answer).await, (6, silent.clone()));
    // Read again after 3 s.
    let answer = ask(&mut open_requests);
    tokio::time::advance(Duration::from_secs(1)).await;
    open_requests.note_read(false);
    tokio::time::advance(Duration::from_secs(3)).await;
    open_requests.note_read(true);
    assert_eq!(ended(&mut open_requests, answer).await, (5, silent.clone()));
    // Reading that stops and goes on at once prolongs no request.
    let answer = ask(&mut open_requests);
    for _ in 0..100 {
        open_requests.note_read(false);
        open_requests.note_read(true);
    }
    assert_eq!(ended(&mut open_requests, answer).await, (6, silent));
    // The peer is not read any more.
    let answer = ask(&mut open_requests);
    tokio::time::advance(Duration::from_secs(2)).await;
    open_requests.note_read(false);
    let later = ask(&mut open_requests);
    assert_eq!(ended(&mut open_requests, answer).await, (6, PeerError::BudgetUsedUp));
    assert_eq!(ended(&mut open_requests, later).await.1, PeerError::BudgetUsedUp);
}

#[tokio::test(start_paused = true)]
async fn long_messages_are_read_only_after_requests_for_them() {
    let mut open_requests = OpenRequests::default();
    assert_eq!(open_requests.longest_message(), LONGEST_UNASKED);
    open_requests.allowed.insert(longest_response(&Request::SnapStatus), Instant::now() + LATE);
    assert_eq!(open_requests.longest_message(), MAX_FRAME_READ);
    tokio::time::advance(LATE).await;
    assert_eq!(open_requests.longest_message(), LONGEST_UNASKED);
}
