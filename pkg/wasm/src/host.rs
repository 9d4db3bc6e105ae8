//! What the module uses of JavaScript: exchanges with upstreams, pauses and the clocks; and the limits of time and memory for them.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;

use js_sys::{Date, Function, Promise, Uint8Array};
use rootlight::light::{Now, RequestFailure, UpstreamRequest, UpstreamResponse, decode_batch, encode_batch};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::queue::{ExchangeQueue, LocalBoxed, PARALLEL, Permit, all};

/// A future of the responses to the requests of one part of a round, in the same order.
pub(crate) type Responses<'a> = Pin<Box<dyn Future<Output = Vec<UpstreamResponse>> + 'a>>;

/// Most bytes of the response to one request: more than the longest ones of the reference node and of Rootlight, 10 MiB. An
/// upstream that pads its responses beyond that is at fault, and the next one is asked.
const MAX_RESPONSE_BYTES: usize = 12 << 20;

#[wasm_bindgen]
extern "C" {
    /// A promise that resolves after this many milliseconds, or at once when the client is closed. `pkg/instance.js`
    /// provides it.
    #[wasm_bindgen(js_name = rootlightSleep)]
    fn host_sleep(milliseconds: f64) -> Promise;

    /// Called before the answer to a message that may have caused events for subscribers. `pkg/instance.js` provides it.
    #[wasm_bindgen(js_name = rootlightChanged)]
    pub(crate) fn host_changed();

    /// Milliseconds of the monotonic clock. Pages, workers and Node.js all have it.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn monotonic_now() -> f64;
}

/// The time on both clocks of the host.
pub(crate) fn clock() -> Now {
    Now { unix: (Date::now() / 1000.0) as u64, millis: monotonic_now() as u64 }
}

/// The time of the monotonic clock in microseconds.
pub(crate) fn micros() -> u64 {
    (monotonic_now() * 1_000.0) as u64
}

/// Most milliseconds that one step of a request may compute, because the page does nothing else meanwhile.
const STEP_TIME: f64 = 5_000.0;

/// The time of the monotonic clock, in milliseconds, at which a step has to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(f64);

impl Deadline {
    /// The deadline of a step that starts now.
    pub(crate) fn start() -> Self {
        Self::of_step_at(monotonic_now())
    }

    /// The deadline of a step that starts at this time of the monotonic clock.
    pub(crate) fn of_step_at(millis: f64) -> Self {
        Self(millis + STEP_TIME)
    }

    /// Whether the time is up.
    pub(crate) fn is_over(self) -> bool {
        monotonic_now() > self.0
    }
}

/// Waits this many milliseconds, without keeping a Node.js process alive, or until the client is closed.
pub(crate) async fn sleep(milliseconds: f64) {
    let _ = JsFuture::from(host_sleep(milliseconds)).await;
}

/// The memory that upstream responses may take in one module, counted in the bytes received.
///
/// A caller's request keeps all responses of a round, and many requests run at once. Without a limit, a hostile upstream
/// that pads its responses could fill the module's 4 GiB, which ends the module.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: Cell::new(limit) }
    }

    /// A reservation, empty at first, for one request or one round of synchronization.
    pub(crate) fn reserve(&self) -> Reservation<'_> {
        Reservation { budget: self, taken: Cell::new(0), exceeded: Cell::new(false) }
    }
}

/// Bytes that one request has taken from a [`Budget`]. Dropping the reservation gives them back.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    budget: &'a Budget,
    taken: Cell<usize>,
    /// Whether the budget had too few bytes left for a response.
    exceeded: Cell<bool>,
}

impl Reservation<'_> {
    /// Takes this many bytes. Returns `false` if fewer are left, and remembers that.
    fn take(&self, bytes: usize) -> bool {
        let left = self.budget.left.get().checked_sub(bytes);
        match left {
            Some(left) => {
                self.budget.left.set(left);
                self.taken.set(self.taken.get() + bytes);
            }
            None => self.exceeded.set(true),
        }
        left.is_some()
    }

    /// Whether a response was not read because the budget had too few bytes left.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.left.set(self.budget.left.get() + self.taken.get());
    }
}

/// An upstream, reached through a function of `pkg/exchange.js`. The function takes a request body and whether it is for
/// synchronization, and returns a promise that is never rejected. The promise resolves to the bytes of the response; or to a
/// text, the reason why there are none; or to a number, the seconds of a pause that the upstream asks for (NaN if it gives
/// no time).
#[derive(Debug)]
pub(crate) struct JsUpstream {
    exchange: Function,
    /// Most requests in one exchange.
    batch: usize,
    /// The JSON-RPC id of the next request. Ids are never reused, so that a transport may have several exchanges on one connection.
    next_id: Cell<u64>,
    /// The queue of exchanges for requests of callers.
    of_callers: Rc<ExchangeQueue>,
    /// The queue of exchanges of synchronization, which never wait for those of callers.
    following: Rc<ExchangeQueue>,
}

impl JsUpstream {
    /// An upstream that gets at most `batch` requests in one exchange.
    pub(crate) fn new(exchange: Function, batch: usize) -> Self {
        let (of_callers, following) = (Rc::default(), Rc::default());
        Self { exchange, batch, next_id: Cell::new(1), of_callers, following }
    }

    /// Sends requests. Returns one response for each, in the same order. `following` marks requests of synchronization. Once
    /// the budget is exceeded, no more requests are sent.
    pub(crate) async fn ask(
        &self,
        requests: &[UpstreamRequest],
        following: bool,
        reservation: &Reservation<'_>,
    ) -> Vec<UpstreamResponse> {
        // Synchronization with each upstream has a budget of its own, so an upstream that exceeds it is at fault. Other requests or other
        // upstreams may have used up the budget of callers: no upstream is to blame, and the unread responses are requested again.
        let unread = || Err(if following { too_large() } else { RequestFailure::BudgetUsedUp });
        let batches = RefCell::new(requests.chunks(self.batch).enumerate());
        let responses = RefCell::new(requests.iter().map(|_| unread()).collect::<Vec<_>>());
        // Each of these loops sends the next batch once its last one is answered, so that exchanges of other callers run between two batches.
        let send_batches = async || {
            loop {
                let Some((position, batch)) = batches.borrow_mut().next() else { return };
                let read = self.exchange(batch, following, reservation).await;
                let first = position.saturating_mul(self.batch);
                for (slot, response) in responses.borrow_mut().iter_mut().skip(first).zip(read) {
                    *slot = response;
                }
            }
        };
        let parallel = requests.len().div_ceil(self.batch).min(PARALLEL);
        all((0..parallel).map(|_| Box::pin(send_batches()) as LocalBoxed<'_>).collect()).await;
        responses.into_inner()
    }

    /// Sends one batch when the queue permits it. Returns no responses if the budget has too few bytes left for them.
    async fn exchange(
        &self,
        batch: &[UpstreamRequest],
        following: bool,
        reservation: &Reservation<'_>,
    ) -> Vec<UpstreamResponse> {
        let queue = if following { &self.following } else { &self.of_callers };
        let permit = queue.enter().await;
        if reservation.is_exceeded() {
            return Vec::new();
        }
        let id = self.next_id.get();
        self.next_id.set(id + batch.len() as u64);
        let body = encode_batch(batch, id).into();
        let outcome = match self.exchange.call2(&JsValue::NULL, &body, &following.into()) {
            Ok(promise) => {
                let promise = Promise::resolve(&promise);
                let mut running = RunningExchange { promise: promise.clone(), permit: Some(permit) };
                let outcome = JsFuture::from(promise).await;
                running.permit = None;
                outcome
            }
            failed => failed,
        };
        receive(&outcome.unwrap_or_default(), id, batch.len(), reservation)
    }
}

/// An exchange that JavaScript runs. It keeps its permit until it ends, also if the future that waits for its outcome is dropped.
struct RunningExchange {
    promise: Promise,
    permit: Option<Permit>,
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        let (promise, Some(permit)) = (self.promise.clone(), self.permit.take()) else { return };
        spawn_local(async move {
            let _ = JsFuture::from(promise).await;
            drop(permit);
        });
    }
}

/// The failure of a request whose response is longer than [`MAX_RESPONSE_BYTES`], or than the budget of synchronization allows.
fn too_large() -> RequestFailure {
    RequestFailure::Transport("longer than an honest response".into())
}

/// Decodes the outcome of an exchange into responses; returns none if the budget has too few bytes left for them.
fn receive(outcome: &JsValue, id: u64, count: usize, reservation: &Reservation<'_>) -> Vec<UpstreamResponse> {
    let failure = if let Some(seconds) = outcome.as_f64() {
        RequestFailure::Busy { seconds: (!seconds.is_nan()).then_some(seconds as u64) }
    } else if outcome.is_object() {
        // Not checked with `instanceof`: the bytes may come from another frame of the page, whose class `Uint8Array` is another object.
        let bytes: &Uint8Array = outcome.unchecked_ref();
        let length = bytes.length() as usize;
        if length <= MAX_RESPONSE_BYTES.saturating_mul(count) {
            return match reservation.take(length) {
                true => decode_batch(&bytes.to_vec(), id, count),
                false => Vec::new(),
            };
        }
        too_large()
    } else {
        RequestFailure::Transport(outcome.as_string().unwrap_or_default())
    };
    (0..count).map(|_| Err(failure.clone())).collect()
}
