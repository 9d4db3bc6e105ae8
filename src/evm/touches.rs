//! The state keys that each operation touches. RSKIP-144 lets a block divide its transactions into lists that can run in parallel, and
//! touches decide whether two lists are independent.
//!
//! Two transactions in different parallel lists must not touch the same key if one of them writes it. The
//! reference node counts every key that it requests from its repository of accounts, at the time of the request. Touches of
//! reverted frames count. The result therefore depends on how far an operation proceeds before it fails.
//! An operation computes its price, pays it, checks its conditions, and then moves value and loads code. Requests made
//! before a failure count; those that would follow do not.
//!
//! | operation | proceeds to | read | written |
//! |---|---|---|---|
//! | transaction | its checks | | sender |
//! | to an account, with or without code | | target | sender and target if value moves, target if it is missing |
//! | to a native contract | it does not throw | target | as for an account |
//! | creation | | | new account |
//! | CALL | price, paid or not | target | |
//! | CALL, STATICCALL | runs | target | caller and target if value moves, target if it is missing |
//! | CALLCODE, DELEGATECALL | runs | target, unless native | caller if value moves |
//! | CREATE, CREATE2 | neither too deep nor above the balance | new address | creator |
//! | CREATE, CREATE2 | the address is free | | new account |
//! | SELFDESTRUCT | price, paid or not | beneficiary | |
//! | SELFDESTRUCT | paid, and there is a balance | | own account and beneficiary |
//! | SELFDESTRUCT | the transaction succeeds | | own account |
//! | SSTORE | price, paid or not | cell | |
//! | SSTORE | paid | | cell |
//! | SLOAD | paid | cell | |
//! | BALANCE, EXTCODESIZE, EXTCODECOPY | paid | account | |
//! | EXTCODEHASH | paid | account, unless native | |
//!
//! A call runs if it is paid, not too deep, and the caller has the value. Its touches count even if a native contract
//! then has too little gas. The table omits touches that cannot change the result:
//! - The operation that starts a frame already reads the account of the running contract. SELFBALANCE and the
//!   balance check before a transfer therefore add nothing. Reads of an account that is also written add
//!   nothing either.
//! - Code is never read without its account.
//! - Calls of native contracts read their storage-root markers. No transaction in a block with parallel lists
//!   writes them: they are written when rules activate, before the first transaction.

use alloy_primitives::{Address, U256};

use crate::state::AccessKey::{Account, Cell};
use crate::state::Touches;

/// An operation that touches the state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touch {
    /// A transaction's nonce is incremented and its gas is paid.
    Sender(Address),
    /// A transaction looks up the code of its target.
    TargetCode(Address),
    /// A native contract called by a transaction has returned without throwing.
    NativeDone(Address),
    /// A contract that destroyed itself is deleted after its transaction.
    Deleted(Address),
    /// CALL checks whether its target exists, because its price depends on it.
    CallPrice(Address),
    /// A call that runs loads the code of a target that is not a native contract.
    CallCode(Address),
    /// A transaction or a call that runs transfers value. Even a transfer of zero creates a missing account.
    Transfer {
        /// The payer.
        from: Address,
        /// The payee: the account in whose context the code will run.
        to: Address,
        /// Value in wei.
        value: U256,
        /// Whether `to` exists.
        exists: bool,
    },
    /// The nonce of a contract that creates another contract is incremented.
    Creator(Address),
    /// A creation checks whether its address is taken. The check also counts if the address is refused
    /// because an earlier transaction of the block destroyed the contract there: the outcome depends on that
    /// transaction. The reference node misses this touch when it builds a block, and then refuses its own
    /// block. Validation of blocks is not affected, because the transaction that destroyed the contract is in
    /// the same list.
    CreationAddress(Address),
    /// A creation creates its account.
    Created(Address),
    /// SELFDESTRUCT checks whether the beneficiary exists, because its price depends on it.
    SelfdestructPrice(Address),
    /// SELFDESTRUCT transfers a non-zero balance, possibly to its own account.
    SelfdestructTransfer {
        /// The account that is destroyed.
        own: Address,
        /// The account that receives its balance.
        beneficiary: Address,
    },
    /// An instruction reads the balance or code of an account.
    Inspected(Address),
    /// A cell is read. SSTORE also reads its cell, to compute its price.
    CellRead(Address, U256),
    /// A cell is written.
    CellWritten(Address, U256),
}

impl Touch {
    /// Adds the keys that the operation reads and writes.
    pub(crate) fn note(self, touches: &mut Touches) {
        let (reads, writes) = (&mut touches.reads, &mut touches.writes);
        match self {
            Self::TargetCode(account)
            | Self::NativeDone(account)
            | Self::CallPrice(account)
            | Self::CallCode(account)
            | Self::CreationAddress(account)
            | Self::SelfdestructPrice(account)
            | Self::Inspected(account) => drop(reads.insert(Account(account))),
            Self::CellRead(account, slot) => drop(reads.insert(Cell(account, slot))),
            Self::Sender(account)
            | Self::Deleted(account)
            | Self::Creator(account)
            | Self::Created(account) => drop(writes.insert(Account(account))),
            Self::CellWritten(account, slot) => drop(writes.insert(Cell(account, slot))),
            Self::SelfdestructTransfer { own, beneficiary } => {
                writes.extend([Account(own), Account(beneficiary)]);
            }
            Self::Transfer { from, to, value, .. } if !value.is_zero() => {
                writes.extend([Account(from), Account(to)]);
            }
            Self::Transfer { to, exists: false, .. } => drop(writes.insert(Account(to))),
            Self::Transfer { to, .. } => drop(reads.insert(Account(to))),
        }
    }
}
