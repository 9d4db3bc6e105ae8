//! The instructions that Rootstock has in common with Ethereum, as `revm` has them.
//!
//! The table of `revm` is not used as a whole, so that an instruction that a later version of `revm` adds is not executed. `opcodes.rs`
//! adds the instructions that differ.

use revm::interpreter::instructions::{
    InstructionTable, arithmetic, bitwise, block_info, control, host, memory, stack,
    stack::{dup, push, swap},
    system, tx_info,
};
use revm::interpreter::interpreter_types::InterpreterTypes;
use revm::interpreter::{Host, Instruction};

/// The common instructions in the order of their opcodes; all other opcodes are unknown.
#[rustfmt::skip]
pub(super) const fn common_opcodes<W: InterpreterTypes, H: Host>() -> InstructionTable<W, H> {
    macro_rules! of {
        ($function:expr) => { Instruction::new($function) };
    }
    let none = of!(control::unknown);
    [
        // 0x00
        of!(control::stop), of!(arithmetic::add), of!(arithmetic::mul), of!(arithmetic::sub), of!(arithmetic::div),
        of!(arithmetic::sdiv), of!(arithmetic::rem), of!(arithmetic::smod), of!(arithmetic::addmod),
        of!(arithmetic::mulmod), of!(arithmetic::exp), of!(arithmetic::signextend), none, none, none, none,
        // 0x10
        of!(bitwise::lt), of!(bitwise::gt), of!(bitwise::slt), of!(bitwise::sgt), of!(bitwise::eq),
        of!(bitwise::iszero), of!(bitwise::bitand), of!(bitwise::bitor), of!(bitwise::bitxor), of!(bitwise::not),
        of!(bitwise::byte), of!(bitwise::shl), of!(bitwise::shr), of!(bitwise::sar), none, none,
        // 0x20
        of!(system::keccak256), none, none, none, none, none, none, none, none, none, none, none, none, none, none,
        none,
        // 0x30
        of!(system::address), none, of!(tx_info::origin), of!(system::caller), of!(system::callvalue),
        of!(system::calldataload), of!(system::calldatasize), of!(system::calldatacopy), of!(system::codesize), none,
        none, none, none, of!(system::returndatasize), of!(system::returndatacopy), none,
        // 0x40
        of!(host::blockhash), of!(block_info::coinbase), of!(block_info::timestamp), of!(block_info::block_number),
        of!(block_info::difficulty), none, none, none, none, none, none, none, none, none, none, none,
        // 0x50
        of!(stack::pop), of!(memory::mload), of!(memory::mstore), of!(memory::mstore8), of!(host::sload), none,
        of!(control::jump), of!(control::jumpi), of!(control::pc), of!(memory::msize), of!(system::gas),
        of!(control::jumpdest), none, none, none, none,
        // 0x60
        of!(push::<1, _, _>), of!(push::<2, _, _>), of!(push::<3, _, _>), of!(push::<4, _, _>), of!(push::<5, _, _>),
        of!(push::<6, _, _>), of!(push::<7, _, _>), of!(push::<8, _, _>), of!(push::<9, _, _>),
        of!(push::<10, _, _>), of!(push::<11, _, _>), of!(push::<12, _, _>), of!(push::<13, _, _>),
        of!(push::<14, _, _>), of!(push::<15, _, _>), of!(push::<16, _, _>),
        // 0x70
        of!(push::<17, _, _>), of!(push::<18, _, _>), of!(push::<19, _, _>), of!(push::<20, _, _>),
        of!(push::<21, _, _>), of!(push::<22, _, _>), of!(push::<23, _, _>), of!(push::<24, _, _>),
        of!(push::<25, _, _>), of!(push::<26, _, _>), of!(push::<27, _, _>), of!(push::<28, _, _>),
        of!(push::<29, _, _>), of!(push::<30, _, _>), of!(push::<31, _, _>), of!(push::<32, _, _>),
        // 0x80
        of!(dup::<1, _, _>), of!(dup::<2, _, _>), of!(dup::<3, _, _>), of!(dup::<4, _, _>), of!(dup::<5, _, _>),
        of!(dup::<6, _, _>), of!(dup::<7, _, _>), of!(dup::<8, _, _>), of!(dup::<9, _, _>), of!(dup::<10, _, _>),
        of!(dup::<11, _, _>), of!(dup::<12, _, _>), of!(dup::<13, _, _>), of!(dup::<14, _, _>), of!(dup::<15, _, _>),
        of!(dup::<16, _, _>),
        // 0x90
        of!(swap::<1, _, _>), of!(swap::<2, _, _>), of!(swap::<3, _, _>), of!(swap::<4, _, _>), of!(swap::<5, _, _>),
        of!(swap::<6, _, _>), of!(swap::<7, _, _>), of!(swap::<8, _, _>), of!(swap::<9, _, _>),
        of!(swap::<10, _, _>), of!(swap::<11, _, _>), of!(swap::<12, _, _>), of!(swap::<13, _, _>),
        of!(swap::<14, _, _>), of!(swap::<15, _, _>), of!(swap::<16, _, _>),
        // 0xa0
        of!(host::log::<0, _>), of!(host::log::<1, _>), of!(host::log::<2, _>), of!(host::log::<3, _>),
        of!(host::log::<4, _>), none, none, none, none, none, none, none, none, none, none, none,
        // 0xb0
        none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none,
        // 0xc0
        none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none,
        // 0xd0
        none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none,
        // 0xe0
        none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none,
        // 0xf0
        none, none, none, of!(control::ret), none, none, none, none, none, none, none, none, none,
        of!(control::revert), of!(control::invalid), none,
    ]
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use revm::bytecode::{Bytecode, opcode::OpCode};
    use revm::interpreter::host::DummyHost;
    use revm::interpreter::instructions::{gas_table_spec, instruction_table};
    use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
    use revm::interpreter::{Gas, InstructionResult, Interpreter};
    use revm::primitives::hardfork::SpecId;

    use super::*;

    type Table = InstructionTable<EthInterpreter, DummyHost>;

    /// Opcodes that this layer implements itself or that Rootstock does not have.
    const OWN: [&str; 29] = [
        "CLZ",
        "BALANCE",
        "CODECOPY",
        "GASPRICE",
        "EXTCODESIZE",
        "EXTCODECOPY",
        "EXTCODEHASH",
        "GASLIMIT",
        "CHAINID",
        "SELFBALANCE",
        "BASEFEE",
        "BLOBHASH",
        "BLOBBASEFEE",
        "SLOTNUM",
        "SSTORE",
        "TLOAD",
        "TSTORE",
        "MCOPY",
        "PUSH0",
        "DUPN",
        "SWAPN",
        "EXCHANGE",
        "CREATE",
        "CALL",
        "CALLCODE",
        "DELEGATECALL",
        "CREATE2",
        "STATICCALL",
        "SELFDESTRUCT",
    ];

    /// Runs one instruction on a stack of small words; returns how it ended, the stack, the gas left and the memory.
    fn step(table: &Table, code: u8) -> (Result<(), InstructionResult>, alloc::vec::Vec<U256>, u64, usize) {
        let mut bytes = alloc::vec![code];
        bytes.extend(1..=40);
        let mut interpreter = Interpreter {
            bytecode: ExtBytecode::new(Bytecode::new_legacy(bytes.into())),
            gas: Gas::new(1_000_000),
            ..Interpreter::default()
        };
        interpreter.runtime_flag.spec_id = SpecId::PETERSBURG;
        for word in 1..=20u64 {
            assert!(interpreter.stack.push(U256::from(word * 3)));
        }
        let ended = interpreter.step(
            table,
            &gas_table_spec(SpecId::PETERSBURG),
            &mut DummyHost::new(SpecId::PETERSBURG),
        );
        (ended, interpreter.stack.data().clone(), interpreter.gas.remaining(), interpreter.memory.len())
    }

    #[test]
    fn the_common_instructions_are_those_of_revm() {
        let (ours, theirs): (Table, Table) = (common_opcodes(), instruction_table());
        let mut common = 0;
        for code in 0..=u8::MAX {
            let name = OpCode::new(code).map_or("", |known| known.as_str());
            if name.is_empty() || OWN.contains(&name) {
                assert_eq!(step(&ours, code).0, Err(InstructionResult::OpcodeNotFound), "{name}");
            } else {
                common += 1;
                assert_eq!(step(&ours, code), step(&theirs, code), "{name}");
            }
        }
        assert_eq!(common, 125);
    }
}
