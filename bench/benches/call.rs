//! `balanceOf` of a recorded ERC-20 token on the state of a local chain and on proven state, against the same
//! bytecode in plain revm on a hash map.

use alloy_primitives::{Address, Bytes};
use criterion::{Criterion, criterion_group};
use revm::context::TxEnv;
use revm::database::{InMemoryDB, WrapDatabaseRef};
use revm::primitives::TxKind;
use revm::state::{AccountInfo, Bytecode};
use revm::{Context, ExecuteEvm as _, MainBuilder as _, MainContext as _};
use rootlight::exec::CallMessage;
use rootlight::state::{StateKey, StateReader as _};
use rootlight_bench::proven::ProvenCall;
use rootlight_bench::ratio::{Ratio, only_ratios, seconds};
use rootlight_bench::state::{ACCOUNTS, TOKEN, state as local_state};

/// Calls that are timed together.
const BATCH: usize = 200;

/// Copies the token's code and the slots that the call reads into revm's own map.
fn plain(proven: &ProvenCall, facts: &[StateKey]) -> InMemoryDB {
    let state = proven.state();
    let token: Address = TOKEN.parse().expect("an address");
    let code = Bytecode::new_raw(state.code(&token).expect("proven"));
    let mut db = InMemoryDB::default();
    db.insert_account_info(token, AccountInfo::default().with_code(code));
    for fact in facts {
        if let StateKey::Storage(address, slot) = fact {
            let word = state.storage_word(address, slot).expect("proven");
            db.insert_account_storage(*address, *slot, word).expect("a map");
        }
    }
    db
}

/// Runs the call on the map, in a new EVM for each call, as Rootlight does too.
fn plain_balance(db: &InMemoryDB, message: &CallMessage) -> Bytes {
    let mut evm = Context::mainnet().with_db(WrapDatabaseRef(db)).build_mainnet();
    let tx = TxEnv {
        kind: TxKind::Call(message.to.expect("a call")),
        data: message.data.clone(),
        gas_limit: 10_000_000,
        ..TxEnv::default()
    };
    evm.transact(tx).expect("it runs").result.into_output().expect("it returns")
}

fn balance_of(c: &mut Criterion) {
    let Some((proven, facts)) = ProvenCall::load() else { return };
    let db = plain(&proven, &facts);
    c.bench_function("balanceOf, revm on a hash map", |b| b.iter(|| plain_balance(&db, &proven.message)));
    if let Some(state) = local_state(ACCOUNTS) {
        c.bench_function("balanceOf, state of a local chain", |b| b.iter(|| proven.balance_on(&state)));
    }
    c.bench_function("balanceOf, proven state", |b| b.iter(|| proven.balance()));
}

criterion_group!(benches, balance_of);

fn main() {
    if !only_ratios() {
        benches();
    }
    let Some((proven, facts)) = ProvenCall::load() else { return };
    let db = plain(&proven, &facts);
    assert_eq!(proven.balance(), plain_balance(&db, &proven.message));
    let repeat = |run: &dyn Fn() -> Bytes| (0..BATCH).fold(0, |sum, _| sum + run().len());
    let against = |run: &dyn Fn() -> Bytes| {
        Ratio::measure(&seconds, 40, || repeat(&|| plain_balance(&db, &proven.message)), || repeat(run))
    };
    if let Some(state) = local_state(ACCOUNTS) {
        assert_eq!(proven.balance_on(&state), proven.balance());
        let ratio = against(&|| proven.balance_on(&state));
        println!("balanceOf on a local chain's state to plain revm on a hash map: {ratio}");
    }
    println!("balanceOf on proven state to plain revm on a hash map: {}", against(&|| proven.balance()));
}
