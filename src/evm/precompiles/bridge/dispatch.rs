//! Calls of the Bridge: finds the method in the table of `methods.rs`, computes its price and runs it.

use alloc::vec::Vec;

use alloy_primitives::Bytes;

use super::super::CallType;
use super::super::abi::{Arg, decode};
use super::methods::{BridgeMethod, CONFIRMATIONS, MethodBody, RECEIVE_HEADERS, RELEASE_BTC};
use super::payees::is_free;
use super::session::{Bridge, SavedCells};
use super::{NativeCall, NativeFailure, NativeHost, store};
use crate::consensus::Rule;

/// Price in gas of call data that name no method or do not decode, whatever their length. The call then fails.
const INVALID: u64 = 23_000;

/// The method that the call data name, and its arguments. A call with empty data is one of `releaseBtc()`.
fn parse<'d>(call: &NativeCall<'d>) -> Option<(&'static BridgeMethod, Vec<Arg<'d>>)> {
    let (selector, rest) = match call.input.split_first_chunk::<4>() {
        Some((selector, rest)) => (*selector, rest),
        None if call.input.is_empty() => (RELEASE_BTC, call.input),
        None => return None,
    };
    let method = BridgeMethod::find(selector, call.rules)?;
    Some((method, decode(rest, method.arguments)?))
}

/// Price in gas: that of the method, and 2 per byte of data; 0 for a free call ([`is_free`]). Some prices need the Bitcoin headers in the
/// Bridge's cells (`store.rs`). Their first use fills the empty store with its first header. The cells that are to be written with the
/// result are returned for [`run`].
pub(in super::super) fn price(
    call: &NativeCall<'_>,
    host: &mut dyn NativeHost,
) -> Result<(u64, SavedCells), NativeFailure> {
    if is_free(call) {
        return Ok((0, SavedCells::new()));
    }
    let Some((method, args)) = parse(call) else { return Ok((INVALID, SavedCells::new())) };
    let mut bridge = Bridge::new(call, host);
    let cost = match method.selector {
        RECEIVE_HEADERS => headers_cost(&bridge, args.first().map_or(0, |list| list.list().len())),
        CONFIRMATIONS => store::confirmations_cost(&mut bridge, &args)?,
        _ => u64::from(method.cost),
    };
    let data = (call.input.len() as u64).saturating_mul(2);
    Ok((cost.saturating_add(data), bridge.saved))
}

/// The price of `receiveHeaders` with this number of headers.
fn headers_cost(bridge: &Bridge<'_>, headers: usize) -> u64 {
    let more = (headers as u64).saturating_sub(1);
    match (bridge.has(Rule::Rskip124), bridge.has(Rule::Rskip132)) {
        (false, _) => 22_000,
        (true, false) => more.saturating_mul(1_650).saturating_add(66_000),
        (true, true) => more.saturating_mul(3_500).saturating_add(25_000),
    }
}

/// Runs a call. `carried` are the cells that [`price`] has changed.
pub(in super::super) fn run(
    call: &NativeCall<'_>,
    host: &mut dyn NativeHost,
    carried: SavedCells,
) -> Result<Bytes, NativeFailure> {
    let (method, args) = parse(call).ok_or(NativeFailure::Failed)?;
    if !permitted(call, method) {
        return Err(NativeFailure::Failed);
    }
    let mut bridge = Bridge::new(call, host);
    bridge.saved = carried;
    let result = match method.action {
        MethodBody::Run(run) => run(&mut bridge, &args)?,
        MethodBody::Of(which, run) => run(&mut bridge, which, &args)?,
        MethodBody::Missing => return Err(NativeFailure::NotSimulated(method.name)),
    };
    // Before RSKIP-417, a method without result returned null in the reference node instead of an empty array. The caller of this
    // function decides whether `Nothing` is a success, so the cells are written; a frame that fails reverts them.
    let nothing = result.is_none() && !bridge.has(Rule::Rskip417);
    bridge.write_saved();
    if nothing {
        return Err(NativeFailure::Nothing);
    }
    Ok(result.unwrap_or_default())
}

/// Whether the method accepts this call. Some methods (`method.is_local`) are reserved for local calls (RSKIP-88), of which only those at
/// call depth 0 and 1 can use them (`call.is_local`). The call must be a CALL, or a STATICCALL of a method that only reads (RSKIP-417).
fn permitted(call: &NativeCall<'_>, method: &BridgeMethod) -> bool {
    if call.rules.has(Rule::Rskip88) && !call.is_local() && method.is_local(call.rules) {
        return false;
    }
    match call.kind {
        _ if !call.rules.has(Rule::Rskip417) => true,
        CallType::Call => true,
        CallType::StaticCall => method.reads,
        CallType::CallCode | CallType::DelegateCall => false,
    }
}
