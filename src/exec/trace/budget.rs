//! The space that the traces of one request may take.

/// Most bytes of the traces of one request, in JSON: slightly more than the largest possible answer (10 MiB), because
/// traces are estimated. A trace that exceeds it stops collecting and is reported as too large.
pub const MAX_TRACE_BYTES: usize = 12 << 20;

/// Space left for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceBudget {
    left: usize,
    exceeded: bool,
}

impl Default for TraceBudget {
    fn default() -> Self {
        Self::new(MAX_TRACE_BYTES)
    }
}

impl TraceBudget {
    /// Space for a number of bytes.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, exceeded: false }
    }

    /// Whether the limit was exceeded, so that the trace is incomplete.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// An equal part of the space for each of so many tracers.
    pub(super) fn share(self, tracers: usize) -> Self {
        Self { left: self.left.checked_div(tracers).unwrap_or(self.left), ..self }
    }

    /// Reserves the space between two states of another budget.
    pub(super) fn spend(&mut self, before: Self, after: Self) {
        self.take(before.left.saturating_sub(after.left));
        self.exceeded |= after.exceeded;
    }

    /// Reserves space. Returns `false` if it does not suffice, and in all later calls.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.exceeded => {
                self.left = left;
                true
            }
            _ => {
                self.exceeded = true;
                false
            }
        }
    }
}
