//! Transactions of this program's clients, handed to an upstream again until it shows them mined.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use alloy_primitives::hex;
use rootlight::light::UpstreamCall;
use rootlight::types::B256;

use super::convert::ask;
use super::shared::Shared;
use crate::upstream::SharedUpstream;

/// Time between two looks at what was sent; a pool that has dropped a transaction gets it again.
const INTERVAL: Duration = Duration::from_secs(30);

/// How often one transaction is handed to an upstream again: for an hour.
const MOST: u32 = 120;

/// What one upstream is reminded of.
#[derive(Default)]
pub(super) struct Outbox {
    last: Option<Instant>,
    /// Reminders by transaction; more than allowed where it is mined.
    reminders: HashMap<B256, u32>,
}

impl Outbox {
    /// Sends again what the upstream does not show as mined, once per interval.
    ///
    /// That it says so ends only its own reminders: it could have dropped them as well.
    pub(super) async fn resend(&mut self, client: &Shared, upstream: &SharedUpstream) {
        if self.last.get_or_insert_with(Instant::now).elapsed() < INTERVAL {
            return;
        }
        self.last = Some(Instant::now());
        let sent = client.sent();
        self.reminders.retain(|hash, _| sent.iter().any(|transaction| transaction.hash() == *hash));
        for transaction in sent {
            let reminders = self.reminders.entry(transaction.hash()).or_default();
            if *reminders >= MOST {
                continue;
            }
            *reminders += 1;
            let receipt =
                UpstreamCall::new("eth_getTransactionReceipt", format!(r#"["{}"]"#, transaction.hash()));
            let mined = ask(upstream, vec![receipt]).await.pop();
            if matches!(&mined, Some(Ok(raw)) if raw.get() != "null") {
                *reminders = MOST;
                continue;
            }
            let raw = format!(r#"["{}"]"#, hex::encode_prefixed(transaction.encode()));
            // What it has against it is told to whoever asks for the transaction.
            ask(upstream, vec![UpstreamCall::new("eth_sendRawTransaction", raw)]).await;
        }
    }
}
