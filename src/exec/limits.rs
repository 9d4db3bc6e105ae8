//! What one run may use.

/// Gas of a call at most, as the reference caps it (`rpc.callGasCap`).
pub const CALL_GAS_CAP: u64 = 10_000_000;
/// Missing facts one run may name: more than a contract call needs in a round, few enough to ask
/// an upstream for at once. A run that reaches it ends early and names these.
pub const MAX_MISSING: usize = 512;
/// Facts one run may read. SLOAD costs 200, so the gas cap alone would allow 50,000.
pub const MAX_KEYS: usize = 16_384;

/// Storage cells up to which a contract's whole storage is listed in traces, as the reference's
/// `vm.structured.initStorageLimit`.
pub const MAX_LISTED_CELLS: usize = 10_000;

/// Limits of one run.
pub struct RunLimits<'a> {
    /// Gas at most; a call that asks for more is clamped silently, as in the reference.
    pub gas_cap: u64,
    /// Missing facts named before the run ends.
    pub max_missing: usize,
    /// Facts read before the run is refused.
    pub max_keys: usize,
    /// Asked every few thousand instructions; `true` ends the run.
    pub interrupt: &'a dyn Fn() -> bool,
}

impl Default for RunLimits<'_> {
    fn default() -> Self {
        Self { gas_cap: CALL_GAS_CAP, max_missing: MAX_MISSING, max_keys: MAX_KEYS, interrupt: &|| false }
    }
}

/// What a host decides about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPolicy {
    /// Gas of one run at most.
    pub gas_cap: u64,
    /// Answer `0x` to a call that halts, as the reference does, instead of an error.
    pub silent_halts: bool,
}

impl Default for CallPolicy {
    fn default() -> Self {
        Self { gas_cap: CALL_GAS_CAP, silent_halts: false }
    }
}
