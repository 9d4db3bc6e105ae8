//! One transaction of any fields on a small state: refused without a trace, or executed the same way twice, with every
//! wei accounted for; the same message as a local call comes to the same.

use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::{AllocatedContract, Allocation, Genesis, Network, Rule};
use rootlight::evm::intrinsic_gas;
use rootlight::evm::precompiles::Precompile;
use rootlight::exec::{
    BlockContext, BlockEnvironment, BlockHashes, CALL_GAS_CAP, CallContext, CallMessage, CallOutcome,
    GenesisBlock, IndexedTransaction, OnUnsimulated, RunLimits, TransactionEnd, TransactionList, TxError, call,
};
use rootlight::state::{StateOverride, World};
use rootlight::trie::Trie;
use rootlight::types::{RawUint, SignedUint, Transaction};

use crate::block::{OnlyGenesis, contract_at, network, program, sender, target, wealth};
use crate::input::Input;

/// Gas that the list of transactions has.
const LIST_GAS: u64 = 6_000_000;

/// The bytes as a genesis block and a transaction.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let network = network(input.byte());
    let genesis = genesis_block(&mut input, &network);
    let mut header = genesis.header.header().clone();
    (header.shape, header.number) = (network.header_shape(1), 1);
    header.minimum_gas_price = SignedUint::from(u64::from(input.byte() % 2));
    let environment = BlockEnvironment::from(&header);
    let ancestry = OnlyGenesis(genesis.header);
    let mut context = BlockContext::new(&network, environment, &ancestry);
    context.unsimulated = OnUnsimulated::Fail;
    let choice = input.byte();
    let from = if choice % 8 == 7 { contract_at(choice / 8) } else { sender(choice / 8) };
    let Some(transaction) = transaction(&mut input) else { return };

    let state = &genesis.state;
    let (end, list) = execute(&context, state, &transaction, from);
    let destroyed = !list.destroyed.is_empty();
    let after = list.world.commit();
    let (again, second) = execute(&context, state, &transaction, from);
    assert_eq!(after.root(), second.world.commit().root());
    match (end, again) {
        (Err(error), again) => {
            assert_eq!(Some(&error), again.as_ref().err());
            assert_eq!(after.root(), state.root(), "{error}");
        }
        (Ok(end), again) => {
            assert_eq!(Some(&end.receipt), again.as_ref().ok().map(|end| &end.receipt));
            settled(&context, state, &transaction, from, &end, &after, destroyed);
            as_call(&context, state, &transaction, from, &end);
        }
    }
}

/// Regtest's accounts, and three contracts, as block 0 has them.
fn genesis_block(input: &mut Input<'_>, network: &Network) -> GenesisBlock {
    let mut alloc = Genesis::regtest().alloc;
    for index in 0..3 {
        let contract = AllocatedContract { code: program(input).into(), storage: vec![] };
        let balance = U256::from(input.byte()) << usize::from(input.byte() % 48);
        alloc.push(Allocation { address: contract_at(index), balance, nonce: 0, contract: Some(contract) });
    }
    // One of the senders is nearly poor.
    for allocation in alloc.iter_mut().filter(|allocation| allocation.address == sender(2)) {
        allocation.balance = U256::from(input.short()) << usize::from(input.byte() % 24);
    }
    GenesisBlock::new(&Genesis::regtest().with_alloc(alloc), network)
}

/// A transaction from bytes, or of chosen fields, most of them in order.
fn transaction(input: &mut Input<'_>) -> Option<Transaction> {
    let shape = input.byte();
    if shape % 16 == 15 {
        return Transaction::decode(input.clone().rest()).ok();
    }
    let nonce = if shape % 16 == 14 { odd(input) } else { U256::ZERO };
    let gas_price = if shape % 16 == 13 { odd(input) } else { U256::from(shape % 3) };
    let gas_limit = match shape % 16 {
        12 => odd(input),
        _ => U256::from(20_000 + 40 * input.short() as u64),
    };
    let value = if shape % 16 == 11 { odd(input) } else { U256::from(shape % 5) };
    let creates = input.byte().is_multiple_of(4);
    let to = (!creates).then(|| target(input));
    let data = if creates { program(input) } else { input.clone().rest().to_vec() };
    let [nonce, gas_price, gas_limit] = [nonce, gas_price, gas_limit].map(RawUint::from);
    let (r, s) = (U256::from(1), U256::from(1));
    Some(Transaction { nonce, gas_price, gas_limit, to, value, data: data.into(), v: 27, r, s })
}

/// Any number, often a very large one.
fn odd(input: &mut Input<'_>) -> U256 {
    let len = input.below(33);
    U256::try_from_be_slice(input.take(len)).unwrap_or_default()
}

fn execute(
    context: &BlockContext<'_>,
    state: &Trie,
    transaction: &Transaction,
    sender: Address,
) -> (Result<TransactionEnd, TxError>, TransactionList) {
    let mut list = TransactionList::new(World::new(state.clone()), LIST_GAS);
    let end = list.execute(context, IndexedTransaction { index: 0, transaction, sender }, None);
    (end, list)
}

/// What holds after every executed transaction.
fn settled(
    context: &BlockContext<'_>,
    before: &Trie,
    transaction: &Transaction,
    from: Address,
    end: &TransactionEnd,
    after: &Trie,
    destroyed: bool,
) {
    let limit = transaction.gas_limit.value();
    let (price, gas_used) = (transaction.gas_price.value(), end.receipt.gas_used);
    assert!(U256::from(gas_used) <= limit && end.fee <= limit * price, "more than the limit");
    let intrinsic = intrinsic_gas(&transaction.data, transaction.to.is_none(), context.rules);
    // Refunds are at most half; transactions to the Bridge may be free.
    assert!(gas_used >= intrinsic / 2 || end.shared.any, "less than the intrinsic price");
    let (had, has) = (wealth(before), wealth(after) + end.fee);
    assert!(has <= had, "wei from nowhere");
    // Wei is lost with contracts that destroy themselves, and a creation once wiped what was there.
    let wipes = transaction.to.is_none() && !context.rules.has(Rule::Rskip174);
    assert!(has == had || destroyed || wipes, "wei lost");

    if end.receipt.success {
        assert!(end.failure.is_none());
        return;
    }
    assert!(end.receipt.logs.is_empty() && !destroyed);
    // Nonce and fee stay, nothing else.
    let mut expected = World::new(before.clone());
    expected.bump_nonce(&from);
    expected.charge(&from, end.fee);
    assert_eq!(expected.commit().root(), after.root(), "a failure left something behind");
}

struct NoHashes;

impl BlockHashes for NoHashes {
    fn block_hash(&self, number: u64) -> Option<B256> {
        (number == 0).then_some(B256::ZERO)
    }
}

/// Without a fee, a local call sees what the transaction sees, except for what only one of them may ask of native
/// contracts.
fn as_call(
    context: &BlockContext<'_>,
    state: &Trie,
    transaction: &Transaction,
    from: Address,
    end: &TransactionEnd,
) {
    let gas = u64::try_from(transaction.gas_limit.value()).unwrap_or(u64::MAX);
    let native = transaction.to.is_some_and(|to| Precompile::at(&to, context.rules).is_some());
    let priced = !transaction.gas_price.value().is_zero();
    // TXINDEX is as good as 0 in both; BLOCKHASH differs, so programs that ask for it are left out.
    let asks = |code: &[u8]| code.contains(&0x40);
    let hashes = (0..3).any(|index| asks(&World::new(state.clone()).code_of(&contract_at(index))));
    if native || priced || end.shared.any || gas > CALL_GAS_CAP || hashes || asks(&transaction.data) {
        return;
    }
    let at = CallContext {
        state,
        hashes: &NoHashes,
        block: &context.environment,
        rules: context.rules,
        chain_id: context.network.chain_id,
    };
    let (data, value, to) = (transaction.data.clone(), transaction.value, transaction.to);
    let message = CallMessage { from: Some(from), to, gas: Some(gas), gas_price: U256::ZERO, value, data };
    let Ok(result) = call(&at, &message, &StateOverride::default(), &RunLimits::default(), None) else { return };
    let (success, gas_used) = (end.receipt.success, end.receipt.gas_used);
    match result.into_outcome() {
        CallOutcome::Success { output, gas_used: used, logs } => {
            assert_eq!((true, gas_used, &end.output), (success, used, &output));
            assert_eq!(end.receipt.logs.len(), logs.len());
        }
        CallOutcome::Revert { output, gas_used: used } => {
            assert_eq!((Some(None), gas_used, &end.output), (end.failure, used, &output));
        }
        CallOutcome::Halt { reason, gas_used: used } => {
            assert_eq!((Some(Some(reason)), gas_used), (end.failure, used));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_inputs() {
        let mut state = 1u64;
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..500)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as u8
                })
                .collect();
            check(&bytes);
        }
    }
}
