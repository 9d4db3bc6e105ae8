//! Blocks of generated transactions: what is built executes to the same outcome, in parallel lists as in one, and no
//! wei comes from nowhere.

use alloy_primitives::{Address, U256};
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::{AllocatedContract, Allocation, Genesis, Network};
use rootlight::exec::{
    Ancestry, BlockEnvironment, BlockInput, ExecutedBlock, GenesisBlock, NoObserver, TransactionCandidate,
    build_block, execute_block,
};
use rootlight::state::Account;
use rootlight::trie::Trie;
use rootlight::types::{Header, RawUint, SealedHeader, SignedUint, Transaction};

use crate::input::Input;

/// Most transactions in a block, and most pieces in a program.
const MAX_TRANSACTIONS: usize = 6;
const MAX_PIECES: usize = 24;

/// The block is block 1: REMASC looks at nothing yet.
pub(crate) struct OnlyGenesis(pub(crate) SealedHeader);

impl Ancestry for OnlyGenesis {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        (number == 0).then(|| self.0.clone())
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        Some(Vec::new())
    }
}

/// The bytes as contracts and transactions.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let network = network(input.byte());
    let mut alloc = Genesis::regtest().alloc;
    for index in 0..3 {
        let contract = AllocatedContract { code: program(&mut input).into(), storage: vec![] };
        let balance = U256::from(input.byte());
        alloc.push(Allocation { address: contract_at(index), balance, nonce: 0, contract: Some(contract) });
    }
    let genesis = GenesisBlock::new(&Genesis::regtest().with_alloc(alloc), &network);
    let mut header = genesis.header.header().clone();
    (header.shape, header.number) = (network.header_shape(1), 1);
    header.gas_limit = RawUint::from(25_000_000);
    header.minimum_gas_price = SignedUint::from(u64::from(input.byte() % 2));
    let price = header.minimum_gas_price.value();
    let candidates = candidates(&mut input, price);
    let ancestry = OnlyGenesis(genesis.header);
    let template = BlockEnvironment::from(&header);
    let built = build_block(&network, &genesis.state, &template, &candidates, &ancestry).expect("it builds");

    header.transactions_root = transactions_root(&built.transactions, root_format(&network, 1));
    let execute = |edges: &[u16]| {
        let header = Header { edges: edges.to_vec(), ..header.clone() };
        let senders = Some(built.executed.senders.as_slice());
        let input = BlockInput { header: &header, transactions: &built.transactions, senders };
        execute_block(&network, &genesis.state, &input, &ancestry, &mut NoObserver)
    };
    let parallel = execute(&built.edges).expect("what is built is valid");
    same(&parallel, &built.executed);
    assert_eq!(parallel.receipts, built.executed.receipts);
    // One after the other comes to the same, except for sums of gas that run through.
    same(&execute(&[]).expect("one list is valid"), &parallel);
    assert!(wealth(&parallel.state) <= wealth(&genesis.state), "wei from nowhere");
}

fn same(one: &ExecutedBlock, other: &ExecutedBlock) {
    assert_eq!(one.state.root(), other.state.root());
    assert_eq!((one.gas_used, one.paid_fees), (other.gas_used, other.paid_fees));
    assert_eq!(one.logs_bloom, other.logs_bloom);
    for (one, other) in one.receipts.iter().zip(&other.receipts) {
        assert_eq!((one.success, one.gas_used, &one.logs), (other.success, other.gas_used, &other.logs));
    }
}

/// All wei, debts taken off.
pub(crate) fn wealth(state: &Trie) -> U256 {
    let mut sum = U256::ZERO;
    let mut debts = U256::ZERO;
    state.for_each(&mut |key, value| {
        if matches!(key.len(), 31 | 12) {
            let account = Account::decode(value).expect("an account");
            sum += account.balance;
            debts += account.debt;
        }
    });
    sum - debts
}

/// Regtest with every rule, or as it was under older ones.
pub(crate) fn network(choice: u8) -> Network {
    let forks = match choice % 4 {
        1 => r#""vetiver900":-1,"tbd1000":-1,"reed800":-1,"lovell700":-1"#,
        2 => {
            r#""vetiver900":-1,"tbd1000":-1,"reed800":-1,"reed810":-1,"lovell700":-1,"arrowhead600":-1,
               "arrowhead631":-1,"fingerroot500":-1,"hop401":-1,"hop400":-1,"iris300":-1"#
        }
        _ => return Network::regtest(),
    };
    let rules = r#""rskip144":1,"rskip351":1,"rskip535":1"#;
    let text = format!(r#"{{"name":"fuzz","hardforks":{{{forks}}},"rules":{{{rules}}}}}"#);
    Network::from_json(&text).expect("a network")
}

pub(crate) fn contract_at(index: u8) -> Address {
    Address::repeat_byte(0xc0 + index % 3)
}

/// Contracts, senders, native contracts, accounts that are not there.
pub(crate) fn target(input: &mut Input<'_>) -> Address {
    let choice = input.byte();
    match choice % 8 {
        0..=3 => contract_at(choice / 8),
        4 => Address::with_last_byte(choice / 8 % 10),
        5 => {
            let natives = [6u64, 8, 9, 0x10, 0x11, 0x16, 0x17];
            let low = 0x0100_0000 + natives[usize::from(choice / 8) % natives.len()];
            Address::left_padding_from(&low.to_be_bytes())
        }
        6 => sender(choice / 8),
        _ => Address::repeat_byte(choice),
    }
}

/// Three of the funded accounts.
pub(crate) fn sender(index: u8) -> Address {
    Genesis::regtest().alloc[1 + usize::from(index % 3)].address
}

fn candidates(input: &mut Input<'_>, price: U256) -> Vec<TransactionCandidate> {
    let mut nonces = [0u64; 3];
    let count = 1 + input.below(MAX_TRANSACTIONS);
    let mut out = Vec::new();
    for _ in 0..count {
        let from = input.byte();
        let creates = input.byte().is_multiple_of(5);
        let to = (!creates).then(|| target(input));
        let data = if creates { program(input) } else { input.take(36).to_vec() };
        let transaction = Transaction {
            nonce: RawUint::from(nonces[usize::from(from % 3)]),
            gas_price: RawUint::from(price),
            gas_limit: RawUint::from(60_000 + 4_000 * u64::from(input.byte())),
            to,
            value: U256::from(input.byte()),
            data: data.into(),
            v: 27,
            r: U256::from(1),
            s: U256::from(1),
        };
        nonces[usize::from(from % 3)] += 1;
        out.push(TransactionCandidate { transaction, sender: sender(from) });
    }
    out
}

fn push(code: &mut Vec<u8>, bytes: &[u8]) {
    code.push(0x5f + bytes.len() as u8);
    code.extend_from_slice(bytes);
}

/// Code of pieces that mostly do something.
pub(crate) fn program(input: &mut Input<'_>) -> Vec<u8> {
    let mut code = Vec::new();
    for _ in 0..input.below(MAX_PIECES) {
        piece(&mut code, input);
    }
    code
}

fn piece(code: &mut Vec<u8>, input: &mut Input<'_>) {
    let choice = input.byte();
    let small = [input.byte() % 8];
    match choice % 14 {
        0 | 1 => {
            push(code, &[input.byte() % 3]);
            push(code, &small);
            code.push(0x55);
        }
        2 => {
            push(code, &small);
            code.extend([0x54, 0x60, 0, 0x52]);
        }
        3..=5 => call(code, input, choice),
        6 | 7 => create(code, input, choice % 14 == 7),
        8 => {
            code.push(0x73);
            code.extend(target(input));
            code.push(0xff);
        }
        9 => code.extend([0x60, 32, 0x60, 0, 0xa0]),
        10 => {
            code.push(0x73);
            code.extend(target(input));
            code.push([0x31, 0x3b, 0x3f][usize::from(small[0]) % 3]);
            code.extend([0x60, 0, 0x52]);
        }
        11 if small[0] < 2 => code.extend([0x60, 0, 0x60, 0, 0xfd]),
        11 => code.extend([0x60, small[0], 0x60, 0, 0xf3]),
        12 => {
            push(code, &small);
            push(code, &[input.byte()]);
            code.push(0x5d);
        }
        _ => code.push(input.byte()),
    }
}

/// CALL, CALLCODE, DELEGATECALL or STATICCALL with data from memory; the flag goes to memory.
fn call(code: &mut Vec<u8>, input: &mut Input<'_>, choice: u8) {
    let kind = [0xf1, 0xf1, 0xf2, 0xf4, 0xfa][usize::from(choice / 14) % 5];
    code.extend([0x60, 32, 0x60, 0, 0x60, input.byte() % 68, 0x60, 0]);
    if matches!(kind, 0xf1 | 0xf2) {
        push(code, &[input.byte() % 4]);
    }
    code.push(0x73);
    code.extend(target(input));
    match input.byte() {
        gas @ 0..=127 => push(code, &[gas, 0]),
        _ => code.push(0x5a),
    }
    code.extend([kind, 0x60, 0, 0x52]);
}

/// CREATE or CREATE2 of a short program that stands in the code itself.
fn create(code: &mut Vec<u8>, input: &mut Input<'_>, two: bool) {
    let init = input.take(usize::from(input.clone().byte() % 32)).to_vec();
    let word: Vec<u8> = init.iter().copied().take(32).collect();
    if word.is_empty() {
        code.extend([0x60, 0]);
    } else {
        push(code, &word);
    }
    code.extend([0x60, 0, 0x52]);
    if two {
        push(code, &[input.byte() % 2]);
    }
    push(code, &[word.len() as u8]);
    push(code, &[32 - word.len() as u8]);
    push(code, &[input.byte() % 3]);
    code.push(if two { 0xf5 } else { 0xf0 });
    code.extend([0x60, 1, 0x55]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_inputs() {
        let mut state = 1u64;
        for _ in 0..300 {
            let bytes: Vec<u8> = (0..700)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as u8
                })
                .collect();
            check(&bytes);
        }
    }
}
