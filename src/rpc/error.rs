//! Every error that a caller can see, with its JSON-RPC code. Messages are those of the reference node where it has
//! the error.

use alloc::string::String;

use alloy_primitives::{B256, Bytes, hex};
use thiserror::Error;

#[cfg(feature = "dev")]
use super::page_access::PageAccess;
use super::simulation_error::SimulationError;
#[cfg(feature = "dev")]
use crate::dev::{DevError, TypedDataError, UnlockError};
#[cfg(feature = "light")]
use crate::light::RequestFailure;
use crate::{
    engine::{FilterLimit, RESOURCE_UNAVAILABLE, Refusal},
    types::FieldError,
};

/// Why a whole message could not be used. Over HTTP, the status is 400.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum EnvelopeError {
    #[error("JSON parse error")]
    Parse,
    /// The JSON is neither an object nor an array.
    #[error("invalid request")]
    NotARequest,
    /// The JSON is nested deeper than [`super::envelope::MAX_DEPTH`].
    #[error("Invalid request")]
    TooDeep,
    /// More members than a batch may have.
    #[error("Cannot dispatch batch requests. {max} is the max number of supported batch requests")]
    BatchTooLarge { max: usize },
}

impl EnvelopeError {
    /// The JSON-RPC 2.0 code.
    pub fn code(&self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::NotARequest | Self::TooDeep | Self::BatchTooLarge { .. } => -32600,
        }
    }

    /// The complete answer, with `id` null.
    pub fn to_answer(&self) -> String {
        alloc::format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{}}}"#,
            error_object(self.code(), &alloc::format!("{self}"), None)
        )
    }
}

/// A parameter that is not valid, with the reference node's messages where it has the error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ParamError {
    /// An address that is not 40 hex digits with or without `0x`.
    #[error("Invalid address: null, empty or invalid hex value.")]
    AddressLength,
    /// An address with a character that is not a hex digit.
    #[error("Invalid address format: invalid hex value.")]
    AddressHex,
    /// A hash that is not 64 hex digits with or without `0x`; the field names the parameter.
    #[error("Invalid {0}: incorrect length.")]
    HashLength(&'static str),
    /// A hash with a character that is not a hex digit.
    #[error("Invalid {0} format: invalid hex value")]
    HashHex(&'static str),
    /// A number that is neither decimal nor `0x` hex, or too large.
    #[error("Invalid param {0}: value must be a valid hex or string number.")]
    Number(String),
    /// Hex digits without `0x` in place of a number.
    #[error("Number values should not contain letters or hex values should start with 0x.")]
    NumberPrefix,
    /// A number of more than 66 characters; the text is cut.
    #[error("Invalid param: {0}...")]
    NumberLength(String),
    #[error("Invalid data format: invalid hex value.")]
    Data,
    /// An index that is not a `0x` hex string in lower case.
    #[error("Invalid argument \"{0}\": param should be a hex value string.")]
    Index(String),
    /// An index without digits or above 0x7fffffff.
    #[error("Invalid index param: value must be a valid hex number.")]
    IndexRange,
    /// A block parameter that is not a tag, number or hash.
    #[error("Invalid block identifier '{0}'")]
    BlockId(String),
    /// A block parameter given as a decimal string.
    #[error("invalid blocknumber {0}")]
    BlockNumber(String),
    /// A block parameter map without `blockHash` and `blockNumber`.
    #[error("Invalid block input")]
    BlockMap,
    /// A block parameter of another JSON type.
    #[error("Invalid input")]
    BlockType,
    /// Bytes to hash that lack the `0x` prefix.
    #[error("Parameter must be hexadecimal encoded with the '0x' prefix.")]
    Sha3,
    /// A parameter of the wrong JSON type; position counts from 0.
    #[error("invalid argument {position}: expected {expected}")]
    Type { position: usize, expected: &'static str },
    /// A dump of a state that cannot be loaded.
    #[error("the state cannot be loaded: {0}")]
    Dump(&'static str),
    /// More storage keys than one proof request may have.
    #[error("too many storage keys: {given}, at most {max}")]
    TooManyKeys { given: usize, max: usize },
    /// More addresses and topics than one log filter may have.
    #[error("too many addresses and topics: at most {0}")]
    TooManyTerms(usize),
    /// A state override of the address of a precompile.
    #[error("Precompiled contracts can not be overridden")]
    OverridePrecompile,
    #[error("movePrecompileToAddress is not supported")]
    MovePrecompile,
    /// A message to be signed by an account that has no key here or is locked.
    #[error("Account not found")]
    AccountNotFound,
    /// A transaction to be signed by an account that has no key here or is locked.
    #[error("Could not find account for address: {0:#x}")]
    NoSuchAccount(alloy_primitives::Address),
    /// A key is requested that the wallet does not have, or whose account is locked.
    #[error("account {0} is locked, or its key is not held")]
    Locked(alloy_primitives::Address),
    /// A passphrase that does not unlock an account.
    #[cfg(feature = "dev")]
    #[error(transparent)]
    Unlock(UnlockError),
    /// Typed data that cannot be signed.
    #[cfg(feature = "dev")]
    #[error(transparent)]
    TypedData(TypedDataError),
    /// A transaction to be signed here that names no sender.
    #[error("from is null")]
    NoSender,
    /// A transaction for another chain, or with an invalid signature: the reference node gives the same message for
    /// both.
    #[error("Invalid chainId: {0}")]
    ChainId(String),
    /// A raw transaction without gas limit.
    #[error("Missing parameter, gasPrice, gas or value")]
    MissingGas,
    #[error("invalid argument 1: the signed transaction has the hash {0}")]
    OtherTransaction(B256),
    /// The bytes do not decode as a transaction.
    #[error("Invalid input: {0}")]
    Transaction(FieldError),
    /// A transaction with a type (EIP-2718).
    #[error("Invalid input: transaction type not valid: Rootstock has legacy transactions only, send one")]
    TypedTransaction,
    /// The text is not a private key.
    #[error("Invalid param {0}: value must be a valid hex.")]
    Key(String),
    /// A snapshot's number that is not `0x` hex.
    #[error("invalid snapshot id {0}")]
    SnapshotId(String),
    #[error("invalid number of seconds {0}")]
    Seconds(String),
    /// A log filter with a block hash and a range.
    #[error("Cannot specify both blockHash and fromBlock/toBlock")]
    HashAndRange,
    #[error("Invalid data format: invalid hex value.")]
    FilterId,
    /// More traces are requested than one answer may have.
    #[error("Count value too big. Maximum {0} traces allowed.")]
    TraceCount(usize),
    /// A count of traces below zero.
    #[error("Count value cannot be negative.")]
    TraceCountNegative,
    /// More traces to skip than allowed.
    #[error("After value too big. Maximum {0} traces allowed.")]
    TraceAfter(usize),
    /// A number of traces to skip below zero.
    #[error("After value cannot be negative.")]
    TraceAfterNegative,
    /// The trace filter is missing or has an unknown field.
    #[error("Invalid trace_filter parameters.")]
    TraceFilter,
    /// A range of blocks that ends before it starts.
    #[error("fromBlock cannot be greater than toBlock")]
    BlockRange,
    /// A range of more blocks than `trace_filter` covers under the hosted profile.
    #[cfg(feature = "local")]
    #[error("Block range too large. Maximum {0} blocks allowed.")]
    TraceRange(u64),
    /// The position of a trace is missing.
    #[error("'positions' cannot be null or empty")]
    NoPosition,
    /// More than one position of a trace.
    #[error("'positions' accepts only one index")]
    Positions,
    #[error(
        "unknown tracer '{0}': rskTracer, structLogger, callTracer, flatCallTracer, prestateTracer, 4byteTracer, \
         erc7562Tracer, noopTracer and muxTracer exist"
    )]
    Tracer(String),
    /// A tracer in JavaScript, given as its source, on a host without an engine for scripts.
    #[error(
        "tracers in JavaScript need a program with the cargo feature js-tracers, which releases have: give the name of a \
         tracer, such as callTracer"
    )]
    TracerCode,
    /// A tracer in JavaScript failed, or reached a limit.
    #[cfg(feature = "catalogue")]
    #[error("tracer in JavaScript: {0}")]
    Script(String),
    #[error("muxTracer cannot contain muxTracer")]
    NestedTracer,
    /// A tracer twice, or two of the tracers of instructions.
    #[error("muxTracer runs each tracer once, and one of rskTracer and structLogger: leave out one {0}")]
    RepeatedTracer(&'static str),
    #[error("invalid trace option '{option}': {expected} expected")]
    TraceOption { option: &'static str, expected: &'static str },
    #[error("state override for {0} has both state and stateDiff: give one of them")]
    OverrideBoth(alloy_primitives::Address),
    /// State overrides where the host does not allow them.
    #[error("State override is not allowed")]
    OverrideRefused,
    #[error("state overrides have more than {0} bytes of JSON: give fewer accounts, slots or less code")]
    OverridesTooLong(usize),
    #[error("the calls and overrides have more than {0} bytes of JSON: give fewer calls, slots or less code")]
    CallsTooLong(usize),
    #[error("the calls and overrides have more than {0} objects: give fewer calls or accounts")]
    TooManyCalls(usize),
    #[error("invalid trace type '{0}': trace, stateDiff and vmTrace exist")]
    TraceType(String),
    #[error(
        "vmTrace is not in the browser's modules: ask debug_traceCall or debug_traceTransaction for instructions"
    )]
    VmTrace,
    #[error("a transaction index is not supported: calls run on the state after a block")]
    CallIndex,
    #[error("block override '{0}' is not supported: blocks of Rootstock do not have it")]
    BlockOverride(&'static str),
}

/// Why a call failed. Fields named `fits` are the first and the last block of a shorter range that is within the limit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum RpcError {
    /// A member of the message is not a request object.
    #[error("invalid request")]
    InvalidRequest,
    /// The id of a request is longer than [`super::envelope::MAX_ID`].
    #[error("invalid request: the id is longer than {} bytes", super::limits::MAX_ID)]
    IdTooLong,
    #[error("method not found")]
    MethodNotFound,
    /// A subscription on a connection that cannot receive notifications.
    #[error("notifications not supported: eth_subscribe needs a WebSocket or a provider with events")]
    NoNotifications,
    /// The reference node serves the method, and Rootlight does not.
    #[error("the method {0} does not exist/is not available")]
    NotAvailable(String),
    /// A method of Ethereum about something that Rootstock does not have, or a method that another one replaces. `instead` is
    /// the reason, or the method to use.
    #[error("the method {method} does not exist/is not available: {instead}")]
    Impossible { method: String, instead: &'static str },
    #[error(
        "the method {0} does not exist/is not available: it changes a local chain, which a light client does not have (start `rootlight dev`)"
    )]
    NeedsLocalChain(&'static str),
    /// The method needs a development chain, and this chain follows another one.
    #[error("the method is available on a development chain only (start `rootlight dev`)")]
    NeedsDevChain,
    /// Work for a miner is requested of a node that does not mine.
    #[cfg(feature = "dev")]
    #[error("no mining work available")]
    NoWork,
    /// The development chain refused or failed.
    #[cfg(feature = "dev")]
    #[error("{}", dev_text(.0))]
    Dev(DevError),
    /// The chain refused a block of an external miner.
    #[cfg(feature = "dev")]
    #[error("{0}")]
    Submission(DevError),
    /// Too few, too many or named parameters.
    #[error("method parameters invalid")]
    ParameterCount,
    /// A parameter does not fit.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A block number or hash that is not on the chain.
    #[error("Block {0} not found")]
    BlockNotFound(String),
    /// A block hash that no block has, where the hash was given in a map or the method has this message.
    #[error("Block with hash {0} not found")]
    BlockHashNotFound(B256),
    /// A block hash off the canonical chain where the canonical one is required (EIP-1898).
    #[error("Block with hash {0} is not canonical and it is required")]
    NotCanonical(B256),
    /// An unknown block number in `eth_call`; decimal, as the reference prints it.
    #[error("Invalid block number {0}")]
    CallBlockNumber(u64),
    /// The call reverted; `reason` is decoded from `Error(string)`.
    #[error("VM Exception while processing transaction: {}", revert_text(.reason.as_deref()))]
    Reverted {
        reason: Option<String>,
        /// The revert payload.
        data: Bytes,
        /// The JSON-RPC code.
        code: i32,
    },
    /// The call halted without a result (out of gas, invalid opcode ...).
    #[error("VM Exception while processing transaction: {0}")]
    Halted(String),
    /// An estimate for a sender whose balance is below the value.
    #[error("insufficient funds for transfer")]
    InsufficientFunds,
    /// An estimate that runs out of gas with the highest allowed gas limit.
    #[error("gas required exceeds allowance ({0})")]
    GasAllowance(u64),
    /// An estimate of a message that fails with any gas limit.
    #[error("VM Exception while processing transaction: {0}")]
    EstimateHalted(String),
    /// A simulation that breaks a rule of its blocks or transactions.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// More logs than a query over a long range may return.
    #[error("Filter returned more than {max} logs.{}", narrower(Some(*fits)))]
    TooManyLogs { max: usize, fits: (u64, u64) },
    /// Logs of more bytes than an answer may have.
    #[error("Response size limit of {max} bytes exceeded.{}", narrower(*fits))]
    LogsTooLong {
        max: usize,
        /// A range that is within the limit, if there is one that starts at the same block.
        fits: Option<(u64, u64)>,
    },
    /// A longer range of blocks than this method allows.
    #[error("Cannot query more than {max} blocks at once.{}", narrower(Some(*fits)))]
    TooManyBlocks { max: u64, fits: (u64, u64) },
    /// The filter does not exist, or it expired.
    #[error("filter not found")]
    FilterNotFound,
    /// More filters than a caller or the host may have.
    #[error("Limit exceeded: {0}")]
    TooManyFilters(FilterLimit),
    /// More subscriptions than one connection may have.
    #[error("Limit exceeded: {0} subscriptions on this connection")]
    TooManySubscriptions(usize),
    /// The engine has no proven answer.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No upstream accepted a transaction. The fields are the failure of one upstream, and its name.
    #[cfg(feature = "light")]
    #[error("{}", not_sent_text(.0, .1))]
    NotSent(RequestFailure, String),
    #[error("Resource unavailable: no upstream is left that could take the transaction; add one")]
    NoUpstream,
    /// A web page of another origin called a method that uses keys or changes the chain directly.
    #[cfg(feature = "dev")]
    #[error("{method} may not be called by web pages of other origins: {}. {}", pages.reason(), admission_hint(origin))]
    ForeignPage { method: &'static str, origin: String, pages: PageAccess },
    /// An error of the host, with the host's code.
    #[error("{text}")]
    Host {
        /// The JSON-RPC code.
        code: i32,
        /// The message.
        text: String,
        /// The data of a call that was reverted, or the hash of a transaction that waits.
        data: Option<Bytes>,
    },
    /// The answer would be larger than allowed.
    #[error("Response size limit of {0} bytes exceeded")]
    ResponseSize(usize),
    /// The answer could not be written; a defect of Rootlight.
    #[error("Internal server error")]
    Internal,
}

/// Proposes a shorter range of blocks, in the phrase that the indexers graph-node and Ponder search for in messages.
fn narrower(fits: Option<(u64, u64)>) -> String {
    fits.map_or_else(String::new, |(from, to)| {
        alloc::format!(" Try with this block range [{from:#x}, {to:#x}].")
    })
}

/// The message of a transaction that no upstream has accepted.
#[cfg(feature = "light")]
fn not_sent_text(failure: &RequestFailure, name: &str) -> String {
    match failure {
        RequestFailure::Rpc { message, .. } => message.clone(),
        other => alloc::format!("Resource unavailable: the transaction was not passed on: {name}: {other}"),
    }
}

/// The message of an error of the development chain.
#[cfg(feature = "dev")]
fn dev_text(error: &DevError) -> String {
    match error {
        // A revert with its output is reported by [`RpcError::Reverted`].
        DevError::Reverted { .. } => {
            alloc::format!("VM Exception while processing transaction: {}", revert_text(None))
        }
        other => alloc::format!("{other}"),
    }
}

/// The JSON-RPC code: the reference node's where it has the error.
#[cfg(feature = "dev")]
fn dev_code(error: &DevError) -> i32 {
    match error {
        DevError::Pool(_) => -32010,
        DevError::NotMined => -32009,
        DevError::Reverted { .. } => -32015,
        DevError::UnknownWork(_) | DevError::InvalidWork { .. } | DevError::NoMerkleHashes => -33000,
        DevError::NotBitcoin(_) | DevError::Bitcoin(_) | DevError::Native(_) | DevError::TooDeep { .. } => {
            -32602
        }
        DevError::TooManyBlocks { .. }
        | DevError::TooManySnapshots
        | DevError::TooLarge
        | DevError::TimeLimit { .. } => -32005,
        DevError::TooSlow(_) | DevError::Stopping => -32011,
        // The code of EIP-1474 for invalid input: a value, block or time that the chain cannot take.
        _ => -32000,
    }
}

#[cfg(feature = "dev")]
impl From<DevError> for RpcError {
    fn from(error: DevError) -> Self {
        Self::Dev(error)
    }
}

/// The end of the message of a revert.
fn revert_text(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => alloc::format!("revert {reason}"),
        None => String::from("transaction reverted"),
    }
}

/// How the operator can allow a page of this origin to call. A page without an origin cannot be allowed: every sandboxed frame
/// of every page sends `null`.
#[cfg(feature = "dev")]
fn admission_hint(origin: &str) -> String {
    match origin {
        "null" => "This page has no origin of its own: serve it from localhost".into(),
        origin => alloc::format!("To let this page call it, start with: --cors {origin}"),
    }
}

impl RpcError {
    /// The error of a request that the host cannot answer at present, for a reason of the host.
    pub fn unavailable(reason: &str) -> Self {
        let text = alloc::format!("Resource unavailable: {reason}");
        Self::Host { code: RESOURCE_UNAVAILABLE, text, data: None }
    }

    /// The JSON-RPC code: the reference node's where it has the error, else that of EIP-1474.
    pub fn code(&self) -> i32 {
        match self {
            Self::InvalidRequest
            | Self::IdTooLong
            | Self::BlockNotFound(_)
            | Self::BlockHashNotFound(_)
            | Self::NotCanonical(_) => -32600,
            Self::MethodNotFound
            | Self::NotAvailable(_)
            | Self::Impossible { .. }
            | Self::NoNotifications
            | Self::NeedsLocalChain(_)
            | Self::NeedsDevChain => -32601,
            #[cfg(feature = "dev")]
            Self::Dev(error) => dev_code(error),
            #[cfg(feature = "dev")]
            Self::Submission(_) => -33000,
            Self::ParameterCount | Self::Param(_) | Self::CallBlockNumber(_) => -32602,
            Self::Internal => -32603,
            Self::TooManyLogs { .. } | Self::TooManyBlocks { .. } => -32012,
            Self::TooManyFilters(_) | Self::TooManySubscriptions(_) => -32005,
            Self::FilterNotFound => -32000,
            #[cfg(feature = "dev")]
            Self::NoWork => -32000,
            Self::InsufficientFunds | Self::GasAllowance(_) | Self::EstimateHalted(_) => -32000,
            Self::Reverted { code, .. } | Self::Host { code, .. } => *code,
            Self::Simulation(error) => error.code(),
            Self::Halted(_) => -32015,
            Self::ResponseSize(_) | Self::LogsTooLong { .. } => -32011,
            // "Unauthorized" of EIP-1193, a code that wallets and web pages handle.
            #[cfg(feature = "dev")]
            Self::ForeignPage { .. } => 4100,
            Self::Refused(refusal) => refusal.code(),
            #[cfg(feature = "light")]
            // The upstream's code; for one of more than 32 bits, that of a refused transaction.
            Self::NotSent(RequestFailure::Rpc { code, .. }, _) => i32::try_from(*code).unwrap_or(-32010),
            #[cfg(feature = "light")]
            Self::NotSent(..) => RESOURCE_UNAVAILABLE,
            Self::NoUpstream => RESOURCE_UNAVAILABLE,
        }
    }

    /// The `error` object.
    pub fn to_json(&self) -> String {
        let data = match self {
            Self::Reverted { data, .. } | Self::Host { data: Some(data), .. } => {
                Some(hex::encode_prefixed(data))
            }
            _ => None,
        };
        error_object(self.code(), &alloc::format!("{self}"), data.as_deref())
    }
}

/// An `error` object.
pub(super) fn error_object(code: i32, message: &str, data: Option<&str>) -> String {
    let quote = |text: &str| serde_json::to_string(text).unwrap_or_else(|_| String::from("\"\""));
    match data {
        Some(data) => {
            alloc::format!(r#"{{"code":{code},"message":{},"data":{}}}"#, quote(message), quote(data))
        }
        None => alloc::format!(r#"{{"code":{code},"message":{}}}"#, quote(message)),
    }
}

impl From<serde_json::Error> for RpcError {
    fn from(_: serde_json::Error) -> Self {
        Self::Internal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverts_carry_reason_and_data() {
        let error = RpcError::Reverted {
            reason: Some("no \"luck\"".into()),
            data: Bytes::from_static(&[8, 0xc3]),
            code: -32015,
        };
        assert_eq!(
            error.to_json(),
            r#"{"code":-32015,"message":"VM Exception while processing transaction: revert no \"luck\"","data":"0x08c3"}"#
        );
        let plain = RpcError::Reverted { reason: None, data: Bytes::new(), code: -32015 };
        assert_eq!(
            plain.to_json(),
            r#"{"code":-32015,"message":"VM Exception while processing transaction: transaction reverted","data":"0x"}"#
        );
    }
}
