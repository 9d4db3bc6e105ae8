//! The light client as an object for JavaScript.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use js_sys::Function;
use rootlight::rpc::Caller;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{future_to_promise, spawn_local};

use crate::config::Config;
use crate::driver::{Driver, FirstRun};
use crate::host::JsUpstream;

/// A light client that answers JSON-RPC from verified data. Its errors are strings, which `pkg/connect.js` turns into
/// errors.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Client {
    driver: Rc<Driver>,
    closed: Rc<Cell<bool>>,
}

#[wasm_bindgen]
impl Client {
    /// Makes a client that has not sent any request yet.
    ///
    /// `options` has `network`, `checkpoint`, `pollMillis`, `batch`, `batchLimit`, `minDepth`, `maxAge`, `minWork`, `unproven`,
    /// `names`. Each of `exchanges` is a function that `pkg/exchange.js` makes. `keep(first, pages, record, bitcoin)` is called with pages to
    /// store (`Uint8Array`s): they replace all stored pages from number `first` on. `record` is stored with the pages of a window, and
    /// undefined otherwise.
    /// `bitcoin` is Bitcoin's chain to store beside `record`, and undefined while the stored chain is still good enough.
    /// `progress(start, head, target, rate, left)` is called during the first synchronization, with the numbers of the block at which the
    /// client starts, of the newest verified block and of the upstreams' newest block, headers per second, and seconds left or null.
    ///
    /// # Errors
    /// The option that is wrong, and why.
    #[wasm_bindgen(constructor)]
    pub fn new(
        options: &JsValue,
        exchanges: Vec<Function>,
        keep: Function,
        progress: Option<Function>,
    ) -> Result<Client, String> {
        let config = Config::read(options)?;
        config.check(exchanges.len())?;
        let upstreams = exchanges.into_iter().map(|exchange| JsUpstream::new(exchange, config.batch));
        let driver = Driver::new(&config, upstreams.collect(), keep, progress);
        Ok(Self { driver: Rc::new(driver), closed: Rc::default() })
    }

    /// Whether the client starts by window, so that it stores other pages than above a checkpoint.
    #[wasm_bindgen(js_name = isByWindow)]
    pub fn is_by_window(&self) -> bool {
        self.driver.is_by_window()
    }

    /// Begins to restore `pages` pages, with their record, that an earlier run passed to `keep`, before [`Self::start`]. The host passes
    /// each page that [`Self::wanted_page`] names to [`Self::restore`], until no page is wanted, and then calls [`Self::restored`]. The
    /// host may begin again with fewer pages.
    pub fn restoring(&self, pages: u32, record: Option<Vec<u8>>) {
        self.driver.restoring(pages, record.as_deref());
    }

    /// Restores Bitcoin's chain, which an earlier run passed to `keep` as `bitcoin`, before [`Self::start`]. Bytes that are no such chain
    /// are ignored.
    #[wasm_bindgen(js_name = restoreBitcoin)]
    pub fn restore_bitcoin(&self, stored: &[u8]) {
        self.driver.restore_bitcoin(stored);
    }

    /// The number of the page that [`Self::restore`], or later [`Self::prove`], needs next; `None` if it needs none.
    #[wasm_bindgen(js_name = wantedPage)]
    pub fn wanted_page(&self) -> Option<u32> {
        self.driver.wanted_page()
    }

    /// Restores the page that [`Self::wanted_page`] names. Returns `false` if the page is invalid; the pages before it
    /// may be valid.
    pub fn restore(&self, page: &[u8]) -> bool {
        self.driver.restore(page)
    }

    /// Ends restoring. If the pages are invalid, the client starts from the checkpoint.
    pub fn restored(&self) {
        self.driver.finish_restore();
    }

    /// Proves some more of the restored headers, for a few milliseconds. `page` is the page that
    /// [`Self::wanted_page`] names, if it names one. Returns `false` if nothing is left to prove, or if the headers were
    /// invalid and are forgotten.
    pub fn prove(&self, page: Option<Vec<u8>>) -> bool {
        self.driver.prove(page)
    }

    /// Passes the pages from this number on to `keep` again, as far as they are still in memory. The host did not store them, because
    /// another client was the writer of the store.
    #[wasm_bindgen(js_name = keepAgain)]
    pub fn keep_again(&self, page: u32) {
        self.driver.store_again(page);
    }

    /// Verifies the chain up to the upstreams' head, then follows it.
    ///
    /// # Errors
    /// The header that does not verify, and why.
    pub async fn start(&self) -> Result<(), String> {
        // The future owns everything that it needs, so that JavaScript may drop the object meanwhile.
        let (driver, closed) = (self.driver.clone(), self.closed.clone());
        for index in 0..driver.upstreams() {
            spawn_local(follow(driver.clone(), index, self.closed.clone()));
        }
        driver.reach_head(|| closed.get()).await
    }

    /// Answers a JSON-RPC message with a text, or with `undefined` if the message needs no answer: at once if nothing has
    /// to be fetched, otherwise with a promise. Before that `on_filter(id, is_made, is_subscription)` is called for each filter or
    /// subscription that the message has made or ended.
    pub fn request(&self, message: &str, on_filter: Option<Function>) -> JsValue {
        self.answer(self.own(), message, on_filter)
    }

    /// Called when the upstream at this index announces a new block.
    pub fn hint(&self, upstream: usize) {
        self.driver.hint(upstream);
    }

    /// Asks all upstreams for new blocks soon, also those that are paused after a failure. The host calls this when the network is back.
    pub fn wake(&self) {
        self.driver.wake();
    }

    /// Stops the loops that follow the chain, each at the end of its current step.
    pub fn close(&self) {
        self.closed.set(true);
    }
}

impl Client {
    /// The caller that the provider itself is: a page or a program in this process, which may call every method.
    pub(crate) fn own(&self) -> Arc<Caller> {
        self.driver.caller()
    }

    /// Answers a message of a caller, as [`Self::request`] does.
    pub(crate) fn answer(&self, caller: Arc<Caller>, message: &str, on_filter: Option<Function>) -> JsValue {
        match self.driver.begin(caller, message.as_bytes(), on_filter.as_ref()) {
            FirstRun::Done(answer) => answer.into(),
            FirstRun::Fetches(session, round) => {
                let driver = self.driver.clone();
                let rest = async move { Ok(driver.finish(session, round, on_filter.as_ref()).await.into()) };
                future_to_promise(rest).into()
            }
        }
    }
}

/// Follows an upstream until the client is closed.
pub(crate) async fn follow(driver: Rc<Driver>, index: usize, closed: Rc<Cell<bool>>) {
    driver.follow(index, || closed.get()).await;
}
