//! Bitcoin's headers and coinbases, as Rootlights give them to each other, and coinbases as a client stores them.

use rootlight::consensus::bitcoin::{BitcoinChain, BitcoinNetwork, double_sha256, pack_headers};
use rootlight::light::bitcoin::{BitcoinFollower, decode_bitcoin_headers, decode_coinbases};

use crate::header_batch::base64;
use crate::input::Input;
use crate::limit::with_limit;

/// First byte: how many headers or coinbases are asked for. Then the bytes of a result.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (most, bytes) = (usize::from(input.byte()), input.rest());
    let text = base64(bytes);
    with_limit(data.len(), || {
        if let Ok(read) = decode_bitcoin_headers(&text, most as u32) {
            assert!(read.headers.len() <= most);
            let heights = [read.lowest.to_be_bytes(), read.tip.to_be_bytes()].concat();
            assert_eq!([heights, pack_headers(read.headers)].concat(), bytes);
        }
        if let Ok(read) = decode_coinbases(&text, most) {
            let lengths = read.iter().flatten().map(|proof| proof.coinbase.len() + proof.branch.len());
            assert!(read.len() <= most && lengths.sum::<usize>() <= bytes.len());
        }
    });
    check_stored(bytes.get(..100_000).unwrap_or(bytes));
}

/// Bytes in the place of stored coinbases leave the chain behind them usable.
fn check_stored(bytes: &[u8]) {
    let mut stored = [&[3], &(bytes.len() as u32).to_le_bytes()[..], &[0; 4], bytes].concat();
    let sum = double_sha256(&stored);
    stored.extend_from_slice(&sum[..8]);
    stored.append(&mut BitcoinChain::new(BitcoinNetwork::REGTEST).stored());
    let follower = BitcoinFollower::restore(BitcoinNetwork::REGTEST, &stored, 2_000_000_000);
    assert!(follower.expect("the chain is not damaged").coinbases().is_empty());
}
