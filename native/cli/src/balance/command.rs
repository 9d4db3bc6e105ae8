//! `rootlight balance` from the flags to the end of the program: opens the sources, starts a light client, waits for the
//! balance, and prints it or a report.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight_limits::Limits;
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::{LightOptions, LightStart, first_block};
use rootlight_upstream::SharedUpstream;
use tokio::time::{Instant, sleep, timeout};

use super::account::NamedAccount;
use super::answer::{BalanceAnswer, RunFigures};
use super::args::BalanceArgs;
use super::failure::FailedRun;
use super::progress::{ClientProgress, ProgressLine, waited_for};
use super::prove::{POLL_INTERVAL, Prover, Unproven};
use super::sources::{NotedUpstream, SourceNotes};
use super::text;
use crate::error::CommandError;
use crate::print::{say, write_error};
use crate::runtime::runtime;
use crate::service_call::other_chain;
use crate::stop_signal::StopSignal;
use crate::{discovery, light, peers, verify};

/// Longest wait at the end of the program for blocking work that cannot be stopped, such as a look-up of a name.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest wait for an upstream's chain id, which the report of a failed run shows.
const CHAIN_ID_TIMEOUT: Duration = Duration::from_secs(3);

/// Proves a balance and prints it.
pub(crate) fn run(args: &BalanceArgs, is_silent: bool) -> Result<(), CommandError> {
    let network = verify::network(&args.sources.network)?;
    let account = NamedAccount::read(&args.address, &network)
        .map_err(|error| CommandError::Usage(format!("address {}: {error}", args.address)))?;
    let limits = Limits::new();
    let upstreams = light::open_upstreams(&args.sources, &network, &limits, "--upstream")?;
    let start = light::start_of(&args.sources, &network)?;
    if let Some(other) = account.other_chain.filter(|_| !is_silent) {
        let own = network.chain_id;
        write_error(format_args!(
            "note: the address has the checksum of chain id {other} (RSKIP-60), the balance is that of chain id {own}"
        ));
    }
    let options = light::options(&args.sources, limits);
    let run = BalanceRun { args, network, account, start, is_silent };
    let runtime = runtime()?;
    let outcome = runtime.block_on(run.prove(upstreams, options));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}

/// The state of one run of `rootlight balance`.
struct BalanceRun<'a> {
    args: &'a BalanceArgs,
    network: Network,
    account: NamedAccount,
    start: LightStart,
    is_silent: bool,
}

/// How a run ended.
enum RunEnd {
    Answered(Box<BalanceAnswer>),
    Failed(Unproven),
    /// The time of `--for` has passed.
    Late,
    Interrupted,
}

impl BalanceRun<'_> {
    /// Proves and prints the balance. `named` are the upstreams of `--upstream`; nodes of the peer-to-peer network are added.
    async fn prove(&self, named: Vec<SharedUpstream>, options: LightOptions) -> Result<(), CommandError> {
        let (started, sources, notes) =
            (Instant::now(), &self.args.sources, Arc::new(SourceNotes::default()));
        let start = match sources.starts_at_shown_block() {
            true => LightStart::At(first_block(&self.network, &named).await.map_err(CommandError::failed)?),
            false => self.start,
        };
        let mut upstreams = named.clone();
        upstreams.extend(peers::upstreams(sources, &self.network, &start, &options.limits).await?);
        let upstreams =
            upstreams.into_iter().map(|upstream| NotedUpstream::wrap(upstream, notes.clone())).collect();
        let mut stop = StopSignal::listen();
        let service = light::launch(sources, self.network.clone(), start, upstreams, options)?;
        let prover = Prover {
            service: &service,
            account: self.account.address,
            block: self.args.block,
            finds_nodes: discovery::is_wanted(sources),
            demands_bitcoin: sources.min_bitcoin.is_some(),
            // `None` is less than `Some(0)`.
            demands_age: sources.min_depth > 0 || sources.min_bitcoin > Some(0),
            refusal: Mutex::default(),
        };
        let end = self.wait(&prover, &notes, &mut stop).await;
        match end {
            RunEnd::Answered(answer) => {
                let (_, upstreams) = prover.progress().await;
                self.print(&answer, notes.provers(&upstreams), notes.bytes(), started)?;
                Ok(())
            }
            RunEnd::Failed(Unproven::Block) => {
                let (status, upstreams) = prover.progress().await;
                let [_, head, _] = ClientProgress::read(&status, &upstreams).blocks;
                Err(CommandError::failed(format!(
                    "the verified chain has no such block; its newest one is {head}"
                )))
            }
            RunEnd::Interrupted => Err(CommandError::failed("interrupted; nothing is proven")),
            RunEnd::Failed(_) | RunEnd::Late => {
                self.report(&prover, &notes, &named).await;
                Err(CommandError::failed(self.failure(&end)))
            }
        }
    }

    /// Shows the progress until the run ends.
    async fn wait(&self, prover: &Prover<'_>, notes: &SourceNotes, stop: &mut StopSignal) -> RunEnd {
        let mut line = ProgressLine::to_stderr(self.is_silent);
        let show = async {
            loop {
                let (status, upstreams) = prover.progress().await;
                line.show(&waited_for(&ClientProgress::read(&status, &upstreams), prover.finds_nodes, notes));
                sleep(POLL_INTERVAL).await;
            }
        };
        let end = tokio::select! {
            proven = timeout(Duration::from_secs(self.args.seconds), prover.prove()) => match proven {
                Ok(Ok(answer)) => RunEnd::Answered(Box::new(answer)),
                Ok(Err(unproven)) => RunEnd::Failed(unproven),
                Err(_) => RunEnd::Late,
            },
            () = stop.received() => RunEnd::Interrupted,
            // `show` never ends.
            () = show => RunEnd::Late,
        };
        line.clear();
        end
    }

    fn print(
        &self,
        answer: &BalanceAnswer,
        provers: Vec<String>,
        bytes: u64,
        started: Instant,
    ) -> Result<(), CommandError> {
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let run = RunFigures { provers, milliseconds, bytes, now: unix_time() };
        if self.args.json {
            let object = answer.to_json(&self.network, &run);
            say!("{}", serde_json::to_string_pretty(&object).map_err(CommandError::failed)?);
            return Ok(());
        }
        // Only a block that the user names is written NUMBER:HASH.
        let is_built_in = self.args.sources.checkpoint.as_deref().is_none_or(|text| !text.contains(':'));
        for line in text::lines(answer, &self.network, &run, is_built_in) {
            say!("{line}");
        }
        Ok(())
    }

    /// Says on stderr how far the run came, what was tried, and what to do.
    async fn report(&self, prover: &Prover<'_>, notes: &SourceNotes, named: &[SharedUpstream]) {
        let (status, upstreams) = prover.progress().await;
        let expected = self.network.chain_id;
        let foreign = named.iter().map(|upstream| async move {
            let asked = timeout(CHAIN_ID_TIMEOUT, other_chain(upstream, expected)).await;
            // An upstream that does not answer, or is of the expected chain, is not listed.
            Some((upstream.name().to_owned(), asked.ok()?.ok()??))
        });
        let foreign = futures::future::join_all(foreign).await;
        let failed = FailedRun {
            reached: ClientProgress::read(&status, &upstreams),
            upstreams,
            notes: notes.all(),
            foreign: foreign.into_iter().flatten().collect::<BTreeMap<_, _>>(),
            refusal: prover.refusal(),
            finds_nodes: prover.finds_nodes,
        };
        for line in failed.lines() {
            write_error(format_args!("{line}"));
        }
    }

    /// The error of a run that ended without an answer.
    fn failure(&self, end: &RunEnd) -> String {
        let account = self.account.address;
        match end {
            RunEnd::Failed(Unproven::Chain) => {
                "no source gave the chain, so the balance is not proven".into()
            }
            RunEnd::Failed(_) => format!("no source proved the balance of {account:#x}"),
            _ => format!("the balance of {account:#x} was not proven within {} s", self.args.seconds),
        }
    }
}
