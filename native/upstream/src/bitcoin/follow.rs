//! Reads the whole chain of one source.

use rootlight::consensus::bitcoin::{BitcoinChain, BitcoinInserted};

use super::source::{BitcoinSource, MAX_HEADERS};

/// Most requests for headers: half a million headers, which is more than any checkpoint is old.
const MAX_REQUESTS: usize = 256;

/// Adds what a source shows above the tip of a chain, up to its own. `now` is in seconds since 1970.
///
/// # Errors
/// Why the source's headers are not those above the tip, in words.
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
