//! Replays blocks on the proven part of their parent's state, for the traces of a light client.
//!
//! The run treats missing data as absent. Afterwards every key that it read or wrote is looked up again. Unless all
//! of them are proven, present or absent, the outcome is discarded and the missing ones are fetched. A remaining
//! outcome has also produced the receipts, gas, fees and bloom that the block's header commits to. The state root cannot be
//! compared, because it needs the whole state. So nothing would show a wrong effect of a native contract's method that this
//! version does not simulate: traces of a block that calls such a method are refused.

use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use core::cell::RefCell;

use alloy_primitives::{Address, B256, U256};

use super::{BlockHeader, Chain, Refusal, Stop, View, ViewResult};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    evm::Inspector,
    exec::{
        Ancestry, BlockContext, BlockError, BlockInput, BlockObserver, Executed, ExecutedBlock, NoObserver,
        OnUnsimulated, execute_in,
    },
    light::KnownFacts,
    state::{
        Access, AccessKey, Account, Fact, Facts, StateError, StateReader, TrieState, World,
        keys::{REMASC_SENDER_KEY, storage_root_key},
    },
    trie::{LoadError, PartialTrie, Trie},
    types::{BlockRef, Header, REMASC_ADDRESS, SealedHeader, Transaction},
};

/// Executes a block again on its parent's proven state.
///
/// # Errors
/// Missing facts that the run reads; a refusal if they cannot be proven, the outcome differs from the header, or the block
/// calls a method of a native contract that is not simulated.
pub(super) fn replay(
    view: &dyn View,
    known: KnownFacts<'_>,
    header: &BlockHeader,
    observer: &mut dyn BlockObserver,
) -> ViewResult<()> {
    if header.number == 0 {
        return Ok(());
    }
    execute(view, known, header, OnUnsimulated::Refuse, observer).map(drop)
}

/// The receipts of a block, by executing it again. The comparison of their root with the header proves them, even if the block calls
/// a method that is not simulated.
///
/// # Errors
/// Missing facts that the run reads; a refusal if they cannot be proven or the outcome differs from the header.
pub(super) fn executed_receipts(
    view: &dyn View,
    known: KnownFacts<'_>,
    header: &BlockHeader,
) -> ViewResult<VerifiedReceipts> {
    if header.number == 0 {
        return Ok(VerifiedReceipts::executed(header, Vec::new()));
    }
    let executed = execute(view, known, header, OnUnsimulated::Fail, &mut NoObserver)?;
    Ok(VerifiedReceipts::executed(header, executed.receipts))
}

/// Executes a block and compares the outcome with its header; `unsimulated` says what happens at a method that is not simulated.
fn execute(
    view: &dyn View,
    known: KnownFacts<'_>,
    header: &BlockHeader,
    unsimulated: OnUnsimulated,
    observer: &mut dyn BlockObserver,
) -> ViewResult<ExecutedBlock> {
    let body = view.body(header)?;
    let Some(parent) = view.header_by_hash(header.parent_hash)? else {
        let (block, ancestor) =
            (BlockRef { number: header.number, hash: header.hash() }, header.number.saturating_sub(1));
        return Err(Stop::Refused(Refusal::OffChain { block, ancestor }));
    };
    // This refuses a block before the Unitrie (RSKIP-126), whose state cannot be proven.
    view.state(&parent)?;
    let senders = senders(&body, view.policy().network.chain_id);
    let replay = BlockReplay { view, known, header, parent: &parent, body: &body, senders };
    replay.require_proven(&mut replay.parties().into_iter().map(AccessKey::Account))?;
    replay.run(unsimulated, observer)
}

/// One execution of a block on the state of its parent.
struct BlockReplay<'a> {
    view: &'a dyn Chain,
    known: KnownFacts<'a>,
    header: &'a BlockHeader,
    parent: &'a BlockHeader,
    body: &'a VerifiedBody,
    /// The senders of the transactions; `None` if a signature is invalid, which the run reports.
    senders: Option<Vec<Address>>,
}

/// Recovers the senders of a body's transactions. The last transaction of a block calls REMASC, the contract that pays the fees
/// out to miners; it has no signature, and the zero address stands for its sender.
fn senders(body: &VerifiedBody, chain_id: u64) -> Option<Vec<Address>> {
    let sender = |transaction: &Transaction| match transaction.is_remasc() {
        true => Some(Address::ZERO),
        false => transaction.recover_sender(chain_id).ok(),
    };
    body.transactions().iter().map(sender).collect()
}

impl BlockReplay<'_> {
    /// Accounts that every run of the block reads, so that the first round requests all of them.
    fn parties(&self) -> BTreeSet<Address> {
        let transactions = self.body.transactions().iter().filter(|transaction| !transaction.is_remasc());
        let senders = self.senders.iter().flatten().filter(|sender| !sender.is_zero());
        let recipients = transactions.filter_map(|transaction| transaction.to);
        senders.copied().chain(recipients).chain([REMASC_ADDRESS]).collect()
    }

    /// Executes the block on the known part of the state, then checks that everything it read was proven.
    fn run(&self, unsimulated: OnUnsimulated, observer: &mut dyn BlockObserver) -> ViewResult<ExecutedBlock> {
        let policy = self.view.policy();
        let known_part =
            PartialTrie::new(&self.known, self.parent.state_root, policy.interrupt).map_err(|error| {
                Stop::Refused(match error {
                    LoadError::Interrupted => Refusal::Interrupted,
                    // Missing nodes are no error here, so a node is there and breaks a rule.
                    _ => Refusal::UnreadableState { number: self.parent.number },
                })
            })?;
        let ancestors = Ancestors { view: self.view, header: self.header, stop: RefCell::new(None) };
        let mut recorder = KeyRecorder { inner: observer, keys: BTreeSet::new(), listed: BTreeSet::new() };
        let mut context = BlockContext::new(policy.network, self.header.header().into(), &ancestors);
        (context.interrupt, context.unsimulated) = (policy.interrupt, unsimulated);
        let input = BlockInput {
            header: self.header.header(),
            transactions: self.body.transactions(),
            senders: self.senders.as_deref(),
        };
        let executed = execute_in(&context, &self.base(&known_part), &input, &mut recorder);
        if policy.interrupted() {
            return Err(Stop::Refused(Refusal::Interrupted));
        }
        // Missing keys come before the missing data of ancestors: a run on incomplete state may read the wrong ancestors.
        self.require_proven(&mut recorder.keys.iter().copied())?;
        if let Some(stop) = ancestors.stop.take() {
            return Err(stop);
        }
        let is_incomplete = |contract: &&Address| !known_part.is_whole_below(&storage_root_key(contract));
        let unlisted = recorder.listed.iter().find(is_incomplete);
        if let Some(contract) = unlisted {
            return Err(Stop::Refused(Refusal::StorageNotListed(*contract)));
        }
        self.check(executed)
    }

    /// The known part of the parent's state as a trie that the run can change. The root of this trie differs from the state root
    /// and is not used.
    fn base(&self, known_part: &PartialTrie<'_>) -> Trie {
        let mut base = known_part.trie().clone();
        // The account of REMASC's sender holds only a nonce, which counts blocks. The REMASC transaction states this nonce, and
        // the body that contains the transaction is verified, so the account need not be fetched.
        let count = self.body.transactions().last().map_or(U256::ZERO, |remasc| remasc.nonce.value());
        // The count fits into 64 bits. With a greater one the run would fail, because the nonces of account and transaction differ.
        let counter = Account { nonce: u64::try_from(count).unwrap_or_default(), ..Account::default() };
        base.put(&REMASC_SENDER_KEY, counter.encode());
        base
    }

    /// Checks that all of these keys are proven.
    ///
    /// # Errors
    /// The missing facts, or a refusal if the state is corrupt.
    fn require_proven(&self, keys: &mut dyn Iterator<Item = AccessKey>) -> ViewResult<()> {
        let state = TrieState::new(self.known, self.parent.state_root);
        let block = BlockRef { number: self.parent.number, hash: self.parent.hash() };
        let mut facts = Facts::new();
        for key in keys {
            for read in reads(&state, &key) {
                match read {
                    Ok(()) => {}
                    Err(StateError::Missing(key)) => drop(facts.insert(Fact::State(block, key))),
                    Err(corrupt) => return Err(Stop::Refused(Refusal::CorruptState(corrupt))),
                }
            }
        }
        if facts.is_empty() {
            return Ok(());
        }
        Err(Stop::Missing(facts))
    }

    /// Compares the outcome with the header, except for the state root, which needs the whole state.
    fn check(&self, executed: Result<ExecutedBlock, BlockError>) -> ViewResult<ExecutedBlock> {
        let checked = executed.and_then(|executed| {
            executed.check_apart_from_state(self.header.header(), self.view.policy().network)?;
            Ok(executed)
        });
        checked.map_err(|error| Stop::Refused(Refusal::of_replay(self.header, error)))
    }
}

/// All reads that a key stands for: for an account also its code, and the trie node that marks it as a contract.
fn reads<'a>(
    state: &'a dyn StateReader,
    key: &AccessKey,
) -> Box<dyn Iterator<Item = Result<(), StateError>> + 'a> {
    match *key {
        AccessKey::Cell(address, slot) => {
            Box::new(core::iter::once(state.storage(&address, &slot).map(drop)))
        }
        AccessKey::Account(address) => Box::new(
            [
                state.account(&address).map(drop),
                state.code(&address).map(drop),
                state.is_contract(&address).map(drop),
            ]
            .into_iter(),
        ),
    }
}

/// Records the keys of a run and forwards events to the actual observer.
struct KeyRecorder<'o> {
    inner: &'o mut dyn BlockObserver,
    /// Keys that were read or written.
    keys: BTreeSet<AccessKey>,
    /// Contracts whose whole storage was listed, for a trace.
    listed: BTreeSet<Address>,
}

impl BlockObserver for KeyRecorder<'_> {
    fn inspector(&mut self, index: usize) -> Option<&mut dyn Inspector> {
        self.inner.inspector(index)
    }

    fn watches_access(&self) -> bool {
        true
    }

    fn accessed(&mut self, index: usize, access: &Access) {
        self.keys.extend(access.keys.iter().copied());
        self.listed.extend(access.listed.iter().copied());
        self.inner.accessed(index, access);
    }

    fn ancestors(&mut self, headers: &BTreeSet<u64>, uncles: &BTreeSet<u64>) {
        self.inner.ancestors(headers, uncles);
    }

    fn watches_state(&self, index: usize) -> bool {
        self.inner.watches_state(index)
    }

    fn state(&mut self, index: usize, before: &mut World, after: &mut World, access: &Access) {
        self.inner.state(index, before, after, access);
    }

    fn remasc_payment(&mut self, to: Address, value: U256) {
        self.inner.remasc_payment(to, value);
    }

    // Only tracers that are scripts read the state here, and browser modules have none.
    #[cfg(feature = "catalogue")]
    fn ended(&mut self, index: usize, executed: &Executed<'_>, state: &mut dyn crate::evm::LiveState) {
        self.inner.ended(index, executed, state);
    }

    fn executed(&mut self, index: usize, executed: &Executed<'_>) {
        self.inner.executed(index, executed);
    }
}

/// The verified ancestors of a block, as the run reads them. If an ancestor's data is missing or refused, the outcome of the run is
/// discarded.
struct Ancestors<'a> {
    view: &'a dyn Chain,
    header: &'a BlockHeader,
    /// Why the first unavailable ancestor is unavailable.
    stop: RefCell<Option<Stop>>,
}

impl Ancestors<'_> {
    fn ancestor(&self, number: u64) -> Option<BlockHeader> {
        self.note(self.view.ancestor(self.header.parent_hash, number))?
    }

    /// Returns the value; on an error, records the first one and returns `None`.
    fn note<T>(&self, read: ViewResult<T>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(stop) => {
                self.stop.borrow_mut().get_or_insert(stop);
                None
            }
        }
    }
}

impl Ancestry for Ancestors<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        let header = self.ancestor(number)?;
        let shown = self.view.shows_work(&header).then(|| header.sealed().clone());
        self.note(shown.ok_or(Stop::Refused(Refusal::NoWork(number))))
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = self.note(self.view.uncles(&self.ancestor(number)?))?;
        Some(uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        let total = self.note(self.view.total_difficulty(self.ancestor(number)?.hash()))?;
        self.note(total.ok_or(Stop::Refused(Refusal::NoTotalDifficulty(number))))
    }

    fn hash(&self, number: u64) -> Option<B256> {
        self.ancestor(number).map(|header| header.hash())
    }
}
