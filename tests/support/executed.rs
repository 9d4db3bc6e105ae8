//! The recorded chain, executed locally block by block, behind a view that answers JSON-RPC.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{B256, Bytes, U256};
use rootlight::consensus::{
    HeaderCandidate, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles,
};
use rootlight::engine::{
    BlockHeader, Chain, Policy, Pool, Snapshot, State, TransactionLocation, View, ViewResult,
};
use rootlight::exec::{BlockInput, BlockObserver, NoObserver, check_block, execute_block};
use rootlight::rpc::{Dispatcher, MessageProgress};
use rootlight::state::StateReader;
use rootlight::trie::{Trie, WalkError};
use rootlight::types::BlockRef;
use rootlight::types::{Receipt, Transaction};
use serde_json::{Value, json};

use super::recording::{RecordedBranch, Recording, genesis_state};

/// Blocks up to a head, with the state after each.
pub struct Executed {
    pub recording: Recording,
    headers: Vec<VerifiedHeader>,
    pub states: Vec<Trie>,
    receipts: Vec<Vec<Receipt>>,
    locations: BTreeMap<B256, (usize, usize)>,
    dispatcher: Arc<Dispatcher>,
}

impl Executed {
    /// Executes `vectors/chain` from genesis to a height.
    pub fn chain(shared: &Path, network: Network, head: usize) -> Self {
        let mut recording = Recording::load(&shared.join("vectors/chain"), network);
        recording.blocks.truncate(head + 1);
        Self::of(shared, recording)
    }

    /// Executes a recorded chain from genesis.
    pub fn of(shared: &Path, recording: Recording) -> Self {
        let mut headers: Vec<VerifiedHeader> = recording.blocks[1..]
            .iter()
            .map(|block| {
                VerifiedHeader::alone(HeaderCandidate::from(block.header.clone()), &recording.network)
                    .unwrap()
            })
            .collect();
        let genesis = headers[0].parent_from(recording.blocks[0].header.clone()).unwrap();
        headers.insert(0, genesis);
        let mut states = vec![genesis_state(shared, &recording.network)];
        let (mut locations, mut receipts) = (BTreeMap::new(), vec![Vec::new()]);
        for (number, block) in recording.blocks.iter().enumerate() {
            for (index, transaction) in block.transactions.iter().enumerate() {
                locations.insert(transaction.hash(), (number, index));
            }
            if number == 0 {
                continue;
            }
            let input =
                BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
            let branch = RecordedBranch::canonical(&recording);
            let parent = &states[number - 1];
            let executed =
                execute_block(&recording.network, parent, &input, &branch, &mut NoObserver).unwrap();
            let checked = check_block(&executed, &block.header, &recording.network);
            assert!(checked.is_ok(), "block {number}: {checked:?}");
            states.push(executed.state);
            receipts.push(executed.receipts);
        }
        Self { recording, headers, states, receipts, locations, dispatcher: Arc::default() }
    }

    /// The receipt of the transaction of a block at an index.
    pub fn receipt(&self, block: usize, index: usize) -> &Receipt {
        &self.receipts[block][index]
    }

    /// The answer to a call. An error is returned as its `error` object.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message = MessageProgress::read_from(&self.dispatcher, Arc::default(), message.as_bytes());
        let reply = message.read(self, 0, &|| false).into_text().unwrap();
        let mut answer: Value = serde_json::from_str(&reply).unwrap();
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }
}

impl Snapshot for Executed {
    fn view<'a>(&'a self, _: u64, _: &'a dyn Fn() -> bool) -> Box<dyn View + 'a> {
        Box::new(ExecutedView::new(self, self.headers.len() - 1))
    }
}

/// The chain as it was at a height.
pub struct AtHead {
    pub chain: Arc<Executed>,
    pub head: usize,
}

impl Snapshot for AtHead {
    fn view<'a>(&'a self, _: u64, _: &'a dyn Fn() -> bool) -> Box<dyn View + 'a> {
        Box::new(ExecutedView::new(&self.chain, self.head))
    }
}

struct ExecutedView<'a> {
    chain: &'a Executed,
    head: usize,
    policy: Policy<'a>,
}

impl<'a> ExecutedView<'a> {
    fn new(chain: &'a Executed, head: usize) -> Self {
        Self { chain, head, policy: Policy::of(&chain.recording.network) }
    }
}

impl Chain for ExecutedView<'_> {
    fn policy(&self) -> &Policy<'_> {
        &self.policy
    }

    fn head(&self) -> ViewResult<BlockHeader> {
        Ok((&self.chain.headers[self.head]).into())
    }

    fn header_by_number(&self, number: u64) -> ViewResult<Option<BlockHeader>> {
        let number = usize::try_from(number).ok().filter(|number| *number <= self.head);
        Ok(number.and_then(|number| self.chain.headers.get(number)).map(Into::into))
    }

    fn header_by_hash(&self, hash: B256) -> ViewResult<Option<BlockHeader>> {
        Ok(self.chain.headers.iter().find(|header| header.hash() == hash).map(Into::into))
    }

    fn is_canonical(&self, _: BlockRef) -> bool {
        true
    }

    fn total_difficulty(&self, _: B256) -> ViewResult<Option<U256>> {
        Ok(None)
    }

    fn body(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedBody>> {
        let block = &self.chain.recording.blocks[header.number as usize];
        let body =
            VerifiedBody::check(header.verified().unwrap(), block.transactions.clone(), self.policy.network);
        Ok(Arc::new(body.unwrap()))
    }

    fn uncles(&self, _: &BlockHeader) -> ViewResult<Arc<VerifiedUncles>> {
        unreachable!("traces read no uncles")
    }

    fn receipts(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>> {
        let receipts = self.chain.receipts[header.number as usize].clone();
        Ok(Arc::new(
            VerifiedReceipts::check(header.verified().unwrap(), receipts, self.policy.network).unwrap(),
        ))
    }

    fn locate(&self, transaction: B256, _: Option<&Arc<Transaction>>) -> ViewResult<TransactionLocation> {
        Ok(match self.chain.locations.get(&transaction) {
            Some((number, index)) => {
                TransactionLocation::Mined((&self.chain.headers[*number]).into(), *index)
            }
            None => TransactionLocation::Unknown,
        })
    }
}

impl State for ExecutedView<'_> {
    fn state<'a>(&'a self, header: &BlockHeader) -> ViewResult<Box<dyn StateReader + 'a>> {
        Ok(Box::new(self.chain.states[header.number as usize].clone()))
    }

    fn prove(&self, _: &BlockHeader, _: &[u8]) -> Result<Vec<Bytes>, WalkError> {
        unreachable!("traces prove nothing")
    }

    fn node_hash(&self, _: &BlockHeader, _: &[u8]) -> Result<Option<B256>, WalkError> {
        unreachable!("traces prove nothing")
    }

    fn replay(&self, header: &BlockHeader, observer: &mut dyn BlockObserver) -> ViewResult<()> {
        let Executed { recording, states, .. } = self.chain;
        let block = &recording.blocks[header.number as usize];
        let input = BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
        let branch = RecordedBranch::canonical(recording);
        let parent = &states[header.number as usize - 1];
        execute_block(&recording.network, parent, &input, &branch, observer).unwrap();
        Ok(())
    }
}

impl Pool for ExecutedView<'_> {}

impl View for ExecutedView<'_> {}
