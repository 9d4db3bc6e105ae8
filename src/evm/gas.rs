//! Gas prices: those of Ethereum's Petersburg upgrade with the differences of Rootstock.

use revm::context_interface::cfg::gas_params::{GasId, GasParams};
use revm::primitives::hardfork::SpecId;

use crate::consensus::{Rule, RuleSet};

/// Base gas of a transaction.
const TRANSACTION: u64 = 21_000;
/// Extra gas of a transaction that creates a contract.
const CREATION: u64 = 32_000;
/// Gas per zero byte of data.
const ZERO_BYTE: u64 = 4;
/// Gas per non-zero byte of data before RSKIP-400.
const DATA_BYTE_BEFORE_RSKIP_400: u64 = 68;
/// Gas per non-zero byte of data from RSKIP-400 on.
const DATA_BYTE: u64 = 16;
/// Gas per 32-byte word of initialisation code (RSKIP-438).
const INIT_CODE_WORD: u64 = 2;

/// Base gas of CALL, CALLCODE, DELEGATECALL and STATICCALL.
pub(super) const CALL: u64 = 700;
/// Gas of SELFDESTRUCT with a beneficiary that exists.
pub(super) const SELFDESTRUCT: u64 = 5_000;
/// Stipend for the callee if a value is transferred. The caller pays for it; Rootstock has no free stipend.
pub(super) const STIPEND: u64 = 2_300;
/// Gas of a value transfer in CALL and CALLCODE.
pub(super) const VALUE_TRANSFER: u64 = 9_000;
/// Gas of a CALL to an account that does not exist, or of a SELFDESTRUCT with such a beneficiary.
pub(super) const NEW_ACCOUNT: u64 = 25_000;
/// Most bytes of memory that a run can use. A larger size fails as out of gas.
pub(super) const MAX_MEMORY: u64 = 1 << 30;
/// Refund for each destroyed contract, credited at the end of the transaction.
pub(super) const SELFDESTRUCT_REFUND: u64 = 24_000;
/// Most bytes of initialisation code (RSKIP-438).
pub const MAX_INIT_CODE: usize = 0xc000;
/// Most bytes of code of a contract, since genesis.
pub(super) const MAX_CODE: usize = 0x6000;

/// Gas charged before the first instruction: base price, data, initialisation code.
///
/// A local call pays it too, so an `eth_call` with little gas fails as out of gas.
pub fn intrinsic_gas(data: &[u8], creates: bool, rules: RuleSet) -> u64 {
    let byte = if rules.has(Rule::Rskip400) { DATA_BYTE } else { DATA_BYTE_BEFORE_RSKIP_400 };
    let zeros = data.iter().filter(|b| **b == 0).count() as u64;
    let others = (data.len() as u64).saturating_sub(zeros);
    let mut gas = TRANSACTION
        .saturating_add(zeros.saturating_mul(ZERO_BYTE))
        .saturating_add(others.saturating_mul(byte));
    if creates {
        gas = gas.saturating_add(CREATION);
        if rules.has(Rule::Rskip438) {
            gas = gas.saturating_add(words(data.len()).saturating_mul(INIT_CODE_WORD));
        }
    }
    gas
}

/// Number of 32-byte words needed for `bytes` bytes.
pub(super) fn words(bytes: usize) -> u64 {
    bytes.div_ceil(32) as u64
}

/// Prices that depend on sizes, for the instructions of `revm`.
pub(super) fn gas_params(rules: RuleSet) -> GasParams {
    let init_code = if rules.has(Rule::Rskip438) { INIT_CODE_WORD } else { 0 };
    let mut params = GasParams::new_spec(SpecId::PETERSBURG);
    params.override_gas([(GasId::initcode_per_word(), init_code)]);
    params
}
