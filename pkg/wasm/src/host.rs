//! What the core asks of its host: an exchange with an upstream, waiting, the time.

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
}

impl Upstream {
    /// Asks at most `batch` questions in one exchange.
    pub(crate) fn new(transport: Function, batch: usize) -> Self {
        Self { transport, batch: batch.max(1) }
    }

    /// Asks the questions; the answers come in the same order, one each.
    pub(crate) async fn ask(&self, calls: &[UpstreamCall]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(calls.len());
        let batches: Vec<&[UpstreamCall]> = calls.chunks(self.batch).collect();
        for wave in batches.chunks(PARALLEL) {
            let under_way: Vec<_> = wave.iter().map(|batch| self.send(batch)).collect();
            for (batch, exchange) in wave.iter().zip(under_way) {
                answers.extend(receive(exchange, batch.len()).await);
            }
        }
        answers
    }

    /// Starts an exchange.
    fn send(&self, batch: &[UpstreamCall]) -> Result<JsFuture, JsValue> {
        let body = encode_batch(batch, FIRST_ID);
        let promise = self.transport.call1(&JsValue::NULL, &body.into())?;
        Ok(JsFuture::from(Promise::resolve(&promise)))
    }
}

/// Ids count within one exchange, so they need not differ between exchanges.
const FIRST_ID: u64 = 1;

async fn receive(exchange: Result<JsFuture, JsValue>, count: usize) -> Vec<Answer> {
    let outcome = match exchange {
        Ok(future) => future.await,
        Err(error) => Err(error),
    };
    let failure = match outcome {
        Ok(value) => match value.dyn_into::<Uint8Array>() {
            Ok(bytes) => return decode_batch(&bytes.to_vec(), FIRST_ID, count),
            Err(_) => CallFailure::Transport("the transport gave no Uint8Array".into()),
        },
        Err(error) => CallFailure::Transport(reason(&error)),
    };
    (0..count).map(|_| Err(failure.clone())).collect()
}

/// A thrown value in words.
fn reason(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|m| m.as_string());
    let text = message.or_else(|| error.as_string()).unwrap_or_else(|| "unknown failure".into());
    text.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect()
}
