//! The REMASC transaction at the end of each block. It distributes the fees of the block that is just old enough (mature): this file reads
//! that block, its uncles and REMASC's cells, `remasc_share.rs` computes the payments, and this file makes them.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256};
use thiserror::Error;

use super::basic_cost::BRIDGE;
use super::block_context::{Ancestry, BlockContext};
use super::observer::BlockObserver;
use super::remasc_share::{Ledger, Payment, RewardedBlock, Sibling, shares};
use crate::consensus::network::UNCLE_GENERATIONS;
use crate::evm::precompiles::bridge::federation_payees;
use crate::state::World;
use crate::types::rlp::{ListBuf, put_str, put_u256};
use crate::types::{Header, Log, REMASC_ADDRESS};

/// An ancestor that REMASC needs, or its list of uncles, is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("ancestor block {0} or its uncles are not known")]
pub struct UnknownAncestor(pub u64);

/// First topic of a payment's log, in ASCII.
const TOPIC: &[u8] = b"mining_fee_topic";

/// Slot of the cell with this name: the name in ASCII, right-aligned.
fn slot(name: &str) -> U256 {
    U256::try_from_be_slice(name.as_bytes()).unwrap_or_default()
}

/// Distributes the fees due in a block, on the state before its REMASC transaction, and returns the logs of
/// the payments.
pub(super) fn distribute(
    context: &BlockContext<'_>,
    world: &mut World,
    observer: &mut dyn BlockObserver,
) -> Result<Vec<Log>, UnknownAncestor> {
    let mut logs = Vec::new();
    let mature = context.environment.number.saturating_sub(context.network.params.remasc_maturity);
    if mature >= context.ancestry.first_rewarded_block() {
        let rewarded = rewarded(context.ancestry, mature)?;
        let mut ledger = read_ledger(world);
        let federation = {
            let mut cell = |slot| world.cell(&BRIDGE, &slot);
            federation_payees(context.network.chain_id, context.rules, mature, &mut cell)
        };
        for Payment { to, amount } in shares(context, &rewarded, &federation, &mut ledger) {
            world.charge(&REMASC_ADDRESS, amount);
            world.credit(&to, amount);
            logs.push(payment_log(rewarded.hash, to, amount));
            observer.remasc_payment(to, amount);
        }
        write_ledger(world, &ledger);
    }
    // The list of siblings is no longer used. The reference node writes an empty RLP list in every block.
    world.set_cell(&REMASC_ADDRESS, &slot("siblings"), Bytes::from_static(&[0xc0]));
    Ok(logs)
}

/// The block whose fees are distributed, with the uncles of the same height (siblings) that its descendants list.
fn rewarded(ancestry: &dyn Ancestry, number: u64) -> Result<RewardedBlock, UnknownAncestor> {
    let header = ancestry.header(number).ok_or(UnknownAncestor(number))?;
    let mut siblings = Vec::new();
    for later in number.saturating_add(1)..=number.saturating_add(UNCLE_GENERATIONS) {
        let descendant = ancestry.header(later).ok_or(UnknownAncestor(later))?;
        if descendant.uncle_count == 0 {
            continue;
        }
        let uncles = ancestry.uncles(later).ok_or(UnknownAncestor(later))?;
        for uncle in uncles.iter().filter(|uncle| uncle.number == number) {
            siblings.push(Sibling {
                hash: uncle.hash(),
                fees: uncle.paid_fees,
                uncles: uncle.uncle_count,
                coinbase: miner(uncle),
                publisher: miner(&descendant),
                late: later.saturating_sub(number).saturating_sub(1),
            });
        }
    }
    Ok(RewardedBlock {
        number,
        hash: header.hash(),
        fees: header.paid_fees,
        uncles: header.uncle_count,
        coinbase: miner(&header),
        siblings,
    })
}

/// The account that a header's fees are paid to. Every valid header has one.
fn miner(header: &Header) -> Address {
    header.coinbase.unwrap_or_default()
}

/// Reads REMASC's balances from its cells.
fn read_ledger(world: &mut World) -> Ledger {
    let mut number = |name| world.word(&REMASC_ADDRESS, &slot(name));
    Ledger {
        reward: number("rewardBalance"),
        burned: number("burnedBalance"),
        federation: number("federationBalance"),
        broken: !number("brokenSelectionRule").is_zero(),
        ..Ledger::default()
    }
}

/// Writes the cells that the reference node writes: numbers without leading zeros, where zero removes the cell, and the flag as one byte.
fn write_ledger(world: &mut World, ledger: &Ledger) {
    let mut put = |name, value: U256| world.set_word(&REMASC_ADDRESS, &slot(name), value);
    put("rewardBalance", ledger.reward);
    if ledger.burned_written {
        put("burnedBalance", ledger.burned);
    }
    if ledger.federation_written {
        put("federationBalance", ledger.federation);
    }
    if ledger.broken_written {
        let flag = Bytes::copy_from_slice(&[u8::from(ledger.broken)]);
        world.set_cell(&REMASC_ADDRESS, &slot("brokenSelectionRule"), flag);
    }
}

/// The log of a payment for the fees of this block.
fn payment_log(block: B256, to: Address, amount: U256) -> Log {
    let mut data = ListBuf::with_capacity(72);
    put_str(data.items(), block.as_slice());
    put_u256(data.items(), &amount);
    let topics = alloc::vec![B256::left_padding_from(TOPIC), to.into_word()];
    Log { address: REMASC_ADDRESS, topics, data: data.into_list().into() }
}
