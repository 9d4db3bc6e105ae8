//! Bitcoin's headers and coinbases, as Rootlights give them to each other.

use rootlight::consensus::bitcoin::pack_headers;
use rootlight::light::bitcoin::{decode_bitcoin_headers, decode_coinbases};

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
}
