//! Verifies one header by itself: its hash, its merged-mining proof of work, and the rules that need no other block.
//!
//!     cargo run --example verify_header
//!     cargo run --example verify_header -- mainnet 0xf9...   (header RLP with its three merged-mining fields)

use rootlight::consensus::{HeaderCandidate, Network, VerifiedHeader};
use rootlight::types::HeaderForm;
use serde_json::json;

mod common;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (network, rlp) = match (arguments.next(), arguments.next()) {
        (Some(network), Some(rlp)) => (Network::by_name(&network).ok_or("unknown network")?, decode(&rlp)?),
        _ => (Network::clone(&common::ExampleNode::network()), mined()?),
    };

    let header = VerifiedHeader::alone(HeaderCandidate::decode(&rlp, &network)?, &network)?;
    println!("block {} has the hash {} and its proof of work", header.number, header.hash());

    // The same header with another state root: the work was done for another hash.
    let mut forged = HeaderCandidate::decode(&rlp, &network)?.into_header().into_header();
    forged.state_root.0[0] ^= 1;
    let refused =
        VerifiedHeader::alone(HeaderCandidate::decode(&forged.encode(HeaderForm::Full), &network)?, &network);
    println!("with another state root: {}", refused.expect_err("a forged header is refused"));
    Ok(())
}

/// A header that a development chain has just mined.
fn mined() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut node = common::ExampleNode::start();
    let mined = node.request("evm_mine", &json!([]));
    mined.map_err(|error| error.to_string())?;
    let headers = node.request("rootlight_getHeaders", &json!(["0x1", "0x1"]));
    let batch = headers.map_err(|error| error.to_string())?;
    let network = common::ExampleNode::network();
    let headers = rootlight::light::decode_headers(batch.as_str().ok_or("text")?, 1, &network)?;
    Ok(headers.into_iter().next().ok_or("a header")?.0.header().encode(HeaderForm::Full))
}

fn decode(text: &str) -> Result<Vec<u8>, hex::FromHexError> {
    hex::decode(text.trim_start_matches("0x"))
}
