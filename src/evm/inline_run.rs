//! Inline runs: runs that a server tries on the thread that has received the message, before it moves the message to a thread for
//! long runs. An inline run calls the interrupt callback about every tenth of a millisecond, and ends as interrupted before an
//! instruction or a native contract that takes longer. A run on the other thread has none of these limits.

use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{GasTable, InstructionResult, InstructionTable, Interpreter};

use super::context::{Abort, EvmContext, EvmDatabase, RunContext};
use super::gas::MAX_MEMORY;
use super::precompiles::Precompile;

/// Most instructions between two calls of the interrupt callback; 4,096 in other runs (`frame.rs`).
const PIECE: usize = 512;

/// The gas after which the interrupt callback is called before the next instruction: hashing 26 KiB takes that much, in
/// less than a tenth of a millisecond.
const PIECE_GAS: u64 = 5_000;

/// Most bytes of memory of an inline run. Hashing all of it takes some 0.2 ms.
const MEMORY: usize = 64 << 10;

/// Most gas of a native contract in an inline run. Recovering a sender takes 3,000 gas and 0.1 ms.
const NATIVE_GAS: u64 = 5_000;

/// The most memory of a run in bytes.
pub(super) const fn max_memory(is_inline: bool) -> u64 {
    if is_inline { MEMORY as u64 } else { MAX_MEMORY }
}

/// Ends an inline run before a native contract that takes too long. The Bridge and REMASC count as too long at any price, because they read
/// many cells.
pub(super) fn refuse_long(run: &RunContext<'_>, precompile: Precompile, gas: u64) -> Result<(), Abort> {
    let is_long = gas > NATIVE_GAS || matches!(precompile, Precompile::Bridge | Precompile::Remasc);
    if run.is_inline && is_long { Err(Abort::Stopped) } else { Ok(()) }
}

/// Runs the next instructions. Returns the result that ended the frame or opened another one; `MemoryLimitOOG` ends the
/// inline run.
pub(super) fn steps<'a, DB: EvmDatabase>(
    interpreter: &mut Interpreter<EthInterpreter>,
    table: &InstructionTable<EthInterpreter, EvmContext<'a, DB>>,
    gas_table: &GasTable,
    context: &mut EvmContext<'a, DB>,
) -> Result<(), InstructionResult> {
    // `revm` applies the limit of memory to instructions; memory that a call has grown (`calls.rs`) is checked here.
    if interpreter.gas.memory().words_num > MEMORY / 32 {
        return Err(InstructionResult::MemoryLimitOOG);
    }
    let least = interpreter.gas.remaining().saturating_sub(PIECE_GAS);
    for _ in 0..PIECE {
        interpreter.step(table, gas_table, context)?;
        if interpreter.gas.remaining() < least {
            break;
        }
    }
    Ok(())
}
