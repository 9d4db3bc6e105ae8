//! Checkpoint proposals, of Rootstock's and of Bitcoin's chain, that several sources must confirm.

use crate::bitcoin::BitcoinFixture;
use crate::common::recording;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::{BitcoinHeader, BitcoinNetwork, reversed};
use rootlight::dev::BitcoinTag;
use rootlight::light::UpstreamRequest;
use rootlight_node::light::propose::{ProposeError, ProposeOptions, propose, propose_bitcoin};
use rootlight_upstream::bitcoin::BitcoinSource;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, unreserved};
use serde_json::value::RawValue;

/// A source that replaces text in honest responses.
struct Changed {
    name: &'static str,
    true_one: Replay,
    changes: BTreeMap<String, String>,
}

impl Changed {
    fn source(name: &'static str, changes: &[(&str, &str)]) -> SharedUpstream {
        let changes = changes.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        Arc::new(Self { name, true_one: recording(), changes })
    }
}

impl Upstream for Changed {
    fn name(&self) -> &str {
        self.name
    }

    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let answers = self.true_one.request(calls).await;
            let change = |answer: Box<RawValue>| {
                let mut text = answer.get().to_owned();
                for (from, to) in &self.changes {
                    text = text.replace(from, to);
                }
                RawValue::from_string(text).unwrap()
            };
            answers.into_iter().map(|answer| answer.map(change)).collect()
        }))
    }
}

async fn ask(sources: &[SharedUpstream], number: u64) -> Result<String, String> {
    let options = ProposeOptions { number: Some(number), depth: 20 };
    let proposal = propose(&Network::regtest(), sources, options).await;
    proposal.map(|proposal| proposal.to_string()).map_err(|error| error.to_string())
}

/// The hash of a recorded block.
fn hash_of(number: u64) -> String {
    recording().block(number).unwrap().0.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_all_sources_confirm_is_proposed() {
    let sources = [Changed::source("a", &[]), Changed::source("b", &[])];
    let text = ask(&sources, 50).await.unwrap();
    let hash = hash_of(50);
    assert!(text.starts_with("// 2 sources; headers 50 to 75 verified; difficulty 0x"), "{text}");
    assert!(text.contains(&format!("checkpoint(50, b256!(\"{}\"), total(0x0, 0x", &hash[2..])), "{text}");
    let time = text.rsplit_once(").mined(").unwrap().1;
    assert!(time.ends_with("),") && time.starts_with(|first: char| first.is_ascii_digit()), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_source_is_not_enough() {
    let error = ask(&[Changed::source("a", &[])], 50).await.unwrap_err();
    assert_eq!(error, "a checkpoint needs at least two sources of different names (1 given)");
    let error = ask(&[Changed::source("a", &[]), Changed::source("a", &[])], 50).await.unwrap_err();
    assert!(error.ends_with("(1 given)"), "both sources are the same one: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_without_enough_blocks_on_top_is_not_proposed() {
    let sources = [Changed::source("a", &[]), Changed::source("b", &[])];
    assert!(ask(&sources, 56).await.unwrap_err().contains("the lowest head is block 75"));
    // Genesis is not proposed either if no other block is deep enough.
    let network = Network::regtest();
    let error = propose(&network, &sources, ProposeOptions::default()).await.unwrap_err();
    assert!(matches!(error, ProposeError::TooLow { head: 75, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_that_disagree_are_all_quoted() {
    // A total difficulty is not covered by any hash.
    let total = "\"totalDifficulty\":\"0x";
    let other = Changed::source("b", &[(total, "\"totalDifficulty\":\"0x1")]);
    let error = ask(&[Changed::source("a", &[]), other], 50).await.unwrap_err();
    assert!(error.starts_with("the sources do not agree about block 50: a says hash 0x"), "{error}");
    assert!(error.contains("; b says hash 0x"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_with_a_wrong_block_hash_is_refused() {
    let hash = hash_of(50);
    let forged = format!("0x{}", "12".repeat(32));
    let liar = Changed::source("liar", &[(&hash, &forged)]);
    let error = ask(&[Changed::source("a", &[]), liar], 50).await.unwrap_err();
    assert!(error.starts_with("liar: "), "{error}");
}

/// The proposed block is right, but the headers above it do not continue it.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_without_valid_headers_above_the_block_is_refused() {
    let next = hash_of(51);
    // The hash is replaced in raw headers too.
    let liar = Changed::source("liar", &[(&next[2..], &"12".repeat(32))]);
    let error = ask(&[Changed::source("a", &[]), liar], 50).await.unwrap_err();
    assert!(error.starts_with("liar: "), "{error}");
}

/// Two periods and some blocks on top.
const BITCOIN_BLOCKS: u32 = 4_100;

/// A Bitcoin chain whose first blocks mine so many blocks of a development chain.
async fn bitcoin_fixture(blocks: u64) -> BitcoinFixture {
    let mut fixture = BitcoinFixture::new(1).await;
    fixture.mine(blocks);
    while let left @ 1.. = BITCOIN_BLOCKS - fixture.bitcoin.tip().height {
        fixture.mine_bitcoin(left.min(100).into(), BitcoinTag::None, None).unwrap();
    }
    fixture
}

async fn ask_bitcoin(urls: &[String]) -> Result<rootlight_node::light::propose::BitcoinProposal, String> {
    let sources: Vec<_> = urls.iter().map(|url| Arc::new(BitcoinSource::open(url).unwrap())).collect();
    let proposed = propose_bitcoin(BitcoinNetwork::REGTEST, &sources, u64::from(u32::MAX)).await;
    proposed.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_deep_end_of_a_bitcoin_period_is_proposed() {
    let mut fixture = bitcoin_fixture(1).await;
    let [electrum, socket] = fixture.servers.electrum();
    let urls = [fixture.servers.esplora(), electrum.clone(), "tcp://127.0.0.1:1".to_owned()];
    let proposal = ask_bitcoin(&urls).await.unwrap();
    let hash = |height: u32| BitcoinHeader::from(&fixture.bitcoin.headers(height, 1)[0]).hash();
    assert_eq!((proposal.checkpoint.height, proposal.checkpoint.hash), (2_016, hash(2_016)));
    assert_eq!((proposal.verified, proposal.sources), ((0, BITCOIN_BLOCKS), 2));
    assert!(proposal.failures[0].starts_with("tcp://127.0.0.1:1: "), "{:?}", proposal.failures);
    let expected = format!(
        "height: 2_016,\n// The hash {:x}, reversed.\nhash: b256!(\"{:x}\"),\nnext_bits: 0x207f_ffff,\ntime: ",
        reversed(&hash(2_016)),
        hash(2_016)
    );
    assert!(proposal.to_string().starts_with(&expected), "{proposal}");
    assert_eq!(proposal.checkpoint.time, BitcoinHeader::from(&fixture.bitcoin.headers(2_016, 1)[0]).time());

    // One source alone, however often it is named, confirms nothing.
    for urls in [&urls[1..], &[electrum.clone(), electrum.clone()]] {
        let error = ask_bitcoin(urls).await.unwrap_err();
        assert!(
            error.starts_with(
                "1 of the sources of Bitcoin's chain show blocks above the built-in one, at least two"
            ),
            "{error}"
        );
    }

    // Another chain, as heavy, that leaves this one below the end of the period.
    let other = bitcoin_fixture(2).await;
    let error = ask_bitcoin(&[socket, other.servers.esplora()]).await.unwrap_err();
    assert!(error.starts_with("the sources of Bitcoin's chain do not agree about block 2016: "), "{error}");

    // One more period is needed for the next one.
    fixture.mine_bitcoin(1, BitcoinTag::None, None).unwrap();
    assert_eq!(ask_bitcoin(&urls).await.unwrap().checkpoint.height, 2_016);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_deep_end_of_a_period_the_built_in_bitcoin_checkpoint_stays() {
    let mut fixture = BitcoinFixture::new(1).await;
    fixture.mine(30);
    let proposal =
        ask_bitcoin(&[fixture.servers.esplora(), fixture.servers.electrum()[0].clone()]).await.unwrap();
    assert_eq!((proposal.checkpoint, proposal.verified), (BitcoinNetwork::REGTEST.checkpoint, (0, 30)));
}
