//! The one object that JavaScript holds.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::config::Config;
use crate::driver::Driver;
use crate::failure::{failure, DISCONNECTED, INTERNAL, INVALID_REQUEST};
use crate::host::Upstream;
use crate::request::{message, result};

/// A light client that answers JSON-RPC from verified data.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Client {
    driver: Rc<Driver>,
    closed: Rc<Cell<bool>>,
}

#[wasm_bindgen]
impl Client {
    /// Verifies the chain from the checkpoint to the upstream's head, then follows it.
    ///
    /// `options` is JSON: `network`, `checkpoint`, `pollMillis`, `batch`, `minDepth`, `minWork`, `unproven`, `names`.
    /// Each of `transports` takes a request body and returns a promise of the answer's bytes.
    ///
    /// `kept` are pages that `keep` was given in an earlier run, in order from 0; what does not hold is ignored as a
    /// whole. `keep(first, pages)` is called with what to keep: pages from this number on, in place of all there were.
    /// `progress(start, head, target, rate, left)` is told how far the way to the head is.
    ///
    /// # Errors
    /// An `Error` that says which option is wrong, or which header does not verify and why.
    pub async fn connect(
        options: String,
        transports: Vec<Function>,
        kept: Option<Array>,
        keep: Function,
        progress: Option<Function>,
    ) -> Result<Client, JsValue> {
        let config = Config::read(&options).map_err(|reason| failure(INVALID_REQUEST, &reason))?;
        config.check(transports.len()).map_err(|reason| failure(INVALID_REQUEST, &reason))?;
        let upstreams = transports.into_iter().map(|transport| Upstream::new(transport, config.batch));
        let driver = Driver::new(&config, upstreams.collect(), keep, progress);
        if let Some(kept) = kept {
            driver.restore(&kept);
        }
        let driver = Rc::new(driver);
        let client = Self { driver, closed: Rc::default() };
        for index in 0..client.driver.upstreams() {
            spawn_local(follow(client.driver.clone(), index, client.closed.clone()));
        }
        if let Err(reason) = client.driver.reach_head().await {
            client.close();
            return Err(failure(DISCONNECTED, &reason));
        }
        Ok(client)
    }

    /// EIP-1193: answers `{method, params}`.
    ///
    /// # Errors
    /// An `Error` with `code` and, where there is one, `data`.
    pub async fn request(&self, call: JsValue) -> Result<JsValue, JsValue> {
        // What is needed is held by the future itself, so that JavaScript may drop the object meanwhile.
        if self.closed.get() {
            return Err(failure(DISCONNECTED, "the client is closed"));
        }
        let message = message(&call)?;
        let reply = self.driver.answer(message.as_bytes()).await;
        let reply = reply.ok_or_else(|| failure(INTERNAL, "no answer"))?;
        result(&reply.body)
    }

    /// The upstream at this place says that there is something new.
    pub fn hint(&self, upstream: usize) {
        self.driver.hint(upstream);
    }

    /// Stops following the chain; requests fail from then on.
    pub fn close(&self) {
        self.closed.set(true);
    }
}

/// Follows an upstream until the client is closed.
async fn follow(driver: Rc<Driver>, index: usize, closed: Rc<Cell<bool>>) {
    driver.follow(index, || closed.get()).await;
}
