//! What the core asks of its host: an exchange with an upstream, waiting, the time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;

use js_sys::{Date, Function, Promise, Uint8Array};
use rootlight::light::{Answer, CallFailure, Now, UpstreamCall, decode_batch, encode_batch};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Exchanges under way at the same time for one question, as many as `pkg/exchange.js` lets through.
const PARALLEL: usize = 4;

#[wasm_bindgen]
extern "C" {
    /// A promise that resolves after so many milliseconds, or at once when the client is closed. `pkg/instance.js` gives
    /// it to the module.
    #[wasm_bindgen(js_name = rootlightSleep)]
    fn host_sleep(milliseconds: f64) -> Promise;
}

/// The browser's only clock that workers and Node.js know too. It may be set back; a pause is then longer.
pub(crate) fn moment() -> Now {
    let millis = Date::now();
    Now { unix: (millis / 1000.0) as u64, millis: millis as u64 }
}

/// How long one step of a request may compute, in milliseconds: a page does nothing else meanwhile.
const STEP_TIME: f64 = 5_000.0;

/// The end of a step's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(f64);

impl Deadline {
    /// A step begins.
    pub(crate) fn start() -> Self {
        Self(Date::now() + STEP_TIME)
    }

    /// Whether the time is up.
    pub(crate) fn is_over(self) -> bool {
        Date::now() > self.0
    }
}

/// Waits, without keeping a Node.js process alive for it.
pub(crate) async fn sleep(milliseconds: f64) {
    let _ = JsFuture::from(host_sleep(milliseconds)).await;
}

/// The memory that answers of upstreams may take in one module, counted in bytes as they came.
///
/// A question of the caller's keeps all its answers until it is done, and many questions run at once: without a limit a
/// hostile upstream that pads its answers fills the module's 4 GiB, which ends the module.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
    limit: usize,
}

impl Budget {
    /// A budget of so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: Cell::new(limit), limit }
    }

    /// A share of it for one question or for one round of synchronization.
    pub(crate) fn share(&self) -> Share<'_> {
        Share { budget: self, held: Cell::new(0), refused: Cell::new(false) }
    }
}

/// What one question holds of the [`Budget`]; it is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    budget: &'a Budget,
    held: Cell<usize>,
    refused: Cell<bool>,
}

impl Share<'_> {
    /// Takes so many bytes, or remembers that they were more than were left.
    fn take(&self, bytes: usize) -> bool {
        let left = self.budget.left.get().checked_sub(bytes);
        match left {
            Some(left) => {
                self.budget.left.set(left);
                self.held.set(self.held.get() + bytes);
            }
            None => self.refused.set(true),
        }
        left.is_some()
    }

    /// Whether an answer was left unread because it was too large for what was left.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.refused.get()
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.left.set((self.budget.left.get() + self.held.get()).min(self.budget.limit));
    }
}

/// An upstream behind a function of `pkg/exchange.js`. It takes a request body and whether synchronization asks, and
/// returns a promise that is never rejected. The promise resolves to a function that hands over the answer's bytes, or
/// to a text that says why there are none, or to a number: the upstream asks for a pause of so many seconds, NaN where it
/// does not say how many.
#[derive(Debug)]
pub(crate) struct Upstream {
    exchange: Function,
    batch: usize,
    /// Ids never come twice, so that a transport may have several exchanges on one connection.
    next_id: Cell<u64>,
}

/// A batch that was sent: its first id, its size, the answer to come.
type Exchange = (u64, usize, Result<JsValue, JsValue>);

impl Upstream {
    /// Asks at most `batch` questions in one exchange, at least one.
    pub(crate) fn new(exchange: Function, batch: usize) -> Self {
        Self { exchange, batch, next_id: Cell::new(1) }
    }

    /// Asks the questions, the first of them at once, even before the future is polled; the answers come in the same
    /// order, one each. `following` says that synchronization asks, which never waits for questions of callers. Once the
    /// share is exceeded nothing more is asked.
    pub(crate) fn ask<'a>(
        &'a self,
        calls: &'a [UpstreamCall],
        following: bool,
        share: &'a Share<'a>,
    ) -> impl Future<Output = Vec<Answer>> + 'a {
        let mut batches = calls.chunks(self.batch).map(move |batch| self.send(batch, following));
        let mut under_way: VecDeque<Exchange> = batches.by_ref().take(PARALLEL).collect();
        async move {
            let mut answers = Vec::with_capacity(calls.len());
            while let Some((id, count, exchange)) = under_way.pop_front() {
                let outcome = match exchange {
                    Ok(promise) => JsFuture::from(Promise::resolve(&promise)).await,
                    failed => failed,
                };
                answers.extend(receive(outcome.unwrap_or_default(), id, count, share));
                if !share.is_exceeded() {
                    under_way.extend(batches.next());
                }
            }
            answers.resize(calls.len(), Err(too_large()));
            answers
        }
    }

    /// Starts an exchange.
    fn send(&self, batch: &[UpstreamCall], following: bool) -> Exchange {
        let id = self.next_id.get();
        self.next_id.set(id + batch.len() as u64);
        let body = encode_batch(batch, id);
        (id, batch.len(), self.exchange.call2(&JsValue::NULL, &body.into(), &following.into()))
    }
}

/// Nothing was read, or not even asked: see [`Budget`].
fn too_large() -> CallFailure {
    CallFailure::Transport("larger than what is left of the memory for answers".into())
}

/// The answers in what an exchange came to.
fn receive(outcome: JsValue, id: u64, count: usize, share: &Share<'_>) -> Vec<Answer> {
    let failure = match outcome.dyn_ref::<Function>() {
        Some(hand_over) => {
            let bytes = Uint8Array::from(hand_over.call0(&JsValue::NULL).unwrap_or_default());
            if share.take(bytes.length() as usize) {
                return decode_batch(&bytes.to_vec(), id, count);
            }
            too_large()
        }
        None => match outcome.as_f64() {
            Some(seconds) => CallFailure::Busy { seconds: (!seconds.is_nan()).then_some(seconds as u64) },
            None => CallFailure::Transport(outcome.as_string().unwrap_or_default()),
        },
    };
    (0..count).map(|_| Err(failure.clone())).collect()
}
