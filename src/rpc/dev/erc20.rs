//! Sets balances and allowances of tokens (ERC-20) directly in the storage of their contract. The cell of a balance is found by
//! calls: of the cells that `balanceOf` reads, it is the one whose value the call returns.

use alloc::{collections::BTreeMap, vec::Vec};

use alloy_primitives::{Address, Bytes, U256};

use super::{chain, write};
use crate::{
    dev::DevError,
    engine::{Level, LocalNode, View},
    exec::{CallMessage, CallOutcome, call},
    rpc::{
        access_list::touched_cells,
        call::CallBlock,
        error::RpcError,
        method::{Failure, HandlerResult, Method, Param, account_of, contract_of, done, required},
    },
    state::{AccountOverride, OverrideStorage, StateOverride},
};

const TOKEN: Param = contract_of("token");
const AMOUNT: Param = required("amount", "QUANTITY");

/// Most cells that are tried, each with two calls. A token reads few cells for a balance; the limit bounds the number of calls.
const MOST_CELLS: usize = 64;

/// Selector of `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
/// Selector of `allowance(address,address)`.
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_dealERC20", &["hardhat_dealERC20", "anvil_setERC20Balance"]),
        &[account_of("address"), TOKEN, AMOUNT],
        "null",
        "Sets the balance of an account in a token (ERC-20), in the cell of the storage that balanceOf returns.",
        |node, params| {
            let (owner, token, amount) = (params.address(0)?, params.address(1)?, params.number(2)?);
            set_result(node, token, call_data(BALANCE_OF, &[owner]), amount)
        },
    ),
    write(
        ("anvil_setERC20Allowance", &[]),
        &[account_of("owner"), account_of("spender"), TOKEN, AMOUNT],
        "null",
        "Sets how much of a token (ERC-20) a spender may take of an owner's, in the cell of the storage that allowance returns.",
        |node, params| {
            let (owner_and_spender, token) = ([params.address(0)?, params.address(1)?], params.address(2)?);
            set_result(node, token, call_data(ALLOWANCE, &owner_and_spender), params.number(3)?)
        },
    ),
];

/// The data of a call with these arguments, encoded by the ABI.
fn call_data(selector: [u8; 4], arguments: &[Address]) -> Bytes {
    let words = arguments.iter().flat_map(|address| address.into_word().0);
    selector.into_iter().chain(words).collect::<Vec<u8>>().into()
}

/// Sets the storage cell whose value a call of the token returns.
fn set_result(node: &mut dyn LocalNode, token: Address, data: Bytes, amount: U256) -> HandlerResult {
    let (snapshot, now) = (node.snapshot(), node.now());
    let chain = chain(node)?;
    let message = CallMessage { to: Some(token), data, ..CallMessage::default() };
    let found = returned_cell(&*snapshot.view(now, &|| chain.is_interrupted()), &message, amount)?;
    let (contract, slot) = found.ok_or(RpcError::from(DevError::NoTokenCell(token)))?;
    chain.set_storage(&contract, &slot, amount);
    done(&(), Level::Local)
}

/// The contract and slot of the storage cell whose value the call returns. Each cell that the call touches is tried by
/// overriding it with two other values: the call must return each of them.
fn returned_cell(
    view: &dyn View,
    message: &CallMessage,
    amount: U256,
) -> Result<Option<(Address, U256)>, Failure> {
    let block = CallBlock::inside(view.head()?);
    let touched = touched_cells(view, &block, message)?.into_iter();
    let cells = touched.flat_map(|(contract, slots)| slots.into_iter().map(move |slot| (contract, slot)));
    for (contract, slot) in cells.take(MOST_CELLS) {
        let returns = |value| {
            let returned = returned_word(view, &block, message, (contract, slot, value));
            returned.map(|returned| returned == Some(value))
        };
        // One value is not enough: the token may return the amount already, whatever the cell has.
        if returns(amount)? && returns(amount ^ U256::from(1))? {
            return Ok(Some((contract, slot)));
        }
    }
    Ok(None)
}

/// The word that the call returns if a cell has this value; `None` if the call does not return one word.
fn returned_word(
    view: &dyn View,
    block: &CallBlock,
    message: &CallMessage,
    (contract, slot, value): (Address, U256, U256),
) -> Result<Option<U256>, Failure> {
    let storage = OverrideStorage::Patch(BTreeMap::from([(slot, value)]));
    let changed = AccountOverride { storage, ..AccountOverride::default() };
    let overrides = StateOverride { accounts: BTreeMap::from([(contract, changed)]) };
    // `None`: without an inspector.
    let result = block.run(view, |context, limits| call(context, message, &overrides, limits, None))?;
    Ok(match result.into_outcome() {
        CallOutcome::Success { output, .. } if output.len() == 32 => U256::try_from_be_slice(&output),
        _ => None,
    })
}
