//! Reads the whole Bitcoin chain of one source above a checkpoint, and verifies its headers.

use rootlight::consensus::bitcoin::{BitcoinChain, BitcoinInserted};

use super::source::{BitcoinSource, MAX_HEADERS};

/// Most requests for headers: half a million headers, which are ten years of blocks, more than there are above a checkpoint.
const MAX_REQUESTS: usize = 256;

/// Adds the headers of a source above the tip of `chain`, up to the newest block of the source. `now` is in seconds since 1970.
///
/// # Errors
/// The source gave no headers, or headers that do not extend the chain. The text is the reason.
pub async fn follow(
    mut chain: BitcoinChain,
    source: &BitcoinSource,
    now: u64,
) -> Result<BitcoinChain, String> {
    for _ in 0..MAX_REQUESTS {
        let above = chain.tip().height.saturating_add(1);
        let headers = source.headers(above, MAX_HEADERS).await.map_err(|error| error.to_string())?;
        if headers.is_empty() {
            break;
        }
        for header in headers {
            let inserted = chain.insert(&header, now).map_err(|error| error.to_string())?;
            if inserted != BitcoinInserted::Extended {
                return Err("its headers do not follow from each other".into());
            }
        }
    }
    Ok(chain)
}
