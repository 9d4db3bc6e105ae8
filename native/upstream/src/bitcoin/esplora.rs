//! A client of Esplora's HTTP interface (of block explorers) for Bitcoin's headers. Each response has the fields of ten blocks, from
//! which the 80 bytes of each header are rebuilt.

use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::Url;
use rootlight::consensus::bitcoin::{BitcoinHeader, HEADER_LEN};
use rootlight::types::B256;
use rootlight_limits::budget::Reservation;
use serde::Deserialize;

use super::hex::shown_hash;
use crate::UpstreamError;
use crate::http::{client, retry_after};
use crate::source_quota::{BudgetUsedUp, ReceivedBytes, SourceQuota, bytes_to_reserve};
use crate::words::{self, describe};

/// Blocks of one response.
const PAGE: u32 = 10;

/// Longest response with blocks, in bytes. The responses of public servers have 5,000 bytes, and up to 30,000 with further
/// members.
const PAGE_BYTES: usize = 128 * 1024;

/// Longest response with a height, in bytes.
const TIP_BYTES: usize = 64;

/// Number of requests of one call that are sent at the same time. Public servers refuse more than a few.
const AT_ONCE: usize = 3;

/// A server of Esplora's interface.
pub(super) struct Esplora {
    base: Url,
    client: reqwest::Client,
    /// Time limit for each request.
    limit: Duration,
    quota: SourceQuota,
}

/// A block of a response: its hash (`id`), its height, and the fields of its header.
#[derive(Deserialize)]
struct Block {
    id: String,
    height: u32,
    /// Some servers show the version as a signed number.
    version: i64,
    timestamp: u32,
    bits: u32,
    nonce: u32,
    merkle_root: String,
    #[serde(default)]
    previousblockhash: Option<String>,
}

impl Esplora {
    pub(super) fn new(base: &Url, limit: Duration, quota: SourceQuota) -> Result<Self, String> {
        Ok(Self { base: base.clone(), client: client(limit)?, limit, quota })
    }

    pub(super) async fn tip(&self) -> Result<u32, UpstreamError> {
        let body = self.get("blocks/tip/height", TIP_BYTES).await?;
        let tip = body.read(|text| std::str::from_utf8(text).ok()?.trim().parse().ok()).await?;
        tip.ok_or_else(|| malformed("the height of the newest block is not a number"))
    }

    /// Headers from a height on, as far as the chain goes. `count` is not 0 (`BitcoinSource::headers`).
    pub(super) async fn headers(
        &self,
        from: u32,
        count: u32,
    ) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        // A height above the newest block has no page.
        let last = self.tip().await?.min(from.saturating_add(count - 1));
        let mut pages = Vec::new();
        let mut first = from;
        while first <= last {
            let end = first.saturating_add(PAGE - 1).min(last);
            pages.push((first, end));
            let Some(next) = end.checked_add(1) else { break };
            first = next;
        }
        let pages = stream::iter(pages).map(|(first, end)| self.page(first, end)).buffered(AT_ONCE);
        pages.try_concat().await
    }

    /// The headers of at most [`PAGE`] heights.
    async fn page(&self, first: u32, last: u32) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        let body = self.get(&format!("blocks/{last}"), PAGE_BYTES).await?;
        body.read(move |bytes| read_page(bytes, first, last)).await?.map_err(malformed)
    }

    /// Sends one request, and reads a response of at most `longest` bytes after decompression.
    async fn get(&self, path: &str, longest: usize) -> Result<ReceivedBytes, UpstreamError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        let reserved = self.quota.reserve_when_free(bytes_to_reserve(longest)).await?;
        let sent = self.client.get(url).send().await;
        let mut response = sent.map_err(|failure| self.transport(failure))?;
        let status = response.status();
        if !status.is_success() {
            let status = status.as_u16();
            return Err(match retry_after(response.headers()) {
                Some(pause) => UpstreamError::Busy { status, seconds: pause.as_secs() },
                None => UpstreamError::Status(status),
            });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|failure| self.transport(failure))? {
            if bytes.len().saturating_add(chunk.len()) > longest {
                return Err(UpstreamError::TooLarge(longest));
            }
            bytes.extend_from_slice(&chunk);
        }
        self.admit(bytes, reserved)
    }

    /// Counts a whole response in the quota.
    fn admit(&self, bytes: Vec<u8>, reserved: Reservation) -> Result<ReceivedBytes, UpstreamError> {
        self.quota.admit(bytes, reserved).map_err(|BudgetUsedUp| UpstreamError::BudgetUsedUp)
    }

    /// The error of a request that got no response.
    fn transport(&self, failure: reqwest::Error) -> UpstreamError {
        if failure.is_timeout() {
            return UpstreamError::Timeout(self.limit.as_millis());
        }
        let is_open = !failure.is_connect();
        // The URL may contain a key.
        let failure = failure.without_url();
        UpstreamError::Transport(if is_open { describe(&failure) } else { words::unopened(&failure) })
    }
}

fn malformed(reason: impl Into<String>) -> UpstreamError {
    UpstreamError::Malformed(reason.into())
}

/// The headers of the heights from `first` to `last`, ascending. The response has the newest block first, and may go on below
/// `first`; these blocks are left out.
fn read_page(bytes: &[u8], first: u32, last: u32) -> Result<Vec<[u8; HEADER_LEN]>, &'static str> {
    let blocks: Vec<Block> = serde_json::from_slice(bytes).map_err(|_| "not a list of blocks")?;
    let mut headers = Vec::new();
    for (height, block) in (first..=last).rev().zip(&blocks) {
        if block.height != height {
            return Err("a block has another height than was asked for");
        }
        headers.push(header(block).ok_or("the fields of a block are not those of its header")?);
    }
    if headers.len() as u64 != u64::from(last - first) + 1 {
        return Err("fewer blocks than were asked for");
    }
    headers.reverse();
    Ok(headers)
}

/// The 80 bytes of a header; `None` if their hash is not the block's hash.
fn header(block: &Block) -> Option<[u8; HEADER_LEN]> {
    let version = u32::try_from(block.version)
        .ok()
        .or_else(|| i32::try_from(block.version).ok().map(i32::cast_unsigned))?;
    let previous = match &block.previousblockhash {
        Some(hash) => shown_hash(hash)?,
        None => B256::ZERO,
    };
    let root = shown_hash(&block.merkle_root)?;
    let fields = version.to_le_bytes().into_iter().chain(previous.0).chain(root.0);
    let numbers = [block.timestamp, block.bits, block.nonce];
    let fields = fields.chain(numbers.into_iter().flat_map(u32::to_le_bytes));
    let mut header = [0; HEADER_LEN];
    header.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    (BitcoinHeader::from(&header).hash() == shown_hash(&block.id)?).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Block 0 of Bitcoin's regtest.
    fn genesis() -> Value {
        json!({
            "id": "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
            "height": 0, "version": 1, "timestamp": 1_296_688_602, "tx_count": 1, "size": 285, "weight": 1140,
            "merkle_root": "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",
            "previousblockhash": null, "mediantime": 1_296_688_602, "nonce": 2, "bits": 545_259_519,
            "difficulty": 4.656542373906925e-10,
        })
    }

    fn read(blocks: &Value, first: u32, last: u32) -> Result<Vec<[u8; HEADER_LEN]>, &'static str> {
        read_page(blocks.to_string().as_bytes(), first, last)
    }

    #[test]
    fn the_fields_of_a_block_give_its_header() {
        let headers = read(&json!([genesis()]), 0, 0).unwrap();
        let id = shown_hash(genesis()["id"].as_str().unwrap()).unwrap();
        assert_eq!(headers.iter().map(|header| BitcoinHeader::from(header).hash()).collect::<Vec<_>>(), [id]);
        assert_eq!(headers[0][68..76], [0xda, 0xe5, 0x49, 0x4d, 0xff, 0xff, 0x7f, 0x20]);
    }

    #[test]
    fn a_signed_version_is_read() {
        let mut block: Block = serde_json::from_value(genesis()).unwrap();
        for (version, bytes) in
            [(0xffff_0000_i64, true), (-65_536, true), (1 << 32, false), (i64::MIN, false)]
        {
            block.version = version;
            // With another version the header has another hash, so that this test sees only whether the version is in range.
            block.id.clear();
            assert_eq!(header(&block), None);
            let read =
                u32::try_from(version).ok().or_else(|| i32::try_from(version).ok().map(i32::cast_unsigned));
            assert_eq!(read, bytes.then_some(0xffff_0000), "{version}");
        }
    }

    #[test]
    fn pages_that_are_not_what_was_asked_for_are_refused() {
        let changed = |name: &str, value: Value| {
            let mut block = genesis();
            block[name] = value;
            read(&json!([block]), 0, 0)
        };
        assert_eq!(changed("height", json!(1)), Err("a block has another height than was asked for"));
        assert_eq!(read(&json!([]), 0, 0), Err("fewer blocks than were asked for"));
        assert_eq!(read(&json!([genesis()]), 0, 1), Err("a block has another height than was asked for"));
        let fields = Err("the fields of a block are not those of its header");
        assert_eq!(changed("nonce", json!(3)), fields);
        assert_eq!(changed("version", json!(1_u64 << 32)), fields);
        assert_eq!(changed("merkle_root", json!("x")), fields);
        assert_eq!(changed("previousblockhash", json!("00")), fields);
        let list = Err("not a list of blocks");
        for (name, value) in [
            ("nonce", json!(1_u64 << 32)),
            ("bits", json!("207fffff")),
            ("timestamp", json!(-1)),
            ("timestamp", json!(1e300)),
            ("height", json!(null)),
            ("id", json!([])),
        ] {
            assert_eq!(changed(name, value), list);
        }
        for text in ["", "{}", "[1]", "nonsense", "[[[[", &"[".repeat(PAGE_BYTES)] {
            assert_eq!(read_page(text.as_bytes(), 0, 0), list);
        }
        let deep = format!(r#"[{{"extras":{}}}]"#, "[".repeat(100_000));
        assert_eq!(read_page(deep.as_bytes(), 0, 0), list);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400), first: u32, more in 0u32..10) {
            let _ = read_page(&bytes, first, first.saturating_add(more));
        }

        #[test]
        fn a_changed_page_never_gives_another_header(at in 0usize..600, value: u8) {
            let mut bytes = json!([genesis()]).to_string().into_bytes();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(headers) = read_page(&bytes, 0, 0) {
                prop_assert_eq!(&headers, &read(&json!([genesis()]), 0, 0).unwrap());
            }
        }
    }
}
