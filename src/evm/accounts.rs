//! Instructions that read accounts: balances, code of other accounts, SELFDESTRUCT. Each instruction reports the accounts that it reads
//! as touches ([`Touch`]), by which the parallel transaction lists of RSKIP-144 are checked.
//!
//! In `load_account_info_skip_cold_load(address, load_code, skip_cold_load)` of `revm`, the first flag says whether to load the account's
//! code too; the second makes the load fail for an account that this run has not used before (cold), which never is wanted here. The
//! flag of its `selfdestruct` is of the second kind.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use revm::interpreter::instructions::{host, system};
use revm::interpreter::interpreter_types::{InputsTr as _, RuntimeFlag as _};
use revm::interpreter::{Host as _, InstructionContext, InstructionResult};

use super::context::{Abort, EvmContext, EvmDatabase, OpcodeContext, OpcodeResult, abort, charge, pop, push};
use super::gas::{NEW_ACCOUNT, SELFDESTRUCT};
use super::precompiles::Precompile;
use super::touches::Touch;
use crate::consensus::Rule;
use crate::state::Account;

/// The address in the low 20 bytes of a word.
pub(super) fn to_address(word: U256) -> Address {
    Address::from_word(B256::from(word))
}

/// The spendable balance of an account in wei: what is left after its debt, which is a balance below zero in the state. Aborts the run
/// if the account is the sender of a local call that spends more than it has.
pub(super) fn balance_of<DB: EvmDatabase>(
    context: &mut EvmContext<'_, DB>,
    address: Address,
) -> OpcodeResult<U256> {
    if context.chain.overdrawn == Some(address) {
        return Err(abort(context, Abort::OverdrawnBalance(address)));
    }
    let balance = context.load_account_info_skip_cold_load(address, false, false)?.account.balance;
    Ok(balance.saturating_sub(context.journaled_state.database.debt(address)))
}

/// The result of BALANCE and SELFBALANCE. For a negative balance, the reference node pads its shortest two's-complement form on the
/// left with zeros.
fn shown_balance<DB: EvmDatabase>(context: &mut EvmContext<'_, DB>, address: Address) -> OpcodeResult<U256> {
    let spendable = balance_of(context, address)?;
    let debt = context.journaled_state.database.debt(address);
    if debt.is_zero() || !spendable.is_zero() {
        return Ok(spendable);
    }
    // `revm` has counted the wei that the account received in this run as its balance.
    let received = context.load_account_info_skip_cold_load(address, false, false)?.account.balance;
    let account = Account { debt: debt.saturating_sub(received), ..Account::default() };
    Ok(U256::try_from_be_slice(&account.balance_bytes()).unwrap_or_default())
}

/// Whether the account exists, empty or not. `is_empty` of the journal says that it does not exist (`Machine::new` sets that meaning).
pub(super) fn exists<DB: EvmDatabase>(
    context: &mut EvmContext<'_, DB>,
    address: Address,
) -> OpcodeResult<bool> {
    Ok(!context.load_account_info_skip_cold_load(address, false, false)?.is_empty)
}

/// BALANCE.
pub(super) fn balance<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let [address] = pop(context.interpreter)?;
    let address = to_address(address);
    context.host.journaled_state.database.touch(Touch::Inspected(address));
    let balance = shown_balance(context.host, address)?;
    push(context.interpreter, balance)
}

/// SELFBALANCE (RSKIP-151).
pub(super) fn selfbalance<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let own = context.interpreter.input.target_address();
    let balance = shown_balance(context.host, own)?;
    push(context.interpreter, balance)
}

/// EXTCODESIZE. The size comes from the length in the trie; native contracts return 2^256 - 1 (RSKIP-90).
pub(super) fn extcodesize<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let [address] = pop(context.interpreter)?;
    let address = to_address(address);
    let rules = context.host.chain.rules;
    context.host.journaled_state.database.touch(Touch::Inspected(address));
    let size = if rules.has(Rule::Rskip90) && Precompile::at(&address, rules).is_some() {
        U256::MAX
    } else {
        U256::from(code_size(context.host, address)?)
    };
    push(context.interpreter, size)
}

/// Length of the account's code in bytes. The trie stores it beside the code's hash, so the code is not loaded.
pub(super) fn code_size<DB: EvmDatabase>(
    context: &mut EvmContext<'_, DB>,
    address: Address,
) -> OpcodeResult<usize> {
    let loaded = context.load_account_info_skip_cold_load(address, false, false)?;
    if let Some(code) = &loaded.account.code {
        return Ok(code.len());
    }
    let hash = loaded.account.code_hash;
    Ok(context.journaled_state.database.code_size(hash))
}

/// EXTCODEHASH (RSKIP-140). The result is 0 only for a missing account, and before RSKIP-169 for a contract
/// without code.
pub(super) fn extcodehash<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let [address] = pop(context.interpreter)?;
    let address = to_address(address);
    let rules = context.host.chain.rules;
    let hash = if Precompile::at(&address, rules).is_some() {
        KECCAK256_EMPTY
    } else {
        context.host.journaled_state.database.touch(Touch::Inspected(address));
        code_hash(context.host, address)?
    };
    push(context.interpreter, hash.into())
}

/// The result of EXTCODEHASH for an account that is no native contract.
fn code_hash<DB: EvmDatabase>(context: &mut EvmContext<'_, DB>, address: Address) -> OpcodeResult<B256> {
    let before_rskip_169 = !context.chain.rules.has(Rule::Rskip169);
    let loaded = context.load_account_info_skip_cold_load(address, false, false)?;
    if loaded.is_empty {
        return Ok(B256::ZERO);
    }
    let hash = loaded.account.code_hash;
    let codeless = hash == KECCAK256_EMPTY;
    let created = context.journaled_state.state.get(&address).is_some_and(|account| account.is_created());
    let database = &mut context.journaled_state.database;
    if codeless {
        // In the reference node, a contract created in this run has no marker yet.
        let contract = before_rskip_169 && !created && database.is_contract(address);
        return Ok(if contract { B256::ZERO } else { KECCAK256_EMPTY });
    }
    // A code override on a plain account does not make it a contract.
    let plain = !created && database.code_overridden(address) && !database.is_contract(address);
    Ok(if plain { KECCAK256_EMPTY } else { hash })
}

/// EXTCODECOPY. Native contracts have no code, so the instruction of `revm` copies zeros.
pub(super) fn extcodecopy<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let address = context.interpreter.stack.data().last().copied().map(to_address);
    host::extcodecopy(InstructionContext {
        interpreter: &mut *context.interpreter,
        host: &mut *context.host,
    })?;
    if let Some(address) = address {
        context.host.journaled_state.database.touch(Touch::Inspected(address));
    }
    Ok(())
}

/// CODECOPY of the whole code, header included.
pub(super) fn codecopy<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let depth = context.interpreter.input.depth();
    // `revm` runs code with a header in a form whose header is blanked; CODECOPY must show the original (`code.rs`).
    let Some(code) = context.host.chain.codes_with_header.get(depth).cloned().flatten() else {
        return system::codecopy(context);
    };
    let [memory_offset, code_offset, len] = pop(context.interpreter)?;
    let len = usize::try_from(len).map_err(|_| InstructionResult::InvalidOperandOOG)?;
    let params = &context.host.cfg.gas_params;
    if let Some(offset) =
        system::copy_cost_and_memory_resize(context.interpreter, params, memory_offset, len)?
    {
        let code_offset = usize::try_from(code_offset).unwrap_or(usize::MAX);
        context.interpreter.memory.set_data(offset, code_offset, len, &code);
    }
    Ok(())
}

/// SELFDESTRUCT. The account is deleted at the end of the transaction, whichever transaction created it. A
/// beneficiary that does not exist costs 25,000 gas, and is not created if the balance is zero.
pub(super) fn selfdestruct<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    if context.interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let [beneficiary] = pop(context.interpreter)?;
    let beneficiary = to_address(beneficiary);
    let own = context.interpreter.input.target_address();
    context.host.journaled_state.database.touch(Touch::SelfdestructPrice(beneficiary));
    charge(context.interpreter, SELFDESTRUCT)?;
    if !exists(context.host, beneficiary)? {
        charge(context.interpreter, NEW_ACCOUNT)?;
    }
    let balance = balance_of(context.host, own)?;
    // Without a balance nothing is transferred, so that the beneficiary is not created: the contract then is its own target.
    let target = if balance.is_zero() { own } else { beneficiary };
    if !balance.is_zero() {
        context.host.journaled_state.database.touch(Touch::SelfdestructTransfer { own, beneficiary });
    }
    if target != own {
        let theirs = context.host.load_account_info_skip_cold_load(target, false, false)?.account.balance;
        if theirs.checked_add(balance).is_none() {
            return Err(abort(context.host, Abort::BalanceOverflow));
        }
    }
    context.host.selfdestruct(own, target, false)?;
    if let Some(inspector) = context.host.chain.inspector.as_deref_mut() {
        inspector.self_destruct(own, beneficiary, balance);
    }
    Err(InstructionResult::SelfDestruct)
}
