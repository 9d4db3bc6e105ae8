//! Native contracts: any call over any cells ends, the same way twice, in whole words where results are words.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, Log, U256};
use rootlight::consensus::{Network, RuleSet};
use rootlight::evm::precompiles::{CallType, NativeBlock, NativeCall, NativeHost, Precompile, NativeFailure};
use rootlight::types::{Header, SealedHeader};

use crate::input::Input;
use crate::limit::with_limit;

/// More gas than a block has: a call that costs more never runs.
const MAX_GAS: u64 = 10_000_000;

/// Low four bytes of every native contract's address.
const CONTRACTS: [u32; 16] = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    0x0100_0006,
    0x0100_0008,
    0x0100_0009,
    0x0100_0010,
    0x0100_0011,
    0x0100_0016,
    0x0100_0017,
];

/// Callers with rights on regtest, and a stranger.
const CALLERS: [&str; 6] = [
    "85845342b0d5260d516d6da5280a7df9a96d1925",
    "5252403bca6ac3c104abdd320a736fa38282045d",
    "53f8f6dabd612b6137215ddd7758bb5cdd638922",
    "87d2a0f33744929da08b65fd62b627ea52b25f8e",
    "6c9dfd950bf748bb26f893f7e5f693c7f60a8f85",
    "0000000000000000000000000000000000000000",
];

#[derive(Clone, Default, PartialEq, Debug)]
struct FakeHost {
    /// Cells in the order they are first asked for, then none.
    given: Vec<Bytes>,
    asked: BTreeMap<(Address, U256), Bytes>,
    logs: Vec<Log>,
}

impl NativeHost for FakeHost {
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        let Self { given, asked, .. } = self;
        asked.entry((contract, slot)).or_insert_with(|| given.pop().unwrap_or_default()).clone()
    }

    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes) {
        self.asked.insert((contract, slot), bytes);
    }

    fn balance(&mut self, _: Address) -> U256 {
        U256::MAX
    }

    fn transfer(&mut self, _: Address, _: Address, amount: U256) -> bool {
        amount < U256::MAX
    }

    fn pay(&mut self, from: Address, to: Address, amount: U256) -> bool {
        self.transfer(from, to, amount)
    }

    fn log(&mut self, log: Log) {
        self.logs.push(log);
    }

    fn header(&mut self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&mut self, _: u64) -> Option<Vec<Header>> {
        None
    }

    fn total_difficulty(&mut self, _: u64) -> Option<U256> {
        None
    }
}

/// The choice of the native contract at `address`.
pub fn contract_byte(address: &[u8]) -> Option<u8> {
    let (high, low) = address.split_at_checked(16)?;
    let low = u32::from_be_bytes(low.try_into().ok()?);
    let at = CONTRACTS.iter().position(|contract| *contract == low)?;
    high.iter().all(|byte| *byte == 0).then_some(at as u8)
}

/// Choices of contract, rules, caller and cells; the rest is the call's data.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let low = CONTRACTS[input.below(CONTRACTS.len())];
    let height = input.below(400) as u64;
    let rules = if height == 0 { RuleSet::NONE } else { Network::regtest().rules(height) };
    let caller = CALLERS[input.below(CALLERS.len())].parse().expect("an address");
    let choices = input.byte();
    let cells = usize::from(choices >> 5);
    let given = (0..cells)
        .map(|_| {
            let len = input.below(200);
            Bytes::copy_from_slice(input.take(len))
        })
        .collect();
    let block = NativeBlock { number: height, timestamp: 1_700_000_000, minimum_gas_price: U256::ZERO };
    let call = NativeCall {
        input: input.rest(),
        caller: (choices & 1 == 0).then_some(caller),
        value: U256::from(choices),
        kind: if choices & 2 == 0 { CallType::Call } else { CallType::StaticCall },
        depth: usize::from(choices >> 2 & 3),
        transaction: None,
        block,
        rules,
        chain_id: 30 + u64::from(choices >> 4 & 3),
    };
    let Some(contract) = Precompile::at(&Address::left_padding_from(&low.to_be_bytes()), rules) else {
        return;
    };
    let host = FakeHost { given, ..FakeHost::default() };
    with_limit(data.len(), || {
        let first = run(contract, &call, host.clone());
        assert_eq!(first, run(contract, &call, host));
        if let (Ok((_, output, _)), true) = (&first, low >= 0x0100_0006 && low < 0x0100_0016) {
            assert_eq!(output.len() % 32, 0);
        }
    });
}

fn run(
    contract: Precompile,
    call: &NativeCall<'_>,
    mut host: FakeHost,
) -> Result<(u64, Bytes, FakeHost), Option<NativeFailure>> {
    let price = contract.price(call, &mut host).map_err(Some)?;
    let gas = price.gas;
    if gas > MAX_GAS {
        return Err(None);
    }
    let output = contract.run(call, &mut host, price).map_err(Some)?;
    Ok((gas, output, host))
}
