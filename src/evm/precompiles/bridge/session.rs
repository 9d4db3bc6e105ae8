//! One call of the Bridge: price, permission, method, and the cells it writes.

use alloc::vec::Vec;

use alloy_primitives::{keccak256, Address, Bytes, U256};

use super::super::abi::{decode, Arg};
use super::super::{cell_slot, CallType, Precompile};
use super::constants::Constants;
use super::methods::{Action, Method, CONFIRMATIONS, RECEIVE_HEADERS, RELEASE_BTC};
use super::payees::is_free;
use super::{store, Carried, NativeCall, NativeHost, Refusal};
use crate::consensus::Rule;

/// Price in gas of data that call no method.
const INVALID: u64 = 23_000;

/// The result of a method; `None` if the method returns nothing.
pub(super) type Done = Result<Option<Bytes>, Refusal>;

/// A running call.
pub(super) struct Bridge<'b> {
    pub(super) call: &'b NativeCall<'b>,
    pub(super) host: &'b mut dyn NativeHost,
    pub(super) constants: &'static Constants,
    /// Cells to be written when the method has succeeded; the reference node keeps them in caches. A call
    /// writes few cells, so a list is sufficient.
    saved: Carried,
}

impl<'b> Bridge<'b> {
    fn new(call: &'b NativeCall<'b>, host: &'b mut dyn NativeHost) -> Self {
        let constants = Constants::of(call.chain_id);
        Self { call, host, constants, saved: Carried::new() }
    }

    /// Whether a rule is active.
    pub(super) fn has(&self, rule: Rule) -> bool {
        self.call.rules.has(rule)
    }

    /// Address of the Bridge.
    pub(super) fn own() -> Address {
        Precompile::Bridge.address()
    }

    /// Bytes of a cell, including changes of this call.
    pub(super) fn read(&mut self, slot: U256) -> Bytes {
        match self.saved.iter().find(|(saved, _)| *saved == slot) {
            Some((_, bytes)) => bytes.clone(),
            None => self.stored(slot),
        }
    }

    /// Bytes of a cell, without the changes that this call has not written yet.
    pub(super) fn stored(&mut self, slot: U256) -> Bytes {
        self.host.cell(Self::own(), slot)
    }

    /// Bytes of the cell with a plain name.
    pub(super) fn named(&mut self, name: &str) -> Bytes {
        self.read(cell_slot(name))
    }

    /// Bytes of the cell with a hashed name.
    pub(super) fn hashed(&mut self, name: &str) -> Bytes {
        self.read(hashed_slot(name))
    }

    /// Sets a cell, which is written at the end; empty bytes remove it.
    pub(super) fn save(&mut self, slot: U256, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        match self.saved.iter_mut().find(|(saved, _)| *saved == slot) {
            Some((_, old)) => *old = bytes,
            None => self.saved.push((slot, bytes)),
        }
    }

    /// Sets a cell with a plain name, which is written at the end.
    pub(super) fn save_named(&mut self, name: &str, bytes: impl Into<Bytes>) {
        self.save(cell_slot(name), bytes);
    }

    /// Writes a cell at once. The change is kept even if the method fails.
    pub(super) fn write_now(&mut self, slot: U256, bytes: impl Into<Bytes>) {
        self.host.set_cell(Self::own(), slot, bytes.into());
    }

    fn write_saved(self) {
        for (slot, bytes) in self.saved {
            self.host.set_cell(Self::own(), slot, bytes);
        }
    }
}

/// Slot of a cell whose name is hashed.
pub(super) fn hashed_slot(name: &str) -> U256 {
    keccak256(name.as_bytes()).into()
}

/// Parses the method that the data call, and its arguments.
fn parse<'d>(call: &NativeCall<'d>) -> Option<(&'static Method, Vec<Arg<'d>>)> {
    let (selector, rest) = match call.input.split_first_chunk::<4>() {
        Some((selector, rest)) => (*selector, rest),
        None if call.input.is_empty() => (RELEASE_BTC, call.input),
        None => return None,
    };
    let method = Method::find(selector, call.rules)?;
    Some((method, decode(rest, method.arguments)?))
}

/// Price in gas: that of the method, and 2 per byte of data. Some prices need the Bitcoin store, which the
/// first use initialises.
pub(in super::super) fn price(
    call: &NativeCall<'_>,
    host: &mut dyn NativeHost,
) -> Result<(u64, Carried), Refusal> {
    if is_free(call) {
        return Ok((0, Carried::new()));
    }
    let Some((method, args)) = parse(call) else { return Ok((INVALID, Carried::new())) };
    let mut bridge = Bridge::new(call, host);
    let cost = match method.selector {
        RECEIVE_HEADERS => headers_cost(&bridge, args.first().map_or(0, |list| list.list().len())),
        CONFIRMATIONS => store::confirmations_cost(&mut bridge, &args)?,
        _ => u64::from(method.cost),
    };
    let data = (call.input.len() as u64).saturating_mul(2);
    Ok((cost.saturating_add(data), bridge.saved))
}

fn headers_cost(bridge: &Bridge<'_>, headers: usize) -> u64 {
    let more = (headers as u64).saturating_sub(1);
    match (bridge.has(Rule::Rskip124), bridge.has(Rule::Rskip132)) {
        (false, _) => 22_000,
        (true, false) => more.saturating_mul(1_650).saturating_add(66_000),
        (true, true) => more.saturating_mul(3_500).saturating_add(25_000),
    }
}

/// Runs a call. `carried` holds the cells that computing the price changed.
pub(in super::super) fn run(
    call: &NativeCall<'_>,
    host: &mut dyn NativeHost,
    carried: Carried,
) -> Result<Bytes, Refusal> {
    let (method, args) = parse(call).ok_or(Refusal::Failed)?;
    if !permitted(call, method) {
        return Err(Refusal::Failed);
    }
    let mut bridge = Bridge::new(call, host);
    bridge.saved = carried;
    let result = match method.action {
        Action::Run(run) => run(&mut bridge, &args)?,
        Action::Of(which, run) => run(&mut bridge, which, &args)?,
        Action::Missing => return Err(Refusal::NotSimulated(method.name)),
    };
    // Before RSKIP-417, a method without result returned null in the reference node instead of an empty
    // array.
    let nothing = result.is_none() && !bridge.has(Rule::Rskip417);
    bridge.write_saved();
    if nothing {
        return Err(Refusal::Nothing);
    }
    Ok(result.unwrap_or_default())
}

/// Whether the method accepts this call. RSKIP-88: some methods are reserved for local calls. RSKIP-417: the
/// call must be a CALL, or a STATICCALL of a method that only reads.
fn permitted(call: &NativeCall<'_>, method: &Method) -> bool {
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
