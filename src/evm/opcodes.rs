//! The instruction table of a rule set, and the simple instructions that `revm` ties to upgrades of Ethereum. The longer instructions
//! are in `accounts.rs`, `calls.rs` and `creates.rs`.

use alloy_primitives::U256;
use revm::bytecode::opcode as op;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::{gas_table_spec, host};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{
    InputsTr as _, Jumps as _, LegacyBytecode as _, RuntimeFlag as _,
};
use revm::interpreter::{Host as _, Instruction, InstructionContext, InstructionResult, Interpreter};
use revm::primitives::hardfork::SpecId;

use super::common_opcodes::common_opcodes;
use super::context::{EvmContext, EvmDatabase, OpcodeContext, OpcodeResult, charge, pop, push};
use super::touches::Touch;
use super::{accounts, calls, creates};
use crate::consensus::{Rule, RuleSet};

/// `revm`'s instruction table with the types of this layer.
pub(super) type Instructions<'a, DB> = EthInstructions<EthInterpreter, EvmContext<'a, DB>>;

// Opcodes that only Rootstock had, until RSKIP-191.
const DUPN: u8 = 0xa8;
const SWAPN: u8 = 0xa9;
const TXINDEX: u8 = 0xaa;

/// Opcodes of `common_opcodes` and `always` that exist only under a rule.
const GATED: [(u8, Rule); 5] = [
    (op::SHL, Rule::Rskip120),
    (op::SHR, Rule::Rskip120),
    (op::SAR, Rule::Rskip120),
    (op::STATICCALL, Rule::Rskip91),
    (op::CREATE2, Rule::Rskip125),
];

/// The instruction table for blocks under these rules.
pub(super) fn instructions<'a, DB: EvmDatabase>(rules: RuleSet) -> Instructions<'a, DB> {
    let spec = SpecId::PETERSBURG;
    let mut table = EthInstructions::new(const { common_opcodes() }, gas_table_spec(spec), spec);
    always(&mut table);
    by_rule(&mut table, rules);
    for (code, rule) in GATED {
        if !rules.has(rule) {
            table.insert_instruction(code, Instruction::unknown(), 0);
        }
    }
    table
}

/// Replaces the instructions that have Rootstock's own form in every era. The last argument is the gas that `revm` charges before the
/// instruction; instructions with 0 charge their whole price themselves.
fn always<DB: EvmDatabase>(table: &mut Instructions<'_, DB>) {
    table.insert_instruction(op::BALANCE, Instruction::new(accounts::balance::<DB>), 400);
    table.insert_instruction(op::EXTCODESIZE, Instruction::new(accounts::extcodesize::<DB>), 700);
    table.insert_instruction(op::EXTCODECOPY, Instruction::new(accounts::extcodecopy::<DB>), 700);
    table.insert_instruction(op::CODECOPY, Instruction::new(accounts::codecopy::<DB>), 3);
    table.insert_instruction(op::SELFDESTRUCT, Instruction::new(accounts::selfdestruct::<DB>), 0);
    table.insert_instruction(op::SSTORE, Instruction::new(sstore::<DB>), 0);
    table.insert_instruction(op::GASPRICE, Instruction::new(gasprice::<DB>), 2);
    table.insert_instruction(op::GASLIMIT, Instruction::new(gaslimit::<DB>), 2);
    table.insert_instruction(op::CREATE, Instruction::new(creates::create::<false, DB>), 0);
    table.insert_instruction(op::CREATE2, Instruction::new(creates::create::<true, DB>), 0);
    table.insert_instruction(op::CALL, Instruction::new(calls::call::<{ op::CALL }, DB>), 0);
    table.insert_instruction(op::CALLCODE, Instruction::new(calls::call::<{ op::CALLCODE }, DB>), 0);
    table.insert_instruction(op::DELEGATECALL, Instruction::new(calls::call::<{ op::DELEGATECALL }, DB>), 0);
    table.insert_instruction(op::STATICCALL, Instruction::new(calls::call::<{ op::STATICCALL }, DB>), 0);
}

/// Sets the instructions that a rule added or removed, and that `revm` ties to later Ethereum forks.
fn by_rule<DB: EvmDatabase>(table: &mut Instructions<'_, DB>, rules: RuleSet) {
    let mut gate = |code, active, instruction, gas| {
        let (instruction, gas) = if active { (instruction, gas) } else { (Instruction::unknown(), 0) };
        table.insert_instruction(code, instruction, gas);
    };
    gate(op::EXTCODEHASH, rules.has(Rule::Rskip140), Instruction::new(accounts::extcodehash::<DB>), 400);
    gate(op::SELFBALANCE, rules.has(Rule::Rskip151), Instruction::new(accounts::selfbalance::<DB>), 5);
    gate(op::CHAINID, rules.has(Rule::Rskip152), Instruction::new(chainid::<DB>), 2);
    gate(op::BASEFEE, rules.has(Rule::Rskip412), Instruction::new(basefee::<DB>), 2);
    gate(op::PUSH0, rules.has(Rule::Rskip398), Instruction::new(push0::<DB>), 2);
    gate(op::MCOPY, rules.has(Rule::Rskip445), Instruction::new(mcopy::<DB>), 3);
    gate(op::TLOAD, rules.has(Rule::Rskip446), Instruction::new(tload::<DB>), 100);
    gate(op::TSTORE, rules.has(Rule::Rskip446), Instruction::new(tstore::<DB>), 100);
    let old = !rules.has(Rule::Rskip191);
    gate(DUPN, old, Instruction::new(dupn::<DB>), 3);
    gate(SWAPN, old, Instruction::new(swapn::<DB>), 3);
    gate(TXINDEX, old, Instruction::new(txindex::<DB>), 2);
}

/// SSTORE of Petersburg. Its price depends on the cell, which is read before the price is paid.
fn sstore<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let own = context.interpreter.input.target_address();
    let words = context.interpreter.stack.data();
    // With fewer than two words on the stack the instruction fails before it reads a cell.
    let slot = words.len().checked_sub(2).and(words.last()).copied().unwrap_or_default();
    if words.len() >= 2 && !context.interpreter.runtime_flag.is_static() {
        context.host.journaled_state.database.touch(Touch::CellRead(own, slot));
    }
    host::sstore(InstructionContext { interpreter: &mut *context.interpreter, host: &mut *context.host })?;
    context.host.journaled_state.database.touch(Touch::CellWritten(own, slot));
    Ok(())
}

/// GASPRICE.
fn gasprice<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    push(context.interpreter, context.host.chain.gas_price)
}

/// GASLIMIT: the gas limit in the block's header.
fn gaslimit<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    push(context.interpreter, context.host.chain.gas_limit)
}

/// BASEFEE is the block's minimum gas price (RSKIP-412).
fn basefee<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    push(context.interpreter, context.host.chain.minimum_gas_price)
}

/// CHAINID (RSKIP-152).
fn chainid<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    push(context.interpreter, U256::from(context.host.cfg.chain_id))
}

/// PUSH0 (RSKIP-398).
fn push0<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    push(context.interpreter, U256::ZERO)
}

/// TLOAD (RSKIP-446).
fn tload<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let [key] = pop(context.interpreter)?;
    let value = context.host.tload(context.interpreter.input.target_address(), key);
    push(context.interpreter, value)
}

/// TSTORE (RSKIP-446).
fn tstore<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    if context.interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let [key, value] = pop(context.interpreter)?;
    context.host.tstore(context.interpreter.input.target_address(), key, value);
    Ok(())
}

/// MCOPY (RSKIP-445, EIP-5656).
fn mcopy<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let size = |word: U256| usize::try_from(word).map_err(|_| InstructionResult::InvalidOperandOOG);
    let [to, from, len] = pop(context.interpreter)?;
    let len = size(len)?;
    charge(context.interpreter, context.host.cfg.gas_params.mcopy_cost(len))?;
    if len == 0 {
        return Ok(());
    }
    let (to, from) = (size(to)?, size(from)?);
    context.interpreter.resize_memory(&context.host.cfg.gas_params, to.max(from), len)?;
    context.interpreter.memory.copy(to, from, len);
    Ok(())
}

/// DUPN: pops a count n and copies the word n below the new top. The next code byte is skipped.
fn dupn<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let count = stack_count(context.interpreter)?;
    let stack = &context.interpreter.stack;
    let index = stack.len().checked_sub(count).ok_or(InstructionResult::StackUnderflow)?;
    let word = *stack.data().get(index).ok_or(InstructionResult::StackUnderflow)?;
    push(context.interpreter, word)?;
    skip_byte(context.interpreter)
}

/// SWAPN: pops a count n and swaps the new top with the word n + 1 below it. The next code byte is skipped.
fn swapn<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let count = stack_count(context.interpreter)?;
    if !context.interpreter.stack.exchange(0, count) {
        return Err(InstructionResult::StackUnderflow);
    }
    skip_byte(context.interpreter)
}

/// Skips one code byte. At the end of the code the frame stops.
fn skip_byte(interpreter: &mut Interpreter) -> OpcodeResult {
    if interpreter.bytecode.pc().saturating_add(1) >= interpreter.bytecode.bytecode_len() {
        return Err(InstructionResult::Stop);
    }
    interpreter.bytecode.relative_jump(1);
    Ok(())
}

/// Pops the count of DUPN and SWAPN and adds one.
fn stack_count(interpreter: &mut Interpreter) -> OpcodeResult<usize> {
    let [count] = pop(interpreter)?;
    let count = usize::try_from(count).map_err(|_| InstructionResult::StackUnderflow)?;
    count.checked_add(1).ok_or(InstructionResult::StackUnderflow)
}

/// TXINDEX: index of the transaction in its block; 0 in a local call.
fn txindex<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let index = context.host.chain.transaction.map_or(0, |transaction| transaction.index);
    push(context.interpreter, U256::from(index))
}
