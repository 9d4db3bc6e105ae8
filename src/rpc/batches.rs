//! `rootlight_getHeaders`: many headers in one response, for other light clients.

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::{
    method::{HandlerResult, Method, required, verified},
    params::Params,
};
use crate::{
    engine::{Stop, View, ViewResult, both},
    light::{MAX_BATCH_HEADERS, encode_headers},
};

pub(super) const METHODS: &[Method] = &[Method::read(
    "rootlight_getHeaders",
    &[required("first", "QUANTITY"), required("count", "QUANTITY")],
    "base64 of 0x01 and an LZ4 block of RLP [[header, [uncle, ...]], ...]",
    "Consecutive headers with merge-mining proofs and uncles, at most 256; fewer at the end of the chain.",
    headers,
)
.costs(100)];

fn headers(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let saturated = |value: U256| u64::try_from(value).unwrap_or(u64::MAX);
    let (first, count) = (saturated(params.number(0)?), saturated(params.number(1)?).min(MAX_BATCH_HEADERS));
    let mut found: ViewResult<Vec<_>> = Ok(Vec::new());
    for number in first..first.saturating_add(count) {
        let header = match view.header_by_number(number) {
            Ok(Some(header)) => header,
            Ok(None) => break,
            // The loop goes on after missing facts, so that one round fetches those of all headers.
            Err(stop) => {
                found = both(found, Err::<(), _>(stop)).map(|(found, ())| found);
                continue;
            }
        };
        // A header whose proof of work was never checked is not served, such as one below the checkpoint that is linked by its hash:
        // a receiver that finds it invalid would reject this client as an upstream.
        if !view.shows_work(&header) {
            break;
        }
        let uncles = view.uncles(&header);
        found = both(found, uncles).map(|(mut found, uncles)| {
            found.push((header, uncles));
            found
        });
        if let Err(Stop::Refused(_)) = found {
            break;
        }
    }
    let found = found?;
    verified(&encode_headers(found.iter().map(|(header, uncles)| (header.header(), Some(uncles.headers())))))
}
