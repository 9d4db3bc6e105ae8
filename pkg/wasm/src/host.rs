//! What the core asks of its host: an exchange with an upstream, waiting, the time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;

use js_sys::{Date, Function, Promise, Reflect, Uint8Array};
use rootlight::light::{decode_batch, encode_batch, Answer, CallFailure, Now, UpstreamCall};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Exchanges under way at the same time; browsers allow six connections to one host.
const PARALLEL: usize = 4;

/// Longest text taken over from a failed exchange, in characters.
const MAX_REASON: usize = 200;

#[wasm_bindgen]
extern "C" {
    /// Known to windows, workers and Node.js alike; the last returns an object, the others a number.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(work: &Function, milliseconds: f64) -> JsValue;
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
pub(crate) async fn sleep(seconds: f64) {
    let promise = Promise::new(&mut |resolve, _| {
        let timer = set_timeout(&resolve, seconds * 1000.0);
        if let Ok(unref) = Reflect::get(&timer, &"unref".into()) {
            if let Some(unref) = unref.dyn_ref::<Function>() {
                let _ = unref.call0(&timer);
            }
        }
    });
    let _ = JsFuture::from(promise).await;
}

/// An upstream behind a JavaScript function from a request body to a promise of the answer's bytes.
#[derive(Debug)]
pub(crate) struct Upstream {
    transport: Function,
    batch: usize,
    /// Ids never come twice, so that a transport may have several exchanges on one connection.
    next_id: Cell<u64>,
}

/// A batch that was sent: its first id, its size, the answer to come.
type Exchange = (u64, usize, Result<JsFuture, JsValue>);

impl Upstream {
    /// Asks at most `batch` questions in one exchange, at least one.
    pub(crate) fn new(transport: Function, batch: usize) -> Self {
        Self { transport, batch, next_id: Cell::new(1) }
    }

    /// Asks the questions, the first of them at once, even before the future is polled; the answers come in the same
    /// order, one each.
    pub(crate) fn ask<'a>(&'a self, calls: &'a [UpstreamCall]) -> impl Future<Output = Vec<Answer>> + 'a {
        let mut batches = calls.chunks(self.batch);
        let first: Vec<Exchange> = batches.by_ref().take(PARALLEL).map(|batch| self.send(batch)).collect();
        let mut under_way = VecDeque::from(first);
        async move {
            let mut answers = Vec::with_capacity(calls.len());
            while let Some((id, count, exchange)) = under_way.pop_front() {
                answers.extend(receive(exchange, id, count).await);
                under_way.extend(batches.next().map(|batch| self.send(batch)));
            }
            answers
        }
    }

    /// Starts an exchange.
    fn send(&self, batch: &[UpstreamCall]) -> Exchange {
        let id = self.next_id.get();
        self.next_id.set(id + batch.len() as u64);
        let body = encode_batch(batch, id);
        let promise = self.transport.call1(&JsValue::NULL, &body.into());
        (id, batch.len(), promise.map(|promise| JsFuture::from(Promise::resolve(&promise))))
    }
}

async fn receive(exchange: Result<JsFuture, JsValue>, id: u64, count: usize) -> Vec<Answer> {
    let outcome = match exchange {
        Ok(future) => future.await,
        Err(error) => Err(error),
    };
    let failure = match outcome {
        Ok(value) => match value.dyn_into::<Uint8Array>() {
            Ok(bytes) => return decode_batch(&bytes.to_vec(), id, count),
            Err(_) => CallFailure::Transport("the transport gave no Uint8Array".into()),
        },
        Err(error) => failure(&error),
    };
    (0..count).map(|_| Err(failure.clone())).collect()
}

/// What a transport threw: with a `retryAfter` (seconds, or null where they are not known) the upstream asks for a pause.
fn failure(error: &JsValue) -> CallFailure {
    match Reflect::get(error, &"retryAfter".into()) {
        Ok(pause) if !pause.is_undefined() => {
            CallFailure::Busy { seconds: pause.as_f64().map(|seconds| seconds as u64) }
        }
        _ => CallFailure::Transport(reason(error)),
    }
}

/// A thrown value in words.
fn reason(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|m| m.as_string());
    let text = message.or_else(|| error.as_string()).unwrap_or_else(|| "unknown failure".into());
    text.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect()
}
