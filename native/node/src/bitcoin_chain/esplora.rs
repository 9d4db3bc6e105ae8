//! Esplora's HTTP interface: the paths that light clients read headers by.

use std::sync::Arc;

use alloy_primitives::B256;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rootlight::consensus::bitcoin::{BitcoinHeader, HEADER_LEN, reversed};
use serde_json::{Value, json};

use super::chain::RegtestChain;
use super::coinbase::TRANSACTIONS;

/// Most blocks of one response, as in Esplora.
const PAGE: u32 = 10;

/// The routes of the interface.
pub(super) fn router(chain: Arc<RegtestChain>) -> Router {
    Router::new()
        .route("/blocks/tip/height", get(tip_height))
        .route("/blocks/tip/hash", get(tip_hash))
        .route("/blocks", get(newest))
        .route("/blocks/{height}", get(page))
        .with_state(chain)
}

async fn tip_height(State(chain): State<Arc<RegtestChain>>) -> Response {
    readable_by_pages(chain.tip().height.to_string())
}

async fn tip_hash(State(chain): State<Arc<RegtestChain>>) -> Response {
    readable_by_pages(hash_text(&chain.tip().hash))
}

async fn newest(State(chain): State<Arc<RegtestChain>>) -> Response {
    readable_by_pages(blocks(&chain, chain.tip().height))
}

async fn page(State(chain): State<Arc<RegtestChain>>, Path(height): Path<String>) -> Response {
    match height.parse() {
        Ok(height) if height <= chain.tip().height => readable_by_pages(blocks(&chain, height)),
        Ok(_) => (StatusCode::NOT_FOUND, "Block not found").into_response(),
        Err(_) => (StatusCode::BAD_REQUEST, "Invalid height").into_response(),
    }
}

/// A response that web pages of any origin may read, as those of public servers.
fn readable_by_pages(body: impl IntoResponse) -> Response {
    ([(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], body).into_response()
}

/// The block at a height and those below it, the newest first.
fn blocks(chain: &RegtestChain, height: u32) -> impl IntoResponse + use<> {
    let first = height.saturating_sub(PAGE - 1);
    let headers = chain.headers(first, PAGE.min(height + 1) as usize);
    let heights = (first..).zip(headers);
    let mut blocks: Vec<Value> = heights.map(|(height, header)| block(chain, height, &header)).collect();
    blocks.reverse();
    ([(header::CONTENT_TYPE, "application/json")], Value::from(blocks).to_string())
}

/// A block as Esplora shows it.
fn block(chain: &RegtestChain, height: u32, header: &[u8; HEADER_LEN]) -> Value {
    let read = BitcoinHeader::from(header);
    // The field of four bytes at an offset of the header: 0 is the version, 72 the target (nBits), 76 the nonce.
    let number = |at: usize| {
        let bytes = header.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let previous = (height > 0).then(|| hash_text(&read.previous()));
    json!({
        "id": hash_text(&read.hash()),
        "height": height,
        "version": number(0),
        "timestamp": read.time(),
        "tx_count": if height == 0 { 1 } else { TRANSACTIONS },
        "merkle_root": hash_text(&read.merkle_root()),
        "previousblockhash": previous,
        "mediantime": chain.median_time(height),
        "nonce": number(76),
        "bits": number(72),
        // The difficulty of regtest's target.
        "difficulty": 4.656_542_373_906_925e-10,
    })
}

/// A hash as Bitcoin shows it: in reverse byte order, without `0x`.
pub(super) fn hash_text(hash: &B256) -> String {
    format!("{:x}", reversed(hash))
}

#[cfg(test)]
mod tests {
    use rootlight::dev::{BitcoinBlocks, SimulatedBitcoin as _};

    use super::*;

    #[test]
    fn a_block_has_as_many_transactions_as_its_merkle_tree() {
        let chain = RegtestChain::new(1);
        chain.mine(&BitcoinBlocks { commitments: vec![None], parent: None, time: 1_800_000_000 }).unwrap();
        for (height, header) in (0..).zip(chain.headers(0, 2)) {
            let levels = chain.coinbase(height).unwrap().branch.len();
            assert_eq!(block(&chain, height, &header)["tx_count"], 1_u32 << levels);
        }
    }
}
