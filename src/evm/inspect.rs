//! Inspection of a run: an [`Inspector`], such as a tracer, gets frames, instructions, destructions and logs as they happen.
//!
//! Without an [`Inspector`], a run checks for one once per frame and once per few thousand instructions.
//! Calls of [`Inspector::frame`] and [`Inspector::frame_end`] are paired and properly nested. A run that is
//! aborted (see [`Abort`](super::Abort)) does not close its open frames.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, Log, U256};

use super::halt::HaltReason;
#[cfg(feature = "catalogue")]
use crate::state::World;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// CALL, or a transaction to an account.
    Call,
    /// CALLCODE: code of another account on the storage of the caller.
    CallCode,
    /// DELEGATECALL: as CALLCODE, with the sender and value of the caller's own frame.
    DelegateCall,
    /// STATICCALL (RSKIP-91).
    StaticCall,
    /// CREATE, or a transaction that creates a contract.
    Create,
    /// CREATE2 (RSKIP-125).
    Create2,
}

impl FrameKind {
    /// The name of the instruction that starts such a frame.
    pub fn opcode_name(self) -> &'static str {
        match self {
            Self::Call => "CALL",
            Self::CallCode => "CALLCODE",
            Self::DelegateCall => "DELEGATECALL",
            Self::StaticCall => "STATICCALL",
            Self::Create => "CREATE",
            Self::Create2 => "CREATE2",
        }
    }

    /// Whether the frame creates a contract.
    pub fn creates(self) -> bool {
        matches!(self, Self::Create | Self::Create2)
    }
}

/// A call or creation that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameStart {
    /// The kind of frame.
    pub kind: FrameKind,
    /// Depth: 0 for the outermost frame.
    pub depth: usize,
    /// The contract or sender that starts the frame. For DELEGATECALL this is the contract itself, not its
    /// caller.
    pub from: Address,
    /// The account whose code runs; `None` for a creation.
    pub to: Option<Address>,
    /// The account whose storage the code uses; `None` for a creation.
    pub context: Option<Address>,
    /// Gas passed to the frame.
    pub gas: u64,
    /// Value in wei. For DELEGATECALL this is the value of the caller's own frame.
    pub value: U256,
    /// Call data, or initialisation code.
    pub input: Bytes,
    /// Whether a native contract is called, so that no instructions are reported.
    pub native: bool,
    /// Whether there is code to run.
    pub has_code: bool,
    /// All storage words of [`Self::context`], if [`Inspector::wants_storage`] is `true` and the state can
    /// list them.
    pub storage: Option<BTreeMap<U256, U256>>,
}

/// The result of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameClose {
    /// `None` on success, `Some(None)` on REVERT and if a native contract failed, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
    /// Return data, revert data, or the code of the new contract; empty after a halt.
    pub output: Bytes,
    /// Gas used, before refunds; all gas of the frame after a halt.
    pub gas_used: u64,
    /// Address of the new contract, if the creation computed one.
    pub created: Option<Address>,
}

/// An instruction that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct StepStart<'a> {
    /// Depth of its frame, 0 for the outermost one.
    pub depth: usize,
    /// The account whose storage the code uses.
    pub contract: Address,
    /// Position in the code.
    pub pc: usize,
    /// The opcode.
    pub opcode: u8,
    /// The code that runs, with its header, if it has one (`code.rs`).
    pub code: &'a [u8],
    /// Gas left before the instruction.
    pub gas: u64,
    /// Memory of the frame, a whole number of words.
    pub memory: &'a [u8],
    /// The stack, bottom first.
    pub stack: &'a [U256],
    /// Output of the last call or creation of the frame.
    pub return_data: &'a [u8],
    /// Gas to be refunded for the instructions of the frame and of the successful calls that it has made.
    pub refund: u64,
    /// Number of bytes of code at the address that the instruction names, for calls, EXTCODESIZE, EXTCODECOPY and EXTCODEHASH. Only if
    /// [`Inspector::wants_code_size`] is `true`.
    pub code_size: Option<usize>,
}

/// An instruction that has run. If it is a call or creation, its frame has not been opened yet.
#[derive(Clone, Copy, Debug)]
pub struct StepEnd<'a> {
    /// Gas charged, forwarded gas included; 0 if the instruction failed.
    pub gas_cost: u64,
    /// Why the instruction failed. REVERT does not count as a failure.
    pub failure: Option<HaltReason>,
    /// The stack, bottom first.
    pub stack: &'a [U256],
    /// Memory of the frame, a whole number of words.
    pub memory: &'a [u8],
}

/// Nonce, balance and code of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountValues {
    /// Number of transactions sent, or of contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Code; empty if there is none.
    pub code: Bytes,
}

/// The state in the middle of a run, for inspectors that read accounts of their own choice, such as tracers in JavaScript. Browser modules
/// leave these inspectors out, with the feature `catalogue`.
#[cfg(feature = "catalogue")]
pub trait LiveState {
    /// Nonce and balance in wei of an account; `None` if it does not exist.
    fn account(&mut self, address: Address) -> Option<(u64, U256)>;

    /// The code of an account; empty if it has none.
    fn code(&mut self, address: Address) -> Bytes;

    /// A storage word; zero if the cell is longer than a word, as some cells of native contracts are.
    fn word(&mut self, address: Address, slot: U256) -> U256;
}

#[cfg(feature = "catalogue")]
impl LiveState for World {
    fn account(&mut self, address: Address) -> Option<(u64, U256)> {
        World::account(self, &address).map(|account| (account.nonce, account.balance))
    }

    fn code(&mut self, address: Address) -> Bytes {
        self.code_of(&address)
    }

    fn word(&mut self, address: Address, slot: U256) -> U256 {
        U256::try_from_be_slice(&self.cell(&address, &slot)).unwrap_or_default()
    }
}

/// Observes a run. All methods do nothing by default.
pub trait Inspector {
    /// Whether to report [`Self::step`], [`Self::step_end`] and [`Self::log`]. Called often, so it must be fast.
    fn wants_steps(&self) -> bool {
        false
    }

    /// Whether to fill [`FrameStart::storage`], which takes time.
    fn wants_storage(&self) -> bool {
        false
    }

    /// Whether to fill [`StepStart::code_size`], which reads the state.
    fn wants_code_size(&self) -> bool {
        false
    }

    /// Whether to report [`Self::step_state`]. Called often, so it must be fast.
    #[cfg(feature = "catalogue")]
    fn wants_state(&self) -> bool {
        false
    }

    /// Whether to report [`Self::account`].
    fn wants_accounts(&self) -> bool {
        false
    }

    /// A call or creation starts. The frame may also fail or succeed at once without running code.
    fn frame(&mut self, _: FrameStart) {}

    /// The innermost open frame ends.
    fn frame_end(&mut self, _: FrameClose) {}

    /// A contract destroys itself and leaves its balance (wei) to the beneficiary.
    fn self_destruct(&mut self, _contract: Address, _beneficiary: Address, _balance: U256) {}

    /// A native contract that a transaction calls directly, such as REMASC, pays an account (wei) outside of
    /// all frames. Traces show the payment as a call without gas.
    fn payment(&mut self, _from: Address, _to: Address, _value: U256) {}

    /// An instruction is about to run.
    fn step(&mut self, _: StepStart<'_>) {}

    /// The instruction reported last has run.
    fn step_end(&mut self, _: StepEnd<'_>) {}

    /// Called after [`Self::step_end`] with the state before that instruction.
    #[cfg(feature = "catalogue")]
    fn step_state(&mut self, _: &mut dyn LiveState) {}

    /// A contract wrote a log. Logs of contracts with code are only reported together with steps; logs of
    /// native contracts always are.
    fn log(&mut self, _: &Log) {}

    /// Called after a simulated transaction, and with the feature `local` after a local call, for each account that it read or changed:
    /// the account before and after (`None` if it does not exist), and slots with the word before and after. The accounts of a
    /// transaction of a block are reported to the observer of the block instead.
    fn account(
        &mut self,
        _address: Address,
        _before: Option<AccountValues>,
        _after: Option<AccountValues>,
        _words: &mut dyn Iterator<Item = (U256, U256, U256)>,
    ) {
    }
}
