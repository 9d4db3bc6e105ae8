//! A connection whose upstream takes the memory of others, on a stopped clock.

use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::sleep;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::super::ws_open::config;
use super::*;

const MIB: usize = 1 << 20;

/// The time limit of a batch.
const LIMIT: Duration = Duration::from_secs(20);

/// A connection with its own memory budget of 32 MiB.
struct LinkFixture {
    link: WsConnection,
    orders: mpsc::Sender<OutgoingBatch>,
    queue: mpsc::Receiver<OutgoingBatch>,
}

type BatchReceiver = oneshot::Receiver<Result<ReceivedBytes<Utf8Bytes>, UpstreamError>>;

impl LinkFixture {
    fn new() -> Self {
        let config = HttpConfig { timeout: LIMIT, ..HttpConfig::default() };
        let reached = Arc::new(LastAddress::of("ws://a/"));
        let mut link = WsConnection::new("ws://a/".into(), "a".into(), config, Arc::default(), reached);
        link.quota = SourceQuota::alone(32 * MIB, 32 * MIB);
        let (orders, queue) = mpsc::channel(8);
        Self { link, orders, queue }
    }

    /// Asks for the result of request 1.
    fn ask(&self, is_caller: bool) -> BatchReceiver {
        let (answer, answered) = oneshot::channel();
        let order = OutgoingBatch { first: 1, count: 1, body: "{}".into(), is_caller, answer };
        assert!(self.orders.try_send(order).is_ok());
        answered
    }

    /// Serves a connection to an upstream that does this, and counts its end. Returns the error.
    async fn serve<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        upstream: impl FnOnce(WebSocketStream<DuplexStream>) -> F,
    ) -> Option<UpstreamError> {
        let (ours, theirs) = duplex(4096);
        let frames = Frames::new(ours, self.link.config.answer_bytes, self.link.quota.clone());
        let opening = tokio_tungstenite::client_async_with_config("ws://a/", frames, Some(config(12 * MIB)));
        let (opened, accepted) = tokio::join!(opening, accept_async(theirs));
        tokio::spawn(upstream(accepted.unwrap()));
        let Err(end) = self.link.serve(opened.unwrap().0, &mut self.queue).await;
        let error = self.link.count(end)?;
        self.link.give_up(&error);
        Some(error)
    }
}

/// A response to request 1 of about this many bytes.
fn response(bytes: usize) -> Message {
    Message::text(format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "7".repeat(bytes)))
}

/// Waits for the subscription and a batch.
async fn asked(socket: &mut WebSocketStream<DuplexStream>) {
    for _ in 0..2 {
        socket.next().await.unwrap().unwrap();
    }
}

async fn forever() {
    std::future::pending::<()>().await;
}

/// Sends the head of a long frame, and nothing of what it announces.
async fn begin(socket: &mut WebSocketStream<DuplexStream>, bytes: usize) {
    let head = [&[0x81, 127][..], &(bytes as u64).to_be_bytes()].concat();
    socket.get_mut().write_all(&head).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_not_read_for_want_of_room_is_not_silent() {
    let mut fixture = LinkFixture::new();
    // The upstream is slow too: its time is over if the time without room counts.
    let other = fixture.link.quota.beside(32 * MIB).try_reserve(30 * MIB).unwrap();
    let answer = fixture.ask(false);
    tokio::spawn(async move {
        sleep(LIMIT + Duration::from_secs(2)).await;
        drop(other);
    });
    let answered = tokio::spawn(async move { answer.await.unwrap().map(|answer| answer.len()) });
    let serving = fixture.serve(|mut socket| async move {
        asked(&mut socket).await;
        sleep(LIMIT - Duration::from_secs(1)).await;
        socket.send(response(4 * MIB)).await.unwrap();
        forever().await;
    });
    tokio::select! {
        error = serving => panic!("{error:?}"),
        length = answered => assert!(length.unwrap().unwrap() > 4 * MIB),
    }
}

#[tokio::test(start_paused = true)]
async fn batches_without_budget_fail_and_do_not_count_as_failures_of_the_upstream() {
    let mut fixture = LinkFixture::new();
    let _other = fixture.link.quota.beside(32 * MIB).try_reserve(30 * MIB).unwrap();
    let answer = fixture.ask(false);
    let error = fixture.serve(|mut socket| async move {
        asked(&mut socket).await;
        let _ = socket.send(response(4 * MIB)).await;
        forever().await;
    });
    assert_eq!(error.await, Some(UpstreamError::BudgetUsedUp));
    assert_eq!(answer.await.unwrap().err(), Some(UpstreamError::BudgetUsedUp));
    assert_eq!((fixture.link.failures, fixture.link.waiting.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_message_ends_when_others_want_its_room_and_else_in_time() {
    for (wanted, expected, failures) in
        [(true, UpstreamError::BudgetUsedUp, 0), (false, UpstreamError::Timeout(LIMIT.as_millis()), 1)]
    {
        let mut fixture = LinkFixture::new();
        let beside = fixture.link.quota.beside(32 * MIB);
        // A batch does not wait for it, so only the length of the message counts.
        let error = fixture.serve(|mut socket| async move {
            begin(&mut socket, 2 * MIB).await;
            forever().await;
        });
        let wants = async {
            sleep(Duration::from_secs(8)).await;
            assert_eq!(beside.taken(), 4 * MIB);
            assert!(beside.try_reserve(30 * MIB).is_err());
            forever().await;
        };
        let started = Instant::now();
        let error = tokio::select! {
            error = error => error,
            () = wants, if wanted => unreachable!(),
        };
        assert_eq!((error, fixture.link.failures), (Some(expected), failures));
        let seconds = started.elapsed().as_secs();
        assert!(if wanted { seconds < 10 } else { (20..22).contains(&seconds) }, "{seconds}");
        assert_eq!(fixture.link.quota.taken(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_message_that_no_batch_waits_for_is_a_flood() {
    let mut fixture = LinkFixture::new();
    let error = fixture.serve(|mut socket| async move {
        begin(&mut socket, LONGEST_UNASKED + 1).await;
        forever().await;
    });
    assert!(matches!(error.await, Some(UpstreamError::Malformed(_))));
    assert!(fixture.link.failures >= fixture.link.config.attempts);
    // A message may be that long while a batch waits.
    let mut fixture = LinkFixture::new();
    let answer = fixture.ask(false);
    let serving = fixture.serve(|mut socket| async move {
        asked(&mut socket).await;
        socket.send(response(LONGEST_UNASKED + 1)).await.unwrap();
        forever().await;
    });
    tokio::select! {
        error = serving => panic!("{error:?}"),
        answer = answer => assert!(answer.unwrap().is_ok()),
    }
}

#[tokio::test(start_paused = true)]
async fn the_room_of_a_response_to_a_caller_counts_as_that_of_callers() {
    for is_caller in [false, true] {
        let mut fixture = LinkFixture::new();
        // Callers have 24 of 32 MiB.
        let _others = super::super::with_caller(7.into(), async { fixture.link.quota.try_reserve(18 * MIB) })
            .await
            .unwrap();
        let answer = fixture.ask(is_caller);
        let serving = fixture.serve(|mut socket| async move {
            asked(&mut socket).await;
            socket.send(response(5 * MIB)).await.unwrap();
            forever().await;
        });
        let answer = tokio::select! {
            error = serving => panic!("{error:?}"),
            answer = answer => answer.unwrap(),
        };
        assert_eq!(answer.is_err(), is_caller);
        let taken = fixture.link.quota.taken();
        assert_eq!(taken > 18 * MIB, !is_caller, "{taken}");
    }
}
