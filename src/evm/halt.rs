//! Reasons of exceptional halts: ends of a frame other than STOP, RETURN, SELFDESTRUCT and REVERT.

use core::fmt;

use revm::interpreter::InstructionResult;

/// The reason of an exceptional halt. The frame loses all its gas and returns no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HaltReason {
    /// The frame needs more gas than it has, including for memory and code deposit.
    OutOfGas,
    /// INVALID, or an opcode that does not exist under the block's rules.
    InvalidOpcode,
    /// A jump to a position that is not a JUMPDEST.
    InvalidJump,
    /// An instruction found fewer words on the stack than it needs.
    StackUnderflow,
    /// The stack would exceed 1024 words.
    StackOverflow,
    /// A state change inside STATICCALL.
    StaticViolation,
    /// RETURNDATACOPY beyond the end of the return data.
    ReturnDataOutOfBounds,
    /// A creation at an address that already has code or a nonce, or whose contract an earlier transaction of the block destroyed
    /// (RSKIP-125).
    AddressCollision,
    /// New code longer than 24,576 bytes.
    CodeTooLong,
    /// New code that starts with `0xEF` (RSKIP-544).
    CodePrefix,
    /// Initialisation code longer than 49,152 bytes (RSKIP-438).
    InitCodeTooLong,
    /// A native contract that the frame called failed, which made the frame fail too before RSKIP-197. The failure of the native contract
    /// itself is no halt: it counts as a revert.
    NativeContract,
    /// Any other halt of the machine.
    Other,
}

impl HaltReason {
    /// The reason in `revm`'s result of a frame, which must be a failure other than REVERT.
    pub(super) fn from_result(result: InstructionResult) -> Self {
        use InstructionResult as R;
        match result {
            R::OutOfGas
            | R::MemoryOOG
            | R::MemoryLimitOOG
            | R::PrecompileOOG
            | R::InvalidOperandOOG
            | R::ReentrancySentryOOG => Self::OutOfGas,
            R::OpcodeNotFound | R::InvalidFEOpcode | R::NotActivated => Self::InvalidOpcode,
            R::InvalidJump => Self::InvalidJump,
            R::StackUnderflow => Self::StackUnderflow,
            R::StackOverflow => Self::StackOverflow,
            R::CallNotAllowedInsideStatic | R::StateChangeDuringStaticCall => Self::StaticViolation,
            R::OutOfOffset => Self::ReturnDataOutOfBounds,
            R::CreateCollision => Self::AddressCollision,
            R::CreateContractSizeLimit => Self::CodeTooLong,
            R::CreateContractStartingWithEF => Self::CodePrefix,
            R::CreateInitCodeSizeLimit => Self::InitCodeTooLong,
            R::PrecompileError => Self::NativeContract,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for HaltReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfGas => "out of gas",
            Self::InvalidOpcode => "invalid opcode",
            Self::InvalidJump => "invalid jump destination",
            Self::StackUnderflow => "stack underflow",
            Self::StackOverflow => "stack overflow: stack limit reached 1024",
            Self::StaticViolation => "state change inside a static call",
            Self::ReturnDataOutOfBounds => "return data out of bounds",
            Self::AddressCollision => "contract address collision",
            Self::CodeTooLong => "contract code too long",
            Self::CodePrefix => "contract code must not start with 0xef",
            Self::InitCodeTooLong => "init code too long",
            Self::NativeContract => "native contract failed",
            Self::Other => "execution failed",
        })
    }
}
