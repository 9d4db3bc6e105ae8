//! Follows Bitcoin's chain by untrusted sources: polls each, gives its headers and coinbases to the core's [`BitcoinFollower`], which
//! judges the client's own chain by them, and stores them.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rootlight::consensus::bitcoin::{
    BitcoinChain, BitcoinChainError, BitcoinNetwork, CoinbaseProofBuf, CoinbaseProofError, HEADER_LEN,
    ProvenCoinbase, SERVED_BITCOIN_HEADERS,
};
use rootlight::light::BitcoinDates;
use rootlight::light::bitcoin::{BitcoinFollower, BitcoinVerdict, DEEP_REORGANISATION};
use rootlight_limits::files;
use rootlight_limits::unix_time::unix_time;
use rootlight_upstream::UpstreamError;
use rootlight_upstream::bitcoin::{BitcoinSource, MAX_COINBASES, MAX_HEADERS, RawCoinbase};
use tracing::{info, warn};

use super::shared_light::SharedLight;

/// Name of the file inside `--data-dir`: the headers since the built-in checkpoint, and the newest coinbases.
const FILE: &str = "bitcoin.headers";
/// Longest file that is read, in bytes: more than [`SERVED_BITCOIN_HEADERS`] (129,024 packed headers, some 5.5 MB at 43 bytes each)
/// and coinbases (some 100 kB) take.
const MAX_FILE: u64 = 8 * 1024 * 1024;
/// Longest pause after failures; each further failure doubles the pause up to it.
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// Most requests for coinbases in one poll of a source; the next poll asks for the rest.
const MAX_COINBASE_REQUESTS: usize = 4;
/// Most requests for headers in one poll: half a million headers, which is more than any checkpoint is old.
const MAX_HEADER_REQUESTS: usize = 256;

/// A folder with headers of an earlier run.
#[derive(Clone, Copy)]
pub(super) struct HeaderFolder<'a> {
    pub(super) path: &'a Path,
    /// Whether this client stores new headers there; if not, another program may write to the folder.
    pub(super) is_own: bool,
}

/// The state by which a client follows Bitcoin's chain; the tasks of all its sources share it.
pub(super) struct BitcoinSync {
    shared: Arc<SharedLight>,
    /// The file in which the chain is stored.
    file: Option<PathBuf>,
    /// Pause between two polls of a source, and after a first failure.
    poll: Duration,
    /// Number of sources with different names.
    sources: usize,
    /// Names of the sources whose chains do not link to the client's.
    unlinked: Mutex<HashSet<String>>,
    /// The verdict that was logged last, and whether a hidden branch was.
    logged: Mutex<Option<(&'static str, bool)>>,
    /// Number of sources whose last poll succeeded.
    answering: AtomicUsize,
}

/// Why a poll of a source ended early.
#[derive(Debug, thiserror::Error)]
enum SourceFault {
    #[error("{0}")]
    Request(#[from] UpstreamError),
    /// The source shows a header that breaks a rule of Bitcoin.
    #[error("{0}")]
    Header(BitcoinChainError),
    /// The source follows another chain, or one that left ours too deep.
    #[error("its chain does not link to the Bitcoin chain of this client")]
    Unlinked,
    #[error("coinbase of block {height}: {error}")]
    Coinbase { height: u32, error: CoinbaseProofError },
}

/// A coinbase as a source gives it, and the header of its block.
type UnprovenCoinbase = (RawCoinbase, [u8; HEADER_LEN]);

impl BitcoinSync {
    /// Begins to judge the client's chain by Bitcoin's, if the network has one whose blocks are known. Headers of an
    /// earlier run are taken from the folder, and new ones are stored there if it is the client's own. `poll` is the
    /// pause between two polls of one of the `sources`.
    pub(super) fn start(
        shared: Arc<SharedLight>,
        folder: Option<HeaderFolder<'_>>,
        poll: Duration,
        sources: &[Arc<BitcoinSource>],
    ) -> Option<Arc<Self>> {
        let network = shared.client.sync().network().bitcoin?;
        let path = folder.map(|folder| folder.path.join(FILE));
        let restored = path.as_deref().and_then(|path| restore(path, network));
        // This client also serves Bitcoin's headers to other clients, so it holds those since the built-in checkpoint.
        let follower = restored
            .map_or_else(|| at_built_in(network), |follower| follower.keeping(SERVED_BITCOIN_HEADERS));
        info!("judging the chain by Bitcoin's, from block {}", follower.chain().tip().height);
        let mut sync = shared.client.sync_mut();
        sync.follow_bitcoin(follower);
        sync.judge_windows_by(Arc::new(BitcoinDates::since(shared.now())));
        drop(sync);
        let file = path.filter(|_| folder.is_some_and(|folder| folder.is_own));
        let sources = sources.iter().map(|source| source.name()).collect::<HashSet<_>>().len();
        let (unlinked, logged, answering) = (Mutex::default(), Mutex::new(None), AtomicUsize::new(0));
        Some(Arc::new(Self { shared, file, poll, sources, unlinked, logged, answering }))
    }

    /// Polls one source until the service is dropped.
    pub(super) async fn follow(self: Arc<Self>, source: Arc<BitcoinSource>) {
        let (mut failures, mut answers) = (0_u32, false);
        loop {
            let outcome = self.poll_once(&source).await;
            let answered = std::mem::replace(&mut answers, outcome.is_ok());
            self.count_source(answered, answers);
            self.log_verdict();
            self.note_links(source.name(), &outcome);
            let pause = match outcome {
                Ok(()) => {
                    failures = 0;
                    self.poll
                }
                Err(fault) => {
                    if failures == 0 {
                        warn!("Bitcoin source {}: {fault}; trying again later", source.name());
                    }
                    failures = failures.saturating_add(1);
                    self.poll.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_RETRY)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Number of sources whose last poll succeeded.
    pub(super) fn answering(&self) -> usize {
        self.answering.load(Ordering::Relaxed)
    }

    /// Updates the number of answering sources for one source: `answered` in the poll before, `answers` in this one.
    fn count_source(&self, answered: bool, answers: bool) {
        match (answered, answers) {
            (false, true) => self.answering.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.answering.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// Takes the headers and coinbases of a source that the client does not have. Those taken before a failure are stored too.
    async fn poll_once(&self, source: &BitcoinSource) -> Result<(), SourceFault> {
        let taken = self.take_headers(source).await;
        self.store().await;
        taken?;
        if source.offers_coinbases() {
            let taken = self.take_missing_coinbases(source).await;
            self.store().await;
            taken?;
        }
        Ok(())
    }

    /// Takes coinbases from a source. A source whose response had some of the missing coinbases is asked for the others at once.
    async fn take_missing_coinbases(&self, source: &BitcoinSource) -> Result<(), SourceFault> {
        let mut before = usize::MAX;
        for _ in 0..MAX_COINBASE_REQUESTS {
            let missing = self.with(|follower| follower.missing_coinbases());
            if missing.is_empty() || missing.len() >= before {
                break;
            }
            before = missing.len();
            let wanted = missing.get(..MAX_COINBASES).unwrap_or(&missing);
            let coinbases = source.coinbases(wanted).await?;
            self.take_coinbases(coinbases).await?;
        }
        Ok(())
    }

    /// Proves coinbases without a lock of the client's chain, and gives the client those that are right.
    async fn take_coinbases(&self, coinbases: Vec<RawCoinbase>) -> Result<(), SourceFault> {
        let (unproven, tip) = self.with(|follower| {
            let chain = follower.chain();
            let header = |coinbase: RawCoinbase| Some((chain.header_at(coinbase.height)?, coinbase));
            let unproven = coinbases.into_iter().filter_map(header).map(|(header, it)| (it, header));
            (unproven.collect::<Vec<_>>(), chain.tip().height)
        });
        let work = tokio::task::spawn_blocking(move || prove_coinbases(unproven, tip));
        // A panic of the thread says nothing of the source.
        let Ok((proven, wrong)) = work.await else { return Ok(()) };
        if !proven.is_empty() {
            let keep = move |follower: &mut BitcoinFollower| {
                proven.into_iter().for_each(|(proven, proof)| follower.keep_coinbase(&proven, Some(proof)));
            };
            self.update(keep).await;
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Requests headers from the tip on. If they do not link, requests from lower and lower heights, until the source's headers
    /// link to a block of the client's chain.
    async fn take_headers(&self, source: &BitcoinSource) -> Result<(), SourceFault> {
        let mut locator = self.with(|follower| follower.chain().locator().collect::<Vec<_>>()).into_iter();
        let mut from = locator.next().ok_or(SourceFault::Unlinked)?;
        for _ in 0..MAX_HEADER_REQUESTS {
            let headers = source.headers(from, MAX_HEADERS).await?;
            let count = u32::try_from(headers.len()).unwrap_or(MAX_HEADERS);
            match self.insert(headers).await {
                // Nothing new above our tip: the source has no more, or repeats itself.
                Ok(0) if from > self.height() => return Ok(()),
                // The source is behind, or on a shorter branch.
                Ok(_) if count == 0 => match locator.next() {
                    Some(lower) => from = lower,
                    None => return Ok(()),
                },
                // The source has no more.
                Ok(_) if count < MAX_HEADERS => return Ok(()),
                // Another source may have shown more meanwhile.
                Ok(_) => from = from.saturating_add(count).max(self.height()),
                Err(BitcoinChainError::Unlinked { .. } | BitcoinChainError::Deep { .. }) => {
                    from = locator.next().ok_or(SourceFault::Unlinked)?;
                }
                Err(error) => return Err(SourceFault::Header(error)),
            }
        }
        Ok(())
    }

    /// Inserts headers. Returns how many are new.
    async fn insert(&self, headers: Vec<[u8; HEADER_LEN]>) -> Result<usize, BitcoinChainError> {
        let inserted = self.update(move |follower| follower.insert(&headers, unix_time())).await;
        inserted.unwrap_or(Ok(0))
    }

    /// Height of the Bitcoin chain's tip.
    fn height(&self) -> u32 {
        self.with(|follower| follower.chain().tip().height)
    }

    /// Reads the follower; the default without one.
    fn with<T: Default>(&self, read: impl FnOnce(&BitcoinFollower) -> T) -> T {
        let follower = self.shared.client.sync().bitcoin().cloned();
        follower.map(|follower| read(&follower)).unwrap_or_default()
    }

    /// Changes the follower, on a blocking thread: checking two thousand headers takes milliseconds.
    async fn update<T: Send + 'static>(
        &self,
        update: impl FnOnce(&mut BitcoinFollower) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = self.shared.clone();
        let work = move || shared.client.sync_mut().update_bitcoin(update, shared.now());
        tokio::task::spawn_blocking(work).await.ok().flatten()
    }

    /// Stores the chain if the stored one is hours behind (`HeaderSync::export_bitcoin`).
    async fn store(&self) {
        let Some(path) = &self.file else { return };
        let Some(follower) = self.shared.client.sync_mut().export_bitcoin() else { return };
        let file = path.clone();
        let saved = tokio::task::spawn_blocking(move || save(&file, &follower.stored()));
        if let Ok(Err(error)) = saved.await {
            warn!("{}: {error}; Bitcoin's headers are not stored", path.display());
        }
    }

    /// Notes whether a source's chain links to the client's. If no source's does, begins again at the built-in checkpoint, because
    /// then the stored headers are not those of Bitcoin's chain.
    fn note_links(&self, source: &str, outcome: &Result<(), SourceFault>) {
        let mut unlinked = self.unlinked.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed request or a false header says nothing of the source's chain.
        match outcome {
            Ok(()) => drop(unlinked.remove(source)),
            Err(SourceFault::Unlinked) => drop(unlinked.insert(source.to_owned())),
            Err(_) => return,
        }
        if unlinked.len() < self.sources {
            return;
        }
        let mut sync = self.shared.client.sync_mut();
        let Some(network) = sync.network().bitcoin else { return };
        if sync.bitcoin().is_some_and(|follower| *follower.chain().start() != network.checkpoint) {
            warn!("no source of Bitcoin's chain links to the stored headers, which are not used any more");
            sync.follow_bitcoin(at_built_in(network));
            unlinked.clear();
        }
    }

    /// Logs the verdict about the chain when it differs from the one logged before.
    fn log_verdict(&self) {
        let now = self.shared.now().unix;
        let report = self.shared.client.sync().bitcoin().and_then(|follower| follower.report_at(now));
        let Some(report) = report else { return };
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let current = (report.verdict.name(), report.hidden.is_some());
        if logged.replace(current) == Some(current) {
            return;
        }
        match report.verdict {
            BitcoinVerdict::Held => info!("Bitcoin's blocks support this chain"),
            verdict => warn!("Bitcoin does not support this chain for sure ({}): {verdict}", verdict.name()),
        }
        if let Some(hidden) = report.hidden {
            warn!(
                "{} of Bitcoin's newest blocks name a branch that no upstream shows; it left this chain before block {}",
                hidden.tags, hidden.range.until
            );
        }
    }
}

/// A follower from the built-in checkpoint on, which holds enough headers to serve other clients.
fn at_built_in(network: BitcoinNetwork) -> BitcoinFollower {
    BitcoinFollower::resume(BitcoinChain::new(network).keeping(SERVED_BITCOIN_HEADERS))
}

/// Proves coinbases of blocks of a chain whose newest block has the height `tip`. Returns the proven coinbases, shortened, and the
/// fault of the last coinbase that no honest source sends.
fn prove_coinbases(
    unproven: Vec<UnprovenCoinbase>,
    tip: u32,
) -> (Vec<(ProvenCoinbase, CoinbaseProofBuf)>, Option<SourceFault>) {
    let (mut right, mut wrong) = (Vec::new(), None);
    for (RawCoinbase { height, proof }, header) in unproven {
        let proof = proof.as_proof();
        match proof.prove(height, &header) {
            Ok(proven) => right.push((proven, proof.shortened(height))),
            Err(error) if is_false(&error, tip.saturating_sub(height)) => {
                wrong = Some(SourceFault::Coinbase { height, error });
            }
            Err(_) => {}
        }
    }
    (right, wrong)
}

/// Whether no honest source sends such a coinbase for a block with `depth` blocks on top. Near the tip, an honest source may
/// follow another branch, whose coinbase has another Merkle root.
fn is_false(error: &CoinbaseProofError, depth: u32) -> bool {
    depth >= DEEP_REORGANISATION || !matches!(error, CoinbaseProofError::MerkleRoot { .. })
}

/// The chain of an earlier run. Its headers are verified again.
fn restore(path: &Path, network: BitcoinNetwork) -> Option<BitcoinFollower> {
    let unusable = |error: &dyn Display| {
        warn!("{}: {error}; Bitcoin's headers are fetched again", path.display());
    };
    let bytes = match files::read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            unusable(&error);
            return None;
        }
    };
    BitcoinFollower::restore(network, &bytes, unix_time()).inspect_err(|error| unusable(error)).ok()
}

/// Writes the file, whose folder is made if needed.
fn save(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    files::write(path, bytes)
}

#[cfg(test)]
#[path = "bitcoin_test.rs"]
mod tests;
