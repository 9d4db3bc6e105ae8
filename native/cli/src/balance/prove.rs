//! Waits until the light client has verified the head, and asks it for the balance until the balance is proven.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::Address;
use rootlight_node::light::LightService;
use rootlight_server::service::Service as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::answer::{BalanceAnswer, NoBalance, ask_balance};
use super::args::BlockChoice;
use super::failure::MIN_BITCOIN_PREFIX;
use crate::service_call::ask;

/// Interval between two requests for the progress.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// For how long all sources may fail, without a new header, before the run ends. A run that discovers nodes
/// ([`Prover::finds_nodes`]) does not end, because other nodes replace those that fail.
const FAULT_PATIENCE: Duration = Duration::from_secs(5);

/// How often the balance is asked for before the run ends, unless the run discovers nodes.
const TRIES: u32 = 5;

/// Pause after a question that failed; the pause doubles up to [`LONGEST_PAUSE`]. A later question may succeed, because the
/// head moves, and nodes write the states of new blocks late.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause between two questions.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The balance to prove, and the sources of its proof.
pub(super) struct Prover<'a> {
    pub(super) service: &'a LightService,
    pub(super) account: Address,
    pub(super) block: BlockChoice,
    /// Whether the client discovers nodes of the peer-to-peer network, which replace nodes that fail.
    pub(super) finds_nodes: bool,
    /// Whether Bitcoin must support the chain.
    pub(super) demands_bitcoin: bool,
    /// Whether the flags demand blocks above the block of the question: Rootstock blocks (`--min-depth`), or Bitcoin blocks that
    /// commit to the question's block or to later ones (`--min-bitcoin` above 0).
    pub(super) demands_age: bool,
    /// Why the latest question was not answered.
    pub(super) refusal: Mutex<Option<String>>,
}

/// Why there is no balance. [`Prover::refusal`] has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unproven {
    /// All sources fail.
    Chain,
    /// No source proved the balance.
    State,
    /// The verified chain has no such block.
    Block,
}

impl Prover<'_> {
    /// The answers of `rootlight_syncStatus` and `rootlight_upstreams`.
    pub(super) async fn progress(&self) -> (Value, Value) {
        let of = |method| async move { ask(self.service, method, json!([])).await.unwrap_or_default() };
        (of("rootlight_syncStatus").await, of("rootlight_upstreams").await)
    }

    /// Proves the balance. While the client discovers nodes, only an answer, or a block that does not exist, ends the loop.
    pub(super) async fn prove(&self) -> Result<BalanceAnswer, Unproven> {
        self.reach_head().await?;
        let mut pause = FIRST_PAUSE;
        for tries in 1_u32.. {
            match ask_balance(self.service, self.account, self.chosen()).await {
                Ok(answer) => return Ok(answer),
                Err(NoBalance::NoBlock) => return Err(Unproven::Block),
                Err(NoBalance::Unproven(reason)) => self.note_refusal(reason),
            }
            if tries >= TRIES && !self.finds_nodes {
                break;
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
        Err(Unproven::State)
    }

    /// The block to ask about: the block that the user chose. If it is `latest` and the flags demand blocks above, the newest
    /// block that has enough of them.
    fn chosen(&self) -> BlockChoice {
        match (self.block, self.service.newest_allowed()) {
            (BlockChoice::Latest, Some(number)) if self.demands_age => BlockChoice::Number(number),
            (block, _) => block,
        }
    }

    /// Waits until the head is verified, and until Bitcoin supports it if that is demanded.
    async fn reach_head(&self) -> Result<(), Unproven> {
        // The client tries each source again after a pause, so a moment without a fault does not show that a source works. A new
        // header shows it.
        let (mut failing_since, mut head) = (None::<Instant>, Value::Null);
        let mut changes = self.service.changes();
        loop {
            let mut status = ask(self.service, "rootlight_syncStatus", json!([])).await.unwrap_or_default();
            let bitcoin = &status["bitcoin"];
            if status["synced"] == true && (!self.demands_bitcoin || bitcoin["verdict"] == "held") {
                return Ok(());
            }
            if let Some(reason) = bitcoin["reason"].as_str().filter(|_| self.demands_bitcoin) {
                self.note_refusal(format!("{MIN_BITCOIN_PREFIX}{reason}"));
            }
            let reached = status["currentBlock"].take();
            if reached != head {
                (failing_since, head) = (None, reached);
            }
            if let Some(fault) = status["fault"].as_str() {
                self.note_refusal(fault.to_owned());
                failing_since.get_or_insert_with(Instant::now);
            }
            if failing_since.is_some_and(|since| since.elapsed() >= FAULT_PATIENCE) && !self.finds_nodes {
                return Err(Unproven::Chain);
            }
            // A new head ends the wait early.
            match &mut changes {
                Some(changes) => drop(timeout(POLL_INTERVAL, changes.changed()).await),
                None => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Notes why the latest question was not answered.
    fn note_refusal(&self, reason: String) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    /// Why the latest question was not answered.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
