//! Checkpoint proposals that several sources must confirm.

use crate::common::recording;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight_node::light::propose::{ProposeError, ProposeOptions, propose};
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
