//! The recorded chain as a server gives it to peers.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use alloy_primitives::{B256, Bytes, U256, keccak256};
use flate2::read::GzDecoder;
use rootlight::consensus::Network;
use rootlight::trie::NodeSource;
use rootlight::types::rlp::RlpReader;
use rootlight::types::{Block, BlockRef, SealedHeader};
use rootlight_limits::caller_id::CallerId;
use rootlight_node::peer_server::{PeerChain, PeerHead, PeerServer, ServedBlock};
use rootlight_p2p::session::RateLimits;
use rootlight_upstream::p2p::{Identity, PeerAddress};
use tokio::sync::watch;

/// Blocks 0 to 5060 of the recording, its side blocks, and nine states.
pub(crate) struct RecordedChain {
    blocks: Vec<(SealedHeader, Block)>,
    sides: Vec<(SealedHeader, Block)>,
    by_hash: BTreeMap<B256, usize>,
    sums: Vec<U256>,
    nodes: BTreeMap<B256, Bytes>,
    pub(crate) submitted: Mutex<Vec<Vec<u8>>>,
    changes: watch::Sender<u64>,
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The blocks of a file, at most this many.
fn decoded(bytes: &[u8], most: usize, network: &Network) -> Vec<(SealedHeader, Block)> {
    let (mut reader, mut list) = (RlpReader::new(bytes), Vec::new());
    while !reader.is_empty() && list.len() < most {
        let rlp = reader.next_raw("block").unwrap();
        let block = Block::decode(rlp, &|number| network.header_shape(number)).unwrap();
        list.push((block.header.clone().seal(), block));
    }
    list
}

impl RecordedChain {
    /// Reads the blocks up to `head`; `None` where the recordings are absent.
    pub(crate) fn read(head: u64) -> Option<Arc<Self>> {
        let folder = crate::common::shared("vectors/p2p/chain")?;
        let network = Network::regtest();
        let (blocks, nodes) =
            (unpacked(&folder.join("blocks.bin.gz")), unpacked(&folder.join("nodes.bin.gz")));
        let roots = String::from_utf8(unpacked(&folder.join("roots.txt.gz"))).unwrap();
        let sides = decoded(&unpacked(&folder.join("side_blocks.bin.gz")), usize::MAX, &network);
        let list = decoded(&blocks, usize::try_from(head).unwrap() + 1, &network);
        let (mut reader, mut known) = (RlpReader::new(&nodes), BTreeMap::new());
        while !reader.is_empty() {
            let node = reader.next_str("node").unwrap();
            known.insert(keccak256(node), Bytes::copy_from_slice(node));
        }
        let sum = |line: &str| line.split(' ').nth(3).unwrap().parse().unwrap();
        let by_hash = list.iter().enumerate().map(|(index, (header, _))| (header.hash(), index)).collect();
        let (blocks, sums) = (list, roots.lines().map(sum).collect());
        let changes = watch::Sender::new(0);
        Some(Arc::new(Self {
            blocks,
            sides,
            by_hash,
            sums,
            nodes: known,
            submitted: Mutex::default(),
            changes,
        }))
    }

    fn at(&self, hash: &B256) -> Option<&(SealedHeader, Block)> {
        let side = || self.sides.iter().find(|(header, _)| header.hash() == *hash);
        self.by_hash.get(hash).and_then(|index| self.blocks.get(*index)).or_else(side)
    }
}

impl PeerChain for RecordedChain {
    fn head(&self) -> Option<PeerHead> {
        let (header, _) = self.blocks.last()?;
        let block = BlockRef { number: header.number, hash: header.hash() };
        Some(PeerHead {
            block,
            parent: header.parent_hash,
            total_difficulty: self.total_difficulty(block.hash)?,
        })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.blocks.get(usize::try_from(number).ok()?).map(|(header, _)| header.hash())
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.at(&hash).map(|(header, _)| header.clone())
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        let (header, block) = self.at(&hash)?;
        let transactions = block.body.transactions.clone();
        Some(ServedBlock { header: header.clone(), transactions, uncles: block.uncles.clone() })
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.sums.get(*self.by_hash.get(&hash)?).copied()
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        let Some((header, _)) = usize::try_from(number).ok().and_then(|number| self.blocks.get(number))
        else {
            return;
        };
        if self.nodes.contains_key(&header.state_root) {
            read(header.state_root, &self.nodes);
        }
    }

    fn submit(&self, _: CallerId, transactions: Vec<Vec<u8>>) {
        self.submitted.lock().unwrap().extend(transactions);
    }

    fn pending(&self, _next: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Serves a chain at a free port of this machine.
pub(crate) async fn serve(chain: Arc<dyn PeerChain>) -> (PeerServer, PeerAddress) {
    serve_within(chain, RateLimits::default()).await
}

pub(crate) async fn serve_within(chain: Arc<dyn PeerChain>, limits: RateLimits) -> (PeerServer, PeerAddress) {
    let genesis = chain.hash_at(0).unwrap();
    let identity = Identity::open(&Network::regtest(), genesis, None).unwrap();
    let identity = Arc::new(identity.with_limits(limits));
    let id = *identity.id();
    let server = PeerServer::bind(identity, chain, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = PeerAddress { id, host: "127.0.0.1".into(), port: server.address().port() };
    (server, address)
}
