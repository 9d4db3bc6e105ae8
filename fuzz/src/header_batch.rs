//! Headers in binary, as `rootlight_getHeaders` gives them.

use rootlight::consensus::Network;
use rootlight::light::{decode_headers, encode_headers};
use rootlight::types::{Header, SealedHeader};

use crate::input::Input;
use crate::limit::with_limit;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A byte of LZ4 stands for at most 255 of the list, of which the limit allows for one.
const EXPANSION: usize = 255;

/// First byte: the network and how many headers are asked for. Then the LZ4 block.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (choice, block) = (usize::from(input.byte()), input.rest());
    let network = [Network::mainnet, Network::testnet, Network::regtest][choice % 3]();
    let most = choice / 3;
    with_limit(data.len() * EXPANSION, || check_batch(&text(block), most, &network));
}

fn check_batch(text: &str, most: usize, network: &Network) {
    let Ok(read) = decode_headers(text, most, network) else { return };
    assert!(read.len() <= most);
    let headers: Vec<(&Header, Option<Vec<SealedHeader>>)> = read
        .iter()
        .map(|(header, uncles)| {
            let uncles = uncles.as_ref().map(|all| all.iter().cloned().map(Header::seal).collect());
            (header.header().header(), uncles)
        })
        .collect();
    for ((header, _), (candidate, _)) in headers.iter().zip(&read) {
        assert_eq!(header.hash(), candidate.header().hash());
        assert_eq!(&header.hash_for_merged_mining(), candidate.mining_hash());
    }
    let written = encode_headers(headers.iter().map(|(header, uncles)| (*header, uncles.as_deref())));
    assert_eq!(decode_headers(&written, most, network).as_ref(), Ok(&read));
}

/// Base64 of the form and the block.
fn text(block: &[u8]) -> String {
    base64(&[&[1], block].concat())
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0u32, |bits, (place, byte)| bits | u32::from(*byte) << (16 - 8 * place));
        let digits = (0..4).map(|place| char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
        text.extend(digits.take(chunk.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    text
}
