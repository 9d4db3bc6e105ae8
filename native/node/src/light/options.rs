//! The options of a light client that its host sets; `cli` makes them from the flags.

use std::sync::Arc;
use std::time::Duration;

use rootlight::exec::CallPolicy;
use rootlight::light::{MAX_AGE, SyncOptions, UnprovenPolicy, WindowJudge};
use rootlight::rpc::AuxiliarySource;
use rootlight_limits::Limits;
use rootlight_upstream::bitcoin::BitcoinSource;

use super::index::{BlockIndex, HostIndex};
use super::own_node::OwnNode;
use crate::scripts::EngineProgram;

/// Options of [`super::LightService`].
#[derive(Debug, Clone)]
pub struct LightOptions {
    /// Time limits and bounds of synchronization.
    pub sync: SyncOptions,
    /// Time limit of each run of a message's handler, that is between two fetches, like the reference node's `rpc.timeout`.
    pub run_timeout: Duration,
    /// Time limit for one message, fetches included.
    pub message_timeout: Duration,
    /// Policy for calls.
    pub policy: CallPolicy,
    /// Requests about blocks with fewer blocks on top are refused.
    pub min_depth: u64,
    /// If given, requests are answered only while Bitcoin supports the chain, and only about blocks that at least so many
    /// Bitcoin blocks commit to, or to one above them.
    pub min_bitcoin: Option<u32>,
    /// Greatest age of the head, in seconds, at which requests are answered; 0 allows any age.
    pub max_age: u64,
    /// What to do with answers that no upstream can prove.
    pub unproven: UnprovenPolicy,
    /// The full node beside the client, if the only upstream is the host's own.
    pub own_node: Option<OwnNode>,
    /// Whether [`super::LightService::announce_sent`] is called for the transactions that callers send.
    pub host_announces_sent: bool,
    /// The index of blocks, for answers without proof. The index may be one of the upstreams too (`rootlight_cluster::with_index`).
    pub index: Option<Arc<dyn BlockIndex>>,
    /// Whether the upstreams are one service: requests are spread over those that are equally good, and another one is
    /// asked as well when the first is slow.
    pub spread: bool,
    /// Most bytes of proven blocks and state that are cached for later messages; `None` means 24 MiB.
    pub cache_bytes: Option<usize>,
    /// Untrusted sources of Bitcoin's chain, by which the chain is judged and a start by window is dated. Chains of networks without
    /// a Bitcoin chain ([`rootlight::consensus::Network::bitcoin`]) are not judged.
    pub bitcoin: Vec<Arc<BitcoinSource>>,
    /// The judge that dates the work of a start by window in place of Bitcoin's chain.
    pub window_judge: Option<Arc<dyn WindowJudge>>,
    /// Seconds by which the client's clock is behind the machine's: for upstreams that are recordings.
    pub behind: u64,
    /// The program that runs tracers in JavaScript; `None` refuses such tracers.
    pub scripts: Option<EngineProgram>,
    /// The limits of memory and threads that the client shares with the server and with its upstreams.
    pub limits: Arc<Limits>,
}

impl Default for LightOptions {
    fn default() -> Self {
        Self {
            sync: SyncOptions::default(),
            run_timeout: Duration::from_secs(5),
            message_timeout: Duration::from_secs(60),
            policy: CallPolicy::default(),
            min_depth: 0,
            min_bitcoin: None,
            max_age: MAX_AGE,
            unproven: UnprovenPolicy::Refuse,
            own_node: None,
            host_announces_sent: false,
            index: None,
            spread: false,
            cache_bytes: None,
            bitcoin: Vec::new(),
            window_judge: None,
            behind: 0,
            scripts: None,
            limits: Limits::new(),
        }
    }
}

impl LightOptions {
    /// The source of answers besides the upstreams: the own node, or the index.
    pub(super) fn auxiliary_source(&self) -> Option<Arc<dyn AuxiliarySource>> {
        match (&self.own_node, &self.index) {
            (Some(node), _) => Some(Arc::new(node.clone())),
            (None, Some(index)) => Some(Arc::new(HostIndex(Arc::downgrade(index)))),
            (None, None) => None,
        }
    }
}
