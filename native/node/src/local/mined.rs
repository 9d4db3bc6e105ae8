//! Waits for the blocks of transactions whose callers ask for the receipt (EIP-7966).

use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{Message, RpcError};
use rootlight_server::methods::dispatcher;
use rootlight_server::service::ReservedReply;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

const METHODS: [&str; 2] = ["eth_sendRawTransactionSync", "eth_sendTransactionSync"];
/// How long a caller waits that does not say it, as EIP-7966 recommends.
const DEFAULT: Duration = Duration::from_secs(2);
/// How long a caller may wait: two blocks of a chain that mines as mainnet does would take longer.
const MOST: Duration = Duration::from_secs(30);
/// The code of a transaction that can be mined and is in no block yet.
const NOT_MINED: i32 = 4;

/// A block that the caller of a message waits for.
pub(super) struct Awaited {
    /// The id of the message.
    id: Id,
    deadline: Instant,
    /// Tells of blocks.
    changes: watch::Receiver<u64>,
}

impl Awaited {
    /// The block of the transaction that a message sends; `None` if it asks for no receipt. A time that is no number, zero or
    /// too long is the default, as EIP-7966 demands. To be called before the message is answered.
    pub(super) fn of(message: &Message, changes: &watch::Sender<u64>) -> Option<Self> {
        let entry = message.single()?;
        let call = entry.call.as_ref().ok()?;
        call.row.filter(|row| METHODS.contains(&row.name))?;
        let given = call.params.get(1).and_then(|raw| milliseconds(raw.get()));
        let patience = given.filter(|given| !given.is_zero() && *given <= MOST).unwrap_or(DEFAULT);
        Some(Self { id: entry.id.clone(), deadline: Instant::now() + patience, changes: changes.subscribe() })
    }

    /// Waits until a block has the transaction that the answered message has sent. `answer` answers one message.
    pub(super) async fn after<'a>(
        mut self,
        answered: BoxFuture<'a, ReservedReply>,
        answer: impl Fn(Message) -> BoxFuture<'a, ReservedReply>,
    ) -> ReservedReply {
        let sent = answered.await;
        let Some(question) = receipt_of(&sent, &self.id) else { return sent };
        while let Ok(Ok(())) = timeout_at(self.deadline, self.changes.changed()).await {
            let reply = answer(Message::read(question.as_bytes(), dispatcher(), 1)).await;
            if is_found(&reply) {
                return reply;
            }
        }
        sent
    }
}

/// The time that a caller gives.
fn milliseconds(raw: &str) -> Option<Duration> {
    let text = raw.trim_matches('"');
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().map(Duration::from_millis)
}

/// The question for the receipt of a transaction that waits, with the id of the first message.
fn receipt_of(sent: &ReservedReply, id: &Id) -> Option<String> {
    let (_, RpcError::Host { code: NOT_MINED, data: Some(hash), .. }) = sent.reply.as_ref()?.failed()? else {
        return None;
    };
    let id = id.as_json();
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getTransactionReceipt","params":["{hash}"]}}"#))
}

fn is_found(reply: &ReservedReply) -> bool {
    let responses = reply.reply.as_ref().map_or(&[][..], |reply| reply.responses());
    responses.iter().any(|response| response.outcome.as_ref().is_ok_and(|found| found.get() != "null"))
}
