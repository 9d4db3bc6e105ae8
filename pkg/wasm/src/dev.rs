//! The development chain in a page. It has no upstream and sends nothing over the network.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use alloy_primitives::{B256, keccak256};
use js_sys::Function;
use rootlight::dev::{
    DEFAULT_ACCOUNTS, DEFAULT_HISTORY, DevAccounts, DevOptionError, DevOptions, Mining, PrivateKey, rbtc,
};
use rootlight::engine::{DevNode, HostInput, MAX_FILTERS};
use rootlight::rpc::{Connection, Dispatcher, LocalClient, MessageProgress};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::effects;
use crate::host::{Deadline, moment, sleep};
use crate::options::OptionMembers;

/// Milliseconds between two checks of the clock; block times are whole seconds.
const TICK: f64 = 200.0;

/// The names of the options.
const OPTIONS: [&str; 10] = [
    "accounts",
    "balance",
    "mnemonic",
    "blockTime",
    "hardfork",
    "genesis",
    "history",
    "batchLimit",
    "clientVersion",
    "genesisTime",
];

/// Randomness for messages, derived from one secret of the host.
struct Entropy {
    secret: [u8; 32],
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

    fn moment(&mut self) -> HostInput {
        HostInput { now: moment().unix, entropy: self.next() }
    }
}

struct OpenDevChain {
    client: LocalClient,
    dispatcher: Arc<Dispatcher>,
    connection: Arc<Connection>,
    entropy: Entropy,
    /// Whether a request since the last `take_changed` may have caused events for subscribers.
    changed: bool,
}

/// A development chain that answers JSON-RPC.
#[wasm_bindgen]
pub struct DevChain {
    /// `None` once it is closed.
    running: Rc<RefCell<Option<OpenDevChain>>>,
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
    /// `batchLimit`, `clientVersion`, `genesisTime`, with the meaning of the command line's flags. `secret` is 32 random bytes.
    ///
    /// # Errors
    /// Which option is wrong, and why.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue, secret: &[u8]) -> Result<DevChain, String> {
        let options = OptionMembers::of(options, "options", &OPTIONS)?;
        let mut entropy = Entropy::new(secret)?;
        let (node, keys) = node(&options, entropy.moment())?;
        let client = LocalClient::new(Box::new(node));
        let connection = Connection::default().with_subscriptions(MAX_FILTERS);
        let connection = Arc::new(connection.with_batch_limit(options.batch_limit()?));
        let running =
            OpenDevChain { dispatcher: client.dispatcher(), client, connection, entropy, changed: false };
        let chain = Self { running: Rc::new(RefCell::new(Some(running))), keys };
        spawn_local(tick(chain.running.clone()));
        Ok(chain)
    }

    /// Answers a JSON-RPC message. Returns `None` if the message needs no answer, or if the chain is closed.
    /// `heard(id, made)` is called for each filter or subscription that the message has made or ended.
    pub fn request(&self, message: &str, heard: Option<Function>) -> Option<String> {
        self.answer(self.own()?, message, heard)
    }

    /// The accounts whose keys the chain holds at its start: of each the 20 bytes of its address and the 32 of its key.
    pub fn keys(&self) -> Vec<u8> {
        self.keys
            .iter()
            .flat_map(|key| [key.address().as_slice(), key.to_bytes().as_slice()].concat())
            .collect()
    }

    /// Whether a request since the last call of this method may have caused events for subscribers, because it may have
    /// changed the chain or its pool.
    #[wasm_bindgen(js_name = takeChanged)]
    pub fn take_changed(&self) -> bool {
        self.running.borrow_mut().as_mut().is_some_and(|running| core::mem::take(&mut running.changed))
    }

    /// Closes the chain and frees its memory. Later requests get no answer.
    pub fn close(&self) {
        self.running.take();
    }
}

impl DevChain {
    /// The connection of messages of the provider.
    pub(crate) fn own(&self) -> Option<Arc<Connection>> {
        Some(self.running.borrow().as_ref()?.connection.clone())
    }

    /// Answers a message of a connection, as [`Self::request`] does.
    pub(crate) fn answer(
        &self,
        connection: Arc<Connection>,
        message: &str,
        heard: Option<Function>,
    ) -> Option<String> {
        let mut running = self.running.borrow_mut();
        let OpenDevChain { client, dispatcher, entropy, changed, .. } = running.as_mut()?;
        let message = MessageProgress::read_from(dispatcher, connection, message.as_bytes());
        *changed |= message.changes_chain();
        let deadline = Deadline::start();
        let reply = client.answer(message, entropy.moment(), &|| deadline.is_over());
        drop(client.node().dev().map(rootlight::dev::DevChain::take_events));
        effects::tell(&reply, heard.as_ref());
        reply.into_text()
    }
}

fn unusable(option: &str, reason: impl core::fmt::Display) -> String {
    format!("{option}: {reason}")
}

fn node(options: &OptionMembers<'_>, now: HostInput) -> Result<(DevNode, Vec<PrivateKey>), String> {
    let mut accounts = DevAccounts::default();
    let count = options.number("accounts")?.map_or(Ok(DEFAULT_ACCOUNTS), u32::try_from);
    accounts.count = count.map_err(|_| unusable("accounts", "too many"))?;
    if let Some(mnemonic) = options.text("mnemonic")? {
        accounts.mnemonic = mnemonic;
    }
    if let Some(balance) = options.text("balance")? {
        accounts.balance = rbtc(&balance).map_err(|e| unusable("balance", e))?;
    }
    let (block_time, hardfork, genesis) =
        (options.text("blockTime")?, options.text("hardfork")?, options.text("genesis")?);
    let mining = block_time.as_deref().map(Mining::from_block_time).transpose();
    let wanted = DevOptions {
        accounts,
        hardfork: hardfork.as_deref(),
        genesis: genesis.as_deref(),
        // By default pages get the same chain each time; the clock of block 1 is the present.
        genesis_time: options.number("genesisTime")?,
        mining: mining.map_err(|e| unusable("blockTime", e))?,
    };
    let mut config = wanted.config().map_err(|e| unusable(option_of(&e), e))?;
    config.history = Some(options.number("history")?.unwrap_or(DEFAULT_HISTORY));
    if let Some(version) = options.text("clientVersion")? {
        config.version = version;
    }
    let keys = config.keys.clone();
    Ok((DevNode::new(config, now).map_err(|e| e.to_string())?, keys))
}

fn option_of(error: &DevOptionError) -> &'static str {
    match error {
        DevOptionError::Mnemonic => "mnemonic",
        DevOptionError::Accounts(_) => "accounts",
        DevOptionError::Genesis(_) => "genesis",
        _ => "hardfork",
    }
}

/// Mines by the clock until the chain is closed. If a block cannot be mined, the next tick tries again.
async fn tick(running: Rc<RefCell<Option<OpenDevChain>>>) {
    loop {
        sleep(TICK).await;
        let mut running = running.borrow_mut();
        let Some(OpenDevChain { client, entropy, .. }) = running.as_mut() else { return };
        let moment = entropy.moment();
        let node = client.node();
        node.begin(moment);
        if let Some(chain) = node.dev() {
            let _ = chain.tick(moment.now);
            drop(chain.take_events());
        }
    }
}
