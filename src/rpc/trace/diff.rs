//! The changes of state in the traces of the former client Parity (`stateDiff`).

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    evm::AccountValues,
    exec::trace::{StateTrace, UsedAccount},
    types::json::{Data, Quantity},
};

/// A value before and after a run, with the names and signs of Parity.
#[derive(Debug, PartialEq, Eq)]
enum Delta<T> {
    /// `=`: the value is the same, or absent before and after.
    Same,
    /// `+`: there was no value before.
    Born(T),
    /// `-`: there is no value after.
    Died(T),
    /// `*`: the values before and after.
    Changed(T, T),
}

impl<T: PartialEq> Delta<T> {
    fn between(before: Option<T>, after: Option<T>) -> Self {
        match (before, after) {
            (None, None) => Self::Same,
            (None, Some(after)) => Self::Born(after),
            (Some(before), None) => Self::Died(before),
            (Some(before), Some(after)) if before == after => Self::Same,
            (Some(before), Some(after)) => Self::Changed(before, after),
        }
    }
}

/// The values of [`Delta::Changed`].
#[derive(Serialize)]
struct FromTo<'a, T> {
    from: &'a T,
    to: &'a T,
}

impl<T: Serialize> Serialize for Delta<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Same = self {
            return serializer.serialize_str("=");
        }
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Same => {}
            Self::Born(value) => map.serialize_entry("+", value)?,
            Self::Died(value) => map.serialize_entry("-", value)?,
            Self::Changed(from, to) => map.serialize_entry("*", &FromTo { from, to })?,
        }
        map.end()
    }
}

/// The changes of an account.
#[derive(Serialize)]
struct AccountDiff {
    balance: Delta<Quantity>,
    code: Delta<Data>,
    nonce: Delta<Quantity>,
    storage: BTreeMap<B256, Delta<B256>>,
}

/// The accounts that a run changed.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct StateDiff(BTreeMap<Address, AccountDiff>);

impl StateDiff {
    pub(super) fn of(trace: &StateTrace) -> Self {
        let changed = |(address, account): (&Address, &UsedAccount)| Some((*address, diff(account)?));
        Self(trace.iter().filter_map(changed).collect())
    }
}

/// The changes of a run to an account; `None` if nothing has changed.
fn diff(account: &UsedAccount) -> Option<AccountDiff> {
    let (before, after) = (account.before.as_ref(), account.after.as_ref());
    let number = |read: fn(&AccountValues) -> U256| {
        Delta::between(before.map(read).map(Quantity), after.map(read).map(Quantity))
    };
    let code = |values: &AccountValues| Data(values.code.clone());
    // The cells of native contracts that are longer than a word are left out.
    let cells =
        account.cells.iter().filter(|(_, (old, new))| old != new && old.len() <= 32 && new.len() <= 32);
    let word = |bytes: &[u8]| B256::left_padding_from(bytes);
    // A cell of an existing account is always `Changed`, from or to zero too; only a new or removed account has others.
    let delta = |old: &[u8], new: &[u8]| match (before, after) {
        (None, _) => Delta::Born(word(new)),
        (_, None) => Delta::Died(word(old)),
        _ => Delta::Changed(word(old), word(new)),
    };
    let storage: BTreeMap<_, _> =
        cells.map(|(slot, (old, new))| (B256::from(*slot), delta(old, new))).collect();
    (before != after || !storage.is_empty()).then(|| AccountDiff {
        balance: number(|values| values.balance),
        code: Delta::between(before.map(code), after.map(code)),
        nonce: number(|values| U256::from(values.nonce)),
        storage,
    })
}
