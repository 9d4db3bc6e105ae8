//! The number of bytes that the traces of one request may take, which bounds memory and the size of the answer.

/// Most bytes of the traces of one request, in JSON: slightly more than the largest possible answer (10 MiB), because
/// the size of traces is estimated. A trace that exceeds the limit stops collecting and is reported as too large.
pub const MAX_TRACE_BYTES: usize = 12 << 20;

/// The bytes that are left for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceBudget {
    left: usize,
    /// Whether more bytes were taken than were left.
    exceeded: bool,
}

impl Default for TraceBudget {
    fn default() -> Self {
        Self::new(MAX_TRACE_BYTES)
    }
}

impl TraceBudget {
    /// A budget of this number of bytes.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, exceeded: false }
    }

    /// Whether the limit was exceeded, so that the trace is incomplete.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// The budget of each tracer if this number of tracers get equal parts.
    pub(super) fn share(self, tracers: usize) -> Self {
        Self { left: self.left.checked_div(tracers).unwrap_or(self.left), ..self }
    }

    /// Takes the bytes that another budget lost between two of its states.
    pub(super) fn spend(&mut self, before: Self, after: Self) {
        self.take(before.left.saturating_sub(after.left));
        self.exceeded |= after.exceeded;
    }

    /// Takes bytes. Returns `false` if too few are left, and in all later calls.
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
