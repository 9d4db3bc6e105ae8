//! The rows of the method table ([`Method`]), and the inputs and results of handlers. Each file of methods has a list of rows;
//! `table` joins the lists, and a `Dispatcher` finds the row of a call.

use alloc::boxed::Box;

use alloy_primitives::B256;
use serde::Serialize;
use serde_json::value::RawValue;

pub use super::page_access::PageAccess;
use super::{error::RpcError, mode::Mode, params::Params};
#[cfg(feature = "dev")]
use crate::engine::LocalNode;
use crate::{
    engine::{BlockHeader, Filters, Level, Stop, View},
    types::BlockRef,
};

/// A JSON-RPC method: everything that the dispatcher, the OpenRPC catalogue and the documentation say about it.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The method's name.
    pub name: &'static str,
    /// Other names of the method (`rsk_` for `ext_`).
    pub aliases: &'static [&'static str],
    /// Parameters in order; the required ones come first.
    pub params: &'static [Param],
    /// The kind of the result.
    pub result: &'static str,
    /// The level of a complete answer.
    pub level: Level,
    /// Relative cost of an answer: a constant answer costs 1, reading a block 10. A method that runs on the connection's own
    /// thread costs at most [`BRIEF_COST`].
    pub cost: u32,
    /// Which web pages may call the method.
    pub pages: PageAccess,
    /// The code that the method executes.
    pub runs: Runs,
    /// Whether the operator's own full node may answer in place of this client: the reference node has the method, and the
    /// answer is about blocks, transactions or their execution.
    pub relayed: bool,
    /// Whether the reference node accepts the hash of a block for the block parameter (EIP-1898). Its response then is about
    /// that block or is an error.
    pub takes_hash: bool,
    /// Whether the parameters may be given by their names.
    pub takes_names: bool,
    /// The modes in which the method answers within a limit, each with a text that states the limit; empty without the
    /// `catalogue` feature.
    pub limits: &'static [(Mode, &'static str)],
    /// The modes in which the method answers with an error of its own, instead of the error that its handler implies
    /// ([`Self::refusal`]).
    pub refusals: &'static [ModeRefusal],
    /// Whether the result is a list of logs, which a host may send piece by piece if it is too long for one text.
    pub streams: bool,
    /// The data from which an index of blocks may answer, for answers that no upstream can prove; `None` if it cannot.
    pub indexed: Option<Indexed>,
    /// One line of documentation.
    pub doc: &'static str,
    /// The implementation.
    pub handler: Handler,
}

/// Highest sum of [`Method::cost`] of a message that is answered at once: enough for a receipt, for a few balances,
/// or for a transaction and the block that mines it.
pub const BRIEF_COST: u32 = 20;

/// A mode, and the error of a method that it does not answer.
pub type ModeRefusal = (Mode, fn() -> RpcError);

/// The kind of run that a method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// No run.
    Nothing,
    /// A message on the state after a block. Such a run usually ends soon and can be interrupted soon.
    Call,
    /// As [`Self::Call`]; each instruction is watched, which takes longer.
    WatchedCall,
    /// Several messages, one after the other, on the state after a block.
    Calls,
    /// The transactions of a block on the state of its parent.
    Block,
    /// A transaction that is sent.
    Transaction,
}

impl Runs {
    /// Whether a single message runs.
    #[cfg(feature = "light")]
    pub(super) fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::WatchedCall)
    }
}

/// The data of an index of blocks that a method answers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexed {
    /// The logs of a range of blocks.
    Logs,
    /// The traces of a range of blocks.
    Traces,
    /// A transaction, by its hash.
    Transaction,
    /// The receipt of a transaction, by the transaction's hash.
    Receipt,
    /// The traces of a transaction, by its hash.
    TransactionTraces,
    /// The traces of a block.
    BlockTraces,
    /// The number of a block's uncles.
    UncleCount,
    /// The uncle of a block at the index in the second parameter.
    Uncle,
}

/// A parameter of a method.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in the OpenRPC catalogue.
    pub name: &'static str,
    /// The kind of the value: ADDRESS, HASH, QUANTITY, BLOCK ...
    pub kind: &'static str,
    /// The meaning of the value for rules that limit a caller.
    pub subject: ParamSubject,
    /// Whether the parameter must be given.
    pub required: bool,
}

/// The subject of a parameter, for rules of API keys that limit the contracts that a caller may use and whether it may override
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamSubject {
    /// A value that no such rule concerns: a number, a hash, a text.
    Plain,
    /// An account: its balance or nonce, or its key.
    Account,
    /// A contract: its code or storage.
    Contract,
    /// Slots of contracts, by the contract.
    Cells,
    /// A call object.
    Call,
    /// The calls of a simulation, with their overrides of state.
    Simulation,
    /// Bundles of calls that are traced.
    Bundles,
    /// Calls that are traced, each with the kinds of its traces.
    TracedCalls,
    /// Options of traced calls, with their overrides of state.
    CallOptions,
    /// A transaction object.
    Transaction,
    /// A signed transaction that is to be sent.
    Signed,
    /// Transactions of several senders, to any contracts.
    Transactions,
    /// A log filter.
    Logs,
    /// A log filter if the first parameter is `logs`.
    Subscription,
    /// A trace filter.
    Traces,
    /// Overrides of state.
    Overrides,
    /// The id of a filter or subscription, which belongs to its caller.
    Filter,
    /// The block that the method is about.
    Block,
}

/// A handler that only reads: a pure function of the view and the parameters.
pub type Read = fn(&dyn View, Params<'_>) -> HandlerResult;

/// A handler that uses filters: it takes the filters, a view of the present head, and the time in seconds since 1970.
pub type FilterHandler = fn(&mut Filters, &dyn View, u64, Params<'_>) -> HandlerResult;

/// A handler that changes a local chain, its pool, keys or clock.
#[cfg(feature = "dev")]
pub type Write = fn(&mut dyn LocalNode, Params<'_>) -> HandlerResult;

/// The implementation of a method.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// Runs on any view, in every mode, in parallel with others.
    Read(Read),
    /// Reads an installed filter, in every mode: what is new of it, or all its logs.
    ReadFilter(FilterHandler),
    /// As [`Self::ReadFilter`]; installs a filter.
    Install(FilterHandler),
    /// As [`Self::ReadFilter`]; removes a filter.
    Uninstall(FilterHandler),
    /// As [`Self::ReadFilter`], and makes a subscription; only for connections that can receive notifications.
    Subscribe(FilterHandler),
    /// As [`Self::Subscribe`]; ends a subscription.
    Unsubscribe(FilterHandler),
    /// Runs alone on the node of a local chain; a light client refuses the method.
    #[cfg(feature = "dev")]
    Write(Write),
    /// Takes a signed transaction: runs as `Write` on a local chain; a light client's session forwards it to upstreams and calls no
    /// function. Builds without `dev` have no local chain with a pool, hence no function.
    Forward(#[cfg(feature = "dev")] Write),
}

impl Handler {
    /// The function of a handler that uses filters; `None` for other handlers.
    pub(super) fn filter_handler(self) -> Option<FilterHandler> {
        match self {
            Self::ReadFilter(handler)
            | Self::Install(handler)
            | Self::Uninstall(handler)
            | Self::Subscribe(handler)
            | Self::Unsubscribe(handler) => Some(handler),
            _ => None,
        }
    }
}

/// The result of a handler.
pub type HandlerResult = Result<HandlerOutput, Failure>;

/// A finished answer.
#[derive(Debug)]
pub struct HandlerOutput {
    /// The `result`, in JSON.
    pub value: Box<RawValue>,
    /// The level of its weakest part.
    pub level: Level,
    /// An effect that the host acts on.
    pub effect: Option<Effect>,
}

/// An effect of a request that its host acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A filter was made.
    Filter(u128),
    /// A filter was removed.
    Uninstalled(u128),
    /// A subscription was made. The host starts to poll it after it has sent the answer.
    Subscribed(u128),
    /// A subscription was ended.
    Unsubscribed(u128),
    /// An upstream accepted a transaction of this hash.
    Sent(B256),
    /// The answer is about this block alone, and does not change while the block is on the chain.
    About(BlockRef),
}

/// Why a handler did not finish.
#[derive(Debug)]
pub enum Failure {
    /// The handler misses facts, or the engine refuses.
    Stop(Stop),
    /// The answer is an error.
    Error(RpcError),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl<E: Into<RpcError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl HandlerOutput {
    /// The same answer, of a request with this effect.
    pub(super) fn with(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }

    /// The same answer, which is about this block alone.
    pub(super) fn about(self, header: &BlockHeader) -> Self {
        self.with(Effect::About(BlockRef { number: header.number, hash: header.hash() }))
    }
}

impl Method {
    /// The row of a method that any page may call. Its answers are verified, and cost as much as reading a block.
    pub const fn new(
        name: &'static str,
        params: &'static [Param],
        result: &'static str,
        doc: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            params,
            result: doc_text(result),
            level: Level::Verified,
            cost: 10,
            pages: PageAccess::Any,
            runs: Runs::Nothing,
            relayed: false,
            takes_hash: false,
            takes_names: false,
            limits: &[],
            refusals: &[],
            streams: false,
            indexed: None,
            doc: doc_text(doc),
            handler,
        }
    }

    /// As [`Self::new`], for a method that only reads.
    pub(super) const fn read(
        name: &'static str,
        params: &'static [Param],
        result: &'static str,
        doc: &'static str,
        handler: Read,
    ) -> Self {
        Self::new(name, params, result, doc, Handler::Read(handler))
    }

    /// As [`Self::read`], for an answer that does not depend on the chain.
    pub(super) const fn local(
        name: &'static str,
        params: &'static [Param],
        result: &'static str,
        doc: &'static str,
        handler: Read,
    ) -> Self {
        Self { level: Level::Local, cost: 1, ..Self::read(name, params, result, doc, handler) }
    }

    /// The same row for answers of this level.
    pub(super) const fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same row with another cost.
    pub(super) const fn costs(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    /// The same row with further names.
    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same row for these pages.
    pub(super) const fn pages(self, pages: PageAccess) -> Self {
        Self { pages, ..self }
    }

    /// The same row of a method that executes code of this kind.
    pub(super) const fn runs(self, runs: Runs) -> Self {
        Self { runs, ..self }
    }

    /// The same row of a method that the operator's own full node may answer.
    pub(super) const fn relayed(self) -> Self {
        Self { relayed: true, ..self }
    }

    /// The same row of a method for which the reference node accepts the hash of a block.
    pub(super) const fn takes_hash(self) -> Self {
        Self { takes_hash: true, ..self }
    }

    /// The same row of a method whose parameters may be given by their names. Only methods that a client library calls in this
    /// form need it. Builds without `catalogue`, the browser modules, have no code that reads names (`named`).
    #[cfg(feature = "dev")]
    pub(super) const fn takes_names(self) -> Self {
        Self { takes_names: cfg!(feature = "catalogue"), ..self }
    }

    /// The same row of a method that answers within these limits.
    pub(super) const fn limited(self, limits: &'static [(Mode, &'static str)]) -> Self {
        Self { limits: if cfg!(feature = "catalogue") { limits } else { &[] }, ..self }
    }

    /// The same row of a method that answers with these errors in these modes.
    #[cfg(any(feature = "dev", all(feature = "catalogue", feature = "local")))]
    pub(super) const fn refused(self, refusals: &'static [ModeRefusal]) -> Self {
        Self { refusals, ..self }
    }

    /// The same row of a method whose result is a list of logs that may be sent piece by piece.
    pub(super) const fn streamed(self) -> Self {
        Self { streams: true, ..self }
    }

    /// The same row of a method that an index may answer from this data.
    pub(super) const fn indexed(self, data: Indexed) -> Self {
        Self { indexed: Some(data), ..self }
    }

    /// The error with which a mode refuses the method, whatever the parameters are; `None` if the mode answers it.
    pub fn refusal(&self, mode: Mode) -> Option<RpcError> {
        if let Some((_, error)) = self.refusals.iter().find(|(at, _)| *at == mode) {
            return Some(error());
        }
        match (mode, self.handler) {
            #[cfg(feature = "dev")]
            (Mode::Follow, Handler::Write(_)) => Some(RpcError::NeedsDevChain),
            (Mode::Follow, Handler::Forward(..)) => Some(RpcError::NeedsDevChain),
            #[cfg(feature = "dev")]
            (Mode::Light, Handler::Write(_)) => Some(RpcError::NeedsLocalChain(self.name)),
            _ => None,
        }
    }

    /// The cost of a call with this number of parameters. A call that uses the filters has the highest cost, because they are
    /// shared and locked; so does a call that changes the chain and has an optional parameter, which may demand many blocks.
    pub(super) fn cost_of(&self, params: usize) -> u32 {
        let has_options = self.writes() && params > self.required();
        if has_options || self.uses_filters() { u32::MAX } else { self.cost }
    }

    /// How many parameters must be given.
    pub fn required(&self) -> usize {
        self.params.iter().filter(|p| p.required).count()
    }

    /// Whether the method changes a local chain.
    pub fn writes(&self) -> bool {
        match self.handler {
            #[cfg(feature = "dev")]
            Handler::Write(_) => true,
            Handler::Forward(..) => true,
            _ => false,
        }
    }

    /// Whether the method needs the filters.
    pub fn uses_filters(&self) -> bool {
        self.handler.filter_handler().is_some()
    }

    /// The position of the parameter with the block that the method is about.
    pub fn block(&self) -> Option<usize> {
        self.params.iter().position(|param| param.subject == ParamSubject::Block)
    }

    /// Whether this method ends the filters or subscriptions that `maker` makes.
    pub fn ends(&self, maker: &Self) -> bool {
        matches!(
            (self.handler, maker.handler),
            (Handler::Uninstall(_), Handler::Install(_)) | (Handler::Unsubscribe(_), Handler::Subscribe(_))
        )
    }

    /// Whether the method makes, polls, reads or removes a filter, which any connection of its owner may do.
    pub fn is_about_filters(&self) -> bool {
        matches!(self.handler, Handler::ReadFilter(_) | Handler::Install(_) | Handler::Uninstall(_))
    }

    /// Whether the method takes a signed transaction.
    pub fn sends(&self) -> bool {
        matches!(self.handler, Handler::Forward(..))
    }

    /// The part of the name before `_`.
    pub fn namespace(&self) -> &'static str {
        self.name.split_once('_').map_or(self.name, |(namespace, _)| namespace)
    }
}

/// A text for the catalogue of methods; empty without the `catalogue` feature, so that browser modules are smaller.
const fn doc_text(text: &'static str) -> &'static str {
    if cfg!(feature = "catalogue") { text } else { "" }
}

/// A parameter that must be given, and that no rule of API keys concerns.
pub const fn required(name: &'static str, kind: &'static str) -> Param {
    Param { name, kind, subject: ParamSubject::Plain, required: true }
}

/// As [`required`], for a parameter that may be missing or null.
pub(super) const fn optional(name: &'static str, kind: &'static str) -> Param {
    Param { name, kind, subject: ParamSubject::Plain, required: false }
}

impl Param {
    /// The same parameter, of this subject.
    pub(super) const fn of(self, subject: ParamSubject) -> Self {
        Self { subject, ..self }
    }
}

/// The address of an account whose balance, nonce or key the method is about.
pub(super) const fn account_of(name: &'static str) -> Param {
    required(name, "ADDRESS").of(ParamSubject::Account)
}

/// The address of a contract whose code or storage the method is about.
pub(super) const fn contract_of(name: &'static str) -> Param {
    required(name, "ADDRESS").of(ParamSubject::Contract)
}

/// The block that the method is about: its number, a tag or its hash.
pub(super) const THE_BLOCK: Param = required("block", "BLOCK").of(ParamSubject::Block);

/// As [`THE_BLOCK`]; without it, the newest block.
pub(super) const AT_BLOCK: Param = optional("block", "BLOCK").of(ParamSubject::Block);

/// The hash of the block that the method is about.
pub(super) const BLOCK_HASH: Param = required("blockHash", "HASH").of(ParamSubject::Block);

/// The filter of a query for logs.
pub(super) const LOG_FILTER: Param = required("filter", "LOG_FILTER").of(ParamSubject::Logs);

/// The parameters of a call: the message, the block, and overrides of its state and of its environment.
pub(super) const CALL: &[Param] = &[
    required("call", "CALL").of(ParamSubject::Call),
    AT_BLOCK,
    optional("stateOverride", "OVERRIDE").of(ParamSubject::Overrides),
    optional("blockOverrides", "BLOCK_OVERRIDE"),
];

/// An answer at level `verified`.
pub(super) fn verified<T: Serialize>(value: &T) -> HandlerResult {
    done(value, Level::Verified)
}

/// An answer at level `verified` that is JSON already.
#[cfg(feature = "local")]
pub(super) const fn verified_json(value: Box<RawValue>) -> HandlerOutput {
    HandlerOutput { value, level: Level::Verified, effect: None }
}

/// An answer at a given level.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn done<T: Serialize>(value: &T, level: Level) -> HandlerResult {
    Ok(HandlerOutput { value: serde_json::value::to_raw_value(value)?, level, effect: None })
}

/// The answer `null` for a block or transaction that does not exist according to the upstreams. Such an absence cannot be
/// proven.
pub(super) fn absent() -> HandlerResult {
    done(&(), Level::UnprovenAbsence)
}
