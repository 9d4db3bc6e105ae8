//! Answers to `eth_getLogs` that are too long for one text: a [`LogStream`] writes them piece by piece while the host sends them.

use alloc::{boxed::Box, string::String};

use serde_json::value::RawValue;

use super::{
    error::RpcError,
    logs::{filter_spec, log_json},
    params::Params,
    reply::Reply,
};
use crate::engine::{FilterSpec, LogBlocks, View};

/// Least bytes of a piece, except the last one. A piece is longer by one log at most, and takes well under a millisecond to
/// write.
const PIECE: usize = 128 * 1024;

/// The reply to a message, whole or as a stream.
#[derive(Debug)]
pub enum ReplyOrLogs {
    /// A whole reply.
    Reply(Reply),
    /// The stream of an answer that is longer than one text may be.
    Logs(LogStream),
}

/// The answer to one call of a method whose result is streamed ([`super::Method::streams`]). Only the logs of one piece are
/// formatted at a time.
pub struct LogStream {
    /// The text before the next log: first the start of the answer, then a comma.
    before: String,
    /// The blocks whose logs are not written yet.
    blocks: LogBlocks,
    /// Whether the last piece was returned.
    is_done: bool,
}

impl core::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LogStream").finish_non_exhaustive()
    }
}

impl LogStream {
    /// Opens the answer to a call for logs with these parameters; `start` is the answer up to the first log.
    /// Returns `None` if the answer is an error.
    pub(super) fn open(view: &dyn View, values: &[Box<RawValue>], start: String) -> Option<Self> {
        // The filter is the only parameter (from 1 to 1).
        let blocks = match filter_spec(view, 0, Params::new(values, 1, 1).ok()?).ok()? {
            FilterSpec::Logs { filter, from, to } => {
                LogBlocks::of_range(view, from, to.unwrap_or(u64::MAX), filter).ok()?
            }
            FilterSpec::BlockLogs { filter, block } => LogBlocks::of_block(view, block, filter).ok()?,
            FilterSpec::Blocks | FilterSpec::Heads | FilterSpec::Pending | FilterSpec::Syncing => {
                return None;
            }
        };
        Some(Self { before: start, blocks, is_done: false })
    }

    /// Approximate bytes of the next piece.
    pub fn next_bytes(&self) -> usize {
        self.blocks.next_bytes(PIECE)
    }

    /// The next piece of the answer; `None` after the last one.
    ///
    /// # Errors
    /// A log cannot be written as JSON, which is a defect.
    pub fn next_piece(&mut self) -> Result<Option<String>, RpcError> {
        if self.is_done {
            return Ok(None);
        }
        let mut text = String::new();
        for log in self.blocks.take_next(PIECE) {
            text.push_str(&self.before);
            // `false`: the block of the log is on the chain.
            text.push_str(&serde_json::to_string(&log_json(&log, false))?);
            self.before = ",".into();
        }
        if self.blocks.is_empty() {
            // Without any log, the start of the answer is not written yet. It is longer than the comma.
            if self.before.len() > 1 {
                text.push_str(&self.before);
            }
            text.push_str("]}");
            self.is_done = true;
        }
        Ok(Some(text))
    }
}

/// Whether the only call of a message failed because its logs are too long for one text. The engine limits the bytes of logs by an
/// estimate (`LogsTooLong`), the reply those of the text (`ResponseSize`).
pub(super) fn is_too_long(reply: &Reply) -> bool {
    let is_long =
        |error: &RpcError| matches!(error, RpcError::LogsTooLong { .. } | RpcError::ResponseSize(_));
    reply.failed().is_some_and(|(row, error)| row.streams && is_long(error))
}

#[cfg(all(test, feature = "dev"))]
mod tests {
    use alloy_primitives::B256;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        dev::{DevAccounts, DevConfig, Mining},
        engine::{DevNode, HostInput},
        rpc::LocalClient,
    };

    const MOMENT: HostInput = HostInput { now: 1_900_000_000, entropy: B256::repeat_byte(7) };

    fn call(client: &mut LocalClient, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let message = client.open(request.to_string().as_bytes());
        let text = client.answer(message, MOMENT, &|| false).into_text().unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["result"].clone()
    }

    /// A block with thousands of logs is cut within its logs, and no log is lost or repeated.
    #[test]
    fn pieces_are_short_however_many_logs_a_block_has() {
        let config = DevConfig { mining: Mining::Instant, ..DevConfig::new(&DevAccounts::default()) };
        let mut client = LocalClient::new(Box::new(DevNode::new(config, MOMENT).unwrap()));
        let emitter = "0x00000000000000000000000000000000000000aa";
        // Loop: PUSH1 0, PUSH1 0, LOG0; repeat while GAS > 3,000.
        call(&mut client, "anvil_setCode", json!([emitter, "0x5b60006000a0610bb85a1160005700"]));
        let from = call(&mut client, "eth_accounts", json!([]))[0].clone();
        let mut expected = Vec::new();
        for number in 1..=3 {
            call(
                &mut client,
                "eth_sendTransaction",
                json!([{ "from": from, "to": emitter, "gas": "0x5b8d80" }]),
            );
            let block = format!("{number:#x}");
            let logs = call(&mut client, "eth_getLogs", json!([{ "fromBlock": block, "toBlock": block }]));
            expected.extend(logs.as_array().unwrap().clone());
        }
        assert!(expected.len() > 30_000, "{}", expected.len());

        let request =
            json!({ "id": 1, "method": "eth_getLogs", "params": [{ "fromBlock": "0x1" }] }).to_string();
        let message = client.open(request.as_bytes());
        let ReplyOrLogs::Logs(mut logs) = message.read_or_stream(&*client.snapshot(), MOMENT.now, &|| false)
        else {
            panic!("the answer is not streamed")
        };
        let mut text = String::new();
        loop {
            let announced = logs.next_bytes();
            let Some(piece) = logs.next_piece().unwrap() else { break };
            // The bytes of a log are estimated from below.
            assert!(piece.len() < PIECE * 2 && piece.len() < announced * 2 + 100, "{} bytes", piece.len());
            text.push_str(&piece);
        }
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["result"], Value::from(expected));
    }
}
