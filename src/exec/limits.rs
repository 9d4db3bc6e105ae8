//! Limits of one run, and the host's settings for calls.

/// Highest gas limit of a call, as in the reference node (`rpc.callGasCap`).
pub const CALL_GAS_CAP: u64 = 10_000_000;
/// Most missing facts that one run reports: more than a contract call needs in one round, and few
/// enough to request from an upstream at once. A run that reaches the limit ends early with the facts found.
pub const MAX_MISSING: usize = 512;
/// Most facts that one run may read. SLOAD costs 200 gas, so the gas cap alone would allow 50,000.
pub const MAX_KEYS: usize = 16_384;

/// Most storage cells of a contract whose whole storage is listed in traces, as in the reference node
/// (`vm.structured.initStorageLimit`).
pub const MAX_LISTED_CELLS: usize = 10_000;

/// Limits of one run.
pub struct RunLimits<'a> {
    /// Highest gas limit. As in the reference node, a higher limit of a call is reduced to it without an
    /// error.
    pub gas_cap: u64,
    /// Number of missing facts after which the run ends.
    pub max_missing: usize,
    /// Number of facts read after which the run is refused.
    pub max_keys: usize,
    /// Whether an estimate needs the sender to have the value and the gas; see [`CallPolicy::checks_funds`].
    pub checks_funds: bool,
    /// Called every few thousand instructions; the run ends if it returns `true`.
    pub interrupt: &'a dyn Fn() -> bool,
    /// Whether the run is inline: it calls `interrupt` after fractions of a millisecond, and ends as interrupted before anything
    /// that takes longer.
    pub is_inline: bool,
    /// Analysed code of earlier runs, which a run takes instead of reading the code from the state.
    pub codes: Option<&'a dyn super::CodeCache>,
}

impl Default for RunLimits<'_> {
    fn default() -> Self {
        Self {
            gas_cap: CALL_GAS_CAP,
            max_missing: MAX_MISSING,
            max_keys: MAX_KEYS,
            checks_funds: true,
            interrupt: &|| false,
            is_inline: false,
            codes: None,
        }
    }
}

/// JSON-RPC error code of a call that reverts, as in the reference node. Geth's code is 3.
pub const REVERTED: i32 = -32015;

/// Settings of the host for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPolicy {
    /// Highest gas limit of one run.
    pub gas_cap: u64,
    /// Whether a call that halts returns `0x`, as in the reference node, instead of an error.
    pub silent_halts: bool,
    /// JSON-RPC code of a call or estimate that reverts.
    pub revert_code: i32,
    /// Whether a call may replace accounts of the state.
    pub overrides: bool,
    /// Whether an estimate needs the sender to have the value and the gas, as a transaction does.
    pub checks_funds: bool,
}

impl Default for CallPolicy {
    fn default() -> Self {
        Self {
            gas_cap: CALL_GAS_CAP,
            silent_halts: false,
            revert_code: REVERTED,
            overrides: true,
            checks_funds: true,
        }
    }
}
