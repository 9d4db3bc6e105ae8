//! The development chain as an object for JavaScript. It has no upstream and sends nothing over the network, unless it begins on a block of
//! another network.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use alloy_primitives::{B256, keccak256};
use js_sys::Function;
use rootlight::dev::fork::ForkError;
use rootlight::dev::{
    DEFAULT_ACCOUNTS, DEFAULT_HISTORY, DevAccounts, DevConfig, DevOptionError, DevOptions, Mining,
    PrivateKey, rbtc,
};
use rootlight::engine::{DevNode, HostInput, MAX_FILTERS, Snapshot as _};
use rootlight::exec::REVERTED;
use rootlight::rpc::{Caller, Dispatcher, LocalClient, Message, MessageProgress, Reply, RpcError};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{future_to_promise, spawn_local};

use crate::config::Config;
use crate::effects;
use crate::fork::{self, Fork, NetworkAccess};
use crate::host::{Deadline, clock, host_changed, sleep};
use crate::options::OptionMembers;

/// Milliseconds between two checks whether a block is due; block times are whole seconds.
const TICK: f64 = 200.0;

/// The names of the options of a chain that begins on a genesis block.
const OPTIONS: [&str; 12] = [
    "accounts",
    "balance",
    "mnemonic",
    "blockTime",
    "hardfork",
    "genesis",
    "history",
    "batchLimit",
    "clientVersion",
    "revertCode",
    "genesisTime",
    "chainId",
];

/// The names of the options of a chain that begins on a block of a network.
const FORKED_OPTIONS: [&str; 9] = [
    "accounts",
    "balance",
    "mnemonic",
    "blockTime",
    "history",
    "batchLimit",
    "clientVersion",
    "revertCode",
    "chainId",
];

/// The error code of go-ethereum for a call that reverts.
const GETH_REVERTED: i32 = 3;

/// Randomness for messages, derived from one secret of the host.
struct Entropy {
    secret: [u8; 32],
    /// Number of values derived so far.
    used: u64,
}

impl Entropy {
    /// Takes a secret of 32 bytes from the host.
    fn new(secret: &[u8]) -> Result<Self, String> {
        let secret = secret.try_into().map_err(|_| "a secret has 32 bytes")?;
        Ok(Self { secret, used: 0 })
    }

    /// 32 bytes that are different in every call.
    fn next(&mut self) -> B256 {
        self.used += 1;
        keccak256([&self.secret[..], &self.used.to_be_bytes()].concat())
    }

    /// The present, and new randomness.
    fn host_input(&mut self) -> HostInput {
        HostInput { now: clock().unix, entropy: self.next() }
    }
}

/// The parts of a chain that is not closed.
struct OpenDevChain {
    client: LocalClient,
    dispatcher: Arc<Dispatcher>,
    /// The caller that the provider itself is.
    caller: Arc<Caller>,
    entropy: Entropy,
    /// The network on which the chain begins, if it does.
    fork: Option<Rc<Fork>>,
}

/// A message of a caller.
#[derive(Clone)]
struct Received {
    caller: Arc<Caller>,
    message: Message,
}

/// A development chain that answers JSON-RPC.
#[wasm_bindgen]
pub struct DevChain {
    /// The chain, shared with the loop that mines by the clock.
    running: Running,
    /// The keys that the chain holds at its start.
    keys: Vec<PrivateKey>,
}

impl core::fmt::Debug for DevChain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DevChain").finish_non_exhaustive()
    }
}

#[wasm_bindgen]
impl DevChain {
    /// Starts a chain at its genesis.
    ///
    /// `options` has `accounts`, `balance` (RBTC), `mnemonic`, `blockTime`, `hardfork`, `genesis`, `history`,
    /// `batchLimit`, `clientVersion`, `revertCode`, `genesisTime`, `chainId`, with the meaning of the command line's flags. `secret` is
    /// 32 random bytes.
    ///
    /// # Errors
    /// Which option is wrong, and why.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue, secret: &[u8]) -> Result<DevChain, String> {
        let options = OptionMembers::of(options, "options", &OPTIONS)?;
        let mut entropy = Entropy::new(secret)?;
        let config = config(&options)?;
        let keys = config.keys.clone();
        let node = DevNode::new(config, entropy.host_input()).map_err(|e| e.to_string())?;
        Self::open((node, keys), entropy, options.batch_limit()?, None)
    }

    /// Starts a chain on a block of another network.
    ///
    /// `options` are those of [`Self::new`] without `hardfork`, `genesis` and `genesisTime`. `source` has options of the
    /// light client that verifies the network's head, as of `Client`; `url` is the upstream's address, which a reset may name; `exchange` is the
    /// upstream's function of `pkg/exchange.js`, and `keep` does nothing. `number` and `hash` name the block, which is trusted if both are given.
    ///
    /// # Errors
    /// Which option is wrong, and why; or what the upstream does not give.
    #[wasm_bindgen(js_name = onFork)]
    #[allow(clippy::too_many_arguments, reason = "JavaScript gives each by itself")]
    pub async fn on_fork(
        options: JsValue,
        secret: Vec<u8>,
        source: JsValue,
        url: String,
        exchange: Function,
        keep: Function,
        number: Option<f64>,
        hash: Option<String>,
    ) -> Result<DevChain, String> {
        let options = OptionMembers::of(&options, "options", &FORKED_OPTIONS)?;
        let mut entropy = Entropy::new(&secret)?;
        let (accounts, batch_limit) = (accounts(&options)?, options.batch_limit()?);
        let chain_id = options.number("chainId")?;
        let checked = DevOptions { accounts: accounts.clone(), chain_id, ..DevOptions::default() };
        checked.config().map_err(|e| unusable(option_of(&e), e))?;
        let (block, config) = (fork::block(number, hash)?, Config::read(&source)?);
        config.check(1)?;
        let access = NetworkAccess { config, url, exchange, keep };
        let words = |error: ForkError| format!("fork: {error}");
        let fork = Fork::open(access, block).await.map_err(words)?;
        let (mut network, base) = (fork.network(), fork.base().ok_or("fork: no block")?);
        network.chain_id = chain_id.unwrap_or(network.chain_id);
        let above = || DevConfig::above(network.clone(), base.clone(), &accounts);
        let mut config = fork.run(above).await.map_err(words)?;
        config.version.push_str(if fork.is_unproven() { "+unproven-fork" } else { "+fork" });
        with_options(&mut config, &options)?;
        let host_input = entropy.host_input();
        let begun = fork.run(|| {
            let node = DevNode::new(config.clone(), host_input)?;
            // A first block is built and dropped, so that the data which every block reads is fetched now.
            let _ = node.local_snapshot().view(host_input.now, &|| false).pending();
            Ok::<_, rootlight::consensus::ChainError>(node)
        });
        let node = begun.await.map_err(words)?.map_err(|error| error.to_string())?;
        Self::open((node, config.keys), entropy, batch_limit, Some(Rc::new(fork)))
    }

    /// Answers a JSON-RPC message with a text, or with `undefined` if the message needs no answer or the chain is closed: at once, or
    /// with a promise if the chain has to ask the network on which it begins. Before that
    /// `on_filter(id, is_made, is_subscription)` is called for each filter or subscription that the message has made or ended.
    pub fn request(&self, message: &str, on_filter: Option<Function>) -> JsValue {
        let Some(own) = self.own() else { return JsValue::UNDEFINED };
        self.answer(own, message, on_filter)
    }

    /// The accounts whose keys the chain holds at its start: of each the 20 bytes of its address and the 32 of its key.
    pub fn keys(&self) -> Vec<u8> {
        self.keys
            .iter()
            .flat_map(|key| [key.address().as_slice(), key.to_bytes().as_slice()].concat())
            .collect()
    }

    /// Closes the chain and frees its memory. Later requests get no answer.
    pub fn close(&self) {
        self.running.take();
    }
}

impl DevChain {
    /// The caller that the provider itself is; `None` if the chain is closed.
    pub(crate) fn own(&self) -> Option<Arc<Caller>> {
        Some(self.running.borrow().as_ref()?.caller.clone())
    }

    /// Starts the loop that mines by the clock. `keys` are those that the chain holds.
    fn open(
        (node, keys): (DevNode, Vec<PrivateKey>),
        entropy: Entropy,
        batch_limit: usize,
        fork: Option<Rc<Fork>>,
    ) -> Result<Self, String> {
        let client = LocalClient::new(Box::new(node));
        let caller = Caller::default().with_subscriptions(MAX_FILTERS);
        let caller = Arc::new(caller.with_batch_limit(batch_limit));
        let dispatcher = client.dispatcher();
        let running = OpenDevChain { dispatcher, client, caller, entropy, fork };
        let chain = Self { running: Rc::new(RefCell::new(Some(running))), keys };
        spawn_local(tick(chain.running.clone()));
        Ok(chain)
    }

    /// Answers a message of a caller, as [`Self::request`] does.
    pub(crate) fn answer(&self, caller: Arc<Caller>, message: &str, on_filter: Option<Function>) -> JsValue {
        let (received, fork) = {
            let running = self.running.borrow();
            let Some(running) = running.as_ref() else { return JsValue::UNDEFINED };
            let message = Message::read(message.as_bytes(), &running.dispatcher, caller.batch_limit());
            (Received { caller, message }, running.fork.clone())
        };
        let Some(fork) = fork else { return text_of(run(&self.running, &received), on_filter.as_ref()) };
        let missed = match fork.attempt(|| run(&self.running, &received)) {
            Ok(Ok(reply)) => return text_of(reply, on_filter.as_ref()),
            Ok(Err(missed)) => missed,
            Err(error) => return text_of(Some(failed(received.message, &error)), on_filter.as_ref()),
        };
        let running = self.running.clone();
        let rest = async move {
            let reply = fork.finish(missed, || run(&running, &received)).await;
            let reply = reply.unwrap_or_else(|error| Some(failed(received.message.clone(), &error)));
            Ok(text_of(reply, on_filter.as_ref()))
        };
        future_to_promise(rest).into()
    }
}

/// A chain that messages and the clock change in turn; `None` once it is closed.
type Running = Rc<RefCell<Option<OpenDevChain>>>;

/// Runs a message; `None` if the chain is closed. The chain is unchanged if the run lacks data of the network on which the chain begins.
fn run(running: &Running, received: &Received) -> Option<Reply> {
    let Received { caller, message } = received.clone();
    let mut running = running.borrow_mut();
    let OpenDevChain { client, entropy, fork, .. } = running.as_mut()?;
    let before = fork.as_ref().map(|_| client.node().copy());
    let message = MessageProgress::new(caller, message);
    let changes_chain = message.changes_chain();
    let deadline = Deadline::start();
    let reply = client.answer(message, entropy.host_input(), &|| deadline.is_over());
    match before.filter(|_| fork.as_ref().is_some_and(|fork| fork.is_missing())) {
        Some(before) => client.replace_node(before),
        None => {
            if changes_chain {
                host_changed();
            }
            // Events are for the log of the native program.
            drop(client.node().dev().map(rootlight::dev::DevChain::take_events));
        }
    }
    Some(reply)
}

/// The text of a reply, as JavaScript gets it.
fn text_of(reply: Option<Reply>, on_filter: Option<&Function>) -> JsValue {
    let Some(reply) = reply else { return JsValue::UNDEFINED };
    effects::tell(&reply, on_filter);
    reply.into_text().into()
}

/// The reply to a message that reads data which the upstream of the network does not supply.
fn failed(message: Message, error: &ForkError) -> Reply {
    Reply::to_one(message.single_id(), Err(RpcError::unavailable(&error.to_string())))
}

/// The error text for an option with a wrong value.
fn unusable(option: &str, reason: impl core::fmt::Display) -> String {
    format!("{option}: {reason}")
}

/// The funded accounts, by the options `accounts`, `mnemonic` and `balance`.
fn accounts(options: &OptionMembers<'_>) -> Result<DevAccounts, String> {
    let mut accounts = DevAccounts::default();
    let count = options.number("accounts")?.map_or(Ok(DEFAULT_ACCOUNTS), u32::try_from);
    accounts.count = count.map_err(|_| unusable("accounts", "too many"))?;
    if let Some(mnemonic) = options.text("mnemonic")? {
        accounts.mnemonic = mnemonic;
    }
    if let Some(balance) = options.text("balance")? {
        accounts.balance = rbtc(&balance).map_err(|e| unusable("balance", e))?;
    }
    Ok(accounts)
}

/// The configuration of a chain with a genesis block.
fn config(options: &OptionMembers<'_>) -> Result<DevConfig, String> {
    let (hardfork, genesis) = (options.text("hardfork")?, options.text("genesis")?);
    let wanted = DevOptions {
        accounts: accounts(options)?,
        hardfork: hardfork.as_deref(),
        genesis: genesis.as_deref(),
        // By default block 0 has time 0, so that pages get the same chain each time. Later blocks have the time of the clock.
        genesis_time: options.number("genesisTime")?,
        chain_id: options.number("chainId")?,
        mining: None,
    };
    let mut config = wanted.config().map_err(|e| unusable(option_of(&e), e))?;
    with_options(&mut config, options)?;
    Ok(config)
}

/// Sets the options that every chain has.
fn with_options(config: &mut DevConfig, options: &OptionMembers<'_>) -> Result<(), String> {
    if let Some(block_time) = options.text("blockTime")? {
        config.mining = Mining::from_block_time(&block_time).map_err(|e| unusable("blockTime", e))?;
    }
    config.history = Some(options.number("history")?.unwrap_or(DEFAULT_HISTORY));
    if let Some(version) = options.text("clientVersion")? {
        config.version = version;
    }
    config.policy.revert_code = match options.text("revertCode")?.as_deref() {
        None | Some("-32015") => REVERTED,
        Some("3") => GETH_REVERTED,
        Some(_) => return Err(unusable("revertCode", "give 3 or -32015")),
    };
    Ok(())
}

/// The name of the option that is wrong.
fn option_of(error: &DevOptionError) -> &'static str {
    match error {
        DevOptionError::Mnemonic => "mnemonic",
        DevOptionError::Accounts(_) => "accounts",
        DevOptionError::Genesis(_) => "genesis",
        DevOptionError::ChainId => "chainId",
        _ => "hardfork",
    }
}

/// Mines by the clock until the chain is closed.
async fn tick(running: Running) {
    loop {
        sleep(TICK).await;
        let fork = match running.borrow().as_ref() {
            Some(running) => running.fork.clone(),
            None => return,
        };
        match fork {
            None => mine(&running),
            Some(fork) => drop(fork.run(|| mine(&running)).await),
        }
    }
}

/// Mines if a block is due. The chain is unchanged if the block reads data of the network that is not fetched yet.
fn mine(running: &Running) {
    let mut running = running.borrow_mut();
    let Some(OpenDevChain { client, entropy, fork, .. }) = running.as_mut() else { return };
    let host_input = entropy.host_input();
    let before = fork.as_ref().map(|_| client.node().copy());
    let node = client.node();
    node.begin(host_input);
    if let Some(chain) = node.dev() {
        // If no block can be made now, the next tick tries again.
        let _ = chain.tick(host_input.now);
        drop(chain.take_events());
    }
    if let Some(before) = before.filter(|_| fork.as_ref().is_some_and(|fork| fork.is_missing())) {
        client.replace_node(before);
    }
}
