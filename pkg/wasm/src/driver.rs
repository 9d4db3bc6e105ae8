//! The asynchronous loops of a light client: one for each upstream, which follows the chain there, and one for each message that needs data
//! of upstreams. `client.rs` starts them.

use alloc::boxed::Box;
use alloc::string::String;
#[cfg(feature = "dev")]
use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use js_sys::{Array, Function, Uint8Array};
#[cfg(feature = "dev")]
use rootlight::consensus::ChainView;
use rootlight::engine::MAX_FILTERS;
#[cfg(feature = "dev")]
use rootlight::engine::gate;
use rootlight::light::{
    ClientConfig, HeaderSync, Hedges, Outbox, Progress, RequestFailure, Restoring, SyncStep, WindowRecord,
};
use rootlight::rpc::{Caller, Client, PartResponses, Reply, Round, RoundPart, Session, SessionStep};
use wasm_bindgen::JsValue;

use crate::alarm::Alarm;
use crate::config::{ClientStart, Config};
use crate::effects;
use crate::hedge::race;
use crate::host::{Budget, Deadline, JsUpstream, Reservation, Responses, clock, host_changed, sleep};
use crate::queue::{LocalBoxed, all};
use crate::sends;

/// Longest pause of a loop in milliseconds. Headers from another upstream may make this one due earlier than its step said.
const LONGEST_SLEEP: f64 = 1_000.0;

/// Pause before an upstream is asked earlier than it was due, in milliseconds, so that an upstream that announces blocks without end does
/// not keep a page busy.
const EARLY_PAUSE: f64 = 50.0;

/// Pause between two checks whether the head is reached, in milliseconds.
const HEAD_CHECK_PAUSE: f64 = 10.0;

/// Most bytes of upstream responses in memory for one round of all requests in progress together. The receipts of 2,000 full
/// blocks take about 100 MB, and a page on a telephone has a few hundred.
const ANSWER_BYTES: usize = 128 << 20;

/// Most bytes of responses that one round of synchronization with one upstream holds: four exchanges at the limit of the
/// package's transports. 200 headers as block objects take about 5 MB.
const FOLLOWING_BYTES: usize = 128 << 20;

/// A message that has been run once.
#[derive(Debug)]
pub(crate) enum FirstRun {
    /// Its answer; `None` if it needs none.
    Done(Option<String>),
    /// The message needs the responses to a round of requests.
    Fetches(Box<Session>, Round),
}

/// A light client and its upstreams. No part of the client is borrowed while a loop waits.
#[derive(Debug)]
pub(crate) struct Driver {
    client: Client,
    /// The caller that the provider itself is.
    caller: Arc<Caller>,
    /// The stored headers that are being restored, before the client starts.
    restoring: RefCell<Option<Restoring>>,
    /// The upstreams, in the order of their numbers.
    upstreams: Vec<JsUpstream>,
    /// Ends the pauses of the loop that follows each upstream.
    alarms: Vec<Alarm>,
    /// The measured speed of the upstreams, which decides when a spare is asked as well.
    hedges: RefCell<Hedges>,
    /// Memory for upstream responses that callers' requests may take.
    budget: Budget,
    /// Called with the pages to store.
    keep: Function,
    /// Called with the progress of the first synchronization.
    progress: Option<Function>,
}

impl Driver {
    /// Makes a client that has not sent any request yet.
    pub(crate) fn new(
        config: &Config,
        upstreams: Vec<JsUpstream>,
        keep: Function,
        progress: Option<Function>,
    ) -> Self {
        let version = concat!("Rootlight/", env!("CARGO_PKG_VERSION"), "/wasm/Rust/light");
        let client_config = ClientConfig {
            version: version.into(),
            upstreams: config.names(upstreams.len()),
            min_depth: config.min_depth,
            max_age: config.max_age,
            unproven: config.unproven,
            ..ClientConfig::default()
        };
        let options = config.sync_options();
        let network = config.network.clone();
        let count = client_config.upstreams.len();
        let client = match config.start {
            ClientStart::At(checkpoint) => {
                Client::with_upstreams(network, checkpoint, client_config, options)
            }
            ClientStart::Work(work) => {
                Client::following(HeaderSync::by_work(network, work, count, options), client_config)
            }
            ClientStart::Window(work) => {
                Client::following(HeaderSync::by_window(network, work, count, options), client_config)
            }
        };
        client.sync_mut().follow_bitcoin_of_upstreams(clock());
        let budget = Budget::new(ANSWER_BYTES);
        let caller = Caller::default().with_subscriptions(MAX_FILTERS);
        let caller = Arc::new(caller.with_batch_limit(config.batch_limit));
        let alarms = upstreams.iter().map(|_| Alarm::default()).collect();
        let hedges = RefCell::new(Hedges::new(upstreams.len()));
        let restoring = RefCell::default();
        Self { client, caller, restoring, upstreams, alarms, hedges, budget, keep, progress }
    }

    /// Whether the client starts by window.
    pub(crate) fn is_by_window(&self) -> bool {
        self.client.sync().is_by_window()
    }

    /// Begins to restore `pages` stored pages. `record` is that of a window, if the pages are of one.
    pub(crate) fn restoring(&self, pages: u32, record: Option<&[u8]>) {
        let mut sync = self.client.sync_mut();
        // Without a record, or with one that is too old, no page is needed.
        if let Some(Ok(record)) = record.map(WindowRecord::decode) {
            sync.resume_window(&record, clock().unix);
        }
        *self.restoring.borrow_mut() = Some(sync.restoring(pages.into()));
    }

    /// Restores Bitcoin's chain; other bytes are ignored.
    pub(crate) fn restore_bitcoin(&self, stored: &[u8]) {
        self.client.sync_mut().restore_bitcoin(stored, clock().unix);
    }

    /// The number of the stored page that is needed next, to restore or later to prove its headers; `None` if none is.
    pub(crate) fn wanted_page(&self) -> Option<u32> {
        let page = match &*self.restoring.borrow() {
            Some(restoring) => restoring.page(),
            None => self.client.sync().wanted_page(),
        };
        page.and_then(|page| page.try_into().ok())
    }

    /// Restores the needed page; returns whether it is valid.
    pub(crate) fn restore(&self, page: &[u8]) -> bool {
        let mut restoring = self.restoring.borrow_mut();
        let Some(restoring) = restoring.as_mut() else { return false };
        self.client.restore_page(restoring, page).is_ok()
    }

    /// Ends restoring. If the pages are invalid, the client starts from the checkpoint.
    pub(crate) fn finish_restore(&self) {
        if let Some(restoring) = self.restoring.take() {
            // The error says why the pages are invalid; the start from the checkpoint is all that follows from it.
            let _ = self.client.finish_restore(restoring);
        }
    }

    /// Proves some more of the restored headers; returns whether more are left. Invalid headers are forgotten.
    pub(crate) fn prove(&self, page: Option<Vec<u8>>) -> bool {
        let mut page = page;
        self.client.prove_restored(&mut |_| Ok(page.take())).unwrap_or(false)
    }

    /// Passes the pages from this number on to `keep` again.
    pub(crate) fn store_again(&self, page: u32) {
        self.client.store_again(page.into());
    }

    /// Passes new pages of verified headers to `keep`, with the record of a window and, where it is due, Bitcoin's chain. A client
    /// that starts by work may have nothing to store: it passes an empty list if the chain has `changed`, because JavaScript looks for events
    /// whenever `keep` is called.
    fn save(&self, changed: bool) {
        let pages = self.client.export();
        let first = pages.first().map_or(0, |page| page.index);
        let is_due = changed && self.client.sync().is_by_work();
        if pages.is_empty() && !is_due {
            return;
        }
        let list: Array = pages.iter().map(|page| Uint8Array::from(&page.bytes[..])).collect();
        let bytes = |bytes: Vec<u8>| Uint8Array::from(&bytes[..]);
        let mut sync = self.client.sync_mut();
        let record = sync.window_record().map(|record| bytes(record.encode()));
        let bitcoin = record.as_ref().and_then(|_| sync.export_bitcoin());
        drop(sync);
        let bitcoin = bitcoin.map(|follower| bytes(follower.stored()));
        // A failing store does not stop the client.
        let _ =
            self.keep.call4(&JsValue::NULL, &(first as f64).into(), &list, &record.into(), &bitcoin.into());
    }

    /// Reports the progress of the first synchronization: the numbers of the first block, of the newest verified block and of the upstreams'
    /// newest block, headers per second, and seconds left (null if unknown).
    fn report(&self) {
        let Some(callback) = &self.progress else { return };
        let sync = self.client.sync();
        if sync.is_synced() {
            return;
        }
        let Progress { start, head, target, rate, left } = sync.progress();
        let figures = [Some(start), Some(head), Some(target), Some(rate), left];
        let figures: Array = figures
            .iter()
            .map(|figure| figure.map_or(JsValue::NULL, |figure| (figure as f64).into()))
            .collect();
        drop(sync);
        // An exception of the listener does not stop the client.
        let _ = callback.apply(&JsValue::NULL, &figures);
    }

    /// Called when an upstream announces a new block.
    pub(crate) fn hint(&self, index: usize) {
        self.client.sync_hint(index);
        if let Some(alarm) = self.alarms.get(index) {
            alarm.ring();
        }
    }

    /// Makes every upstream due for a check for new blocks.
    pub(crate) fn wake(&self) {
        self.client.sync_poll();
        self.alarms.iter().for_each(Alarm::ring);
    }

    /// Number of upstreams.
    pub(crate) fn upstreams(&self) -> usize {
        self.upstreams.len()
    }

    /// Follows one upstream until `closed` returns `true`.
    pub(crate) async fn follow(&self, index: usize, closed: impl Fn() -> bool) {
        let (Some(upstream), Some(alarm)) = (self.upstreams.get(index), self.alarms.get(index)) else {
            return;
        };
        let mut outbox = Outbox::default();
        let budget = Budget::new(FOLLOWING_BYTES);
        while !closed() {
            let reservation = budget.reserve();
            // Transactions that callers have sent: those without a receipt at this upstream are sent to it again. Responses to that are
            // ignored, because the next receipts show the outcome.
            let requests = self.client.receipt_requests(index, &mut outbox, clock());
            let again = outbox.resend_requests(upstream.ask(&requests, true, &reservation).await);
            upstream.ask(&again, true, &reservation).await;
            let step = self.client.sync_next(index, clock());
            match step {
                SyncStep::Fetch(requests) => {
                    let answers = upstream.ask(&requests, true, &reservation).await;
                    let changed = self.client.sync_feed(index, answers, clock());
                    self.save(changed);
                    self.report();
                }
                SyncStep::Wait(millis) => {
                    if alarm.pause((millis as f64).min(LONGEST_SLEEP)).await {
                        sleep(EARLY_PAUSE).await;
                    }
                }
            }
        }
    }

    /// Waits until the upstreams' head is verified, or `closed` returns `true`. The error is the reason why the head cannot be verified.
    pub(crate) async fn reach_head(&self, closed: impl Fn() -> bool) -> Result<(), String> {
        while !closed() {
            if self.client.sync().is_synced() {
                return Ok(());
            }
            if self.client.sync().fault().is_some() {
                return Err(self.client.pin(clock()).stopped().unwrap_or_default());
            }
            sleep(HEAD_CHECK_PAUSE).await;
        }
        Err("the client was closed".into())
    }

    /// The verified chain. The error is the reason why there is none.
    #[cfg(feature = "dev")]
    pub(crate) fn verified_chain(&self) -> Result<ChainView, String> {
        let pinned = self.client.pin(clock());
        gate::usable_chain(&pinned).cloned().map_err(|refusal| refusal.to_string())
    }

    /// Sends each part of a round to the upstream that the part names, to all upstreams at the same time. A part may name a spare, a second
    /// upstream, which is asked as well when the first is slow.
    async fn ask(&self, round: Round, reservation: &Reservation<'_>) -> Vec<PartResponses> {
        // Parts that send transactions have a time limit of their own; the others ask for data.
        let (sent, asked): (Vec<RoundPart>, Vec<RoundPart>) =
            round.parts.into_iter().partition(RoundPart::sends);
        let responses = RefCell::new(Vec::new());
        let mut work: Vec<LocalBoxed<'_>> = Vec::new();
        for part in asked {
            let responses = &responses;
            work.push(Box::pin(async move {
                let first = self.ask_one(part.upstream, &part, reservation);
                let (answers, of_spare) = match part.spare {
                    Some(spare) => {
                        let asked = [first, self.ask_one(spare, &part, reservation)];
                        race(&self.hedges, [part.upstream, spare], asked).await
                    }
                    None => (first.await, false),
                };
                responses.borrow_mut().push(part.answered(answers, of_spare));
            }));
        }
        work.push(Box::pin(async {
            let asked = sent
                .iter()
                .map(|part| (part.requests.as_slice(), self.ask_one(part.upstream, part, reservation)));
            let answers = sends::responses(asked.collect()).await;
            let answered = sent.iter().cloned().zip(answers);
            responses.borrow_mut().extend(answered.map(|(part, answers)| part.answered(answers, false)));
        }));
        all(work).await;
        responses.into_inner()
    }

    /// Sends the requests of a part to the upstream with this number.
    fn ask_one<'a>(
        &'a self,
        index: usize,
        part: &'a RoundPart,
        reservation: &'a Reservation<'_>,
    ) -> Responses<'a> {
        Box::pin(async move {
            match self.upstreams.get(index) {
                Some(upstream) => upstream.ask(&part.requests, false, reservation).await,
                None => {
                    let missing = || Err(RequestFailure::Transport("no such upstream".into()));
                    part.requests.iter().map(|_| missing()).collect()
                }
            }
        })
    }

    /// The caller that the provider itself is.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        self.caller.clone()
    }

    /// Runs one message of a caller as far as the known facts allow.
    pub(crate) fn begin(
        &self,
        caller: Arc<Caller>,
        message: &[u8],
        on_filter: Option<&Function>,
    ) -> FirstRun {
        let now = clock();
        let message = self.client.read(message, &caller);
        let mut session = self.client.open_from(caller, message, now);
        match self.step(&mut session, Deadline::of_step_at(now.millis as f64)) {
            SessionStep::Fetch(round) => FirstRun::Fetches(Box::new(session), round),
            SessionStep::Done(reply) => FirstRun::Done(self.close(session, reply, on_filter)),
        }
    }

    /// Answers a message whose first run needs the responses to this round.
    pub(crate) async fn finish(
        &self,
        mut session: Box<Session>,
        mut round: Round,
        on_filter: Option<&Function>,
    ) -> Option<String> {
        loop {
            // Each round has a new reservation: the session drops the responses, and limits the proven facts that it keeps by itself.
            // Responses that exceeded the budget are requested again, from this upstream or another.
            let reservation = self.budget.reserve();
            let answers = self.ask(round, &reservation).await;
            self.client.feed(&mut session, answers);
            drop(reservation);
            match self.step(&mut session, Deadline::start()) {
                SessionStep::Fetch(more) => round = more,
                SessionStep::Done(reply) => return self.close(*session, reply, on_filter),
            }
        }
    }

    /// Runs a message until it needs responses or is answered.
    fn step(&self, session: &mut Session, deadline: Deadline) -> SessionStep {
        self.client.step(session, &|| deadline.is_over())
    }

    /// Ends a session and returns its answer; `None` if the message needs none. If the message has sent a transaction, JavaScript notifies
    /// subscribers, and each upstream's loop runs at once to send the transaction again where it is missing.
    fn close(&self, session: Session, reply: Reply, on_filter: Option<&Function>) -> Option<String> {
        effects::tell(&reply, on_filter);
        if self.client.close(session) {
            host_changed();
            self.alarms.iter().for_each(Alarm::ring);
        }
        reply.into_text()
    }
}
