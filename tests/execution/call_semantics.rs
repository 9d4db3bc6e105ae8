//! The differences between calls on Rootstock and Ethereum, each with a small program, and all outcomes of a
//! call.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use rootlight::consensus::{Network, Rule, RuleSet};
use rootlight::evm::precompiles::Unsimulated;
use rootlight::exec::{
    BlockEnvironment, CallContext, CallMessage, CallOutcome, CallStop, HaltReason, OverrideError, RunLimits,
    call,
};
use rootlight::state::{
    AccountOverride, AccountState, Corrupt, OverrideStorage, StateError, StateKey, StateOverride, StateReader,
};
use support::*;

const ALICE: u64 = 0xa11ce;
const CODE: u64 = 0xc0de;
const OTHER: u64 = 0xc0de2;
const BRIDGE: u64 = 0x0100_0006;

fn rules() -> RuleSet {
    Network::regtest().rules(1)
}

fn state(codes: &[(u64, &str)]) -> MapState {
    let mut state = MapState::default();
    let rich = MapAccount { balance: U256::from(1_000), nonce: 5, ..MapAccount::default() };
    state.accounts.insert(low_address(ALICE), rich);
    for (low, code) in codes {
        let account = MapAccount { code: bytes(code), contract: true, ..MapAccount::default() };
        state.accounts.insert(low_address(*low), account);
    }
    state
}

fn run_under(
    rules: RuleSet,
    state: &dyn StateReader,
    message: &CallMessage,
    overrides: &StateOverride,
) -> Result<CallOutcome, CallStop> {
    let block = BlockEnvironment {
        number: 7,
        timestamp: 0,
        coinbase: Address::ZERO,
        difficulty: U256::ZERO,
        gas_limit: U256::ZERO,
        minimum_gas_price: U256::ZERO,
    };
    let hashes = MapHashes::default();
    let context = CallContext { state, hashes: &hashes, block: &block, rules, chain_id: 33 };
    call(&context, message, overrides, &RunLimits::default(), None).map(|result| result.into_outcome())
}

fn run(state: &MapState, message: &CallMessage) -> Result<CallOutcome, CallStop> {
    run_under(rules(), state, message, &StateOverride::default())
}

fn to(low: u64) -> CallMessage {
    CallMessage { to: Some(low_address(low)), ..CallMessage::default() }
}

fn from_alice(low: u64) -> CallMessage {
    CallMessage { from: Some(low_address(ALICE)), ..to(low) }
}

/// The first word of the output.
fn word(outcome: Result<CallOutcome, CallStop>) -> U256 {
    match outcome {
        Ok(CallOutcome::Success { output, .. }) => U256::from_be_slice(&output[..32]),
        other => panic!("{other:?}"),
    }
}

fn gas_used(outcome: Result<CallOutcome, CallStop>) -> u64 {
    match outcome {
        Ok(CallOutcome::Success { gas_used, .. }) => gas_used,
        other => panic!("{other:?}"),
    }
}

/// Code that returns the word that its operations leave on the stack.
fn returning(operations: &str) -> String {
    format!("{operations}5f5260205ff3")
}

/// The refund for cleared storage is at most half of the gas spent.
#[test]
fn refunds_are_at_most_half_of_the_gas_spent() {
    let clearing = |slots: u64| {
        let mut state =
            state(&[(CODE, &(1..=slots).map(|slot| format!("60006{slot:03x}55")).collect::<String>())]);
        let storage = (1..=slots).map(|slot| (U256::from(slot), U256::ONE)).collect();
        state.accounts.get_mut(&low_address(CODE)).unwrap().storage = storage;
        gas_used(run(&state, &from_alice(CODE)))
    };
    let spent = |slots: u64| 21_000 + slots * (3 + 3 + 5_000);
    assert_eq!(clearing(0), 21_000);
    assert_eq!([clearing(1), clearing(2), clearing(4)], [1, 2, 4].map(|slots| spent(slots) / 2));
}

/// A state whose root commits to invalid data.
struct Odd(MapState, StateKey);

impl Odd {
    fn read<T>(&self, key: StateKey, value: Result<T, StateError>) -> Result<T, StateError> {
        let fault = Corrupt::LongWord(40);
        if key == self.1 { Err(StateError::Corrupt { key, fault }) } else { value }
    }
}

impl StateReader for Odd {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        self.read(StateKey::Account(*address), self.0.account(address))
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        self.0.is_contract(address)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        self.read(StateKey::Storage(*address, *slot), self.0.storage(address, slot))
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        self.read(StateKey::Code(*address), self.0.code(address))
    }
}

/// A miner can commit to invalid data and prove it. Such data must not be read as zero.
#[test]
fn proven_but_invalid_data_end_the_run() {
    // SLOAD 3, and BALANCE of another account.
    let code = returning("600354610b0b3150");
    let message = from_alice(CODE);
    let fine = Odd(state(&[(CODE, &code)]), StateKey::BlockHash(0));
    let run = |state: &Odd| run_under(rules(), state, &message, &StateOverride::default());
    assert!(run(&fine).is_ok());
    let contract = low_address(CODE);
    for key in [
        StateKey::Account(contract),
        StateKey::Account(low_address(0xb0b)),
        StateKey::Storage(contract, U256::from(3)),
        StateKey::Code(contract),
    ] {
        let mut odd = Odd(fine.0.clone(), key);
        let corrupt = CallStop::Corrupt { key, fault: Corrupt::LongWord(40) };
        assert_eq!(run(&odd), Err(corrupt.clone()), "{key:?}");
        // Fetching further data does not help.
        odd.0.hidden.insert(StateKey::Account(low_address(0xb0b)));
        if key != StateKey::Account(low_address(0xb0b)) {
            assert_eq!(run(&odd), Err(corrupt), "{key:?}");
        }
    }
}

#[test]
fn the_callee_gets_all_remaining_gas() {
    // CALL(gas: GAS, to: OTHER), out 0..32; return what it returned: its GAS.
    let caller = format!("60205f5f5f5f62{OTHER:06x}5af15060205ff3");
    let state = state(&[(CODE, &caller), (OTHER, &returning("5a"))]);
    let before = 10_000_000 - 21_000 - (3 + 2 * 4 + 3 + 2) - 700 - 3;
    assert_eq!(word(run(&state, &to(CODE))), U256::from(before - 2));
}

#[test]
fn the_caller_pays_the_stipend() {
    let caller = format!("60205f5f5f600162{OTHER:06x}5ff15060205ff3");
    let mut state = state(&[(CODE, &caller), (OTHER, &returning("5a"))]);
    state.accounts.get_mut(&low_address(CODE)).unwrap().balance = U256::from(10);
    assert_eq!(word(run(&state, &to(CODE))), U256::from(2_298));
    let callee = 2 + 2 + 6 + 3 + 2;
    let used = 21_000 + 3 + 6 + 3 + 3 + 2 + 700 + 9_000 + 3 + callee + 2 + 3 + 2;
    assert_eq!(gas_used(run(&state, &to(CODE))), used);
}

#[test]
fn missing_accounts_cost_more_even_without_value() {
    let mut state = state(&[(CODE, "5f5f5f5f5f61dead5ff100")]);
    let base = 21_000 + 2 * 6 + 3 + 700;
    assert_eq!(gas_used(run(&state, &to(CODE))), base + 25_000);
    // An empty account exists.
    state.accounts.insert(low_address(0xdead), MapAccount::default());
    assert_eq!(gas_used(run(&state, &to(CODE))), base);
}

#[test]
fn calls_are_at_most_four_hundred_frames_deep() {
    // Calls itself with all gas and returns one more than the inner call returned.
    let code = "60205f5f5f5f305af1505f516001015f5260205ff3";
    let state = state(&[(CODE, code)]);
    assert_eq!(word(run(&state, &to(CODE))), U256::from(401));
    let old = rules().without(Rule::Rskip150);
    assert!(word(run_under(old, &state, &to(CODE), &StateOverride::default())) > U256::from(401));
}

#[test]
fn contracts_of_transactions_start_at_nonce_zero() {
    // Init code: CREATE an empty contract, return its address as code.
    let message = CallMessage {
        from: Some(low_address(ALICE)),
        data: bytes("5f5f5ff05f526020" /* PUSH0 RETURN */).iter().copied().chain([0x5f, 0xf3]).collect(),
        ..CallMessage::default()
    };
    let created = low_address(ALICE).create(5);
    let child = Address::from_word(word(run(&state(&[]), &message)).into());
    assert_eq!(child, created.create(0));
}

#[test]
fn contract_addresses_of_the_null_sender_use_an_empty_address() {
    // Init code returns ADDRESS.
    let message = CallMessage { data: bytes("305f5260205ff3"), ..CallMessage::default() };
    let own = Address::from_word(word(run(&state(&[]), &message)).into());
    assert_eq!(own, Address::from_word(keccak256([0xc2, 0x80, 0x80])));
}

#[test]
fn an_inner_constructor_loses_its_refunds() {
    // Init code of the inner contract: SSTORE(0, 1), SSTORE(0, 0), STOP. The outer one CREATEs it.
    let inner = "60015f555f5f5500";
    let outer = format!("67{inner}5f52600860185ff000");
    let inner_gas = 3 + 2 + 20_000 + 2 + 2 + 5_000;
    let outer_gas = 3 + 2 + 6 + 3 + 3 + 2 + 32_000 + 2;
    let state = state(&[(CODE, &outer), (OTHER, inner)]);
    assert_eq!(gas_used(run(&state, &to(CODE))), 21_000 + outer_gas + inner_gas);
    assert_eq!(
        gas_used(run(&state, &to(OTHER))),
        21_000 + inner_gas - 15_000,
        "refunds outside of a constructor are kept"
    );
}

#[test]
fn a_creation_without_funds_keeps_the_return_buffer() {
    // Call OTHER (returns a word), CREATE with a value above the balance, return RETURNDATASIZE.
    let code = format!("5f5f5f5f5f62{OTHER:06x}5af1505f5f6001f050{}", returning("3d"));
    let state = state(&[(CODE, &code), (OTHER, &returning("5a"))]);
    assert_eq!(word(run(&state, &to(CODE))), U256::from(32));
}

#[test]
fn native_contracts_have_the_hash_of_empty_code() {
    let size = returning("6301000006 3b".replace(' ', "").as_str());
    let hash = returning("6301000006 3f".replace(' ', "").as_str());
    let state = state(&[(CODE, &size), (OTHER, &hash)]);
    assert_eq!(word(run(&state, &to(CODE))), U256::MAX);
    assert_eq!(word(run(&state, &to(OTHER))), U256::from_be_bytes(KECCAK256_EMPTY.0));
}

#[test]
fn a_failed_native_call_costs_only_its_price() {
    // STATICCALL(gas: 10000, to: 9) without input fails and costs no gas.
    let state = state(&[(CODE, &returning("5f5f5f5f6009612710fa"))]);
    assert_eq!(word(run(&state, &to(CODE))), U256::ZERO);
    assert_eq!(gas_used(run(&state, &to(CODE))), 21_000 + 8 + 3 + 3 + 700 + 2 + 6 + 3 + 2);
}

#[test]
fn the_null_sender_is_not_an_account() {
    let state = state(&[(CODE, &returning("333f")), (OTHER, &returning("333f"))]);
    assert_eq!(word(run(&state, &to(CODE))), U256::ZERO);
    let value = CallMessage { value: U256::from(9), ..to(CODE) };
    assert_eq!(word(run(&state, &value)), U256::ZERO, "not even when it sends a value");
    // Any other sender exists, even if it sends no value.
    let named = CallMessage { from: Some(low_address(0x9999)), ..to(OTHER) };
    assert_eq!(word(run(&state, &named)), U256::from_be_bytes(KECCAK256_EMPTY.0));
}

#[test]
fn a_call_may_send_more_than_the_balance_unless_the_code_reads_it() {
    let state = state(&[(CODE, &returning("47")), (OTHER, &returning("3331"))]);
    let sends = |low| CallMessage { value: U256::from(5_000), ..from_alice(low) };
    assert_eq!(word(run(&state, &sends(CODE))), U256::from(5_000));
    assert_eq!(run(&state, &sends(OTHER)), Err(CallStop::OverdrawnBalance(low_address(ALICE))));
    assert_eq!(word(run(&state, &from_alice(OTHER))), U256::from(1_000));
}

#[test]
fn methods_that_are_not_simulated_are_named() {
    // registerBtcCoinbaseTransaction(..) with a tree without hashes, directly and from a contract that passes
    // on its data.
    let nested = format!("365f5f375f5f365f5f63{BRIDGE:08x}5af100");
    let mut state = state(&[(CODE, &nested)]);
    let method = "registerBtcCoinbaseTransaction";
    let refused = Err(CallStop::NotSimulated(Unsimulated { contract: low_address(BRIDGE), method }));
    let mut data = bytes("ccf417ae").to_vec();
    for word in [160u64, 0, 192, 0, 0, 0, 6, 0] {
        data.extend(U256::from(word).to_be_bytes::<32>());
    }
    let with_data = |low| CallMessage { data: data.clone().into(), ..to(low) };
    assert_eq!(run(&state, &with_data(BRIDGE)), refused);
    assert_eq!(run(&state, &with_data(CODE)), refused);
    assert_eq!(
        run(&state, &with_data(BRIDGE)).unwrap_err().to_string(),
        format!("{method} of precompile 0x0000000000000000000000000000000001000006 is not simulated")
    );
    // Missing data are reported first: with them, the call may not reach the method.
    let reads_first = format!("5f5450{nested}");
    state.accounts.get_mut(&low_address(CODE)).unwrap().code = bytes(&reads_first);
    let slot = StateKey::Storage(low_address(CODE), U256::ZERO);
    state.hidden.insert(slot);
    assert_eq!(run(&state, &to(CODE)), Err(CallStop::Missing([slot].into())));
}

#[test]
fn a_native_contract_does_not_exist_before_its_rule() {
    let old = rules().without(Rule::Rskip153);
    let code = "5f5f5f5f5f60095ff100";
    let state = state(&[(CODE, code)]);
    let base = 21_000 + 2 * 6 + 3 + 700;
    assert_eq!(gas_used(run(&state, &to(CODE))), base);
    let none = StateOverride::default();
    assert_eq!(gas_used(run_under(old, &state, &to(CODE), &none)), base + 25_000);
}

fn overriding(low: u64, account: AccountOverride) -> StateOverride {
    StateOverride { accounts: BTreeMap::from([(low_address(low), account)]) }
}

#[test]
fn native_contracts_cannot_be_overridden() {
    let overrides = overriding(2, AccountOverride { nonce: Some(1), ..AccountOverride::default() });
    let refused = Err(CallStop::Override(OverrideError::Precompile(low_address(2))));
    assert_eq!(run_under(rules(), &state(&[]), &to(CODE), &overrides), refused);
}

#[test]
fn overridden_code_does_not_make_a_contract() {
    let hash_of_other = returning(&format!("62{OTHER:06x}3f"));
    let code = bytes("00");
    let over = overriding(OTHER, AccountOverride { code: Some(code.clone()), ..AccountOverride::default() });
    let mut state = state(&[(CODE, &hash_of_other)]);
    assert_eq!(word(run_under(rules(), &state, &to(CODE), &over)), U256::from_be_bytes(KECCAK256_EMPTY.0));
    state.accounts.insert(low_address(OTHER), MapAccount { contract: true, ..MapAccount::default() });
    let hash = keccak256(&code);
    assert_eq!(word(run_under(rules(), &state, &to(CODE), &over)), U256::from_be_bytes(hash.0));
}

#[test]
fn state_replaces_and_state_diff_patches() {
    let slot_one = returning("600154");
    let mut state = state(&[(CODE, &slot_one)]);
    let words = BTreeMap::from([(U256::from(1), U256::from(11)), (U256::from(2), U256::from(22))]);
    state.accounts.get_mut(&low_address(CODE)).unwrap().storage = words;
    let other_slot = BTreeMap::from([(U256::from(2), U256::from(9))]);
    let storage = |storage| overriding(CODE, AccountOverride { storage, ..AccountOverride::default() });
    let patch = storage(OverrideStorage::Patch(other_slot.clone()));
    let replace = storage(OverrideStorage::Replace(other_slot));
    assert_eq!(word(run_under(rules(), &state, &to(CODE), &patch)), U256::from(11));
    assert_eq!(word(run_under(rules(), &state, &to(CODE), &replace)), U256::ZERO);
    // A full replacement does not read the storage in the state.
    state.hidden.insert(StateKey::Storage(low_address(CODE), U256::from(1)));
    assert_eq!(word(run_under(rules(), &state, &to(CODE), &replace)), U256::ZERO);
}

#[test]
fn an_eip_7702_delegation_is_not_followed() {
    // On Ethereum 0xef0100 and an address would run that address's code.
    let delegation = format!("ef0100{}", hex::encode(low_address(OTHER)));
    let state = state(&[(CODE, &delegation), (OTHER, &returning("5a"))]);
    let halt = CallOutcome::Halt { reason: HaltReason::InvalidOpcode, gas_used: 10_000_000 };
    assert_eq!(run(&state, &to(CODE)), Ok(halt));
}

#[test]
fn overflowing_balances_abort_the_run() {
    // CALL(value: 1, to: OTHER)
    let code = format!("5f5f5f5f600162{OTHER:06x}5af100");
    let mut state = state(&[(CODE, &code), (OTHER, "00")]);
    state.accounts.get_mut(&low_address(CODE)).unwrap().balance = U256::from(1);
    state.accounts.get_mut(&low_address(OTHER)).unwrap().balance = U256::MAX;
    assert_eq!(run(&state, &to(CODE)), Err(CallStop::BalanceOverflow));
    // SELFDESTRUCT(OTHER)
    state.accounts.get_mut(&low_address(CODE)).unwrap().code = bytes(&format!("62{OTHER:06x}ff"));
    assert_eq!(run(&state, &to(CODE)), Err(CallStop::BalanceOverflow));
}

#[test]
fn unpaid_memory_before_rskip_150_is_limited() {
    // CALL to 4 with one word of input. The output range is empty and far away.
    let code = "5f633b9aca0060205f5f600461fffff100";
    let state = state(&[(CODE, code)]);
    let old = rules().without(Rule::Rskip150);
    let none = StateOverride::default();
    assert_eq!(run_under(old, &state, &to(CODE), &none), Err(CallStop::UnpaidMemory));
    assert!(matches!(run(&state, &to(CODE)), Ok(CallOutcome::Success { .. })));
}

#[test]
fn an_overridden_nonce_does_not_overwrite_a_contract() {
    let mut state = state(&[]);
    let taken = low_address(ALICE).create(3);
    state.accounts.insert(taken, MapAccount { code: bytes("00"), contract: true, ..MapAccount::default() });
    let over = overriding(ALICE, AccountOverride { nonce: Some(3), ..AccountOverride::default() });
    let message = CallMessage { from: Some(low_address(ALICE)), ..CallMessage::default() };
    assert_eq!(run_under(rules(), &state, &message, &over), Err(CallStop::TakenAddress(taken)));
}

#[test]
fn gas_is_capped_and_less_than_intrinsic_gas_halts() {
    let state = state(&[(CODE, &returning("5a"))]);
    let with = |gas| CallMessage { gas: Some(gas), ..to(CODE) };
    assert_eq!(word(run(&state, &with(u64::MAX))), U256::from(10_000_000 - 21_000 - 2));
    assert_eq!(word(run(&state, &with(50_000))), U256::from(50_000 - 21_000 - 2));
    let halt = CallOutcome::Halt { reason: HaltReason::OutOfGas, gas_used: 20_999 };
    assert_eq!(run(&state, &with(20_999)), Ok(halt));
}

#[test]
fn the_price_of_data_depends_on_rskip_400() {
    let state = state(&[]);
    let message = CallMessage { data: Bytes::from_static(&[1, 0]), ..to(CODE) };
    assert_eq!(gas_used(run(&state, &message)), 21_000 + 16 + 4);
    let old = rules().without(Rule::Rskip400);
    assert_eq!(gas_used(run_under(old, &state, &message, &StateOverride::default())), 21_000 + 68 + 4);
}
