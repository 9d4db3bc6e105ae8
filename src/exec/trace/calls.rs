//! The call tree of a transaction: an inspector ([`CallTracer`]) that collects calls, creations, destructions and logs.

use alloc::vec::Vec;

use alloy_primitives::{Address, Log, U256};

use super::TraceBudget;
use crate::evm::{FrameClose, FrameKind, FrameStart, HaltReason, Inspector};
use crate::exec::Executed;

/// Bytes of an entry in JSON as an estimate, besides its input and output, whose hex digits take two bytes for each byte.
const NODE_BYTES: usize = 600;

/// One entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Index of the parent entry; `None` for the first entry.
    pub parent: Option<usize>,
    /// The action of the entry.
    pub action: TraceAction,
    /// The result; `None` for a destruction.
    pub close: Option<FrameClose>,
}

/// The action of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceAction {
    /// A call or creation.
    Frame(FrameStart),
    /// SELFDESTRUCT.
    Destruction {
        /// The contract that is destroyed.
        contract: Address,
        /// The account that receives its balance.
        beneficiary: Address,
        /// The balance in wei.
        balance: U256,
    },
}

impl TraceNode {
    /// Whether the entry itself failed.
    pub fn failed(&self) -> bool {
        self.close.as_ref().is_some_and(|close| close.failure.is_some())
    }

    /// The call or creation; `None` for a destruction.
    pub fn frame(&self) -> Option<&FrameStart> {
        match &self.action {
            TraceAction::Frame(start) => Some(start),
            TraceAction::Destruction { .. } => None,
        }
    }

    /// Whether the entry is an inner call of a native contract, which traces leave out, as the reference node does.
    #[cfg(feature = "local")]
    pub(crate) fn is_inner_native(&self) -> bool {
        self.parent.is_some() && self.frame().is_some_and(|start| start.native)
    }
}

/// The actions of a transaction. The first entry is the transaction itself; each entry precedes its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The entries.
    pub nodes: Vec<TraceNode>,
    /// Logs in order, without those of failed entries.
    pub logs: Vec<TracedLog>,
}

/// A log of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedLog {
    /// Index of the entry that wrote the log. A native contract's log belongs to its caller.
    pub node: usize,
    /// Number of entries that had started before the log.
    pub entries_before: usize,
    /// The log.
    pub log: Log,
}

impl CallTrace {
    /// The direct children of an entry.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        let of_parent =
            move |(index, node): (usize, &TraceNode)| (node.parent == Some(parent)).then_some(index);
        self.nodes.iter().enumerate().filter_map(of_parent)
    }

    /// Whether the entry or one of its ancestors failed.
    pub(crate) fn is_undone(&self, index: usize) -> bool {
        let mut next = Some(index);
        while let Some(node) = next.and_then(|index| self.nodes.get(index)) {
            if node.failed() {
                return true;
            }
            next = node.parent;
        }
        false
    }
}

/// Collects the calls of one transaction.
#[derive(Clone, Debug, Default)]
pub struct CallTracer {
    trace: CallTrace,
    /// Indices of the open entries, the outermost first.
    open: Vec<usize>,
    with_logs: bool,
    /// Whether inner calls are left out.
    only_top: bool,
    /// Number of open calls that are left out.
    left_out: usize,
    /// The bytes that are left.
    pub budget: TraceBudget,
}

impl CallTracer {
    /// Creates a tracer. `with_logs` also collects logs, which slows down the run.
    pub fn new(with_logs: bool) -> Self {
        Self { with_logs, ..Self::default() }
    }

    /// Leaves out inner calls and destructions. Calls of native contracts by the outermost call stay, because
    /// their logs are those of the outermost call.
    #[must_use]
    pub fn only_top(mut self) -> Self {
        self.only_top = true;
        self
    }

    /// Whether logs are collected too.
    pub(super) fn with_logs(&self) -> bool {
        self.with_logs
    }

    /// Whether an entry that starts now is left out.
    fn leaves_out(&self, native: bool) -> bool {
        let wanted = native && self.open.len() == 1 && self.left_out == 0;
        self.only_top && !self.open.is_empty() && !wanted
    }

    /// Adds an entry whose input has this number of bytes. Returns its index; `None` if the budget does not suffice.
    fn push(&mut self, action: TraceAction, bytes: usize) -> Option<usize> {
        if !self.budget.take(bytes.saturating_mul(2).saturating_add(NODE_BYTES)) {
            return None;
        }
        let index = self.trace.nodes.len();
        let parent = self.open.last().copied();
        self.trace.nodes.push(TraceNode { parent, action, close: None });
        Some(index)
    }

    /// The entry that a log belongs to: the innermost open entry, or its caller if that entry is a native
    /// contract, whose logs stay when it fails.
    fn log_owner(&self) -> usize {
        let Some(index) = self.open.last().copied() else { return 0 };
        let node = self.trace.nodes.get(index);
        let native = node.filter(|node| node.frame().is_some_and(|start| start.native));
        native.and_then(|node| node.parent).unwrap_or(index)
    }

    /// Finishes the trace. The first entry shows the transaction as sent and the gas that it used. If no
    /// frame was reported, it is the only entry.
    pub fn finish(self, executed: &Executed<'_>) -> CallTrace {
        let Self { trace, .. } = self;
        let mut trace = rooted(trace, executed);
        if let Some(root) = trace.nodes.first_mut() {
            complete_root(root, executed);
        }
        let logs = core::mem::take(&mut trace.logs);
        trace.logs = logs.into_iter().filter(|log| !trace.is_undone(log.node)).collect();
        trace
    }
}

/// A call or creation with neither gas nor data.
fn plain_frame(from: Address, to: Option<Address>, value: U256) -> FrameStart {
    FrameStart {
        kind: if to.is_some() { FrameKind::Call } else { FrameKind::Create },
        depth: 0,
        from,
        to,
        context: to,
        gas: 0,
        value,
        input: Default::default(),
        native: false,
        has_code: false,
        storage: None,
    }
}

/// Inserts an entry for the transaction at the front, unless the run reported one.
fn rooted(mut trace: CallTrace, executed: &Executed<'_>) -> CallTrace {
    let outermost = |node: &TraceNode| node.parent.is_none();
    let tops = trace.nodes.iter().filter(|node| outermost(node)).count();
    let reported = trace
        .nodes
        .first()
        .and_then(TraceNode::frame)
        .is_some_and(|start| start.from == executed.sender && start.to == executed.transaction.to);
    if tops == 1 && reported {
        return trace;
    }
    let start = plain_frame(executed.sender, executed.transaction.to, U256::ZERO);
    for node in &mut trace.nodes {
        node.parent = Some(node.parent.map_or(0, |parent| parent.saturating_add(1)));
    }
    // If there were no entries, the logs were written outside of all frames and belong to the new first
    // entry, which has the same index 0.
    for log in trace.logs.iter_mut().filter(|_| !trace.nodes.is_empty()) {
        log.node = log.node.saturating_add(1);
        log.entries_before = log.entries_before.saturating_add(1);
    }
    trace.nodes.insert(0, TraceNode { parent: None, action: TraceAction::Frame(start), close: None });
    trace
}

/// Sets the values of the first entry that only the transaction has.
fn complete_root(root: &mut TraceNode, executed: &Executed<'_>) {
    let Executed { transaction, sender, success, gas_used, output, failure: run_failure, .. } = *executed;
    let closed = root.close.take();
    if let TraceAction::Frame(start) = &mut root.action {
        start.gas = u64::try_from(transaction.gas_limit.value()).unwrap_or(u64::MAX);
        start.value = transaction.value;
        start.input = transaction.data.clone();
    }
    let failure = match (success, closed.as_ref().and_then(|close| close.failure)) {
        (true, _) => None,
        (false, Some(reason)) => Some(reason),
        (false, None) => Some(run_failure.unwrap_or(Some(HaltReason::Other))),
    };
    root.close = Some(FrameClose {
        failure,
        output: closed.as_ref().map_or_else(|| output.to_vec().into(), |close| close.output.clone()),
        gas_used,
        created: transaction.contract_address(&sender),
    });
}

impl Inspector for CallTracer {
    fn wants_steps(&self) -> bool {
        self.with_logs && !self.budget.exceeded()
    }

    fn frame(&mut self, start: FrameStart) {
        if self.leaves_out(start.native) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let bytes = start.input.len();
        // If the entry does not fit, the whole trace is discarded later. The index then refers to the last
        // entry.
        let index = self.push(TraceAction::Frame(start), bytes);
        self.open.push(index.unwrap_or(self.trace.nodes.len().saturating_sub(1)));
    }

    fn frame_end(&mut self, close: FrameClose) {
        if self.left_out > 0 {
            self.left_out = self.left_out.saturating_sub(1);
            return;
        }
        let Some(index) = self.open.pop() else { return };
        if !self.budget.take(close.output.len().saturating_mul(2)) {
            return;
        }
        if let Some(node) = self.trace.nodes.get_mut(index) {
            node.close = Some(close);
        }
    }

    fn self_destruct(&mut self, contract: Address, beneficiary: Address, balance: U256) {
        if !self.leaves_out(false) {
            self.push(TraceAction::Destruction { contract, beneficiary, balance }, 0);
        }
    }

    fn payment(&mut self, from: Address, to: Address, value: U256) {
        self.frame(plain_frame(from, Some(to), value));
        self.frame_end(FrameClose { failure: None, output: Default::default(), gas_used: 0, created: None });
    }

    fn log(&mut self, log: &Log) {
        if !self.with_logs || self.left_out > 0 {
            return;
        }
        let index = self.log_owner();
        if self.budget.take(log.data.data.len().saturating_mul(2).saturating_add(NODE_BYTES)) {
            let entries_before = self.trace.nodes.len();
            self.trace.logs.push(TracedLog { node: index, entries_before, log: log.clone() });
        }
    }
}
