//! Methods that send a transaction and answer with its receipt (EIP-7966): waits until a block has the transaction.

use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{Message, Response, RpcError};
use rootlight_server::methods::dispatcher;
use rootlight_server::service::ReservedReply;
use serde_json::value::to_raw_value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The parameter with the time in milliseconds, which only methods that wait for a receipt have.
const TIMEOUT: &str = "timeout";
/// The waiting time of a caller that names none, as EIP-7966 recommends.
const DEFAULT_WAIT: Duration = Duration::from_secs(2);
/// The longest waiting time that a caller may name. It is below the time of two blocks of mainnet.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The error code of EIP-7966 for a transaction that can be mined and is in no block yet.
const NOT_MINED: i32 = 4;

/// A block that the caller of a message waits for.
pub(super) struct Awaited {
    /// The id of the message.
    id: Id,
    deadline: Instant,
    /// Changes with each new block.
    changes: watch::Receiver<u64>,
}

impl Awaited {
    /// The block of the transaction that a message sends; `None` if the message asks for no receipt. In place of a time that is
    /// no number, zero or too long, the default counts, as EIP-7966 demands. To be called before the message is answered.
    pub(super) fn of(message: &Message, changes: &watch::Sender<u64>) -> Option<Self> {
        let entry = message.single()?;
        let call = entry.call.as_ref().ok()?;
        let position = call.row?.params.iter().position(|param| param.name == TIMEOUT)?;
        let given = call.params.get(position).and_then(|raw| milliseconds(raw.get()));
        let patience = given.filter(|given| !given.is_zero() && *given <= MAX_WAIT).unwrap_or(DEFAULT_WAIT);
        Some(Self { id: entry.id.clone(), deadline: Instant::now() + patience, changes: changes.subscribe() })
    }

    /// Waits until a block has the transaction that the answered message has sent. `answer` answers one message.
    pub(super) async fn after<'a>(
        mut self,
        answered: BoxFuture<'a, ReservedReply>,
        answer: impl Fn(Message) -> BoxFuture<'a, ReservedReply>,
    ) -> ReservedReply {
        let sent = answered.await;
        let Some(question) = receipt_question(&sent) else { return sent };
        while let Ok(Ok(())) = timeout_at(self.deadline, self.changes.changed()).await {
            let mut reply = answer(question.clone()).await;
            if let Some(receipt) = receipt(&mut reply) {
                receipt.id = self.id;
                return reply;
            }
        }
        sent
    }
}

/// The waiting time in a parameter: a number, or a string with a decimal or `0x` number.
fn milliseconds(raw: &str) -> Option<Duration> {
    let text = raw.trim_matches('"');
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().map(Duration::from_millis)
}

/// The request for the receipt of a transaction that is in no block yet; `None` if the transaction does not wait for a block.
fn receipt_question(sent: &ReservedReply) -> Option<Message> {
    let (_, RpcError::Host { code: NOT_MINED, data: Some(hash), .. }) = sent.reply.as_ref()?.failed()? else {
        return None;
    };
    Some(Message::of_host("eth_getTransactionReceipt", vec![to_raw_value(hash).ok()?], dispatcher()))
}

/// The response with a receipt, if the transaction is in a block.
fn receipt(reply: &mut ReservedReply) -> Option<&mut Response> {
    let response = reply.reply.as_mut()?.responses_mut().first_mut()?;
    let is_found = response.outcome.as_ref().is_ok_and(|found| found.get() != "null");
    is_found.then_some(response)
}
