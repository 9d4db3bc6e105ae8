//! Polled filters on the recorded chain and its side branches: the logs that a reorganisation removes and those that
//! it adds.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, Bytes, U256, address};
use rootlight::consensus::{
    HeaderCandidate, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles,
};
use rootlight::engine::{
    BlockHeader, Chain as _, ExportedFilter, FILTER_IDLE, FilterChanges, FilterLimit, FilterOwner,
    FilterSpec, Filters, LogFilter, MAX_FILTERS, MAX_PENDING, Policy, Pool, SUBSCRIPTION_IDLE, State,
    SyncProgress, TransactionLocation, View, ViewResult,
};
use rootlight::rpc::RpcError;
use rootlight::state::StateReader;
use rootlight::trie::WalkError;
use rootlight::types::{Asker, BlockRef};
use rootlight::types::{Receipt, Transaction, json};
use serde_json::Value;
use support::chain::{hash, lines, text};
use support::{bytes, shared, u64_of};

/// Recorded blocks of all branches.
struct Branches {
    network: Network,
    headers: BTreeMap<B256, VerifiedHeader>,
    blocks: BTreeMap<B256, Value>,
    side_logs: BTreeMap<B256, Value>,
    /// Receipts of canonical blocks, by transaction.
    raw_receipts: BTreeMap<B256, Bytes>,
    canonical: BTreeMap<u64, B256>,
}

impl Branches {
    fn load() -> Option<Self> {
        let chain = shared()?.join("vectors/chain");
        let network = Network::regtest();
        let (mut headers, mut blocks, mut canonical) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut side_logs, mut raw_receipts) = (BTreeMap::new(), BTreeMap::new());
        let files =
            [("blocks", true), ("side_blocks", false), ("receipt_nodes", true), ("receipts_raw", true)];
        for (file, main) in files {
            for line in lines(&chain.join(format!("{file}.jsonl"))) {
                let result = &line["response"]["result"];
                match text(&line["request"], "method") {
                    "eth_getBlockByNumber" | "eth_getBlockByHash" if result.is_object() => {
                        let (number, block) = (u64_of(text(result, "number")), hash(text(result, "hash")));
                        if !main || (400..=676).contains(&number) {
                            headers.insert(block, header(result, &network));
                            blocks.insert(block, result.clone());
                        }
                        if main {
                            canonical.insert(number, block);
                        }
                    }
                    "eth_getLogs" => {
                        let block = hash(line["request"]["params"][0]["blockHash"].as_str().unwrap());
                        side_logs.insert(block, result.clone());
                    }
                    "rsk_getRawTransactionReceiptByHash" if result.is_string() => {
                        let transaction = hash(line["request"]["params"][0].as_str().unwrap());
                        raw_receipts.insert(transaction, bytes(result.as_str().unwrap()));
                    }
                    _ => {}
                }
            }
        }
        Some(Self { network, headers, blocks, side_logs, raw_receipts, canonical })
    }

    /// The chain that ends at a block.
    fn at(&self, head: B256) -> BranchView<'_> {
        let (mut own, mut at) = (BTreeMap::new(), self.headers[&head].clone());
        while self.canonical.get(&at.number) != Some(&at.hash()) {
            own.insert(at.number, at.hash());
            at = self.headers[&at.parent_hash].clone();
        }
        BranchView { all: self, head, own, fork: at.number, syncing: None, policy: Policy::of(&self.network) }
    }

    fn main(&self, number: u64) -> BranchView<'_> {
        self.at(self.canonical[&number])
    }
}

fn header(block: &Value, network: &Network) -> VerifiedHeader {
    let shape = |number| network.header_shape(number);
    let header = json::header_from_json(&block.to_string(), None, &shape).unwrap();
    VerifiedHeader::alone(HeaderCandidate::from(header), network).unwrap()
}

struct BranchView<'a> {
    all: &'a Branches,
    head: B256,
    own: BTreeMap<u64, B256>,
    fork: u64,
    syncing: Option<SyncProgress>,
    policy: Policy<'a>,
}

impl BranchView<'_> {
    fn hash_at(&self, number: u64) -> Option<B256> {
        match self.own.get(&number) {
            Some(hash) => Some(*hash),
            None if number <= self.fork => self.all.canonical.get(&number).copied(),
            None => None,
        }
    }
}

impl rootlight::engine::Chain for BranchView<'_> {
    fn policy(&self) -> &Policy<'_> {
        &self.policy
    }

    fn head(&self) -> ViewResult<BlockHeader> {
        Ok((&self.all.headers[&self.head]).into())
    }

    fn header_by_number(&self, number: u64) -> ViewResult<Option<BlockHeader>> {
        Ok(self.hash_at(number).map(|hash| (&self.all.headers[&hash]).into()))
    }

    fn header_by_hash(&self, hash: B256) -> ViewResult<Option<BlockHeader>> {
        Ok(self.all.headers.get(&hash).map(Into::into))
    }

    fn is_canonical(&self, block: BlockRef) -> bool {
        self.hash_at(block.number) == Some(block.hash)
    }

    fn total_difficulty(&self, _: B256) -> ViewResult<Option<U256>> {
        Ok(None)
    }

    fn body(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedBody>> {
        let transactions = self.all.blocks[&header.hash()]["transactions"].as_array().unwrap();
        let read = |tx: &Value| {
            json::transaction_from_json(&tx.to_string(), None, self.policy.network.chain_id).unwrap()
        };
        let body = VerifiedBody::check(
            header.verified().unwrap(),
            transactions.iter().map(read).collect(),
            self.policy.network,
        );
        Ok(Arc::new(body.unwrap()))
    }

    fn uncles(&self, _: &BlockHeader) -> ViewResult<Arc<VerifiedUncles>> {
        unreachable!("filters read no uncles")
    }

    fn receipts(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>> {
        let transactions = self.all.blocks[&header.hash()]["transactions"].as_array().unwrap();
        let side = self.all.side_logs.get(&header.hash());
        let read = |(index, transaction): (u64, &Value)| {
            let raw = &self.all.raw_receipts[&hash(text(transaction, "hash"))];
            let receipt = Receipt::decode(raw).unwrap();
            let Some(side) = side else { return receipt };
            // On a side branch the same transaction used the same gas; its logs were recorded for the side block.
            let own = |log: &&Value| u64_of(text(log, "transactionIndex")) == index;
            let logs = side.as_array().unwrap().iter().filter(own);
            let logs = logs.map(|log| json::log_from_json(&log.to_string()).unwrap()).collect();
            Receipt::new(receipt.success, receipt.cumulative_gas_used, receipt.gas_used, logs)
        };
        let receipts = (0..).zip(transactions).map(read).collect();
        Ok(Arc::new(
            VerifiedReceipts::check(header.verified().unwrap(), receipts, self.policy.network).unwrap(),
        ))
    }

    fn locate(&self, _: B256, _: Option<&Arc<Transaction>>) -> ViewResult<TransactionLocation> {
        Ok(TransactionLocation::Unknown)
    }
}

impl State for BranchView<'_> {
    fn state<'a>(&'a self, _: &BlockHeader) -> ViewResult<Box<dyn StateReader + 'a>> {
        unreachable!("filters read no state")
    }

    fn prove(&self, _: &BlockHeader, _: &[u8]) -> Result<Vec<Bytes>, WalkError> {
        unreachable!("filters prove nothing")
    }

    fn node_hash(&self, _: &BlockHeader, _: &[u8]) -> Result<Option<B256>, WalkError> {
        unreachable!("filters prove nothing")
    }
}

impl Pool for BranchView<'_> {}

impl View for BranchView<'_> {
    fn syncing(&self) -> Option<SyncProgress> {
        self.syncing
    }
}

/// A recorded side branch: blocks 669 to 673.
fn deep_branch(all: &Branches) -> B256 {
    *all.headers.keys().find(|hash| format!("{hash}").starts_with("0xcdb54bd3")).unwrap()
}

fn hashes(changes: FilterChanges) -> Vec<B256> {
    match changes {
        FilterChanges::Hashes(hashes) => hashes,
        other => panic!("{other:?}"),
    }
}

/// Block number and `removed` flag of each log.
fn marks(changes: FilterChanges) -> Vec<(u64, bool)> {
    match changes {
        FilterChanges::Logs(logs) => logs.iter().map(|(log, removed)| (log.block.number, *removed)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_filter_reports_the_new_branch() {
    let Some(all) = Branches::load() else { return };
    let (side, main) = (all.at(deep_branch(&all)), all.main(674));
    let mut filters = Filters::new(B256::repeat_byte(1));
    let id = filters.install(FilterSpec::Blocks, &all.main(667), 0).unwrap().unwrap();
    let first = hashes(filters.poll(id, &side, 1).unwrap().unwrap());
    assert_eq!(first.len(), 6, "668 and five blocks of the branch");
    assert_eq!(*first.last().unwrap(), side.head);
    assert!(hashes(filters.poll(id, &side, 2).unwrap().unwrap()).is_empty());
    let second = hashes(filters.poll(id, &main, 3).unwrap().unwrap());
    let want: Vec<B256> = (669..=674).map(|number| all.canonical[&number]).collect();
    assert_eq!(second, want);
}

#[test]
fn a_log_filter_removes_and_adds_logs_in_a_reorganisation() {
    let Some(all) = Branches::load() else { return };
    let (side, main) = (all.at(deep_branch(&all)), all.main(674));
    let mut filters = Filters::new(B256::repeat_byte(1));
    let spec = |from, to| FilterSpec::Logs { filter: LogFilter::default(), from, to };
    let id = filters.install(spec(668, None), &all.main(667), 0).unwrap().unwrap();
    let short = filters.install(spec(668, Some(670)), &all.main(667), 0).unwrap().unwrap();
    let first = marks(filters.poll(id, &side, 1).unwrap().unwrap());
    assert!(first.iter().all(|(_, removed)| !removed) && first.last().unwrap().0 == 673, "{first:?}");
    assert!(marks(filters.poll(short, &side, 1).unwrap().unwrap()).iter().all(|(number, _)| *number <= 670));

    let second = marks(filters.poll(id, &main, 2).unwrap().unwrap());
    let removed: Vec<u64> =
        second.iter().filter(|(_, removed)| *removed).map(|(number, _)| *number).collect();
    let changes: Vec<u64> = first.iter().map(|(number, _)| *number).filter(|number| *number > 668).collect();
    assert_eq!(removed, changes, "all reported logs of the branch, in order");
    let added: Vec<_> = second.iter().skip_while(|(_, removed)| *removed).collect();
    assert!(added.iter().all(|(number, removed)| !removed && (669..=674).contains(number)));
    assert_eq!(added.len() + removed.len(), second.len());
    let short = marks(filters.poll(short, &main, 2).unwrap().unwrap());
    assert!(!short.is_empty() && short.iter().all(|(number, _)| (669..=670).contains(number)), "{short:?}");
    // A query of the whole range returns the logs that are canonical now.
    let all_logs = filters.all_logs(id, &main, 3).unwrap().unwrap();
    assert!(all_logs.iter().all(|log| main.is_canonical(log.block)));
}

#[test]
fn a_log_filter_selects_addresses_and_blocks() {
    let Some(all) = Branches::load() else { return };
    let remasc = address!("0000000000000000000000000000000001000008");
    let filter = LogFilter { addresses: vec![remasc], topics: vec![] };
    let mut filters = Filters::new(B256::ZERO);
    let main = all.main(674);
    let spec = FilterSpec::Logs { filter: filter.clone(), from: 672, to: None };
    let id = filters.install(spec, &main, 0).unwrap().unwrap();
    let Some(FilterChanges::Logs(logs)) = filters.poll(id, &main, 0).unwrap() else { panic!("no logs") };
    assert!(!logs.is_empty() && logs.iter().all(|(log, _)| log.log.address == remasc));
    let by_hash = FilterSpec::BlockLogs { filter, block: deep_branch(&all) };
    let id = filters.install(by_hash, &main, 0).unwrap().unwrap();
    assert!(!marks(filters.poll(id, &main, 0).unwrap().unwrap()).is_empty(), "a side block too");
    assert!(marks(filters.poll(id, &main, 0).unwrap().unwrap()).is_empty(), "once");
}

#[test]
fn idle_filters_expire_and_ids_are_unpredictable() {
    let Some(all) = Branches::load() else { return };
    let main = all.main(670);
    let mut filters = Filters::new(B256::repeat_byte(7));
    let pending = filters.install(FilterSpec::Pending, &main, 100).unwrap().unwrap();
    let blocks = filters.install(FilterSpec::Blocks, &main, 100).unwrap().unwrap();
    assert!(pending >> 127 == 1 && pending != blocks);
    filters.pending(B256::repeat_byte(9), 0.into());
    let later = 100 + FILTER_IDLE;
    assert_eq!(hashes(filters.poll(pending, &main, later).unwrap().unwrap()), [B256::repeat_byte(9)]);
    assert!(hashes(filters.poll(pending, &main, later).unwrap().unwrap()).is_empty());
    assert!(filters.poll(blocks, &main, later + 1).unwrap().is_none(), "it was not polled");
    assert!(filters.uninstall(pending) && !filters.uninstall(pending));
    assert!(filters.poll(pending, &main, later).unwrap().is_none());
}

#[test]
fn an_overtaken_poll_removes_nothing() {
    let Some(all) = Branches::load() else { return };
    let (older, newer) = (all.main(670), all.main(674));
    let mut filters = Filters::new(B256::ZERO);
    let id = filters.install(FilterSpec::Blocks, &all.main(667), 100).unwrap().unwrap();
    assert_eq!(hashes(filters.poll(id, &newer, 110).unwrap().unwrap()).len(), 7);
    assert!(hashes(filters.poll(id, &older, 105).unwrap().unwrap()).is_empty());
    assert!(hashes(filters.poll(id, &newer, 111).unwrap().unwrap()).is_empty(), "reported before");
}

#[test]
fn a_subscription_reports_only_later_blocks() {
    let Some(all) = Branches::load() else { return };
    let (before, side, main) = (all.main(671), all.at(deep_branch(&all)), all.main(674));
    let mut filters = Filters::new(B256::ZERO);
    let spec = FilterSpec::Logs { filter: LogFilter::default(), from: 600, to: Some(601) };
    let logs = filters.subscribe(spec, &before, 0).unwrap().unwrap();
    let heads = filters.subscribe(FilterSpec::Heads, &before, 0).unwrap().unwrap();
    assert!(
        marks(filters.poll(logs, &before, 1).unwrap().unwrap()).is_empty(),
        "no earlier logs of its range"
    );
    // The branch forks off below the block that was the newest.
    let changes = marks(filters.poll(logs, &side, 2).unwrap().unwrap());
    assert!(changes.iter().all(|(number, removed)| !removed && (669..=673).contains(number)), "{changes:?}");
    let back = marks(filters.poll(logs, &main, 3).unwrap().unwrap());
    assert!(
        back.iter().zip(&changes).all(|(back, changes)| *back == (changes.0, true))
            && back.len() > changes.len()
    );
    let Some(FilterChanges::Heads(new)) = filters.poll(heads, &main, 3).unwrap() else {
        panic!("no headers")
    };
    assert_eq!(new.iter().map(|header| header.number).collect::<Vec<_>>(), [672, 673, 674]);
    // A subscription keeps no logs, and expires.
    assert!(filters.all_logs(logs, &main, 4).unwrap().is_none());
    assert!(filters.poll(heads, &main, 3 + SUBSCRIPTION_IDLE).unwrap().is_some());
    assert!(filters.poll(logs, &main, 4 + SUBSCRIPTION_IDLE).unwrap().is_none());
}

#[test]
fn the_beginning_and_the_end_of_synchronization_are_reported() {
    let Some(all) = Branches::load() else { return };
    let mut chain = all.main(670);
    let mut filters = Filters::new(B256::ZERO);
    let id = filters.subscribe(FilterSpec::Syncing, &chain, 0).unwrap().unwrap();
    let mut poll = |chain: &BranchView<'_>| filters.poll(id, chain, 1).unwrap().unwrap();
    assert_eq!(poll(&chain), FilterChanges::Syncing(None));
    let progress = SyncProgress { starting: 0, current: 670, highest: 700 };
    chain.syncing = Some(progress);
    assert_eq!(poll(&chain), FilterChanges::Syncing(Some(Some(progress))));
    chain.syncing = Some(SyncProgress { current: 690, ..progress });
    assert_eq!(poll(&chain), FilterChanges::Syncing(None), "once");
    chain.syncing = None;
    assert_eq!(poll(&chain), FilterChanges::Syncing(Some(None)));
}

#[test]
fn the_number_of_filters_is_limited_and_idle_ones_make_room() {
    let Some(all) = Branches::load() else { return };
    let main = all.main(670);
    let mut filters = Filters::new(B256::ZERO);
    for _ in 0..MAX_FILTERS {
        filters.install(FilterSpec::Pending, &main, 0).unwrap().unwrap();
    }
    assert_eq!(filters.install(FilterSpec::Pending, &main, FILTER_IDLE), Ok(Err(FilterLimit::All)));
    assert_eq!((filters.len(), MAX_FILTERS), (4_096, 4_096));
    assert!(filters.install(FilterSpec::Pending, &main, FILTER_IDLE + 1).unwrap().is_ok());
    assert_eq!(filters.len(), 1, "the idle filters were dropped");
}

/// All pages in a browser, and all programs of this machine, have one address.
#[test]
fn pages_have_a_part_of_the_filters_of_their_caller_and_its_programs_come_first() {
    let Some(all) = Branches::load() else { return };
    let main = all.main(670);
    let mut filters = Filters::new(B256::ZERO);
    let mut install = |page: Option<&str>, frame, now| {
        filters
            .set_owner(FilterOwner { asker: Asker::from(7).on_page(page, frame), ..FilterOwner::default() });
        let made = filters.install(FilterSpec::Pending, &main, now).unwrap().map(drop);
        (made, filters.len())
    };
    let [evil, other, null] = ["https://evil.example", "https://other.example", "null"].map(Some);
    let part = MAX_FILTERS / 4;
    (0..part).for_each(|_| assert!(install(evil, 0, 0).0.is_ok()));
    assert_eq!(install(evil, 0, 1), (Err(FilterLimit::Pages), part), "the page has all that pages have");
    assert_eq!(install(other, 0, 1), (Ok(()), part), "the page with the most loses one");
    assert_eq!(install(null, 1, 1), (Ok(()), part));
    for made in 1..=MAX_FILTERS - part {
        assert_eq!(install(None, 0, 1), (Ok(()), part + made));
    }
    assert_eq!(install(None, 0, 1), (Ok(()), MAX_FILTERS), "the pages lose one");
    // Frames that send no origin are one page.
    let nulls =
        (0..MAX_FILTERS).filter(|frame| install(null, u64::try_from(*frame).unwrap(), 2).0.is_ok()).count();
    assert!((part / 3..part).contains(&nulls), "{nulls}");
    assert!(install(other, 0, 3).0.is_ok(), "the others have fewer");
    (1..part).for_each(|_| assert!(install(None, 0, 3).0.is_ok()));
    assert_eq!(install(None, 0, 3), (Err(FilterLimit::All), MAX_FILTERS), "all are those of programs");
    assert_eq!(install(evil, 0, 3), (Err(FilterLimit::All), MAX_FILTERS));
}

#[test]
fn errors_about_filters_name_the_limit_that_was_reached() {
    let text = |limit| RpcError::TooManyFilters(limit).to_string();
    assert_eq!(
        text(FilterLimit::All),
        "Limit exceeded: all filters together may be 4096 with 64 MiB; uninstall some"
    );
    assert_eq!(
        text(FilterLimit::Pages),
        "Limit exceeded: all web pages at one address together may have 1024 filters with 16 MiB; uninstall some, or close \
         other pages"
    );
}

#[test]
fn only_the_newest_pending_transactions_are_kept() {
    let Some(all) = Branches::load() else { return };
    let main = all.main(670);
    let mut filters = Filters::new(B256::ZERO);
    let id = filters.install(FilterSpec::Pending, &main, 0).unwrap().unwrap();
    let transaction = |number: usize| B256::from(U256::from(number));
    (0..=MAX_PENDING).for_each(|number| filters.pending(transaction(number), 0.into()));
    let changes = hashes(filters.poll(id, &main, 1).unwrap().unwrap());
    assert_eq!((changes.len(), changes[0], changes[9_999]), (10_000, transaction(1), transaction(10_000)));
    // A filter from another host keeps no more transactions either.
    let pending = (0..=MAX_PENDING).map(transaction).collect();
    let lent = ExportedFilter { pending, ..filters.export(id).unwrap() };
    filters.import(id, lent, 1);
    let changes = hashes(filters.poll(id, &main, 1).unwrap().unwrap());
    assert_eq!((changes.len(), changes[0], changes[9_999]), (10_000, transaction(1), transaction(10_000)));
}

/// A time up to two minutes back is that of an overtaken poll; a larger step means that the clock was set back.
#[test]
fn filters_report_after_the_clock_was_set_back() {
    let Some(all) = Branches::load() else { return };
    let mut filters = Filters::new(B256::ZERO);
    let id = filters.install(FilterSpec::Blocks, &all.main(667), 1_000).unwrap().unwrap();
    assert!(hashes(filters.poll(id, &all.main(670), 880).unwrap().unwrap()).is_empty());
    assert_eq!(hashes(filters.poll(id, &all.main(670), 879).unwrap().unwrap()).len(), 3);
}
