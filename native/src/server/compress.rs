//! Compression of answers (gzip).

use std::io::Write as _;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::shared::Shared;
use crate::priority::{self, SHORT_JSON};
use crate::runs::Size;
use crate::service::Peer;

/// The shortest body that is compressed. Shorter ones fit into one packet anyway, and preparing a compressor takes longer
/// (50 us) than most look-ups; bodies below about 110 bytes would even grow.
pub(super) const LEAST_BYTES: usize = 1024;

/// The number of bytes compressed between two pauses: well under a millisecond.
const PIECE: usize = 16 * 1024;

/// Whether a client accepts gzip: `Accept-Encoding` names it, or `*`, with a quality other than 0 (RFC 9110,
/// 12.5.3).
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut any = false;
    for coding in values.flat_map(|value| value.split(',')) {
        let (name, parameter) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = parameter.trim().strip_prefix("q=").and_then(|text| text.trim().parse::<f32>().ok());
        let taken = quality.is_none_or(|quality| quality > 0.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") => return taken,
            "*" => any = taken,
            _ => {}
        }
    }
    any
}

/// Compresses a body. A long one waits for its turn and is compressed on a thread of lower priority, because
/// ten MiB take some tenths of a second. Returns the plain body as the error if the system has no thread for it.
pub(super) async fn gzip(shared: &Shared, peer: Peer, plain: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    if plain.len() <= SHORT_JSON {
        return Ok(compressed(&plain));
    }
    let place = shared.compressions.enter(peer, Size::Single).await;
    let plain = Arc::new(plain);
    let source = plain.clone();
    let compressing = priority::run_last(move || {
        let _place = place;
        compressed(&source)
    });
    match compressing.await {
        Some(compressed) => Ok(compressed),
        None => Err(Arc::unwrap_or_clone(plain)),
    }
}

fn compressed(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for piece in plain.chunks(PIECE) {
        priority::pause();
        // Writing to memory does not fail.
        let _ = encoder.write_all(piece);
    }
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_if_named_with_a_quality_above_zero() {
        for (text, accepted) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5, br", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0, *", false),
            ("*", true),
            ("*;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, text.parse().unwrap());
            assert_eq!(is_accepted(&headers), accepted, "{text}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }

    #[test]
    fn a_compressed_body_is_the_same_afterwards() {
        use std::io::Read as _;
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|number| (number % 977).to_be_bytes()).collect();
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&compressed(&plain)[..]).read_to_end(&mut read).unwrap();
        assert!(read == plain);
    }
}
