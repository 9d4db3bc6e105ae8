//! Traces of a block as they are stored: what each call of its transactions did, in the form of Parity's `trace_block`.

use alloy_primitives::{Address, Bytes, U256};

use crate::block::MatchedBlock;
use crate::error::TraceError;

/// Most traces of a block, as a bound of memory: the gas of a block pays for some ten thousand calls.
pub const MAX_BLOCK_TRACES: usize = 65_536;

/// Most bytes of the traces of a block, counted as [`Trace::bytes`]. Passing the same input on costs no gas per byte,
/// so the traces of a block can be longer. They are then not stored at all.
pub const MAX_BLOCK_TRACE_BYTES: usize = 12 * 1024 * 1024;

/// Bytes of a trace besides its input, output, error and path, approximately.
const BASE_BYTES: usize = 300;

/// Longest error text, in bytes; a longer one is cut.
const MAX_ERROR_BYTES: usize = 1_024;

/// The operation that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceKind {
    /// CALL, or the transaction's own call.
    Call,
    /// CALLCODE.
    CallCode,
    /// DELEGATECALL.
    DelegateCall,
    /// STATICCALL.
    StaticCall,
    /// CREATE, or a transaction that creates a contract.
    Create,
    /// CREATE2.
    Create2,
    /// SELFDESTRUCT.
    Destruction,
}

impl TraceKind {
    const ALL: [Self; 7] = [
        Self::Call,
        Self::CallCode,
        Self::DelegateCall,
        Self::StaticCall,
        Self::Create,
        Self::Create2,
        Self::Destruction,
    ];

    /// The text in the column `traces.kind`: the names of Parity's traces, where a self-destruction is `suicide`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::CallCode => "callcode",
            Self::DelegateCall => "delegatecall",
            Self::StaticCall => "staticcall",
            Self::Create => "create",
            Self::Create2 => "create2",
            Self::Destruction => "suicide",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a contract is created.
    #[must_use]
    pub const fn creates(self) -> bool {
        matches!(self, Self::Create | Self::Create2)
    }
}

/// The result of a call or creation that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOutcome {
    /// Gas that was used.
    pub gas_used: u64,
    /// The returned data, or the code of the created contract.
    pub output: Bytes,
}

/// One call, creation or self-destruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Index of the transaction in the block.
    pub transaction: u32,
    /// Path from the transaction's own call, whose path is empty, to this one; `traceAddress` in JSON.
    pub address: Vec<u32>,
    /// Number of traces whose path is longer by one.
    pub subtraces: u32,
    /// The operation.
    pub kind: TraceKind,
    /// The caller or creator; the contract that destructs itself.
    pub from: Address,
    /// The account that is called; the contract that was created (`None` if the creation failed); or the account that gets the
    /// balance of a contract that destructs itself.
    pub to: Option<Address>,
    /// Value of the call in wei; for a self-destruction, the contract's balance.
    pub value: U256,
    /// Gas limit of the call; `None` for a self-destruction.
    pub gas: Option<u64>,
    /// The data of a call, or the initialisation code of a creation.
    pub input: Bytes,
    /// `None` if the call failed, and for a self-destruction.
    pub outcome: Option<TraceOutcome>,
    /// Why the call failed, in the words of the source.
    pub error: Option<String>,
}

impl Trace {
    /// Bytes that the trace takes, approximately.
    pub fn bytes(&self) -> usize {
        let output = self.outcome.as_ref().map_or(0, |outcome| outcome.output.len());
        let error = self.error.as_ref().map_or(0, String::len);
        let path = self.address.len().saturating_mul(4);
        [self.input.len(), output, error, path].into_iter().fold(BASE_BYTES, usize::saturating_add)
    }
}

/// The traces of a block. Only the outermost call of each transaction is checked against the block; the calls below that one are
/// not checked. Only [`Self::check`], [`Self::empty`] and [`Self::too_long`] make this type.
#[derive(Debug, Clone)]
pub struct BlockTraces(Option<Vec<Trace>>);

impl BlockTraces {
    /// The traces of a block without transactions.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Some(Vec::new()))
    }

    /// Marks a block whose traces exceed the limits.
    #[must_use]
    pub const fn too_long() -> Self {
        Self(None)
    }

    /// Checks traces against the block's transactions: each transaction has a trace of its own, with its sender, recipient,
    /// value and data, and the traces of its inner calls follow in order, each after that of its caller. If they exceed
    /// [`MAX_BLOCK_TRACES`] or [`MAX_BLOCK_TRACE_BYTES`], the result is [`Self::too_long`]. Long error texts are cut.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn check(block: &MatchedBlock, mut traces: Vec<Trace>) -> Result<Self, TraceError> {
        let number = block.header().number;
        let mut bytes = 0_usize;
        for trace in &mut traces {
            if let Some(error) = &mut trace.error {
                error.truncate(error.floor_char_boundary(MAX_ERROR_BYTES));
                // PostgreSQL's text has no zero byte.
                error.retain(|letter| letter != '\0');
            }
            bytes = bytes.saturating_add(trace.bytes());
        }
        let mut rest = traces.iter().peekable();
        for index in 0..block.transactions().len() {
            let own_traces = std::iter::from_fn(|| {
                rest.next_if(|trace| usize::try_from(trace.transaction).is_ok_and(|at| at == index))
            });
            let own_traces: Vec<&Trace> = own_traces.collect();
            let wrong = || TraceError::Transaction { number, index };
            let first =
                own_traces.first().filter(|first| is_own_call(first, block, index)).ok_or_else(wrong)?;
            if !first.address.is_empty() || !is_tree(&own_traces) {
                return Err(TraceError::Order { number, index });
            }
        }
        if rest.next().is_some() {
            return Err(TraceError::Transaction { number, index: block.transactions().len() });
        }
        let short = traces.len() <= MAX_BLOCK_TRACES && bytes <= MAX_BLOCK_TRACE_BYTES;
        Ok(Self(short.then_some(traces)))
    }

    /// The traces in the order of the block; `None` if they are too long.
    pub fn traces(&self) -> Option<&[Trace]> {
        self.0.as_deref()
    }

    /// Bytes that the traces take, approximately.
    pub fn bytes(&self) -> usize {
        self.0.iter().flatten().map(Trace::bytes).fold(0, usize::saturating_add)
    }
}

/// Whether a trace is that of a transaction's own call.
fn is_own_call(trace: &Trace, block: &MatchedBlock, index: usize) -> bool {
    let (Some(transaction), Some(sender)) = (block.transactions().get(index), block.senders().get(index))
    else {
        return false;
    };
    let recipient = match transaction.to {
        Some(to) => trace.kind == TraceKind::Call && trace.to == Some(to),
        None => trace.kind == TraceKind::Create,
    };
    recipient && trace.from == *sender && trace.value == transaction.value && trace.input == transaction.data
}

/// Whether each trace but the first has its caller's trace before it, and all are in the order of the calls. Numbers may be
/// missing among siblings: the reference node (rskj) leaves some calls out.
fn is_tree(traces: &[&Trace]) -> bool {
    // The previous trace's path. The parent of the next trace is a prefix of it.
    let mut path: &[u32] = &[];
    traces.iter().skip(1).all(|trace| {
        let Some((last, parent)) = trace.address.split_last() else { return false };
        let parent_known = path.starts_with(parent);
        let in_order = path.get(parent.len()).is_none_or(|before| before < last);
        path = &trace.address;
        parent_known && in_order
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &[u32]) -> Trace {
        Trace {
            transaction: 0,
            address: address.to_vec(),
            subtraces: 0,
            kind: TraceKind::Call,
            from: Address::ZERO,
            to: None,
            value: U256::ZERO,
            gas: None,
            input: Bytes::new(),
            outcome: None,
            error: None,
        }
    }

    #[test]
    fn traces_are_in_the_order_of_their_calls() {
        let tree = |addresses: &[&[u32]]| {
            let traces: Vec<Trace> = addresses.iter().map(|address| at(address)).collect();
            is_tree(&traces.iter().collect::<Vec<_>>())
        };
        assert!(tree(&[&[]]) && tree(&[&[], &[0], &[0, 0], &[0, 1], &[1], &[1, 0]]));
        // The reference node leaves some out.
        assert!(tree(&[&[], &[1], &[1, 3], &[4]]));
        for wrong in [
            &[&[][..], &[0, 0]][..],
            &[&[], &[0], &[0]],
            &[&[], &[1], &[0]],
            &[&[], &[0], &[1], &[0, 1]],
            &[&[], &[]],
        ] {
            assert!(!tree(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn kinds_have_names() {
        for kind in TraceKind::ALL {
            assert_eq!(TraceKind::of_name(kind.name()), Some(kind));
        }
        assert_eq!(TraceKind::of_name("jump"), None);
    }
}
