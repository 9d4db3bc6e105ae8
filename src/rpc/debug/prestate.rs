//! The objects of geth's `prestateTracer`.

use alloc::{boxed::Box, collections::BTreeMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    evm::AccountValues,
    exec::trace::{StateTrace, UsedAccount},
    types::json::{Data, Quantity},
};

/// The parts of the state that the objects show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateForm {
    /// Whether only changes are shown, each before and after the transaction.
    pub(super) diff: bool,
    /// Whether code is left out.
    pub(super) disable_code: bool,
    /// Whether storage is left out.
    pub(super) disable_storage: bool,
    /// Whether accounts are shown that did not exist.
    pub(super) include_empty: bool,
}

/// An account, or the part of it that changes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_hash: Option<B256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<B256, B256>,
}

type Accounts = BTreeMap<Address, AccountObject>;

/// The result in diff mode: the changed accounts after and before the transaction.
#[derive(Debug, Default, Serialize)]
struct Diff {
    post: Accounts,
    pre: Accounts,
}

/// The state before a transaction, or what the transaction changed.
pub(super) fn to_json(trace: &StateTrace, form: StateForm) -> serde_json::Result<Box<RawValue>> {
    if !form.diff {
        let shown = trace.iter().filter(|(_, account)| account.before.is_some() || form.include_empty);
        return to_raw_value(
            &shown.map(|(address, account)| (*address, before(account, form))).collect::<Accounts>(),
        );
    }
    let mut diff = Diff::default();
    for (address, account) in trace {
        let post = changes(account, form);
        if account.before.is_some() && (post.is_some() || account.after.is_none()) {
            diff.pre.insert(*address, before(account, form));
        }
        if let Some(post) = post {
            diff.post.insert(*address, post);
        }
    }
    to_raw_value(&diff)
}

/// The account before the transaction. The changes of an account that remains show only the slots that change.
fn before(account: &UsedAccount, form: StateForm) -> AccountObject {
    // An account that did not exist is shown like an empty one (`include_empty`).
    let values = account.before.clone().unwrap_or_default();
    // As in geth, a changed slot that was empty before is left out.
    let hidden = |before: &Bytes, after: &Bytes| before == after || before.is_empty();
    let only_changes = form.diff && account.after.is_some();
    let cells = account.cells.iter().filter(|(_, (before, after))| !(only_changes && hidden(before, after)));
    AccountObject {
        storage: words(cells.map(|(slot, (before, _))| (slot, before)), form),
        ..values_of(&values, form)
    }
}

/// The changes of a transaction to an account; `None` if it changed nothing or removed the account.
fn changes(account: &UsedAccount, form: StateForm) -> Option<AccountObject> {
    let after = account.after.as_ref()?;
    // A new account is compared with an empty one.
    let before = account.before.clone().unwrap_or_default();
    let AccountObject { balance, code, code_hash, nonce, .. } = values_of(after, form);
    let new_code = before.code != after.code;
    let cells = account.cells.iter().filter(|(_, (before, after))| before != after);
    let changed_cells = cells.clone().next().is_some() && !form.disable_storage;
    let object = AccountObject {
        // The balance of a new account is always shown, so that its object is not empty.
        balance: balance.filter(|_| account.before.is_none() || after.balance != before.balance),
        code: code.filter(|_| new_code),
        code_hash: code_hash.filter(|_| new_code),
        nonce: nonce.filter(|_| after.nonce != before.nonce),
        storage: words(
            cells.map(|(slot, (_, after))| (slot, after)).filter(|(_, after)| !after.is_empty()),
            form,
        ),
    };
    (changed_cells || object != AccountObject::default()).then_some(object)
}

/// Balance, code and nonce of an account; geth leaves out a nonce of 0 and the hash of no code.
fn values_of(values: &AccountValues, form: StateForm) -> AccountObject {
    let code = Some(&values.code).filter(|code| !code.is_empty());
    AccountObject {
        balance: Some(Quantity(values.balance)),
        code: code.filter(|_| !form.disable_code).cloned().map(Data),
        code_hash: code.map(keccak256),
        nonce: Some(values.nonce).filter(|nonce| *nonce != 0),
        storage: BTreeMap::new(),
    }
}

/// Storage cells as words of 32 bytes. Native contracts also have longer cells, which are left out.
fn words<'a>(cells: impl Iterator<Item = (&'a U256, &'a Bytes)>, form: StateForm) -> BTreeMap<B256, B256> {
    let cells = cells.filter(|(_, bytes)| !form.disable_storage && bytes.len() <= B256::len_bytes());
    cells.map(|(slot, bytes)| (B256::from(*slot), B256::left_padding_from(bytes))).collect()
}
