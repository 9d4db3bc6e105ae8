//! A peer that is dialled again whenever its connection ends, and our identity to peers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::types::BlockRef;
use rootlight::types::rlp::RlpReader;
use rootlight_limits::io_words::of_path;
use rootlight_limits::{Limits, files};
use rootlight_p2p::discovery;
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::{Parent, Push, Request, Status};
use rootlight_p2p::network::PeerNetwork;
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeId, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{RateLimits, Session, SessionConfig};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::address::PeerAddress;
use super::connection::PeerHandler;
use super::error::PeerError;
use super::link::{LinkPermit, PeerLink};
use super::negative_cache::{MissingItem, NegativeCache};
use super::share::retry_within_share;
use crate::quota_owner;
use crate::source_quota::{ReceivedBytes, SourceQuota};

/// Longest wait for a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait of a request for a connection that is being set up, and then for the peer's first announcement of a block.
const LINK_PATIENCE: Duration = Duration::from_secs(8);

/// Pause before a node is dialled again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two dials.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A connection that lasted this long counts as a good one: the next dial waits only for [`FIRST_PAUSE`].
const GOOD_LINK: Duration = Duration::from_secs(30);

/// Time between two statuses that we send. Peers announce blocks for ten minutes after a status.
const STATUS_INTERVAL: Duration = Duration::from_secs(240);

/// File of the node key in a data folder.
const KEY_FILE: &str = "node.key";

/// Longest file of a node key, in bytes: a key has 64 digits.
const MAX_KEY_FILE: u64 = 1024;

/// Our identity among the peers of a network, and the budgets for data that peers send.
#[derive(Debug, Clone)]
pub struct Identity {
    key: NodeKey,
    config: SessionConfig,
    limits: Arc<Limits>,
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum IdentityError {
    #[error("network {0} has no known peer-to-peer network: only mainnet, testnet and regtest have one")]
    Network(String),
    #[error("no randomness from the system: {0}")]
    Random(#[from] getrandom::Error),
    /// The file with the node's key cannot be read or written.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
}

impl Identity {
    /// The identity with the key in the file of this folder, which is made if there is none; without a folder, the identity with a
    /// new key. A node admits one connection of each key, so that two processes must not use one key. `genesis` is the hash of
    /// block 0, which peers compare.
    pub fn open(network: &Network, genesis: B256, folder: Option<&Path>) -> Result<Self, IdentityError> {
        let peers = PeerNetwork::of(network).ok_or_else(|| IdentityError::Network(network.name.clone()))?;
        let client = concat!("rootlight/v", env!("CARGO_PKG_VERSION"));
        let config = SessionConfig::new(client, peers.id, genesis, peers.genesis_difficulty());
        let key = match folder {
            None => random_key()?,
            Some(folder) => stored_key(&folder.join(KEY_FILE))?,
        };
        Ok(Self { key, config, limits: Limits::new() })
    }

    /// The identity with other limits of messages than those of the reference node, which drops messages beyond them: for networks
    /// whose nodes all have these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: RateLimits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The same identity, whose connections use these budgets.
    #[must_use]
    pub fn within(mut self, limits: Arc<Limits>) -> Self {
        self.limits = limits;
        self
    }

    /// The budgets in which all data of peers counts.
    #[must_use]
    pub const fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// Our id.
    pub fn id(&self) -> &NodeId {
        self.key.id()
    }

    /// Our key.
    pub fn key(&self) -> &NodeKey {
        &self.key
    }

    /// The settings of our side of handshakes and sessions.
    #[must_use]
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// The status of a node without a chain: peers that get it announce new blocks, and request none.
    fn status(&self) -> Push<'static> {
        Push::Status(Status {
            best: BlockRef { number: 0, hash: self.config.genesis_hash },
            parent: Some(Parent { hash: B256::ZERO, total_difficulty: self.config.total_difficulty }),
        })
    }
}

/// Makes a new key.
pub(super) fn random_key() -> Result<NodeKey, IdentityError> {
    loop {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        // All but a few numbers of 32 bytes are valid keys, so that one try is nearly always enough.
        if let Ok(key) = NodeKey::from_bytes(&secret) {
            return Ok(key);
        }
    }
}

/// Reads the key of a file, or makes one and writes it for its owner only.
fn stored_key(path: &Path) -> Result<NodeKey, IdentityError> {
    let failed = |reason: String| IdentityError::File { path: path.display().to_string(), reason };
    let text = match read_key(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => write_key(path, &random_key()?),
        read => read,
    };
    let bytes: Option<B256> = text.map_err(|error| failed(of_path(&error)))?.trim().parse().ok();
    let key = bytes.and_then(|bytes| NodeKey::from_bytes(&bytes.0).ok());
    key.ok_or_else(|| {
        failed("not a node key of 64 hexadecimal digits; remove the file to get a new key".into())
    })
}

fn read_key(path: &Path) -> std::io::Result<String> {
    let bytes = files::read_secret(path, MAX_KEY_FILE)?;
    String::from_utf8(bytes).map_err(std::io::Error::other)
}

/// Writes a key and reads the file again. Returns the text of the file, because another process may have written its key first.
fn write_key(path: &Path, key: &NodeKey) -> std::io::Result<String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let line = format!("{}\n", alloy_primitives::hex::encode(key.to_bytes()));
    files::write_secret_once(path, line.as_bytes())?;
    read_key(path)
}

/// Which addresses are dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All addresses: the user has named the node.
    Any,
    /// Addresses that an honest node can have, for a node that other nodes have named. The check comes before dialling, after
    /// the host's name has been looked up.
    Found {
        /// Whether private, loopback and other special addresses are among them.
        private: bool,
    },
}

impl Reach {
    /// Whether an address is within reach.
    fn covers(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Found { private } => discovery::allowed(discovery::canonical(*address), private),
        }
    }
}

/// The state of the connection to a node.
#[derive(Clone)]
enum DialState {
    Dialling,
    Open(Arc<PeerLink>),
    /// The last dial failed or the last connection ended, for this reason. The next dial comes after a pause.
    Failed(String),
}

/// A node that is dialled whenever no connection is open.
pub struct PeerNode {
    address: PeerAddress,
    /// Hash of block 0.
    genesis: B256,
    state: watch::Receiver<DialState>,
    announcements: Arc<PeerAnnouncements>,
    negative_cache: NegativeCache,
    dialling: JoinHandle<()>,
}

impl PeerNode {
    /// Starts to dial a node at the addresses within reach; must be called inside a runtime. Dialling ends when the value is
    /// dropped.
    #[must_use]
    pub(crate) fn start(identity: Arc<Identity>, address: PeerAddress, reach: Reach) -> Self {
        let (set, state) = watch::channel(DialState::Dialling);
        let (announcements, genesis) =
            (Arc::new(PeerAnnouncements::new(&identity.limits)), identity.config.genesis_hash);
        let dialling =
            tokio::spawn(keep_connected(identity, address.clone(), reach, set, announcements.clone()));
        Self { address, genesis, state, announcements, negative_cache: NegativeCache::default(), dialling }
    }

    /// The id and the address of the node.
    pub fn address(&self) -> &PeerAddress {
        &self.address
    }

    /// Hash of block 0. The node states the same hash in its handshake.
    pub(super) const fn genesis(&self) -> B256 {
        self.genesis
    }

    /// The newest block that the node has announced, without proof.
    pub fn best(&self) -> Option<BlockRef> {
        *self.announcements.best.borrow()
    }

    /// A signal for new blocks.
    pub fn head_signal(&self) -> Arc<Notify> {
        self.announcements.heads.clone()
    }

    /// The newest block that the node has announced. Waits for the first announcement.
    pub(super) async fn first_best(&self) -> Result<BlockRef, PeerError> {
        self.link().await?;
        let mut best = self.announcements.best.subscribe();
        let known = timeout(LINK_PATIENCE, best.wait_for(Option::is_some)).await;
        let best = known.ok().and_then(|known| known.ok().and_then(|best| *best));
        best.ok_or(PeerError::NoResponse(LINK_PATIENCE))
    }

    /// The open connection. Waits for one that is being set up.
    pub(super) async fn link(&self) -> Result<Arc<PeerLink>, PeerError> {
        let mut state = self.state.clone();
        let open = state.wait_for(|state| match state {
            DialState::Open(link) => link.is_open(),
            DialState::Failed(_) => true,
            DialState::Dialling => false,
        });
        let state = match timeout(LINK_PATIENCE, open).await {
            Ok(Ok(state)) => state.clone(),
            _ => DialState::Failed("no connection yet".into()),
        };
        match state {
            DialState::Open(link) => Ok(link),
            DialState::Failed(reason) => Err(PeerError::NotConnected(reason)),
            DialState::Dialling => Err(PeerError::NotConnected("no connection yet".into())),
        }
    }

    /// Waits until the node should be replaced by another one, and returns the reason: it could not be connected, or the
    /// connection ended soon. Calls `opened` for each connection. A node that was connected for a while ([`GOOD_LINK`]) is
    /// dialled once more.
    pub(super) async fn given_up(&self, mut opened: impl FnMut(&PeerLink)) -> String {
        let (mut state, mut since) = (self.state.clone(), None::<Instant>);
        loop {
            match &*state.borrow_and_update() {
                DialState::Dialling => {}
                DialState::Open(link) => {
                    since = Some(Instant::now());
                    opened(link);
                }
                DialState::Failed(reason) => {
                    if since.take().is_none_or(|since| since.elapsed() < GOOD_LINK) {
                        return reason.clone();
                    }
                }
            }
            if state.changed().await.is_err() {
                return "it is no longer dialled".into();
            }
        }
    }

    /// Waits for a permit and sends a request of the present caller. Returns the message with the response.
    pub(super) async fn ask(&self, request: Request) -> Result<ReceivedBytes, PeerError> {
        retry_within_share(|| async { self.permit(&request).await?.ask(request).await }).await
    }

    /// Waits for a permit for a request of the present caller ([`quota_owner`]).
    pub(super) async fn permit(&self, request: &Request) -> Result<NodePermit<'_>, PeerError> {
        let quota_owner = quota_owner();
        let permit = self.link().await?.permit(quota_owner, request).await?;
        Ok(NodePermit { permit, is_caller: quota_owner.is_some(), negative_cache: &self.negative_cache })
    }

    /// The quota in which messages of the node count.
    pub(super) fn quota(&self) -> &SourceQuota {
        &self.announcements.quota
    }

    /// The data that the node probably does not have.
    pub(super) const fn negative_cache(&self) -> &NegativeCache {
        &self.negative_cache
    }
}

/// The right to send the node one request.
pub(super) struct NodePermit<'a> {
    permit: LinkPermit,
    /// Whether the request is one of a caller, and not of the program itself.
    is_caller: bool,
    negative_cache: &'a NegativeCache,
}

impl NodePermit<'_> {
    /// Sends the request that the permit is for. A caller's request fails at once if the node recently did not respond about the
    /// same block. A request of synchronization is sent, because it is for blocks that the node has announced.
    pub(super) async fn ask(self, request: Request) -> Result<ReceivedBytes, PeerError> {
        let item = match request {
            Request::Headers { hash, .. } | Request::Block(hash) | Request::Body(hash) => {
                Some(MissingItem::Block(hash))
            }
            Request::SnapBlocks { .. } => Some(MissingItem::Runs),
            // Requests by height are for blocks up to the announced head. For chunks, `state.rs` notes the state.
            _ => None,
        };
        if self.is_caller && item.is_some_and(|item| self.negative_cache.has(item)) {
            return Err(PeerError::Lacking);
        }
        let answer = self.permit.ask(request).await;
        match (&answer, item) {
            (Ok(_), Some(item)) => self.negative_cache.forget(item),
            (Err(PeerError::NoResponse(_)), Some(item)) => self.negative_cache.note(item),
            _ => {}
        }
        answer
    }
}

impl Drop for PeerNode {
    fn drop(&mut self) {
        self.dialling.abort();
    }
}

/// Handles the messages that a node sends unasked: it notes the newest announced block.
struct PeerAnnouncements {
    /// The newest announced block.
    best: watch::Sender<Option<BlockRef>>,
    /// Signals announcements.
    heads: Arc<Notify>,
    /// The quota of the node's messages.
    quota: SourceQuota,
}

impl PeerAnnouncements {
    fn new(limits: &Limits) -> Self {
        Self { best: watch::Sender::new(None), heads: Arc::default(), quota: SourceQuota::of_peer(limits) }
    }
}

impl PeerHandler for PeerAnnouncements {
    fn quota(&self) -> SourceQuota {
        self.quota.clone()
    }

    fn handle_push(&self, push: Push<'_>) {
        let announced = match push {
            // A status is the node's present head, which is lower after a reorganisation.
            Push::Status(status) => {
                self.best.send_replace(Some(status.best));
                return self.heads.notify_one();
            }
            Push::NewBlockHashes(blocks) => blocks.into_iter().max_by_key(|block| block.number),
            Push::Block(block) => announced(block),
            Push::NewBlockHash(_) | Push::GetBlock(_) | Push::Transactions(_) => None,
        };
        let Some(announced) = announced else { return };
        let is_new = |best: &mut Option<BlockRef>| {
            let newer = best.is_none_or(|best| best.number < announced.number);
            if newer {
                *best = Some(announced);
            }
            newer
        };
        self.best.send_if_modified(is_new);
        self.heads.notify_one();
    }
}

/// The number of a block that was sent unasked. The hash is that of its parent, which saves computing the block's own: no caller
/// requests a head by its hash.
fn announced(block: &[u8]) -> Option<BlockRef> {
    let header = RlpReader::list(block, "block").ok()?.next_raw("block.header").ok()?;
    let header = RawHeader::split(header).ok()?;
    Some(BlockRef { number: header.number(), hash: header.parent_hash() })
}

/// Dials the node for ever, and again whenever the connection ends.
async fn keep_connected(
    identity: Arc<Identity>,
    address: PeerAddress,
    reach: Reach,
    state: watch::Sender<DialState>,
    announcements: Arc<PeerAnnouncements>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let started = Instant::now();
        let reason = match dial(&identity, &address, reach, announcements.clone()).await {
            Ok(link) => {
                debug!("peer {address}: connected, {}", link.peer.hello.client_id);
                state.send_replace(DialState::Open(link.clone()));
                keep_alive(&identity, &link).await
            }
            Err(error) => error.to_string(),
        };
        debug!("peer {address}: {reason}");
        state.send_replace(DialState::Failed(reason));
        pause = if started.elapsed() > GOOD_LINK { FIRST_PAUSE } else { pause };
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        // From now on requests wait for the new connection, instead of failing.
        state.send_replace(DialState::Dialling);
    }
}

/// Dials a node once, and does the handshake.
///
/// # Errors
/// No address is within reach, or the node does not answer at any of them.
pub(super) async fn dial(
    identity: &Identity,
    address: &PeerAddress,
    reach: Reach,
    host: Arc<dyn PeerHandler>,
) -> Result<Arc<PeerLink>, PeerError> {
    let connect = timeout(CONNECT_TIMEOUT, connect(address, reach)).await;
    let stream = connect.map_err(|_| PeerError::NoResponse(CONNECT_TIMEOUT))??;
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| PeerError::NotConnected(error.to_string()))?;
    let secrets = HandshakeSecrets::from_random(&random);
    // The clock of the session starts at 0 ms, in `PeerLink::open`.
    let session = Session::dial(&identity.key, &address.id, &secrets, identity.config.clone(), 0)?;
    PeerLink::open(stream, session, host).await
}

/// Connects to the first address of the host that is within reach and answers.
async fn connect(address: &PeerAddress, reach: Reach) -> Result<TcpStream, PeerError> {
    let broken = |error: std::io::Error| PeerError::NotConnected(error.to_string());
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let mut failed = PeerError::NotConnected("its address is private or special".into());
    for address in lookup_host((host, address.port)).await.map_err(broken)? {
        if !reach.covers(&address) {
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = broken(error),
        }
    }
    Err(failed)
}

/// Sends statuses over a connection until it ends. Returns the reason of the end.
async fn keep_alive(identity: &Identity, link: &Arc<PeerLink>) -> String {
    let mut statuses = tokio::time::interval(STATUS_INTERVAL);
    loop {
        tokio::select! {
            reason = link.ended() => return reason.to_string(),
            _ = statuses.tick() => {
                let _ = link.push(None, identity.status()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Identity::open(&Network::regtest(), B256::ZERO, Some(folder.path()));
        let first = *open().unwrap().id();
        assert_eq!(*open().unwrap().id(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = folder.path().join(KEY_FILE).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "nobody else reads the key");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let path = folder.path().join(KEY_FILE);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            let refused = open().map(drop).expect_err("a key that all can read").to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            // A pipe would keep the program waiting for a writer.
            let pipe = tempfile::tempdir().unwrap();
            let made = std::process::Command::new("mkfifo").arg(pipe.path().join(KEY_FILE)).status();
            assert!(made.unwrap().success());
            let refused = Identity::open(&Network::regtest(), B256::ZERO, Some(pipe.path())).map(drop);
            assert!(refused.expect_err("a pipe").to_string().contains("not a regular file"));
        }
        std::fs::write(folder.path().join(KEY_FILE), "nonsense").unwrap();
        assert!(matches!(open(), Err(IdentityError::File { .. })));
        assert_ne!(*Identity::open(&Network::regtest(), B256::ZERO, None).unwrap().id(), first);
    }

    /// A host name that other nodes have sent may have any address, so that its addresses are checked.
    #[tokio::test]
    async fn addresses_out_of_reach_are_not_dialled() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let id = *random_key().unwrap().id();
            let address = PeerAddress { id, host: host.into(), port };
            let refused = connect(&address, Reach::Found { private: false }).await.unwrap_err();
            assert!(refused.to_string().contains("private"), "{host}: {refused}");
            if host == "127.0.0.1" {
                connect(&address, Reach::Found { private: true }).await.unwrap();
                connect(&address, Reach::Any).await.unwrap();
            }
        }
    }

    #[test]
    fn networks_without_known_peers_have_no_identity() {
        assert!(matches!(
            Identity::open(&Network::devnet(), B256::ZERO, None),
            Err(IdentityError::Network(_))
        ));
    }
}
