//! 0x01000008 (REMASC, the contract that pays the fees of blocks to miners): its methods that can be called. The payments are part of the
//! execution of a block (`exec/remasc.rs`), so `processMinersFees()` fails for all callers.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::abi::bytes_result;
use super::{NativeFailure, NativeHost, Precompile};
use crate::types::rlp;

/// Selector of `getStateForDebugging()`.
const GET_STATE: [u8; 4] = [0x0d, 0x0c, 0xee, 0x93];
/// The empty RLP list. Every call writes it as the list of siblings, which is no longer used.
const NO_SIBLINGS: u8 = 0xc0;

/// Slot of a native contract's cell with this name: the name in ASCII, right-aligned.
pub fn cell_slot(name: &str) -> U256 {
    U256::try_from_be_slice(name.as_bytes()).unwrap_or_default()
}

/// `getStateForDebugging()`: the RLP list of the fees that are still to be paid, the burnt fees, an empty list of siblings, and the flag
/// that a selection rule was broken, as a raw byte.
pub(super) fn run(input: &[u8], host: &mut dyn NativeHost) -> Result<Bytes, NativeFailure> {
    if input != GET_STATE {
        return Err(NativeFailure::Failed);
    }
    let contract: Address = Precompile::Remasc.address();
    let mut items = Vec::new();
    for name in ["rewardBalance", "burnedBalance"] {
        rlp::put_str(&mut items, &host.cell(contract, cell_slot(name)));
    }
    items.push(NO_SIBLINGS);
    let flag = host.cell(contract, cell_slot("brokenSelectionRule"));
    items.push(flag.first().map_or(0, |flag| u8::from(*flag != 0)));
    host.set_cell(contract, cell_slot("siblings"), Bytes::from_static(&[NO_SIBLINGS]));
    let mut out = Vec::new();
    rlp::put_list(&mut out, &items);
    Ok(bytes_result(&out))
}
