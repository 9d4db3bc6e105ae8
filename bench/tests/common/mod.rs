//! Header verification against its hashes in WebAssembly. The ratio is only reported, because a test must not
//! depend on time.

use rootlight_bench::headers::{HeaderRun, LIMIT};
use rootlight_bench::recordings::mainnet_headers;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_test::console_log;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds, with a fractional part.
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

pub(crate) fn report(place: &str) {
    let Some(run) = mainnet_headers().map(HeaderRun::new) else {
        console_log!("skipped: no recordings when this was built");
        return;
    };
    let what = format!("header verification to its hashes, {place}");
    console_log!("{}", run.ratio(&now, 30).report(&what, LIMIT));
    console_log!("{place}: {:.0} headers verified in a second", run.rate(&now, 60, 1_000.0));
}
