//! Tests of the tracers with small programs: reported frames, instructions, destructions and logs.

use crate::support;

use alloy_primitives::{Address, Bytes, U256};
use rootlight::consensus::Network;
use rootlight::evm::AccountValues;
use rootlight::exec::trace::{
    CallOptions, CallTrace, CallTracer, RunTracer, StepOptions, StepTrace, StepTracer, TraceAction,
    TraceBudget, Tracer,
};
use rootlight::exec::{
    BlockEnvironment, CallContext, CallMessage, CallOutcome, Executed, FrameKind, HaltReason, Inspector,
    RunLimits, call,
};
use rootlight::state::StateOverride;
use rootlight::types::{RawUint, Transaction};
use support::*;

const A: u64 = 0xa0;
const B: u64 = 0xb0;
const SENDER: u64 = 0x5e;
const GAS: u64 = 500_000;

const CALL: u8 = 0xf1;
const CALLCODE: u8 = 0xf2;
const DELEGATECALL: u8 = 0xf4;
const STATICCALL: u8 = 0xfa;
const CREATE: u8 = 0xf0;
const CREATE2: u8 = 0xf5;
const SELFDESTRUCT: u8 = 0xff;

fn push(bytes: &[u8]) -> Vec<u8> {
    let mut code = vec![0x5f + u8::try_from(bytes.len()).unwrap()];
    code.extend_from_slice(bytes);
    code
}

/// Calls B with 4 bytes of memory as input. `value` is used only if the opcode takes one.
fn call_b(opcode: u8, value: u8) -> Vec<u8> {
    let mut code = [push(&[0]), push(&[0]), push(&[4]), push(&[28])].concat();
    if opcode == CALL || opcode == CALLCODE {
        code.extend(push(&[value]));
    }
    code.extend(push(&[B as u8]));
    code.extend(push(&[0xff, 0xff]));
    code.extend([opcode, 0x50]);
    code
}

/// Creates a contract with this initialisation code.
fn create(opcode: u8, init: &[u8]) -> Vec<u8> {
    let mut code = push(init);
    code.extend(push(&[0]));
    code.push(0x52);
    if opcode == CREATE2 {
        code.extend(push(&[7]));
    }
    code.extend(push(&[u8::try_from(init.len()).unwrap()]));
    code.extend(push(&[32 - u8::try_from(init.len()).unwrap()]));
    code.extend(push(&[0]));
    code.extend([opcode, 0x50]);
    code
}

struct Case {
    state: MapState,
}

impl Case {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let mut state = MapState::default();
        for (address, code, balance) in [(A, a, 1_000), (B, b, 10), (SENDER, &[][..], 1_000_000)] {
            let account = MapAccount {
                balance: U256::from(balance),
                code: Bytes::copy_from_slice(code),
                contract: !code.is_empty(),
                ..MapAccount::default()
            };
            state.accounts.insert(low_address(address), account);
        }
        Self { state }
    }

    fn run(&self, inspector: &mut dyn Inspector) -> CallOutcome {
        let block = BlockEnvironment {
            number: 700,
            timestamp: 1_700_000_000,
            coinbase: Address::ZERO,
            difficulty: U256::from(1),
            gas_limit: U256::from(10_000_000),
            minimum_gas_price: U256::ZERO,
        };
        let hashes = MapHashes::default();
        let context = CallContext {
            state: &self.state,
            hashes: &hashes,
            block: &block,
            rules: Network::regtest().rules(700),
            chain_id: 33,
        };
        let message = CallMessage {
            from: Some(low_address(SENDER)),
            to: Some(low_address(A)),
            gas: Some(GAS),
            value: U256::from(5),
            data: Bytes::from_static(&[1, 2, 3]),
            ..CallMessage::default()
        };
        let limits = RunLimits::default();
        let overrides = StateOverride::default();
        call(&context, &message, &overrides, &limits, Some(inspector)).unwrap().into_outcome()
    }
}

fn transaction() -> Transaction {
    let mut transaction = Transaction::remasc(1);
    transaction.nonce = RawUint::from(0);
    transaction.gas_limit = RawUint::from(GAS);
    transaction.to = Some(low_address(A));
    transaction.value = U256::from(5);
    transaction.data = Bytes::from_static(&[1, 2, 3]);
    transaction
}

/// The transaction with this outcome.
fn executed<'a>(transaction: &'a Transaction, outcome: &CallOutcome) -> Executed<'a> {
    let (success, gas_used) = match outcome {
        CallOutcome::Success { gas_used, .. } => (true, *gas_used),
        CallOutcome::Revert { gas_used, .. } | CallOutcome::Halt { gas_used, .. } => (false, *gas_used),
    };
    let sender = low_address(SENDER);
    Executed { transaction, sender, success, gas_used, logs: &[], output: &[], failure: None }
}

/// Runs A as a transaction. `finish` takes the trace from the inspector.
fn traced<I: Inspector, T>(a: &[u8], b: &[u8], mut inspector: I, finish: fn(I, &Executed<'_>) -> T) -> T {
    let outcome = Case::new(a, b).run(&mut inspector);
    finish(inspector, &executed(&transaction(), &outcome))
}

fn calls(a: &[u8], b: &[u8]) -> CallTrace {
    traced(a, b, CallTracer::new(true), CallTracer::finish)
}

fn steps(a: &[u8], b: &[u8], options: StepOptions) -> StepTrace {
    traced(a, b, StepTracer::new(options), StepTracer::finish)
}

/// MSTORE of four bytes at the end of the first word, so that calls have input.
fn selector() -> Vec<u8> {
    [push(&[0xaa, 0xbb, 0xcc, 0xdd]), push(&[0]), vec![0x52]].concat()
}

#[test]
fn calls_of_each_kind() {
    let a =
        [selector(), call_b(CALL, 3), call_b(CALLCODE, 2), call_b(DELEGATECALL, 0), call_b(STATICCALL, 0)];
    // B returns CALLVALUE as a word.
    let b = [vec![0x34], push(&[0]), vec![0x52], push(&[32]), push(&[0]), vec![0xf3]].concat();
    let trace = calls(&a.concat(), &b);
    assert_eq!(trace.nodes.len(), 5);
    let (a, b) = (low_address(A), low_address(B));
    let root = trace.nodes[0].frame().unwrap();
    assert_eq!((root.from, root.to, root.gas), (low_address(SENDER), Some(a), GAS));
    assert_eq!((root.value, root.input.as_ref()), (U256::from(5), &[1, 2, 3][..]));
    let want = [
        (FrameKind::Call, b, 3_u64, 3_u8),
        (FrameKind::CallCode, a, 2, 2),
        (FrameKind::DelegateCall, a, 5, 5),
        (FrameKind::StaticCall, b, 0, 0),
    ];
    for (node, (kind, context, value, shown)) in trace.nodes[1..].iter().zip(want) {
        let start = node.frame().unwrap();
        assert_eq!((node.parent, start.depth, start.kind), (Some(0), 1, kind));
        assert_eq!((start.from, start.to, start.context), (a, Some(b), Some(context)), "{kind:?}");
        assert_eq!((start.value, start.input.as_ref()), (U256::from(value), &[0xaa, 0xbb, 0xcc, 0xdd][..]));
        let close = node.close.as_ref().unwrap();
        assert_eq!((close.failure, close.output.len(), close.output[31]), (None, 32, shown), "{kind:?}");
        assert!(close.gas_used > 0 && close.gas_used < start.gas);
    }
}

#[test]
fn logs_of_failed_calls_are_removed() {
    // B writes a log and fails.
    let log = [push(&[0]), push(&[0]), vec![0xa0]].concat();
    let a = [log.clone(), call_b(CALL, 0), log.clone()].concat();
    for (end, failure) in [(vec![0xfe], Some(HaltReason::InvalidOpcode)), (vec![0x5f, 0x5f, 0xfd], None)] {
        let trace = calls(&a, &[log.clone(), end].concat());
        let close = trace.nodes[1].close.as_ref().unwrap();
        assert_eq!(close.failure, Some(failure));
        assert!(close.output.is_empty());
        assert_eq!(close.gas_used == 0xffff, failure.is_some(), "a halt takes all gas");
        assert_eq!(trace.logs.iter().map(|log| log.node).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(trace.nodes[0].close.as_ref().unwrap().failure, None);
    }
    // A fails after B succeeded, so the logs of B are removed too.
    let trace = calls(&[call_b(CALL, 0), vec![0xfe]].concat(), &log);
    assert_eq!(trace.nodes[1].close.as_ref().unwrap().failure, None);
    assert!(trace.nodes[0].failed() && trace.logs.is_empty());
}

#[test]
fn creations_and_destructions() {
    // The new contract's code is one STOP.
    let init = [push(&[0]), push(&[0]), vec![0x53], push(&[1]), push(&[0]), vec![0xf3]].concat();
    let a = [create(CREATE, &init), create(CREATE2, &init), call_b(CALL, 0), create(CREATE, &[0xfe])];
    let b = [push(&[0xee]), vec![SELFDESTRUCT]].concat();
    let trace = calls(&a.concat(), &b);
    let kinds: Vec<_> = trace.nodes.iter().filter_map(|node| node.frame().map(|start| start.kind)).collect();
    assert_eq!(kinds[1..], [FrameKind::Create, FrameKind::Create2, FrameKind::Call, FrameKind::Create]);
    let close = |index: usize| trace.nodes[index].close.as_ref().unwrap();
    assert_eq!(close(1).created, Some(low_address(A).create(0)));
    assert_eq!(close(1).output.as_ref(), [0]);
    assert_eq!(close(2).created, Some(low_address(A).create2_from_code(U256::from(7).to_be_bytes(), &init)));
    // The creation gets all gas and uses it up, so the transaction fails too.
    assert_eq!(close(5).failure, Some(Some(HaltReason::InvalidOpcode)));
    assert_eq!(close(0).failure, Some(Some(HaltReason::OutOfGas)));
    let destruction = &trace.nodes[4];
    assert_eq!(destruction.parent, Some(3));
    assert_eq!(
        destruction.action,
        TraceAction::Destruction {
            contract: low_address(B),
            beneficiary: low_address(0xee),
            balance: U256::from(10)
        }
    );
    assert_eq!(trace.children(0).collect::<Vec<_>>(), [1, 2, 3, 5]);
}

#[test]
fn a_call_above_the_balance_opens_no_frame() {
    let trace = calls(
        &[
            push(&[0]),
            push(&[0]),
            push(&[0]),
            push(&[0]),
            push(&[0xff, 0xff]),
            push(&[B as u8]),
            push(&[9]),
            vec![CALL],
        ]
        .concat(),
        &[0],
    );
    assert_eq!(trace.nodes.len(), 1);
}

#[test]
fn gas_and_storage_of_instructions_are_consistent() {
    let a = [push(&[9]), push(&[1]), vec![0x55], push(&[1]), vec![0x54, 0x50], call_b(CALL, 0)].concat();
    let trace = steps(&a, &[0x34, 0x50], StepOptions::default());
    assert_eq!(trace.contract, Some(low_address(A)));
    let (outer, inner): (Vec<_>, Vec<_>) = trace.steps.iter().partition(|step| step.depth == 0);
    assert_eq!(inner.iter().map(|step| (step.pc, step.opcode)).collect::<Vec<_>>(), [(0, 0x34), (1, 0x50)]);
    // The implicit STOP after the last byte is not shown.
    assert_eq!(outer.last().unwrap().opcode, 0x50);
    // The gas left after an instruction equals the gas before the next one, except around the call.
    for pair in outer.windows(2).filter(|pair| pair[0].opcode != CALL) {
        assert_eq!(pair[0].gas - pair[0].gas_cost, pair[1].gas, "{pair:?}");
    }
    let call = outer.iter().find(|step| step.opcode == CALL).unwrap();
    assert_eq!(call.gas_cost, 700 + 3 + 0xffff, "including memory and the forwarded gas");
    assert_eq!(inner[0].gas, 0xffff);
    // A slot is shown from the instruction after its access on.
    let at = |opcode: u8| outer.iter().position(|step| step.opcode == opcode).unwrap();
    assert!(outer[at(0x55)].storage.is_empty());
    assert_eq!(outer[at(0x55) + 1].storage.get(&U256::from(1)), Some(&U256::from(9)));
    assert_eq!(trace.last_storage.get(&U256::from(1)), Some(&U256::from(9)));
    assert_eq!(outer[at(0x55)].stack, [U256::from(9), U256::from(1)]);
    assert!(inner[0].memory.is_empty());
}

#[test]
fn disabled_parts_are_left_out() {
    let options = StepOptions {
        disable_storage: true,
        disable_memory: true,
        disable_stack: true,
        ..StepOptions::default()
    };
    let a = [push(&[9]), push(&[1]), vec![0x55], selector()].concat();
    let trace = steps(&a, &[], options);
    assert_eq!(trace.steps.len(), 6);
    assert!(trace.steps.iter().all(|s| s.storage.is_empty() && s.memory.is_empty() && s.stack.is_empty()));
    assert_eq!(trace.last_storage.len(), 1);
}

#[test]
fn a_failing_instruction_costs_nothing_in_the_trace() {
    let trace = steps(&[0x50], &[], StepOptions::default());
    assert_eq!((trace.steps.len(), trace.steps[0].gas_cost), (1, 0));
    assert_eq!(trace.failure, Some(Some(HaltReason::StackUnderflow)));
}

#[test]
fn a_trace_above_the_limit_is_reported_as_exceeded() {
    // JUMPDEST, PUSH0, JUMP: loops until the gas is gone.
    let a = [0x5b, 0x5f, 0x56];
    let case = Case::new(&a, &[]);
    let mut tracer = StepTracer::new(StepOptions::default());
    tracer.budget = TraceBudget::new(10_000);
    case.run(&mut tracer);
    assert!(tracer.budget.exceeded());
    let mut tracer = CallTracer::new(false);
    tracer.budget = TraceBudget::new(10);
    case.run(&mut tracer);
    assert!(tracer.budget.exceeded());
}

#[test]
fn inspectors_do_not_change_the_result() {
    let a =
        [selector(), call_b(CALL, 3), call_b(DELEGATECALL, 0), create(CREATE, &[0x5f, 0x5f, 0xfd])].concat();
    let case = Case::new(&a, &[0x5a, 0x5f, 0x55]);
    struct Nobody;
    impl Inspector for Nobody {}
    let plain = case.run(&mut Nobody);
    let (mut with_calls, mut with_steps) = (CallTracer::new(true), StepTracer::default());
    assert_eq!(case.run(&mut with_calls), plain);
    assert_eq!(case.run(&mut with_steps), plain);
}

#[test]
fn a_local_call_reports_the_accounts_that_it_uses() {
    // A stores 9 in slot 1 and pays B; B stores in its slot 0 and reverts if it is called without value.
    let a = [push(&[9]), push(&[1]), vec![0x55], call_b(CALL, 3), call_b(CALL, 0)].concat();
    let b =
        [vec![0x5a], push(&[0]), vec![0x55, 0x34], push(&[11]), vec![0x57, 0x5f, 0x5f, 0xfd, 0x5b]].concat();
    let tracer = Tracer { state: true, ..Tracer::default() };
    let running = RunTracer::new(&tracer, TraceBudget::default());
    let trace = traced(&a, &b, running, |running, executed| {
        running.finish((0, 0), executed, &mut TraceBudget::default())
    });
    let state = trace.state.unwrap();
    let balances = |address: u64| {
        let account = &state[&low_address(address)];
        let balance = |values: &Option<_>| values.as_ref().map(|values: &AccountValues| values.balance);
        (balance(&account.before), balance(&account.after))
    };
    let known = |balance: u64| Some(U256::from(balance));
    assert_eq!(balances(A), (known(1_000), known(1_002)));
    assert_eq!(balances(B), (known(10), known(13)));
    assert_eq!(balances(SENDER), (known(1_000_000), known(999_995)));
    let contract = &state[&low_address(A)];
    assert_eq!(contract.before.as_ref().unwrap().code, a);
    assert_eq!(contract.cells[&U256::from(1)], (Bytes::new(), Bytes::from_static(&[9])));
    assert!(
        !state[&low_address(B)].cells[&U256::ZERO].1.is_empty(),
        "the first call's, not the reverted one's"
    );
}

#[test]
fn a_tracer_of_the_outermost_call_keeps_its_own_logs_alone() {
    // LOG0 in A before and after the call of B, which writes a log and destroys itself.
    let log = [push(&[0]), push(&[0]), vec![0xa0]].concat();
    let a = [log.clone(), call_b(CALL, 0), log.clone()].concat();
    let b = [log, vec![0x33, SELFDESTRUCT]].concat();
    let tracer = Tracer { calls: Some(CallOptions { with_logs: true, only_top: true }), ..Tracer::default() };
    let trace = traced(&a, &b, RunTracer::new(&tracer, TraceBudget::default()), |running, executed| {
        running.finish((0, 0), executed, &mut TraceBudget::default())
    });
    let calls = trace.calls.unwrap();
    assert_eq!((calls.nodes.len(), calls.logs.len()), (1, 2));
    assert!(calls.logs.iter().all(|log| log.node == 0 && log.log.address == low_address(A)));
}

#[test]
fn tracers_in_one_run_share_its_space() {
    let a = [call_b(CALL, 0), call_b(CALL, 0)].concat();
    let tracer = |state| Tracer { state, ..Tracer::CALLS };
    let exceeded = |tracer: Tracer, bytes: usize| {
        let mut budget = TraceBudget::new(bytes);
        let mut running = RunTracer::new(&tracer, budget);
        let outcome = Case::new(&a, &[0x00]).run(&mut running);
        running.finish((0, 0), &executed(&transaction(), &outcome), &mut budget);
        budget.exceeded()
    };
    assert!(!exceeded(tracer(false), 2_000) && exceeded(tracer(false), 1_700));
    assert!(exceeded(tracer(true), 2_000) && !exceeded(tracer(true), 4_000));
}
