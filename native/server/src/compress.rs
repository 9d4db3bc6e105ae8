//! Compression of answers (Brotli and gzip).

use std::io::Write;
use std::sync::Arc;

use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{Pauses, SHORT_JSON};
use rootlight_limits::runs::Size;

use super::coding::Coding;
use super::server_state::ServerState;

/// The shortest body that is compressed. Shorter ones fit into one packet anyway, and preparing a compressor takes longer
/// (50 us) than most look-ups; bodies below about 110 bytes would even grow.
pub(super) const LEAST_BYTES: usize = 1024;

/// The number of bytes compressed between two pauses: well under a millisecond.
const PIECE: usize = 16 * 1024;

/// Effort of Brotli, from 0 to 11. At 2 it takes less time than gzip and makes shorter answers: 256 KiB of logs take 1.2 ms
/// and become 27.8 kB (gzip: 3.7 ms and 30.2 kB). At 5 it takes three times as long and saves nothing.
const BROTLI_QUALITY: u32 = 2;
/// Base-2 logarithm of Brotli's window in bytes. A compressor takes a few times as much memory.
const BROTLI_WINDOW: u32 = 18;

/// Compresses a body. A long one waits for its turn and is compressed on a thread of lower priority, because
/// ten MiB take some tenths of a second. Returns the plain body as the error if the system has no thread for it.
pub(super) async fn encode(
    coding: Coding,
    shared: &ServerState,
    caller_id: CallerId,
    plain: Vec<u8>,
) -> Result<Vec<u8>, Vec<u8>> {
    let work = shared.counts.limits.work();
    if plain.len() <= SHORT_JSON {
        return Ok(compressed(coding, &plain, &work.pauses()));
    }
    let permit = shared.compressions.enter(caller_id, Size::Single).await;
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
            encoder.finish().unwrap_or_default()
        }
    }
}

/// Compresses a body in pieces. Writing to memory does not fail.
fn write(encoder: &mut impl Write, plain: &[u8], pauses: &Pauses<'_>) {
    for piece in plain.chunks(PIECE) {
        pauses.pause();
        let _ = encoder.write_all(piece);
    }
}

#[cfg(test)]
mod tests {
    use rootlight_limits::priority::LongWork;

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
}
