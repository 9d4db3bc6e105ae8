//! The report of a run that proved no balance: its progress, its sources, and advice. The report fits on one screen.

use std::collections::BTreeMap;

use rootlight_limits::sanitize::cell;
use serde_json::Value;

use super::progress::ClientProgress;
use super::sources::{SourceNote, short_name};

/// The beginning of [`FailedRun::refusal`] if Bitcoin does not support the chain as `--min-bitcoin` demands.
pub(super) const MIN_BITCOIN_PREFIX: &str = "--min-bitcoin: ";

/// Most sources that are listed, so that the report fits on one screen.
const MAX_SOURCES: usize = 8;

/// How a run without an answer ended.
pub(super) struct FailedRun {
    /// How far the light client came.
    pub(super) reached: ClientProgress,
    /// The answer of `rootlight_upstreams`.
    pub(super) upstreams: Value,
    /// The responses of each source, by its name.
    pub(super) notes: BTreeMap<String, SourceNote>,
    /// Upstreams of another chain by name, with a text that names their chain.
    pub(super) foreign: BTreeMap<String, String>,
    /// Why the latest question was not answered.
    pub(super) refusal: Option<String>,
    /// Whether the client discovers nodes of the peer-to-peer network.
    pub(super) finds_nodes: bool,
}

impl FailedRun {
    /// The lines of the report.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.stage()];
        if let Some(refusal) = &self.refusal {
            lines.push(format!("the latest answer: {}", cell(refusal)));
        }
        lines.extend(self.sources());
        lines.push("what to do:".into());
        lines.extend(self.advice().iter().map(|advice| format!("  {advice}")));
        lines
    }

    /// How far the run came.
    fn stage(&self) -> String {
        let ((verified, headers), [start, head, _]) = (self.reached.headers(), self.reached.blocks);
        match self.reached.is_synced {
            true => format!("block {head} is the verified head; its state was not proven"),
            false if verified > 0 => {
                format!("{verified} of {headers} headers were verified, up to block {head}")
            }
            false => format!("no header above the start, block {start}, was verified"),
        }
    }

    /// Each source with the report of it that explains most: of several reports, the one with the lowest rank. The ranks are 0 for a lie or
    /// another chain, 1 for a failure to prove state, 2 for a source that is left alone or whose proof was not enough, 3 for another
    /// failure, and 4 for a source that was not asked.
    fn sources(&self) -> Vec<String> {
        let mut said: BTreeMap<&str, (u8, String)> = BTreeMap::new();
        for (name, note) in &self.notes {
            said.insert(name, of_note(note));
        }
        for upstream in self.upstreams.as_array().into_iter().flatten() {
            // A vacant slot has no node that it could ask.
            let Some(name) = upstream["name"].as_str().filter(|name| !name.ends_with("(vacant)")) else {
                continue;
            };
            // `lie` marks wrong data. A node that is offline or withholds data has a fault that is no lie.
            let faults = upstream["misbehaviour"].as_array().into_iter().flatten();
            let rule = |lie: bool| {
                let mut of_kind = faults.clone().filter(|fault| (fault["lie"] == true) == lie);
                of_kind.next_back()?["rule"].as_str()
            };
            let report = match (rule(true), upstream["resting"].as_str(), rule(false)) {
                (Some(lie), _, _) => (0, format!("was caught: {lie}")),
                (None, Some(fault), _) => (2, format!("left alone for now: {fault}")),
                (None, None, Some(fault)) => (3, format!("failed: {fault}")),
                (None, None, None) => (4, "it was not asked".into()),
            };
            let listed = said.entry(name).or_insert_with(|| report.clone());
            if report.0 < listed.0 {
                *listed = report;
            }
        }
        for (name, other) in &self.foreign {
            said.insert(name, (0, other.clone()));
        }
        if said.is_empty() {
            let what = if self.finds_nodes { "no node was found" } else { "no source was reached" };
            return vec![format!("tried: {what}")];
        }
        let mut all: Vec<(u8, &str, String)> =
            said.into_iter().map(|(name, (rank, text))| (rank, name, text)).collect();
        all.sort();
        let more = all.len().saturating_sub(MAX_SOURCES);
        let line =
            |(_, name, text): &(u8, &str, String)| format!("  {}: {}", cell(short_name(name)), cell(text));
        let mut lines = vec!["tried:".to_owned()];
        lines.extend(all.iter().take(MAX_SOURCES).map(line));
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        lines
    }

    /// The steps that the user can take next, chosen by the stage at which the run failed.
    fn advice(&self) -> &'static [&'static str] {
        if self.refusal.as_ref().is_some_and(|refusal| refusal.starts_with(MIN_BITCOIN_PREFIX)) {
            return &[
                "--bitcoin URL: another source of Bitcoin's chain, an Electrum server or a Rootlight for its coinbases too",
                "without --min-bitcoin the balance is printed, with what Bitcoin says of its chain",
                "--for S: more time; rootlight doctor: tries each source alone, and says which fails",
            ];
        }
        match (self.reached.is_synced, self.reached.headers().0 > 0) {
            (true, _) => &[
                "--upstream URL: a JSON-RPC node with eth_getProof; rootlight sidecar makes a node of yours one",
                "--peer ID@HOST:PORT: a node of the peer-to-peer network with snapshot service (snap/1)",
                "--for S: more time; rootlight doctor: tries each step alone, and says which fails",
            ],
            (false, true) => &[
                "--for S: more time; --data-dir DIR: keeps the headers for the next run",
                "--checkpoint window: starts near the head on mainnet; --checkpoint NUMBER:HASH: a newer block you trust",
            ],
            (false, false) if self.finds_nodes => &[
                "look at the network: names (DNS), and UDP and TCP to ports 5050 (mainnet) or 50505 (testnet)",
                "look at --network and --checkpoint",
                "--upstream URL or --peer ID@HOST:PORT: other sources; rootlight doctor: tries each step alone",
            ],
            (false, false) => &[
                "look at the address and key of each --upstream and --peer, and at --network and --checkpoint",
                "--upstream URL or --peer ID@HOST:PORT: other sources; rootlight doctor: tries each step alone",
            ],
        }
    }
}

/// The report of a source about state, or else about the chain, with its rank as in [`FailedRun::sources`].
fn of_note(note: &SourceNote) -> (u8, String) {
    match (&note.state, &note.other) {
        (Some(Err(error)), _) => (1, error.clone()),
        (Some(Ok(())), _) => (2, "sent a proof, which was not enough".into()),
        (None, Some(Err(error))) => (3, error.clone()),
        (None, _) => (4, "answers; it was not asked for state".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(status: Value, upstreams: Value) -> FailedRun {
        FailedRun {
            reached: ClientProgress::read(&status, &upstreams),
            upstreams,
            notes: BTreeMap::new(),
            foreign: BTreeMap::new(),
            refusal: None,
            finds_nodes: true,
        }
    }

    /// More sources of state would not help.
    #[test]
    fn a_run_that_bitcoin_did_not_support_is_told_of_its_sources() {
        let mut failed = failed(json!({ "synced": true }), json!([]));
        failed.refusal = Some(format!("{MIN_BITCOIN_PREFIX}no source has shown Bitcoin's chain"));
        let text = failed.lines().join("\n");
        assert!(text.contains("--bitcoin URL: ") && !text.contains("--upstream"), "{text}");
    }

    #[test]
    fn each_source_is_listed_with_what_it_said() {
        let status =
            json!({ "synced": true, "startingBlock": "0x1", "currentBlock": "0x64", "highestBlock": "0x64" });
        let upstreams = json!([
            { "name": "https://liar.example", "misbehaviour": [{ "rule": "the proof has another root", "lie": true }, { "rule": "no response", "lie": false }] },
            { "name": "https://gone.example", "misbehaviour": [{ "rule": "no response", "lie": false }] },
            { "name": "https://other.example", "misbehaviour": [], "resting": "block 0: unlinked" },
            { "name": "https://late.example", "misbehaviour": [] },
            { "name": "peer 1 (vacant)", "misbehaviour": [], "resting": "no node is known" },
        ]);
        let said = |text: &str| Some(Err(text.to_owned()));
        let note = |state, other| SourceNote { state, other };
        let mut failed = failed(status, upstreams);
        failed.notes = BTreeMap::from([
            ("https://liar.example".to_owned(), note(Some(Ok(())), Some(Ok(())))),
            (
                "https://stock.example".to_owned(),
                note(said("upstream error -32601: no\u{1b}[2J"), Some(Ok(()))),
            ),
            ("https://quiet.example".to_owned(), note(None, Some(Ok(())))),
        ]);
        failed.foreign =
            BTreeMap::from([("https://other.example".to_owned(), "its chain id is 1".to_owned())]);
        failed.refusal = Some("no upstream gives a state proof".into());
        let expected = r"block 100 is the verified head; its state was not proven
the latest answer: no upstream gives a state proof
tried:
  https://liar.example: was caught: the proof has another root
  https://other.example: its chain id is 1
  https://stock.example: upstream error -32601: no\u001b[2J
  https://gone.example: failed: no response
  https://late.example: it was not asked
  https://quiet.example: answers; it was not asked for state
what to do:
  --upstream URL: a JSON-RPC node with eth_getProof; rootlight sidecar makes a node of yours one
  --peer ID@HOST:PORT: a node of the peer-to-peer network with snapshot service (snap/1)
  --for S: more time; rootlight doctor: tries each step alone, and says which fails";
        assert_eq!(failed.lines().join("\n"), expected);
    }

    #[test]
    fn the_stage_says_how_far_the_run_came() {
        let lines = failed(Value::Null, Value::Null).lines();
        assert_eq!(
            lines[..2],
            ["no header above the start, block 0, was verified", "tried: no node was found"]
        );
        assert!(lines[3].contains("DNS"), "{lines:?}");
        let named = FailedRun { finds_nodes: false, ..failed(Value::Null, Value::Null) }.lines();
        assert!(named[3].contains("the address and key of each --upstream"), "{named:?}");
        let status =
            json!({ "synced": false, "startingBlock": "0x0", "currentBlock": "0xa", "highestBlock": "0x64" });
        let lines = failed(status, Value::Null).lines();
        assert_eq!(lines[0], "10 of 100 headers were verified, up to block 10");
        assert!(lines[3].contains("more time"), "{lines:?}");
    }

    #[test]
    fn many_sources_fit_on_a_screen() {
        let upstreams: Vec<Value> = (0..40).map(|number| json!({ "name": format!("{number}") })).collect();
        let lines = failed(Value::Null, Value::from(upstreams)).lines();
        assert!(lines.len() < 20 && lines.contains(&"  and 32 more".to_owned()), "{lines:?}");
    }
}
