//! A client of Electrum's protocol (JSON-RPC of wallets' servers), versions 1.4 to 1.6, for headers and coinbases.

use std::collections::HashMap;
use std::time::Duration;

use rootlight::consensus::bitcoin::{HEADER_LEN, MAX_COINBASE_LEN};
use rootlight::light::{RawResponse, UpstreamRequest};
use rootlight::types::B256;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::coinbase::RawCoinbase;
use super::electrum_link::{Endpoint, Link};
use super::hex::{bytes_of, shown_hash};
use crate::result_of;
use crate::source_quota::SourceQuota;
use crate::{UpstreamError, UpstreamResult};

/// The parameters of `server.version`, which a client sends first: its name, and the lowest and highest version that it speaks.
const VERSION: &str = concat!(r#"["rootlight "#, env!("CARGO_PKG_VERSION"), r#"",["1.4","1.6"]]"#);

/// Most bytes that a server may send in answer to one call of this source: 144 coinbases of usual length are 0.3 MB.
const CALL_BYTES: usize = 8 * 1024 * 1024;

/// Most messages that a call skips because they answer none of its requests, such as notices of new blocks since the last
/// call.
const STRAYS: usize = 256;

/// Longest Merkle branch, in hashes: no block has more transactions than a tree of this depth has leaves.
const MAX_BRANCH: usize = 30;

/// A server of Electrum's protocol. One call at a time uses the connection, which stays open between calls.
pub(super) struct Electrum {
    endpoint: Endpoint,
    /// Time limit for each exchange with the server.
    limit: Duration,
    quota: SourceQuota,
    /// The open connection; `None` before the first call, during a call, and after one that failed.
    session: Mutex<Option<Session>>,
}

/// A connection whose version is agreed.
struct Session {
    link: Link,
    /// The id of the next request.
    next: u64,
}

/// The newest block.
#[derive(Deserialize)]
struct Tip {
    height: u32,
}

/// Headers in hexadecimal: in one text, or since version 1.6 in a list.
#[derive(Deserialize)]
struct Headers {
    #[serde(default)]
    hex: Option<String>,
    #[serde(default)]
    headers: Option<Vec<String>>,
}

/// The transaction at a position of a block, and the siblings on its path in the Merkle tree.
#[derive(Deserialize)]
struct Position {
    tx_hash: String,
    merkle: Vec<String>,
}

impl Electrum {
    pub(super) fn new(endpoint: Endpoint, limit: Duration, quota: SourceQuota) -> Self {
        Self { endpoint, limit, quota, session: Mutex::default() }
    }

    pub(super) async fn tip(&self) -> Result<u32, UpstreamError> {
        let tip: Tip = self.ask_one("blockchain.headers.subscribe", "[]".into()).await?;
        Ok(tip.height)
    }

    pub(super) async fn headers(
        &self,
        from: u32,
        count: u32,
    ) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        let headers: Headers = self.ask_one("blockchain.block.headers", format!("[{from},{count}]")).await?;
        headers.decode(count as usize).map_err(malformed)
    }

    /// The coinbases of the blocks at these heights: first the hash and branch of each block's first transaction, then the
    /// transactions. Blocks whose coinbase fails are left out; if all fail, the last error is returned.
    pub(super) async fn coinbases(&self, heights: &[u32]) -> Result<Vec<RawCoinbase>, UpstreamError> {
        let request = |height: &u32| {
            UpstreamRequest::new("blockchain.transaction.id_from_pos", format!("[{height},0,true]"))
        };
        let positions = self.ask(heights.iter().map(request).collect()).await?;
        let mut failure = None;
        let mut found = Vec::new();
        for (height, result) in heights.iter().zip(positions) {
            match parse(result).and_then(|position: Position| position.decode().map_err(malformed)) {
                Ok((hash, branch)) => found.push((*height, hash, branch)),
                Err(error) => failure = Some(error),
            }
        }
        let transactions =
            self.ask(found.iter().map(|(_, hash, _)| transaction_request(hash)).collect()).await?;
        let mut coinbases = Vec::new();
        for ((height, _, branch), result) in found.into_iter().zip(transactions) {
            match parse(result).and_then(|text: String| transaction(&text).map_err(malformed)) {
                Ok(transaction) => coinbases.push(RawCoinbase::whole(height, transaction, &branch)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if coinbases.is_empty() => Err(error),
            _ => Ok(coinbases),
        }
    }

    /// Sends one request and parses its result.
    async fn ask_one<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: String,
    ) -> Result<T, UpstreamError> {
        let results = self.ask(vec![UpstreamRequest::new(method, params)]).await?;
        parse(results.into_iter().next().unwrap_or_else(|| Err(malformed("no response"))))
    }

    /// Sends requests without waiting in between, and returns their results in the same order. The server may have closed a
    /// connection that was open before; then the requests are sent once more over a new one.
    async fn ask(&self, requests: Vec<UpstreamRequest>) -> Result<Vec<UpstreamResult>, UpstreamError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut current = self.session.lock().await;
        // A call that fails or is dropped leaves no connection behind, because responses may still come through it.
        if let Some(session) = current.take() {
            match self.exchange(session, &requests).await {
                Err(UpstreamError::Transport(_)) => {}
                Ok((session, results)) => {
                    *current = Some(session);
                    return Ok(results);
                }
                Err(error) => return Err(error),
            }
        }
        let session = self.within(Session::open(&self.endpoint, &self.quota)).await?;
        let (session, results) = self.exchange(session, &requests).await?;
        *current = Some(session);
        Ok(results)
    }

    /// Sends requests over a connection, and returns the connection for the next call.
    async fn exchange(
        &self,
        mut session: Session,
        requests: &[UpstreamRequest],
    ) -> Result<(Session, Vec<UpstreamResult>), UpstreamError> {
        let results = self.within(session.ask(requests, &self.quota)).await?;
        Ok((session, results))
    }

    /// Ends an exchange after the time limit.
    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        timeout(self.limit, call).await.unwrap_or(Err(UpstreamError::Timeout(self.limit.as_millis())))
    }
}

impl Session {
    /// Opens a connection and agrees on a version.
    async fn open(endpoint: &Endpoint, quota: &SourceQuota) -> Result<Self, UpstreamError> {
        let mut session = Self { link: Link::open(endpoint, quota).await?, next: 0 };
        let version = UpstreamRequest::new("server.version", VERSION.into());
        for result in session.ask(&[version], quota).await? {
            result?;
        }
        Ok(session)
    }

    /// Sends requests, and reads messages until each has a result.
    async fn ask(
        &mut self,
        requests: &[UpstreamRequest],
        quota: &SourceQuota,
    ) -> Result<Vec<UpstreamResult>, UpstreamError> {
        let first = self.next;
        self.next += requests.len() as u64;
        let texts = requests.iter().zip(first..).map(|(request, id)| request.to_json(id)).collect();
        self.link.send(texts).await?;
        let mut results = HashMap::new();
        let (mut bytes, mut strays) = (0_usize, 0);
        while results.len() < requests.len() {
            let message = self.link.next(quota).await?;
            if let Some(message) = message {
                bytes = bytes.saturating_add(message.len());
                if bytes > CALL_BYTES {
                    return Err(UpstreamError::TooLarge(CALL_BYTES));
                }
                let (id, result) = message.read(read_message).await??;
                let index = id.and_then(|id| id.checked_sub(first)).filter(|id| *id < requests.len() as u64);
                if let Some(index) = index
                    && !results.contains_key(&index)
                {
                    results.insert(index, result);
                    continue;
                }
                // An error without an id may be that of any request, so that it ends the call.
                if let (None, Err(error @ UpstreamError::Rpc { .. })) = (id, result) {
                    return Err(error);
                }
            }
            strays += 1;
            if strays > STRAYS {
                return Err(malformed("too many messages that were not asked for"));
            }
        }
        let missing = || Err(malformed("no response"));
        Ok((0..requests.len() as u64).map(|index| results.remove(&index).unwrap_or_else(missing)).collect())
    }
}

impl Headers {
    /// The headers of 80 bytes, at most `count`.
    fn decode(self, count: usize) -> Result<Vec<[u8; HEADER_LEN]>, &'static str> {
        let text = match (self.hex, self.headers) {
            (Some(text), None) => text,
            (None, Some(list)) => {
                if list.iter().any(|header| header.len() != 2 * HEADER_LEN) {
                    return Err("a header does not have 80 bytes");
                }
                list.concat()
            }
            (None, None) => return Err("the response has neither `hex` nor `headers`"),
            (Some(_), Some(_)) => return Err("the response has both `hex` and `headers`"),
        };
        if text.len() > count.saturating_mul(2 * HEADER_LEN) {
            return Err("more headers than were asked for");
        }
        let bytes = bytes_of(&text).ok_or("the headers are not hexadecimal")?;
        match bytes.as_chunks::<HEADER_LEN>() {
            (headers, []) => Ok(headers.to_vec()),
            _ => Err("the headers do not have 80 bytes each"),
        }
    }
}

impl Position {
    /// The transaction's hash and its Merkle branch, in internal byte order.
    fn decode(&self) -> Result<(B256, Vec<B256>), &'static str> {
        if self.merkle.len() > MAX_BRANCH {
            return Err("the branch is deeper than that of any block");
        }
        let hash = shown_hash(&self.tx_hash).ok_or("the transaction's hash is not a hash")?;
        let branch: Option<_> = self.merkle.iter().map(|sibling| shown_hash(sibling)).collect();
        Ok((hash, branch.ok_or("a hash of the branch is not a hash")?))
    }
}

/// The request for the transaction with this hash, in internal byte order.
fn transaction_request(hash: &B256) -> UpstreamRequest {
    let mut shown = *hash;
    shown.reverse();
    let params = format!(r#"["{}"]"#, alloy_primitives::hex::encode(shown));
    UpstreamRequest::new("blockchain.transaction.get", params)
}

/// The bytes of a transaction. The check of its proof shows whether the transaction has the hash that the server stated.
fn transaction(text: &str) -> Result<Vec<u8>, &'static str> {
    if text.len() > 2 * MAX_COINBASE_LEN {
        return Err("the coinbase is longer than any that is read");
    }
    bytes_of(text).ok_or("the coinbase is not hexadecimal")
}

/// Reads a message: the id that it answers, and the result.
fn read_message(bytes: &[u8]) -> Result<(Option<u64>, UpstreamResult), UpstreamError> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("not UTF-8"))?;
    let response = RawResponse::read(text)?;
    Ok((response.id(), result_of(response)))
}

/// Parses the result of a request.
fn parse<T: DeserializeOwned>(result: UpstreamResult) -> Result<T, UpstreamError> {
    serde_json::from_str(result?.get())
        .map_err(|_| malformed("the result has another form than the protocol's"))
}

fn malformed(reason: &str) -> UpstreamError {
    UpstreamError::Malformed(reason.into())
}

#[cfg(test)]
#[path = "electrum_test.rs"]
mod tests;
