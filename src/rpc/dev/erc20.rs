//! Balances and allowances of tokens, set in the storage of the contract that holds them: the cell is found by what the token
//! reads and returns.

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

/// Most cells that are tried, each with two calls: a token reads few.
const MOST_CELLS: usize = 64;

/// `balanceOf(address)`
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
/// `allowance(address,address)`
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_dealERC20", &["hardhat_dealERC20", "anvil_setERC20Balance"]),
        &[account_of("address"), TOKEN, AMOUNT],
        "null",
        "Sets the balance of an account in a token (ERC-20), in the cell of the storage that balanceOf returns.",
        |node, params| {
            let (owner, token, amount) = (params.address(0)?, params.address(1)?, params.number(2)?);
            set(node, token, question(BALANCE_OF, &[owner]), amount)
        },
    ),
    write(
        ("anvil_setERC20Allowance", &[]),
        &[account_of("owner"), account_of("spender"), TOKEN, AMOUNT],
        "null",
        "Sets how much of a token (ERC-20) a spender may take of an owner's, in the cell of the storage that allowance returns.",
        |node, params| {
            let (of, token) = ([params.address(0)?, params.address(1)?], params.address(2)?);
            set(node, token, question(ALLOWANCE, &of), params.number(3)?)
        },
    ),
];

fn question(selector: [u8; 4], about: &[Address]) -> Bytes {
    let words = about.iter().flat_map(|address| address.into_word().0);
    selector.into_iter().chain(words).collect::<Vec<u8>>().into()
}

/// Sets the cell that is what the token answers.
fn set(node: &mut dyn LocalNode, token: Address, question: Bytes, amount: U256) -> HandlerResult {
    let (snapshot, now) = (node.snapshot(), node.now());
    let chain = chain(node)?;
    let message = CallMessage { to: Some(token), data: question, ..CallMessage::default() };
    let found = cell(&*snapshot.view(now, &|| chain.is_interrupted()), &message, amount)?;
    let (contract, slot) = found.ok_or(RpcError::from(DevError::NoTokenCell(token)))?;
    chain.set_storage(&contract, &slot, amount);
    done(&(), Level::Local)
}

/// The storage cell whose value the call returns. A cell is tried by two other values: the call must return each of them.
fn cell(view: &dyn View, message: &CallMessage, amount: U256) -> Result<Option<(Address, U256)>, Failure> {
    let at = CallBlock::inside(view.head()?);
    let touched = touched_cells(view, &at, message)?.into_iter();
    let cells = touched.flat_map(|(contract, slots)| slots.into_iter().map(move |slot| (contract, slot)));
    for (contract, slot) in cells.take(MOST_CELLS) {
        let returns = |value| {
            let found = answer(view, &at, message, (contract, slot, value));
            found.map(|found| found == Some(value))
        };
        // The amount may be what the token returns anyway.
        if returns(amount)? && returns(amount ^ U256::from(1))? {
            return Ok(Some((contract, slot)));
        }
    }
    Ok(None)
}

/// The word that the call returns if a cell has this value.
fn answer(
    view: &dyn View,
    at: &CallBlock,
    message: &CallMessage,
    (contract, slot, value): (Address, U256, U256),
) -> Result<Option<U256>, Failure> {
    let storage = OverrideStorage::Patch(BTreeMap::from([(slot, value)]));
    let changed = AccountOverride { storage, ..AccountOverride::default() };
    let overrides = StateOverride { accounts: BTreeMap::from([(contract, changed)]) };
    let result = at.run(view, |context, limits| call(context, message, &overrides, limits, None))?;
    Ok(match result.into_outcome() {
        CallOutcome::Success { output, .. } if output.len() == 32 => U256::try_from_be_slice(&output),
        _ => None,
    })
}
