//! Sources that give wrong coinbases, and sources whose chains do not link.

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::{BitcoinCheckpoint, BitcoinHeader, hash_number, reversed, target_of};
use rootlight::dev::{BitcoinBlocks, SimulatedBitcoin as _};
use rootlight::light::{ClientConfig, SyncOptions};
use rootlight_server::service::Counts;

use super::*;
use crate::bitcoin_chain::RegtestChain;
use crate::light::checkpoint::{LightStart, start_checkpoint};

/// A client of regtest that has heard nothing, with sources that are not asked.
fn bitcoin_sync(sources: &[&str], folder: Option<&Path>) -> (Arc<SharedLight>, Arc<BitcoinSync>) {
    let network = Network::regtest();
    let start = LightStart::At(start_checkpoint(Some("none"), &network).unwrap());
    let (config, secret) = (ClientConfig::default(), (B256::ZERO, Counts::default()));
    let shared = SharedLight::new(network, start, config, SyncOptions::default(), secret, (None, 0));
    let shared = Arc::new(shared);
    let open = |url: &&str| Arc::new(BitcoinSource::open(url).unwrap());
    let sources: Vec<_> = sources.iter().map(open).collect();
    let folder = folder.map(|path| HeaderFolder { path, is_own: true });
    let bitcoin_sync = BitcoinSync::start(shared.clone(), folder, Duration::from_secs(1), &sources).unwrap();
    (shared, bitcoin_sync)
}

/// A client with the headers of a chain of ten blocks.
async fn with_ten_blocks() -> (Arc<SharedLight>, Arc<BitcoinSync>, RegtestChain) {
    with_blocks(10, None).await
}

/// A client that stores in a folder, with the headers of a chain.
async fn with_blocks(
    blocks: u8,
    folder: Option<&Path>,
) -> (Arc<SharedLight>, Arc<BitcoinSync>, RegtestChain) {
    let (shared, bitcoin_sync) = bitcoin_sync(&["tcp://one.example"], folder);
    let chain = RegtestChain::new(1);
    let commitments = (1..=blocks).map(|byte| Some(B256::repeat_byte(byte))).collect();
    chain.mine(&BitcoinBlocks { commitments, parent: None, time: 1_700_000_000 }).unwrap();
    let headers = chain.headers(1, blocks.into());
    assert_eq!(bitcoin_sync.insert(headers).await, Ok(blocks.into()));
    (shared, bitcoin_sync, chain)
}

/// The coinbase of the block at a height, given as that of another height.
fn given(chain: &RegtestChain, height: u32, block: u32) -> RawCoinbase {
    let coinbase = chain.coinbase(block).unwrap();
    let branch = coinbase.branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
    RawCoinbase { height, proof: CoinbaseProofBuf { is_cut: false, coinbase: coinbase.transaction, branch } }
}

#[tokio::test]
async fn wrong_coinbases_are_a_fault_of_their_source() {
    let (_, bitcoin_sync, chain) = with_ten_blocks().await;
    let missing = || bitcoin_sync.with(BitcoinFollower::missing_coinbases);
    // The newest blocks of an honest source may be others.
    assert!(bitcoin_sync.take_coinbases(vec![given(&chain, 5, 1), given(&chain, 6, 6)]).await.is_ok());
    assert_eq!(missing(), [10, 9, 8, 7, 5, 4, 3, 2, 1]);
    let deep = bitcoin_sync.take_coinbases(vec![given(&chain, 4, 1), given(&chain, 7, 7)]).await;
    assert!(matches!(deep, Err(SourceFault::Coinbase { height: 4, .. })), "{deep:?}");
    assert_eq!(missing(), [10, 9, 8, 5, 4, 3, 2, 1], "the right one of the same answer counts");
    let mut no_transaction = given(&chain, 10, 10);
    no_transaction.proof.coinbase.pop();
    let new = bitcoin_sync.take_coinbases(vec![no_transaction]).await;
    assert!(matches!(new, Err(SourceFault::Coinbase { height: 10, .. })), "{new:?}");
}

/// Proving takes no lock that messages need: here a message reads the chain meanwhile.
#[tokio::test]
async fn wrong_coinbases_keep_no_message_waiting() {
    let (shared, bitcoin_sync, chain) = with_ten_blocks().await;
    let reader = shared.client.sync();
    let proving = bitcoin_sync.take_coinbases(vec![given(&chain, 1, 2)]);
    let outcome = tokio::time::timeout(Duration::from_secs(120), proving).await;
    drop(reader);
    assert!(matches!(outcome, Ok(Err(SourceFault::Coinbase { height: 1, .. }))));
}

/// Headers are stored before the coinbases are there, and the few coinbases of new blocks are no reason to write the file again.
#[tokio::test]
async fn a_restart_asks_for_the_coinbases_of_new_blocks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (_, first, chain) = with_blocks(30, Some(folder.path())).await;
    let missing = |bitcoin_sync: &BitcoinSync| bitcoin_sync.with(BitcoinFollower::missing_coinbases);
    let stored = || {
        let (_, bitcoin_sync) = bitcoin_sync(&["tcp://one.example"], Some(folder.path()));
        missing(&bitcoin_sync)
    };
    first.store().await;
    assert_eq!(stored().len(), 30);
    let given = |heights: std::ops::RangeInclusive<u32>| {
        heights.map(|height| given(&chain, height, height)).collect::<Vec<_>>()
    };
    first.take_coinbases(given(1..=17)).await.unwrap();
    first.store().await;
    assert_eq!(stored().len(), 30);
    first.take_coinbases(given(18..=28)).await.unwrap();
    first.store().await;
    assert_eq!(stored(), [30, 29]);
}

/// A file of the version before has no coinbases; one with a damaged coinbase lacks that one alone.
#[tokio::test]
async fn a_file_without_usable_coinbases_has_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (shared, first, chain) = with_blocks(10, Some(folder.path())).await;
    first.take_coinbases((1..=10).map(|height| given(&chain, height, height)).collect()).await.unwrap();
    let (whole, headers) = {
        let sync = shared.client.sync();
        let follower = sync.bitcoin().unwrap();
        (follower.stored(), follower.chain().stored())
    };
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    for (file, lacks) in [(&whole, 0), (&headers, 10), (&damaged, 1)] {
        std::fs::write(folder.path().join(FILE), file).unwrap();
        let (_, bitcoin_sync) = bitcoin_sync(&["tcp://one.example"], Some(folder.path()));
        assert_eq!(
            (bitcoin_sync.height(), bitcoin_sync.with(BitcoinFollower::missing_coinbases).len()),
            (10, lacks)
        );
    }
}

/// A stored chain whose lowest block is of the writer's choice, with one header above it.
fn planted(network: BitcoinNetwork) -> BitcoinChain {
    let hash = B256::repeat_byte(5);
    let checkpoint = BitcoinCheckpoint { height: 2_016, hash, ..network.checkpoint };
    let mut chain = BitcoinChain::new(BitcoinNetwork { checkpoint, ..network });
    let mut header = [0; HEADER_LEN];
    header[4..36].copy_from_slice(hash.as_slice());
    header[68..72].copy_from_slice(&1_700_000_000_u32.to_le_bytes());
    header[72..76].copy_from_slice(&checkpoint.next_bits.to_le_bytes());
    let target = target_of(checkpoint.next_bits).unwrap();
    let mined = (0..=u8::MAX).any(|nonce| {
        header[76] = nonce;
        hash_number(&BitcoinHeader::from(&header).hash()) <= target
    });
    assert!(mined);
    chain.insert(&header, unix_time()).unwrap();
    chain
}

/// A writer of the folder does not keep the client from Bitcoin's chain.
#[test]
fn stored_headers_to_which_no_source_links_are_not_used() {
    let (shared, bitcoin_sync) =
        bitcoin_sync(&["tcp://one.example", "tcp://two.example", "tcp://two.example"], None);
    let network = shared.client.sync().network().bitcoin.unwrap();
    shared.client.sync_mut().follow_bitcoin(BitcoinFollower::resume(planted(network)));
    let is_planted = || shared.client.sync().bitcoin().unwrap().chain().start().height == 2_016;
    bitcoin_sync.note_links("one", &Err(SourceFault::Unlinked));
    bitcoin_sync.note_links("one", &Err(SourceFault::Unlinked));
    assert!(is_planted(), "the other source was not heard");
    bitcoin_sync.note_links("two", &Ok(()));
    bitcoin_sync.note_links("two", &Err(SourceFault::Request(UpstreamError::Silent("busy".into()))));
    assert!(is_planted());
    bitcoin_sync.note_links("two", &Err(SourceFault::Unlinked));
    assert_eq!(*shared.client.sync().bitcoin().unwrap().chain().start(), network.checkpoint);
}
