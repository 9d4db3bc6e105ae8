//! Compression of answers over HTTP (Brotli and gzip), and which coding a client prefers.

use std::io::Write;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{LongWork, Pauses, SHORT_JSON};
use rootlight_limits::runs::{RunQueue, Size};

/// The shortest body that is compressed. Shorter ones fit into one packet anyway, and preparing a compressor takes longer
/// (50 us) than most look-ups; bodies below about 110 bytes would even grow.
pub(super) const LEAST_BYTES: usize = 1024;

/// The number of bytes compressed between two pauses: well under a millisecond.
const PIECE: usize = 16 * 1024;

/// Effort of Brotli, from 0 to 11. At 2 it takes less time than gzip and makes shorter answers: 256 KiB of logs take 1.2 ms
/// and become 27.8 kB (gzip: 3.7 ms and 30.2 kB). At 5 it takes three times as long and saves nothing.
const BROTLI_QUALITY: u32 = 2;
/// Base-2 logarithm of Brotli's window in bytes: 256 KiB. A compressor takes a few times as much memory.
const BROTLI_WINDOW: u32 = 18;

/// A coding of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// The name in the headers `Accept-Encoding` and `Content-Encoding`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The coding that a client prefers: the one that `Accept-Encoding` names with the higher quality other than 0, of equal
/// ones Brotli; gzip if only `*` is named (RFC 9110, 12.5.3).
pub(super) fn preferred(headers: &HeaderMap) -> Option<Coding> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut any, mut brotli, mut gzip) = (0.0, None, None);
    for coding in values.flat_map(|value| value.split(',')) {
        let (name, parameter) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = parameter.trim().strip_prefix("q=").and_then(|text| text.trim().parse::<f32>().ok());
        let quality = quality.unwrap_or(1.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("br") => brotli = Some(quality),
            name if name.eq_ignore_ascii_case("gzip") => gzip = Some(quality),
            "*" => any = quality,
            _ => {}
        }
    }
    let (brotli, gzip) = (brotli.unwrap_or(0.0), gzip.unwrap_or(any));
    if brotli > 0.0 && brotli >= gzip {
        return Some(Coding::Brotli);
    }
    (gzip > 0.0).then_some(Coding::Gzip)
}

/// Compresses a body. A long one waits for its turn among `compressions` and is compressed on a thread of lower priority,
/// because ten MiB take some tenths of a second. Returns the plain body as the error if the system has no thread for it.
pub(super) async fn encode(
    coding: Coding,
    (compressions, work): (&Arc<RunQueue>, &Arc<LongWork>),
    caller_id: CallerId,
    plain: Vec<u8>,
) -> Result<Vec<u8>, Vec<u8>> {
    if plain.len() <= SHORT_JSON {
        return Ok(compressed(coding, &plain, &work.pauses()));
    }
    let permit = compressions.enter(caller_id, Size::Single).await;
    let plain = Arc::new(plain);
    let source = plain.clone();
    let compressing = work.run_last(move |pauses| {
        let _permit = permit;
        compressed(coding, &source, pauses)
    });
    match compressing.await {
        Some(compressed) => Ok(compressed),
        None => Err(Arc::unwrap_or_clone(plain)),
    }
}

/// The compressed body.
fn compressed(coding: Coding, plain: &[u8], pauses: &Pauses<'_>) -> Vec<u8> {
    match coding {
        Coding::Brotli => {
            let mut encoder = CompressorWriter::new(Vec::new(), PIECE, BROTLI_QUALITY, BROTLI_WINDOW);
            write(&mut encoder, plain, pauses);
            encoder.into_inner()
        }
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            write(&mut encoder, plain, pauses);
            // Writing to memory does not fail.
            encoder.finish().unwrap_or_default()
        }
    }
}

/// Compresses a body in pieces, with pauses between them. Writing to memory does not fail.
fn write(encoder: &mut impl Write, plain: &[u8], pauses: &Pauses<'_>) {
    for piece in plain.chunks(PIECE) {
        pauses.pause();
        let _ = encoder.write_all(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_body_is_the_same_afterwards() {
        use std::io::Read as _;
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|number| (number % 977).to_be_bytes()).collect();
        for coding in [Coding::Brotli, Coding::Gzip] {
            let (short, mut read) = (compressed(coding, &plain, &LongWork::default().pauses()), Vec::new());
            match coding {
                Coding::Brotli => brotli::Decompressor::new(&short[..], PIECE).read_to_end(&mut read),
                Coding::Gzip => flate2::read::GzDecoder::new(&short[..]).read_to_end(&mut read),
            }
            .unwrap();
            assert!(read == plain && short.len() < plain.len() / 10, "{coding:?}: {} bytes", short.len());
        }
    }

    #[test]
    fn the_coding_named_with_the_higher_quality_above_zero_is_used() {
        use Coding::{Brotli, Gzip};
        for (text, accepted) in [
            ("gzip", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, BR;q=0.9", Some(Gzip)),
            ("deflate, GZIP;q=0.5", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip; q=0.0, *", None),
            ("gzip;q=0, br;q=0.1", Some(Brotli)),
            ("*", Some(Gzip)),
            ("*;q=0", None),
            ("br", Some(Brotli)),
            ("br;q=0", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, text.parse().unwrap());
            assert_eq!(preferred(&headers), accepted, "{text}");
        }
        assert_eq!(preferred(&HeaderMap::new()), None);
    }
}
