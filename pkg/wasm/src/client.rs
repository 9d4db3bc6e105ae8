//! The one object that JavaScript holds.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::config::Config;
use crate::driver::Driver;
use crate::host::Upstream;

/// A light client that answers JSON-RPC from verified data. What it throws are texts; `pkg/connect.js` makes errors of
/// them.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Client {
    driver: Rc<Driver>,
    closed: Rc<Cell<bool>>,
}

#[wasm_bindgen]
impl Client {
    /// A client that has not asked anything yet.
    ///
    /// `options` is JSON: `network`, `checkpoint`, `pollMillis`, `batch`, `minDepth`, `minWork`, `unproven`, `names`.
    /// Each of `exchanges` is as `pkg/exchange.js` makes them. `keep(first, pages)` is called with what to keep: pages
    /// from this number on, in place of all there were. `progress(start, head, target, rate, left)` is told how far the
    /// way to the head is.
    ///
    /// # Errors
    /// Which option is wrong, and why.
    #[wasm_bindgen(constructor)]
    pub fn new(
        options: &str,
        exchanges: Vec<Function>,
        keep: Function,
        progress: Option<Function>,
    ) -> Result<Client, String> {
        let config = Config::read(options)?;
        config.check(exchanges.len())?;
        let upstreams = exchanges.into_iter().map(|exchange| Upstream::new(exchange, config.batch));
        let driver = Driver::new(&config, upstreams.collect(), keep, progress);
        Ok(Self { driver: Rc::new(driver), closed: Rc::default() })
    }

    /// Begins taking back what `keep` was given in an earlier run, so many pages, before [`Self::start`]: each page that
    /// [`Self::wanted_page`] names goes to [`Self::restore`], until it names none; then comes [`Self::restored`]. May be begun
    /// again with fewer pages.
    pub fn restoring(&self, pages: u32) {
        self.driver.restoring(pages);
    }

    /// The page that is wanted next, by [`Self::restore`] or afterwards by [`Self::prove`].
    #[wasm_bindgen(js_name = wantedPage)]
    pub fn wanted_page(&self) -> Option<u32> {
        self.driver.wanted_page()
    }

    /// Takes back the wanted page. `false`: it does not hold; those before it may.
    pub fn restore(&self, page: &[u8]) -> bool {
        self.driver.restore(page)
    }

    /// All pages were given. Where they do not hold, the client starts from the checkpoint.
    pub fn restored(&self) {
        self.driver.restored();
    }

    /// Proves some more of what was taken back, for a few milliseconds: of the wanted page, where one is wanted. `false`:
    /// there is no more to do, or it did not hold and was forgotten.
    pub fn prove(&self, page: Option<Vec<u8>>) -> bool {
        self.driver.prove(page)
    }

    /// What `keep` was given from this page on was not kept: it is given it again, as far as it is still in memory.
    #[wasm_bindgen(js_name = keepAgain)]
    pub fn keep_again(&self, page: u32) {
        self.driver.keep_again(page);
    }

    /// Verifies the chain up to the upstreams' head, then follows it.
    ///
    /// # Errors
    /// Which header does not verify, and why.
    pub async fn start(&self) -> Result<(), String> {
        // What is needed is held by the future itself, so that JavaScript may drop the object meanwhile.
        let driver = self.driver.clone();
        for index in 0..driver.upstreams() {
            spawn_local(follow(driver.clone(), index, self.closed.clone()));
        }
        driver.reach_head().await
    }

    /// Answers a JSON-RPC message with a JSON-RPC answer.
    pub async fn request(&self, message: String) -> Option<String> {
        self.driver.answer(message.as_bytes()).await
    }

    /// Whether a request since the last call of this method may have caused events for subscribers: a transaction was sent.
    #[wasm_bindgen(js_name = takeChanged)]
    pub fn take_changed(&self) -> bool {
        self.driver.take_changed()
    }

    /// The upstream at this place says that there is something new.
    pub fn hint(&self, upstream: usize) {
        self.driver.hint(upstream);
    }

    /// Stops following the chain.
    pub fn close(&self) {
        self.closed.set(true);
    }
}

/// Follows an upstream until the client is closed.
async fn follow(driver: Rc<Driver>, index: usize, closed: Rc<Cell<bool>>) {
    driver.follow(index, || closed.get()).await;
}
