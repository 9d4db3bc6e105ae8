//! 0x01000008 (REMASC): the methods that can be called. Miners are paid by block execution, so
//! `processMinersFees()` fails for all callers.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::abi::bytes_result;
use super::{NativeFailure, NativeHost, Precompile};
use crate::types::rlp;

/// Selector of `getStateForDebugging()`.
const GET_STATE: [u8; 4] = [0x0d, 0x0c, 0xee, 0x93];
/// The empty RLP list. Every call writes it as the list of siblings, which is no longer used.
const NO_SIBLINGS: u8 = 0xc0;

/// Slot of the cell with this name: the name, right-aligned.
pub fn cell_slot(name: &str) -> U256 {
    U256::try_from_be_slice(name.as_bytes()).unwrap_or_default()
}

/// Returns the RLP list of reward, burnt fees, an empty list of siblings, and the flag as a raw byte.
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
