//! What every operation touches in the eyes of parallel lists (RSKIP-144), as one table.
//!
//! Two transactions in different parallel lists must not touch the same key if one of them writes it. The
//! reference node counts each key that its repository is asked for, when it is asked and whatever becomes
//! of it: a frame that is rolled back takes no touch back. So it matters how far an operation comes. It
//! finds its price first, then pays, then is checked, then moves value and fetches code; what it asks for
//! before it fails counts, and what would have come next does not.
//!
//! | operation | how far it comes | read | written |
//! |---|---|---|---|
//! | transaction | its checks | | sender |
//! | to an account, with or without code | | target | sender and target if value moves, target if it is missing |
//! | to a native contract | it does not throw | target | the same |
//! | creation | | | new account |
//! | CALL | its price, paid or not | target | |
//! | CALL, STATICCALL | runs | target | caller and target if value moves, target if it is missing |
//! | CALLCODE, DELEGATECALL | runs | target, unless native | caller if value moves |
//! | CREATE, CREATE2 | neither too deep nor above the balance | new address | creator |
//! | CREATE, CREATE2 | the address is free | | new account |
//! | SELFDESTRUCT | its price, paid or not | beneficiary | |
//! | SELFDESTRUCT | paid, and there is a balance | | own account and beneficiary |
//! | SELFDESTRUCT | the transaction succeeds | | own account |
//! | SSTORE | its price, paid or not | cell | |
//! | SSTORE | paid | | cell |
//! | SLOAD | paid | cell | |
//! | BALANCE, EXTCODESIZE, EXTCODECOPY | paid | account | |
//! | EXTCODEHASH | paid | account, unless native | |
//!
//! A call runs when it is paid, not too deep, and the caller has the value; whether a native contract then
//! gets the gas it wants does not matter. The table leaves out what decides nothing:
//! - The running contract's own account is read by whatever started the frame, so SELFBALANCE, looking at
//!   one's own balance before a transfer, and the rest of that kind add nothing. Where an account is
//!   written, reads of it add nothing either.
//! - Code is not reached without its account.
//! - Calls of native contracts read their storage-root markers. Nothing writes these in a block with
//!   parallel lists: activation makes them before the first transaction.

use alloy_primitives::{Address, U256};

use crate::state::AccessKey::{Account, Cell};
use crate::state::Touches;

/// Something that touches the state, at the moment it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touch {
    /// A transaction's nonce moves on and its gas is paid for.
    Sender(Address),
    /// A transaction looks for code at its target.
    TargetCode(Address),
    /// A native contract that a transaction called has not thrown.
    NativeDone(Address),
    /// A contract that destroyed itself is deleted behind its transaction.
    Deleted(Address),
    /// CALL asks whether its target exists: its price depends on that.
    CallPrice(Address),
    /// A call that runs fetches the code of a target that is no native contract.
    CallCode(Address),
    /// Value moves, by a transaction or a call that runs. Moving nothing still makes a missing account.
    Transfer {
        /// Who pays.
        from: Address,
        /// Who is paid: the account in whose context the code will run.
        to: Address,
        /// Wei.
        value: U256,
        /// Whether `to` is in the state.
        exists: bool,
    },
    /// The nonce of a contract that creates another one moves on.
    Creator(Address),
    /// A creation looks whether its address is taken. It also counts where the address is refused since an
    /// earlier transaction of the block destroyed what was there: the outcome depends on that transaction.
    /// The reference misses this when it builds a block, and then refuses the block it built. Where a
    /// block is checked nothing changes, because the transaction that destroyed is in the same list.
    CreationAddress(Address),
    /// A creation makes its account.
    Created(Address),
    /// SELFDESTRUCT asks whether the beneficiary exists: its price depends on that.
    SelfdestructPrice(Address),
    /// SELFDESTRUCT moves a balance that is not zero, to its own account too.
    SelfdestructTransfer {
        /// The account that goes.
        own: Address,
        /// Who gets its balance.
        beneficiary: Address,
    },
    /// An instruction looks at an account: its balance, or its code.
    Inspected(Address),
    /// A cell is read; SSTORE does that to find its price.
    CellRead(Address, U256),
    /// A cell is written.
    CellWritten(Address, U256),
}

impl Touch {
    /// Notes what is read and written.
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
