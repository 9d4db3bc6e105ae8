//! Names of opcodes as the reference node (`OpCode` of rskj 9.1) prints them in traces, and as geth prints them. Ethereum does not
//! have DUPN, SWAPN, TXINDEX and HEADER.

use alloc::{borrow::Cow, format};

/// Names of the opcodes below 0x60 and above 0x9f, sorted by opcode for the binary search in [`name`].
const NAMES: &[(u8, &str)] = &[
    (0x00, "STOP"),
    (0x01, "ADD"),
    (0x02, "MUL"),
    (0x03, "SUB"),
    (0x04, "DIV"),
    (0x05, "SDIV"),
    (0x06, "MOD"),
    (0x07, "SMOD"),
    (0x08, "ADDMOD"),
    (0x09, "MULMOD"),
    (0x0a, "EXP"),
    (0x0b, "SIGNEXTEND"),
    (0x10, "LT"),
    (0x11, "GT"),
    (0x12, "SLT"),
    (0x13, "SGT"),
    (0x14, "EQ"),
    (0x15, "ISZERO"),
    (0x16, "AND"),
    (0x17, "OR"),
    (0x18, "XOR"),
    (0x19, "NOT"),
    (0x1a, "BYTE"),
    (0x1b, "SHL"),
    (0x1c, "SHR"),
    (0x1d, "SAR"),
    (0x20, "SHA3"),
    (0x30, "ADDRESS"),
    (0x31, "BALANCE"),
    (0x32, "ORIGIN"),
    (0x33, "CALLER"),
    (0x34, "CALLVALUE"),
    (0x35, "CALLDATALOAD"),
    (0x36, "CALLDATASIZE"),
    (0x37, "CALLDATACOPY"),
    (0x38, "CODESIZE"),
    (0x39, "CODECOPY"),
    (0x3a, "GASPRICE"),
    (0x3b, "EXTCODESIZE"),
    (0x3c, "EXTCODECOPY"),
    (0x3d, "RETURNDATASIZE"),
    (0x3e, "RETURNDATACOPY"),
    (0x3f, "EXTCODEHASH"),
    (0x40, "BLOCKHASH"),
    (0x41, "COINBASE"),
    (0x42, "TIMESTAMP"),
    (0x43, "NUMBER"),
    (0x44, "DIFFICULTY"),
    (0x45, "GASLIMIT"),
    (0x46, "CHAINID"),
    (0x47, "SELFBALANCE"),
    (0x48, "BASEFEE"),
    (0x50, "POP"),
    (0x51, "MLOAD"),
    (0x52, "MSTORE"),
    (0x53, "MSTORE8"),
    (0x54, "SLOAD"),
    (0x55, "SSTORE"),
    (0x56, "JUMP"),
    (0x57, "JUMPI"),
    (0x58, "PC"),
    (0x59, "MSIZE"),
    (0x5a, "GAS"),
    (0x5b, "JUMPDEST"),
    (0x5c, "TLOAD"),
    (0x5d, "TSTORE"),
    (0x5e, "MCOPY"),
    (0x5f, "PUSH0"),
    (0xa0, "LOG0"),
    (0xa1, "LOG1"),
    (0xa2, "LOG2"),
    (0xa3, "LOG3"),
    (0xa4, "LOG4"),
    (0xa8, "DUPN"),
    (0xa9, "SWAPN"),
    (0xaa, "TXINDEX"),
    (0xf0, "CREATE"),
    (0xf1, "CALL"),
    (0xf2, "CALLCODE"),
    (0xf3, "RETURN"),
    (0xf4, "DELEGATECALL"),
    (0xf5, "CREATE2"),
    (0xfa, "STATICCALL"),
    (0xfc, "HEADER"),
    (0xfd, "REVERT"),
    (0xff, "SUICIDE"),
];

/// Names of the opcodes from 0x60 on.
const PUSH: [&str; 32] = [
    "PUSH1", "PUSH2", "PUSH3", "PUSH4", "PUSH5", "PUSH6", "PUSH7", "PUSH8", "PUSH9", "PUSH10", "PUSH11",
    "PUSH12", "PUSH13", "PUSH14", "PUSH15", "PUSH16", "PUSH17", "PUSH18", "PUSH19", "PUSH20", "PUSH21",
    "PUSH22", "PUSH23", "PUSH24", "PUSH25", "PUSH26", "PUSH27", "PUSH28", "PUSH29", "PUSH30", "PUSH31",
    "PUSH32",
];
/// Names of the opcodes from 0x80 on.
const DUP: [&str; 16] = [
    "DUP1", "DUP2", "DUP3", "DUP4", "DUP5", "DUP6", "DUP7", "DUP8", "DUP9", "DUP10", "DUP11", "DUP12",
    "DUP13", "DUP14", "DUP15", "DUP16",
];
/// Names of the opcodes from 0x90 on.
const SWAP: [&str; 16] = [
    "SWAP1", "SWAP2", "SWAP3", "SWAP4", "SWAP5", "SWAP6", "SWAP7", "SWAP8", "SWAP9", "SWAP10", "SWAP11",
    "SWAP12", "SWAP13", "SWAP14", "SWAP15", "SWAP16",
];

/// The name of an opcode, whether or not it is active at a height; `None` for codes that no Rootstock upgrade defines.
pub(super) fn name(code: u8) -> Option<&'static str> {
    let of_range =
        |names: &[&'static str], first: u8| names.get(usize::from(code.saturating_sub(first))).copied();
    match code {
        0x60..=0x7f => of_range(&PUSH, 0x60),
        0x80..=0x8f => of_range(&DUP, 0x80),
        0x90..=0x9f => of_range(&SWAP, 0x90),
        _ => {
            let index = NAMES.binary_search_by_key(&code, |(opcode, _)| *opcode).ok()?;
            NAMES.get(index).map(|(_, name)| *name)
        }
    }
}

/// The name of an opcode in geth.
pub(super) fn ethereum_name(code: u8) -> Cow<'static, str> {
    match name(code) {
        Some("SHA3") => "KECCAK256".into(),
        Some("SUICIDE") => "SELFDESTRUCT".into(),
        Some(name) => name.into(),
        None => format!("opcode {code:#x} not defined").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_have_the_reference_nodes_names() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (code, text) in
            [(0x60, "PUSH1"), (0x7f, "PUSH32"), (0x8f, "DUP16"), (0x90, "SWAP1"), (0xff, "SUICIDE")]
        {
            assert_eq!(name(code), Some(text));
        }
        for code in [0x0c, 0x1e, 0x49, 0x4a, 0xa5, 0xfe] {
            assert_eq!(name(code), None);
        }
    }
}
