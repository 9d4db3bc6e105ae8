//! `eth_call` and `eth_estimateGas`: local execution on proven state.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::{B256, U256, hex};

use super::{
    block_override::{BlockOverride, BlockOverrideObject, block_override},
    call_object::{message, overrides},
    error::{ParamError, RpcError},
    lookup::find,
    method::{CALL, Failure, HandlerResult, Method, Runs, verified},
    params::{BlockParam, Params},
    revert::reason,
};
use crate::{
    engine::{BlockHeader, Chain, Policy, Refusal, State, Stop, View},
    exec::{
        BlockEnvironment, BlockHashes, CallContext, CallMessage, CallOutcome, CallPolicy, CallStop, Estimate,
        HaltReason, OverrideError, RunLimits, call, estimate,
    },
    state::{Fact, Facts, StateError, StateKey, StateOverride},
    types::{
        BlockRef, Header, SealedHeader,
        json::{Object, Quantity},
    },
};

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "eth_call",
        CALL,
        "DATA",
        "Runs a message on the state after a block, without a transaction.",
        eth_call,
    )
    .runs(Runs::Call)
    .relayed()
    .takes_hash()
    .costs(50),
    Method::read(
        "eth_estimateGas",
        CALL,
        "QUANTITY",
        "The least gas limit with which a transaction would succeed in the next block.",
        eth_estimate_gas,
    )
    .runs(Runs::Call)
    .relayed()
    .costs(200),
];

/// The block in which a message runs: on the state after a block, as part of that block or of the next one.
pub(super) struct CallBlock {
    /// The block whose state the run reads.
    header: BlockHeader,
    /// The values of the block that code sees, overrides included.
    environment: BlockEnvironment,
    /// Hash of the parent of the call block.
    parent: B256,
    /// Number of the call block without overrides: one above its parent's.
    number: u64,
}

impl CallBlock {
    /// A run as part of this block, on the state after it.
    pub(super) fn inside(header: BlockHeader) -> Self {
        let environment = BlockEnvironment::from(header.header());
        Self { number: environment.number, environment, parent: header.parent_hash, header }
    }

    /// A run as part of the next block after this one.
    pub(super) fn after(view: &dyn State, header: BlockHeader) -> Self {
        let environment = view.next_environment(&header);
        Self { number: environment.number, environment, parent: header.hash(), header }
    }

    /// The block with other values in its environment. Its ancestors stay the same.
    fn overridden(mut self, values: &BlockOverride) -> Self {
        values.apply(&mut self.environment);
        self
    }

    /// Passes the context of the block and the limits of a run to `run`; state that the run misses becomes missing facts.
    pub(super) fn run<T>(
        &self,
        view: &dyn View,
        run: impl FnOnce(&CallContext<'_>, &RunLimits<'_>) -> Result<T, CallStop>,
    ) -> Result<T, Failure> {
        let Policy { network, calls, interrupt, is_inline, .. } = *view.policy();
        let state = view.state(&self.header)?;
        let context = CallContext {
            state: &*state,
            hashes: &Ancestors { view, number: self.number, parent: self.parent },
            block: &self.environment,
            rules: network.rules(self.environment.number),
            chain_id: network.chain_id,
        };
        let CallPolicy { gas_cap, checks_funds, .. } = calls;
        let codes = view.codes();
        let limits = RunLimits { codes, is_inline, interrupt, gas_cap, checks_funds, ..RunLimits::default() };
        run(&context, &limits).map_err(|stop| self.failure(view, stop))
    }

    /// All state that a run reads, with the block whose state it is.
    #[cfg(feature = "local")]
    pub(super) fn keys_of(
        self,
        view: &dyn View,
        run: impl FnOnce(&CallContext<'_>, &RunLimits<'_>) -> Result<(), CallStop>,
    ) -> Result<(BlockHeader, alloc::collections::BTreeSet<StateKey>), Failure> {
        let keys = self.run(view, |context, limits| {
            let recording = crate::state::RecordingState::new(context.state);
            let context = CallContext { state: &recording, ..*context };
            // A run does not read code from the state if the code is in a cache, so that the code's key would not be recorded.
            // Witnesses are never given by attempts (`MessageProgress::may_be_short`).
            let limits = RunLimits { codes: None, is_inline: false, ..*limits };
            run(&context, &limits)?;
            Ok(recording.into_keys())
        })?;
        Ok((self.header, keys))
    }

    /// Turns the keys that a run misses into missing facts. For data of ancestors, the view says which facts are missing, or
    /// refuses.
    fn failure(&self, view: &dyn View, stop: CallStop) -> Failure {
        let keys = match stop {
            CallStop::Missing(keys) => keys,
            CallStop::Override(OverrideError::Precompile(_)) => return ParamError::OverridePrecompile.into(),
            stop => return Failure::Stop(Stop::Refused(refusal(stop))),
        };
        let block = BlockRef { number: self.header.number, hash: self.header.hash() };
        let mut facts = Facts::new();
        for key in keys {
            match self.ancestor_stop(view, &key) {
                None => drop(facts.insert(Fact::State(block, key))),
                Some(Stop::Missing(more)) => facts.extend(more),
                Some(refused) => return Failure::Stop(refused),
            }
        }
        Failure::Stop(Stop::Missing(facts))
    }

    /// Why the view does not return the data of an ancestor that a run reads; `None` for other keys, and if the view gives no
    /// reason. Without a reason, the key itself becomes a missing fact, and the call is refused, because no upstream supplies such
    /// a fact. On a chain that begins on a block of another network, the host fetches the ancestor and runs the call again.
    fn ancestor_stop(&self, view: &dyn Chain, key: &StateKey) -> Option<Stop> {
        let (StateKey::BlockHash(number)
        | StateKey::Header(number)
        | StateKey::Uncles(number)
        | StateKey::TotalDifficulty(number)) = key
        else {
            return None;
        };
        let read = view.ancestor(self.parent, *number).and_then(|ancestor| {
            let Some(ancestor) = ancestor else { return Ok(()) };
            match key {
                StateKey::Header(_) if !view.shows_work(&ancestor) => {
                    Err(Stop::Refused(Refusal::NoWork(*number)))
                }
                StateKey::Uncles(_) => view.uncles(&ancestor).map(drop),
                StateKey::TotalDifficulty(_) => match view.total_difficulty(ancestor.hash())? {
                    Some(_) => Ok(()),
                    None => Err(Stop::Refused(Refusal::NoTotalDifficulty(*number))),
                },
                // Of the keys above, `BlockHash` is left. The ancestor is enough for it, and for a header whose work is shown.
                _ => Ok(()),
            }
        });
        read.err()
    }
}

/// The ancestors of the block that a run sees, on that block's own branch. An ancestor that the view does not have is
/// reported by the run as missing.
struct Ancestors<'a> {
    view: &'a dyn Chain,
    /// Number of the call block without overrides.
    number: u64,
    /// Hash of the parent of the call block.
    parent: B256,
}

impl Ancestors<'_> {
    fn ancestor(&self, number: u64) -> Option<BlockHeader> {
        self.view.ancestor(self.parent, number).ok()?
    }
}

impl BlockHashes for Ancestors<'_> {
    fn block_hash(&self, number: u64) -> Option<B256> {
        // If an override gives the environment a higher number, code can ask for blocks that are not ancestors. Their hash is
        // zero, as in geth.
        if number >= self.number {
            return Some(B256::ZERO);
        }
        if number.checked_add(1)? == self.number {
            return Some(self.parent);
        }
        Some(self.ancestor(number)?.hash())
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        let header = self.ancestor(number).filter(|header| self.view.shows_work(header))?;
        Some(header.sealed().clone())
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = self.view.uncles(&self.ancestor(number)?).ok()?;
        Some(uncles.headers().iter().map(|uncle| Header::clone(uncle)).collect())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.view.total_difficulty(self.ancestor(number)?.hash()).ok()?
    }
}

/// The parameters of a call.
struct CallArguments {
    message: Arc<CallMessage>,
    block: BlockParam,
    overrides: Arc<StateOverride>,
    block_override: BlockOverride,
}

impl CallArguments {
    fn read(view: &dyn View, params: Params<'_>) -> Result<Self, Failure> {
        let overrides = overrides(params, 2)?;
        if !overrides.accounts.is_empty() && !view.policy().calls.overrides {
            return Err(ParamError::OverrideRefused.into());
        }
        let given: Option<Object<BlockOverrideObject>> = params.object(3, "block overrides")?;
        Ok(Self {
            message: message(params)?,
            block: params.call_block(1)?,
            overrides,
            block_override: block_override(given.as_ref())?,
        })
    }
}

/// The message of a call, the block in which it runs, and its overrides of state.
pub(super) fn arguments(
    view: &dyn View,
    params: Params<'_>,
) -> Result<(Arc<CallMessage>, CallBlock, Arc<StateOverride>), Failure> {
    let CallArguments { message, block: param, overrides, block_override } =
        CallArguments::read(view, params)?;
    Ok((message, CallBlock::inside(block(view, &param)?).overridden(&block_override), overrides))
}

fn eth_call(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (message, call_block, overrides) = arguments(view, params)?;
    // `None`: without an inspector.
    let result = call_block.run(view, |context, limits| call(context, &message, &overrides, limits, None))?;
    match result.into_outcome() {
        CallOutcome::Success { output, .. } => verified(&hex::encode_prefixed(&output)),
        CallOutcome::Revert { output, .. } => Err(reverted(view, output).into()),
        CallOutcome::Halt { .. } if view.policy().calls.silent_halts => verified(&"0x"),
        CallOutcome::Halt { reason, .. } => Err(RpcError::Halted(alloc::format!("{reason}")).into()),
    }
}

/// The error of a call that reverts, with the code that the host sets.
fn reverted(view: &dyn View, data: alloy_primitives::Bytes) -> RpcError {
    RpcError::Reverted { reason: reason(&data), data, code: view.policy().calls.revert_code }
}

/// The keys of all state that a call reads, with the block whose state it is.
///
/// # Errors
/// As `eth_call`; a call that reverts or halts is not an error.
#[cfg(feature = "local")]
pub(super) fn keys_of_call(
    view: &dyn View,
    params: Params<'_>,
) -> Result<(BlockHeader, alloc::collections::BTreeSet<StateKey>), Failure> {
    let (message, call_block, overrides) = arguments(view, params)?;
    let (header, mut keys) = call_block
        .keys_of(view, |context, limits| call(context, &message, &overrides, limits, None).map(drop))?;
    // The witness also serves `eth_estimateGas`, which reads the sender's balance too.
    keys.extend(message.from.map(StateKey::Account));
    Ok((header, keys))
}

/// With the newest block, the estimate is for the block after it, which would contain the transaction. With an older
/// block, the estimate is for that block itself, as in a call.
fn eth_estimate_gas(view: &dyn View, params: Params<'_>) -> HandlerResult {
    verified(&Quantity::from(estimated_gas(view, params)?))
}

/// The result of `eth_estimateGas`.
fn estimated_gas(view: &dyn View, params: Params<'_>) -> Result<u64, Failure> {
    gas_of(view, &CallArguments::read(view, params)?)
}

/// The gas that the transaction of the first parameter would use in the next block.
#[cfg(feature = "dev")]
pub(super) fn gas_of_transaction(view: &dyn View, params: Params<'_>) -> Result<u64, Failure> {
    let (overrides, block_override) = (Arc::default(), BlockOverride::default());
    let message = message(params)?;
    gas_of(view, &CallArguments { message, block: BlockParam::Latest, overrides, block_override })
}

/// The gas limit that `eth_estimateGas` answers for these parameters.
fn gas_of(view: &dyn View, arguments: &CallArguments) -> Result<u64, Failure> {
    let CallArguments { message, block: param, overrides, block_override } = arguments;
    let header = block(view, param)?;
    let call_block = match param {
        // A pending block is the next block itself.
        BlockParam::Latest | BlockParam::Pending if !header.is_pending() => CallBlock::after(view, header),
        _ => CallBlock::inside(header),
    };
    let call_block = call_block.overridden(block_override);
    match call_block.run(view, |context, limits| estimate(context, message, overrides, limits))? {
        Estimate::Gas(gas) => Ok(gas),
        Estimate::InsufficientFunds => Err(RpcError::InsufficientFunds.into()),
        Estimate::Revert { output } => Err(reverted(view, output).into()),
        Estimate::Halt { reason: HaltReason::OutOfGas, cap } => Err(RpcError::GasAllowance(cap).into()),
        Estimate::Halt { reason, .. } => Err(RpcError::EstimateHalted(alloc::format!("{reason}")).into()),
    }
}

/// The block of a call. The reference node prints unknown numbers in decimal here.
pub(super) fn block(view: &dyn View, param: &BlockParam) -> Result<BlockHeader, Failure> {
    if let Some(header) = find(view, param)? {
        return Ok(header);
    }
    Err(Failure::Error(match param {
        BlockParam::Hash { hash, .. } => RpcError::BlockHashNotFound(*hash),
        BlockParam::Number(Some(number), _) => RpcError::CallBlockNumber(*number),
        BlockParam::Number(None, text) => RpcError::BlockNotFound(text.clone()),
        // The names of the variants in lower case are the tags as callers write them.
        tag => RpcError::BlockNotFound(alloc::format!("{tag:?}").to_ascii_lowercase()),
    }))
}

/// The refusal of a run that stopped for another reason than missing state.
fn refusal(stop: CallStop) -> Refusal {
    match stop {
        CallStop::Interrupted => Refusal::Interrupted,
        CallStop::NotSimulated(method) => Refusal::NotSimulated(method),
        CallStop::TooManyKeys { limit } => Refusal::TooManyFacts { max: limit },
        CallStop::Corrupt { key, fault } => Refusal::CorruptState(StateError::Corrupt { key, fault }),
        other => Refusal::Execution(other),
    }
}
