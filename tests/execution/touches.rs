//! The keys that each operation touches for the purposes of parallel lists. A block has two transactions in
//! different lists. It is refused if the operation of the first one touches what the second one writes or
//! reads, and accepted if the operation fails before that touch.

use crate::support;

use rootlight::exec::{BlockError, TransactionCandidate};
use rootlight::state::{AccessKey, World};
use rootlight::types::{Address, U256, keccak256};
use support::lists::{Account, Lists};

/// The contract whose program is tested. It has 10 wei.
const PROGRAM: Address = Address::repeat_byte(0xc0);
/// Calls [`PROGRAM`] with its own data and all gas, then stops.
const CALLER: Address = Address::repeat_byte(0xc1);
/// As [`CALLER`], but reverts.
const REVERTER: Address = Address::repeat_byte(0xc2);
/// Reads the balance of the account in its data.
const READER: Address = Address::repeat_byte(0xc3);
/// A contract that only stops.
const STOPS: Address = Address::repeat_byte(0xc4);
/// An account with 1 wei.
const PLAIN: Address = Address::repeat_byte(0xe0);
/// An account that does not exist.
const ABSENT: Address = Address::repeat_byte(0xe1);
/// The native contract that copies its input.
const IDENTITY: Address = Address::new([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);

/// Gas of a transaction without data.
const BASE: u64 = 21_000;
/// Enough gas for all programs here.
const PLENTY: u64 = 1_000_000;

/// The second transaction.
enum Other {
    Reads(Address),
    /// Sends it 1 wei.
    Writes(Address),
}
use Other::{Reads, Writes};

struct First<'a> {
    program: &'a str,
    to: Address,
    value: u64,
    gas: u64,
    data: Vec<u8>,
}

/// Calls a program with enough gas.
fn run(program: &str) -> First<'_> {
    First { program, to: PROGRAM, value: 0, gas: PLENTY, data: Vec::new() }
}

/// Calls a program so that `left` gas remains after its pushes, which cost `pushes`.
fn with_gas(program: &str, pushes: u64, left: u64) -> First<'_> {
    First { gas: BASE + pushes + left, ..run(program) }
}

/// Calls a program through another contract.
fn through(outer: Address, program: &str) -> First<'_> {
    First { to: outer, ..run(program) }
}

fn chain(program: &str) -> Lists {
    let inner = "5f5f 5f5f 5f 73 c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0 5a f1 50";
    let (stopping, reverting) = (format!("{inner} 00"), format!("{inner} 5f5ffd"));
    let accounts: [Account<'_>; 6] = [
        (PROGRAM, program, 10),
        (CALLER, &stopping, 0),
        (REVERTER, &reverting, 0),
        (READER, "5f353100", 0),
        (STOPS, "00", 0),
        (PLAIN, "", 1),
    ];
    Lists::new(&accounts)
}

fn pair(chain: &Lists, first: &First<'_>, other: &Other) -> [TransactionCandidate; 2] {
    let one = chain.send(0, 0, Some(first.to), first.value, first.gas, &first.data);
    let two = match other {
        Reads(account) => chain.call(1, 0, READER, account.into_word().as_slice()),
        Writes(account) => chain.send(1, 0, Some(*account), 1, 100_000, &[]),
    };
    [one, two]
}

/// Checks that the two transactions may not be in different lists, and that the builder puts them into one.
fn conflict(chain: &Lists, pair: &[TransactionCandidate; 2], key: AccessKey) {
    let error = chain.execute(pair, &[1, 2]).unwrap_err();
    assert_eq!(error, BlockError::Conflict { lists: (0, 1), key });
    assert!(error.to_string().starts_with("parallel lists (0, 1) both use "), "{error}");
    let built = chain.build(pair);
    assert_eq!(built.edges, [2], "the builder puts both into one list");
    chain.execute_built(&built).unwrap();
}

/// Checks that the block is refused, in either order of the transactions.
fn refused(first: First<'_>, other: Other) {
    let (Reads(account) | Writes(account)) = other;
    let chain = chain(first.program);
    let pair = pair(&chain, &first, &other);
    conflict(&chain, &pair, AccessKey::Account(account));
    let [one, two] = pair;
    conflict(&chain, &[two, one], AccessKey::Account(account));
}

/// Checks that the block is accepted, and that the builder uses two lists too.
fn accepted(first: First<'_>, other: Other) {
    let chain = chain(first.program);
    let pair = pair(&chain, &first, &other);
    chain.execute(&pair, &[1, 2]).unwrap();
    let built = chain.build(&pair);
    assert_eq!(built.edges, [1, 2]);
    chain.execute_built(&built).unwrap();
}

/// A call instruction without input and output. The value is left out for DELEGATECALL and STATICCALL. The
/// target's address consists of twenty equal bytes. See [`PUSHES`] for the gas of the pushes.
fn call(opcode: &str, value: Option<u8>, target: u8) -> String {
    let value = value.map_or(String::new(), |value| format!("60{value:02x}"));
    format!("5f5f5f5f{value}73{}5a{opcode}", format!("{target:02x}").repeat(20))
}

/// As [`call`], of the native contract at address 4.
fn call_native(opcode: &str, value: Option<u8>) -> String {
    let value = value.map_or(String::new(), |value| format!("60{value:02x}"));
    format!("5f5f5f5f{value}60045a{opcode}")
}

/// Gas of the pushes before a call: four PUSH0, the address and GAS. A value costs [`VALUE_PUSH`] more.
const PUSHES: u64 = 4 * 2 + 3 + 2;
const VALUE_PUSH: u64 = 3;

const CALL: &str = "f1";
const CALLCODE: &str = "f2";
const DELEGATECALL: &str = "f4";
const STATICCALL: &str = "fa";

/// Runs an operation at a call depth: a contract calls itself until the number in its data is 0.
fn at_depth(depth: u16, operation: &str) -> (String, Vec<u8>) {
    let operation = format!("{operation}00");
    let dest = 6 + operation.len() / 2;
    let program = format!("5f358060{dest:02x}57{operation}5b600190035f525f5f60205f5f305af100");
    (program, U256::from(depth).to_be_bytes::<32>().to_vec())
}

fn deep(depth: u16, program: &(String, Vec<u8>)) -> First<'_> {
    assert_eq!(program.1, U256::from(depth).to_be_bytes::<32>());
    First { data: program.1.clone(), ..run(&program.0) }
}

/// Greatest call depth at which code runs.
const DEEPEST: u16 = 400;

#[test]
fn a_sender_and_the_target_of_its_transfer_are_written() {
    let plain = |value| First { to: PLAIN, value, ..run("00") };
    refused(plain(1), Reads(PLAIN));
    refused(plain(0), Writes(PLAIN));
    accepted(plain(0), Reads(PLAIN));
    refused(First { to: ABSENT, ..run("00") }, Reads(ABSENT));
    let chain = chain("00");
    let sender = chain.call(0, 0, STOPS, &[]).sender;
    refused(run("00"), Reads(sender));
}

#[test]
fn a_value_transfer_to_failing_code_writes_the_target() {
    for fails in ["5f5ffd", "fe", "5b5f56"] {
        refused(First { value: 1, ..run(fails) }, Reads(PROGRAM));
        accepted(run(fails), Reads(PROGRAM));
        refused(run(fails), Writes(PROGRAM));
    }
}

#[test]
fn a_native_contract_that_a_transaction_calls_is_touched() {
    let native = |value| First { to: IDENTITY, value, ..run("00") };
    refused(native(1), Reads(IDENTITY));
    refused(native(0), Writes(IDENTITY));
    accepted(native(0), Reads(IDENTITY));
    // A contract that cannot be paid for does not run, and the value is not transferred.
    accepted(First { gas: BASE + 1, ..native(1) }, Writes(IDENTITY));
}

#[test]
fn a_failed_creation_still_writes_its_account() {
    let chain = chain("00");
    for (data, gas) in [(&[0xfe][..], 100_000), (&[][..], 53_000)] {
        let create = chain.send(0, 0, None, 0, gas, data);
        let created = create.sender.create(0);
        let read = chain.call(1, 0, READER, created.into_word().as_slice());
        conflict(&chain, &[create, read], AccessKey::Account(created));
    }
}

#[test]
fn an_account_created_in_a_reverted_call_is_written() {
    for program in [call(CALL, Some(0), 0xe1), call(STATICCALL, None, 0xe1)] {
        let reverts = format!("{program}5f5ffd");
        refused(run(&reverts), Reads(ABSENT));
        refused(through(REVERTER, &program), Reads(ABSENT));
        refused(run(&program), Reads(ABSENT));
    }
    // CALLCODE and DELEGATECALL create no account.
    for program in [call(CALLCODE, Some(0), 0xe1), call(DELEGATECALL, None, 0xe1)] {
        accepted(run(&program), Reads(ABSENT));
        refused(run(&program), Writes(ABSENT));
    }
}

#[test]
fn a_value_transfer_in_a_reverted_call_is_written() {
    let program = call(CALL, Some(1), 0xe0);
    refused(through(REVERTER, &program), Reads(PLAIN));
    refused(through(REVERTER, &program), Reads(PROGRAM));
    accepted(run(&call(CALL, Some(0), 0xe0)), Reads(PLAIN));
}

#[test]
fn call_reads_its_target_for_the_price_even_if_unpaid() {
    refused(with_gas(&call(CALL, Some(0), 0xe0), PUSHES + VALUE_PUSH, 699), Writes(PLAIN));
    refused(with_gas(&call(CALL, Some(1), 0xe0), PUSHES + VALUE_PUSH, 9_699), Writes(PLAIN));
    let far_input = "5f5f62ffffff5f5f73e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e05af1";
    refused(run(far_input), Writes(PLAIN));
    let no_memory = "5f5f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5f5f73e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e05af1";
    refused(run(no_memory), Writes(PLAIN));
    // The prices of the other three do not depend on the target.
    for program in
        [call(CALLCODE, Some(0), 0xe0), call(DELEGATECALL, None, 0xe0), call(STATICCALL, None, 0xe0)]
    {
        accepted(First { gas: BASE + PUSHES + VALUE_PUSH + 690, ..run(&program) }, Writes(PLAIN));
    }
    // Stack and static frame are checked before the price.
    accepted(run("5f5f5f5f73e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e05af1"), Writes(PLAIN));
}

#[test]
fn calls_that_do_not_run_read_their_target_only_for_the_price() {
    // The value is above the balance, or the gas does not cover the stipend.
    refused(run(&call(CALL, Some(11), 0xe0)), Writes(PLAIN));
    refused(with_gas(&call(CALL, Some(1), 0xe0), PUSHES + VALUE_PUSH, 9_700), Writes(PLAIN));
    accepted(run(&call(CALL, Some(11), 0xe0)), Reads(PLAIN));
    accepted(run(&call(CALLCODE, Some(11), 0xe0)), Writes(PLAIN));
    accepted(with_gas(&call(CALLCODE, Some(1), 0xe0), PUSHES + VALUE_PUSH, 11_999), Writes(PLAIN));
    refused(with_gas(&call(CALLCODE, Some(1), 0xe0), PUSHES + VALUE_PUSH, 12_000), Writes(PLAIN));
}

#[test]
fn call_reads_a_native_target_for_the_price_even_if_it_does_not_run() {
    refused(with_gas(&call_native(CALL, Some(0)), PUSHES + VALUE_PUSH, 699), Writes(IDENTITY));
    refused(with_gas(&call_native(CALL, Some(1)), PUSHES + VALUE_PUSH, 9_700), Writes(IDENTITY));
    refused(run(&call_native(CALL, Some(11))), Writes(IDENTITY));
    let program = at_depth(DEEPEST, &call_native(CALL, Some(0)));
    refused(deep(DEEPEST, &program), Writes(IDENTITY));
    accepted(with_gas(&call_native(STATICCALL, None), PUSHES, 699), Writes(IDENTITY));
    accepted(run(&call_native(CALLCODE, Some(11))), Writes(IDENTITY));
}

#[test]
fn only_call_and_staticcall_touch_a_native_contract_that_runs() {
    refused(run(&call_native(CALL, Some(0))), Writes(IDENTITY));
    refused(run(&call_native(CALL, Some(1))), Reads(IDENTITY));
    refused(run(&call_native(STATICCALL, None)), Writes(IDENTITY));
    for program in
        [call_native(CALLCODE, Some(0)), call_native(CALLCODE, Some(1)), call_native(DELEGATECALL, None)]
    {
        accepted(run(&program), Writes(IDENTITY));
    }
}

#[test]
fn callcode_with_value_writes_its_own_account_and_reads_its_target() {
    let program = call(CALLCODE, Some(1), 0xc4);
    accepted(run(&program), Reads(STOPS));
    refused(run(&program), Writes(STOPS));
    refused(run(&program), Reads(PROGRAM));
    accepted(run(&call(CALLCODE, Some(0), 0xc4)), Reads(PROGRAM));
}

#[test]
fn calls_at_the_depth_limit_load_no_code() {
    for operation in
        [call(CALLCODE, Some(0), 0xe0), call(DELEGATECALL, None, 0xe0), call(STATICCALL, None, 0xe0)]
    {
        accepted(deep(DEEPEST, &at_depth(DEEPEST, &operation)), Writes(PLAIN));
        refused(deep(DEEPEST - 1, &at_depth(DEEPEST - 1, &operation)), Writes(PLAIN));
    }
    refused(deep(DEEPEST, &at_depth(DEEPEST, &call(CALL, Some(0), 0xe0))), Writes(PLAIN));
}

/// SELFDESTRUCT with this beneficiary.
fn destroy(beneficiary: u8) -> String {
    format!("73{}ff", format!("{beneficiary:02x}").repeat(20))
}

#[test]
fn selfdestruct_reads_the_beneficiary_for_the_price_even_if_unpaid() {
    refused(with_gas(&destroy(0xe0), 3, 4_999), Writes(PLAIN));
    refused(with_gas(&destroy(0xe1), 3, 29_999), Writes(ABSENT));
    accepted(with_gas(&destroy(0xe1), 3, 29_999), Reads(ABSENT));
    refused(with_gas("6004ff", 3, 4_999), Writes(IDENTITY));
}

#[test]
fn a_reverted_selfdestruct_writes_both_accounts() {
    refused(through(REVERTER, &destroy(0xe0)), Reads(PLAIN));
    refused(through(REVERTER, &destroy(0xe0)), Reads(PROGRAM));
    refused(run(&destroy(0xe0)), Reads(PLAIN));
}

#[test]
fn a_reverted_selfdestruct_to_itself_writes_the_account() {
    refused(through(REVERTER, "30ff"), Reads(PROGRAM));
    refused(through(CALLER, "30ff"), Reads(PROGRAM));
    // With a balance of zero, only the deletion writes.
    let chain = Lists::new(&[
        (PROGRAM, "30ff", 0),
        (REVERTER, "5f5f5f5f5f73c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c05af15f5ffd", 0),
        (READER, "5f353100", 0),
    ]);
    let read = chain.call(1, 0, READER, PROGRAM.into_word().as_slice());
    chain.execute(&[chain.call(0, 0, REVERTER, &[]), read.clone()], &[1, 2]).unwrap();
    conflict(&chain, &[chain.call(0, 0, PROGRAM, &[]), read], AccessKey::Account(PROGRAM));
}

/// A program that stores 1 in slot 0 if there is data, and otherwise runs the operation.
fn or_store(operation: &str) -> String {
    let dest = 4 + operation.len() / 2 + 1;
    format!("3660{dest:02x}57{operation}005b60015f5500")
}

/// The first transaction runs an operation with `left` gas after its pushes; the second one stores in slot 0.
fn with_store(operation: &str, pushes: u64, left: u64) -> Result<(), BlockError> {
    let program = or_store(operation);
    let chain = chain(&program);
    // CALLDATASIZE, PUSH1, JUMPI.
    let gas = BASE + 2 + 3 + 10 + pushes + left;
    let one = chain.send(0, 0, Some(PROGRAM), 0, gas, &[]);
    let two = chain.call(1, 0, PROGRAM, &[1]);
    let outcome = chain.execute(&[one.clone(), two.clone()], &[1, 2]).map(drop);
    let built = chain.build(&[one, two]);
    assert_eq!(built.edges.len(), if outcome.is_err() { 1 } else { 2 });
    chain.execute_built(&built).unwrap();
    outcome
}

fn slot_0() -> BlockError {
    BlockError::Conflict { lists: (0, 1), key: AccessKey::Cell(PROGRAM, U256::ZERO) }
}

#[test]
fn sstore_reads_its_cell_for_the_price_even_if_unpaid() {
    for left in [0, 4_999, 5_000, 19_999] {
        // Changing zero to one costs 20,000, keeping zero 5,000.
        assert_eq!(with_store("60015f55", 5, left), Err(slot_0()), "{left} gas");
    }
    assert_eq!(with_store("5f5f55", 4, 4_999), Err(slot_0()));
    // The stack is checked before the price.
    assert_eq!(with_store("5f55", 2, PLENTY), Ok(()));
}

#[test]
fn sload_reads_its_cell_once_it_is_paid() {
    assert_eq!(with_store("5f54", 2, 200), Err(slot_0()));
    assert_eq!(with_store("5f54", 2, 199), Ok(()));
    assert_eq!(with_store("600154", 3, PLENTY), Ok(()), "another cell");
    assert_eq!(with_store("5f5c", 2, PLENTY), Ok(()), "transient storage is not shared");
}

#[test]
fn a_static_frame_fails_before_the_price_is_read() {
    let inner = |operation: &str| {
        let program = or_store(operation);
        let call = "5f5f5f5f73c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c05afa00";
        let chain = Lists::new(&[(PROGRAM, &program, 10), (CALLER, call, 0), (PLAIN, "", 1)]);
        let one = chain.call(0, 0, CALLER, &[]);
        (chain.call(1, 0, PROGRAM, &[1]), chain.send(1, 0, Some(PLAIN), 1, BASE, &[]), one, chain)
    };
    let (store, _, one, chain) = inner("60015f55");
    chain.execute(&[one, store], &[1, 2]).unwrap();
    for operation in [destroy(0xe0), call(CALL, Some(1), 0xe0)] {
        let (_, send, one, chain) = inner(&operation);
        chain.execute(&[one, send], &[1, 2]).unwrap();
    }
}

#[test]
fn balance_and_code_instructions_read_the_account() {
    let plain = "73e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0";
    for operation in ["31", "3b", "3f"] {
        refused(run(&format!("{plain}{operation}")), Writes(PLAIN));
        accepted(run(&format!("{plain}{operation}")), Reads(PLAIN));
        // Unpaid instructions read nothing.
        accepted(with_gas(&format!("{plain}{operation}"), 3, 399), Writes(PLAIN));
    }
    refused(run(&format!("5f5f5f{plain}3c")), Writes(PLAIN));
    accepted(with_gas(&format!("5f5f5f{plain}3c"), 9, 699), Writes(PLAIN));
}

#[test]
fn extcodehash_of_a_native_contract_reads_nothing() {
    refused(run("60043b"), Writes(IDENTITY));
    refused(run("600431"), Writes(IDENTITY));
    refused(run("5f5f5f60043c"), Writes(IDENTITY));
    accepted(run("60043f"), Writes(IDENTITY));
}

#[test]
fn a_reverted_creation_writes_creator_and_created_account() {
    let created = PROGRAM.create(0);
    for outer in [PROGRAM, REVERTER] {
        refused(First { to: outer, ..run("5f5f5ff0") }, Reads(PROGRAM));
        refused(First { to: outer, ..run("5f5f5ff0") }, Reads(created));
    }
    // With a value above the balance nothing is created, and the address is not read.
    accepted(run("5f5f600bf0"), Reads(PROGRAM));
    accepted(run("5f5f600bf0"), Writes(created));
}

#[test]
fn a_creation_at_a_taken_address_reads_it() {
    let taken = PROGRAM.create2([0; 32], keccak256([]));
    let create2 = "5f5f5f5ff5";
    let chain = Lists::new(&[(PROGRAM, create2, 0), (taken, "00", 0)]);
    let create = chain.call(0, 0, PROGRAM, &[]);
    let send = chain.send(1, 0, Some(taken), 1, 100_000, &[]);
    assert!(World::new(chain.state.clone()).account(&taken).is_some());
    conflict(&chain, &[create, send], AccessKey::Account(taken));
    // The creation writes nothing at that address.
    let chain = Lists::new(&[(PROGRAM, create2, 0), (taken, "00", 0), (READER, "5f353100", 0)]);
    let read = chain.call(1, 0, READER, taken.into_word().as_slice());
    chain.execute(&[chain.call(0, 0, PROGRAM, &[]), read], &[1, 2]).unwrap();
}
