//! `eth_createAccessList`: the accounts and storage cells that a call touches.
//!
//! Rootstock has no transactions with access lists (EIP-2930). Callers use the answer to know in advance which state a
//! call reads.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use alloy_primitives::{Address, B256, U256};
use serde::Serialize;

#[cfg(feature = "dev")]
use super::call::CallBlock;
use super::{
    call::arguments,
    error::RpcError,
    method::{CALL, Failure, HandlerResult, Method, Runs, verified},
    params::Params,
    revert::reason,
};
use crate::{
    engine::View,
    exec::{CallOutcome, FrameClose, FrameStart, Inspector, StepStart, call},
    types::json::Quantity,
};
#[cfg(feature = "dev")]
use crate::{exec::CallMessage, state::StateOverride};

/// Opcodes that read or write a cell of the running contract, whose slot is on top of the stack: SLOAD, SSTORE.
const SLOTS: [u8; 2] = [0x54, 0x55];
/// Opcodes with an account on top of the stack: BALANCE, EXTCODESIZE, EXTCODECOPY, EXTCODEHASH, SELFDESTRUCT.
const ACCOUNTS: [u8; 5] = [0x31, 0x3b, 0x3c, 0x3f, 0xff];
/// Opcodes with an account below the top of the stack (the gas): CALL, CALLCODE, DELEGATECALL, STATICCALL.
const CALLS: [u8; 4] = [0xf1, 0xf2, 0xf4, 0xfa];

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_createAccessList",
    CALL,
    "{accessList: array of {address, storageKeys}, gasUsed: QUANTITY, error?: string}",
    "The accounts and storage cells that a call touches, and the gas it uses. Transactions cannot carry the list.",
    create_access_list,
)
.runs(Runs::WatchedCall)
.costs(100)];

/// The answer: the list, the gas that the call used, and the error of a call that failed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessList {
    access_list: Vec<Accessed>,
    gas_used: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// An account with its touched slots.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accessed {
    address: String,
    storage_keys: Vec<B256>,
}

fn create_access_list(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (message, call_block, overrides) = arguments(view, params)?;
    let mut touched = TouchedState::default();
    let result = call_block
        .run(view, |context, limits| call(context, &message, &overrides, limits, Some(&mut touched)))?;
    let (gas_used, error) = match result.into_outcome() {
        CallOutcome::Success { gas_used, .. } => (gas_used, None),
        CallOutcome::Revert { output, gas_used } => {
            let code = view.policy().calls.revert_code;
            (gas_used, Some(RpcError::Reverted { reason: reason(&output), data: output, code }))
        }
        CallOutcome::Halt { reason, gas_used } => (gas_used, Some(RpcError::Halted(format!("{reason}")))),
    };
    let error = error.map(|error| format!("{error}"));
    verified(&AccessList { access_list: touched.list(message.from), gas_used: gas_used.into(), error })
}

/// The cells that a call of a contract touches, by contract.
///
/// # Errors
/// As `eth_call`; a call that reverts or halts is not an error.
#[cfg(feature = "dev")]
pub(super) fn touched_cells(
    view: &dyn View,
    at: &CallBlock,
    message: &CallMessage,
) -> Result<BTreeMap<Address, BTreeSet<U256>>, Failure> {
    let (mut touched, none) = (TouchedState::default(), StateOverride::default());
    at.run(view, |context, limits| call(context, message, &none, limits, Some(&mut touched)))?;
    Ok(touched.accounts)
}

/// A call or creation that has not ended.
struct OpenFrame {
    /// The contract whose storage the frame uses; `None` during a creation, which learns its address at its end.
    contract: Option<Address>,
    /// Slots of that contract that the frame has touched.
    slots: BTreeSet<U256>,
}

/// The accounts and cells that a run touches.
#[derive(Default)]
struct TouchedState {
    /// The touched accounts, each with its touched slots.
    accounts: BTreeMap<Address, BTreeSet<U256>>,
    /// Accounts that are listed only if their cells are touched: the callee or the new contract, which every transaction
    /// touches, and native contracts.
    implied: BTreeSet<Address>,
    /// The frames that have not ended, outermost first.
    open_frames: Vec<OpenFrame>,
}

impl TouchedState {
    /// The access list. The sender, the callee and native contracts are only in the list if their cells are touched.
    fn list(self, from: Option<Address>) -> Vec<Accessed> {
        let Self { accounts, mut implied, .. } = self;
        implied.extend(from);
        let listed =
            accounts.into_iter().filter(|(account, slots)| !slots.is_empty() || !implied.contains(account));
        let entry = |(account, slots): (Address, BTreeSet<U256>)| Accessed {
            address: format!("{account:#x}"),
            storage_keys: slots.into_iter().map(B256::from).collect(),
        };
        listed.map(entry).collect()
    }

    /// Adds the account whose address is the word from the stack.
    fn add_account(&mut self, word: &U256) {
        self.accounts.entry(Address::from_word(B256::from(*word))).or_default();
    }
}

impl Inspector for TouchedState {
    fn wants_steps(&self) -> bool {
        true
    }

    fn frame(&mut self, frame: FrameStart) {
        if frame.depth == 0 {
            self.implied.extend(frame.to);
        }
        if frame.native {
            self.implied.extend(frame.to);
        }
        self.open_frames.push(OpenFrame { contract: frame.context, slots: BTreeSet::new() });
    }

    fn frame_end(&mut self, end: FrameClose) {
        let Some(ended) = self.open_frames.pop() else { return };
        let Some(contract) = ended.contract.or(end.created) else { return };
        if self.open_frames.is_empty() {
            self.implied.insert(contract);
        }
        if !ended.slots.is_empty() {
            self.accounts.entry(contract).or_default().extend(ended.slots);
        }
    }

    fn step(&mut self, step: StepStart<'_>) {
        let from_top = step.stack.iter().rev();
        let position = match step.opcode {
            opcode if SLOTS.contains(&opcode) || ACCOUNTS.contains(&opcode) => 0,
            opcode if CALLS.contains(&opcode) => 1,
            _ => return,
        };
        let Some(word) = from_top.clone().nth(position) else { return };
        if SLOTS.contains(&step.opcode) {
            if let Some(innermost) = self.open_frames.last_mut() {
                innermost.slots.insert(*word);
            }
        } else {
            self.add_account(word);
        }
    }
}
