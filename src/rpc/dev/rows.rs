//! The forms of the rows of development methods, and helpers that read their parameters and write their results.

use alloc::{string::String, vec::Vec};

use alloy_primitives::{Address, U256, hex};
use serde_json::value::RawValue;

use crate::rpc::{
    error::{ParamError, RpcError},
    method::{
        BRIEF_COST, Handler, HandlerResult, Method, PageAccess, Param, ParamSubject, Read, Write, done,
        required,
    },
    params::{Params, parse_number},
};
use crate::{
    dev::DevChain,
    engine::{Level, LocalNode},
    types::json::Quantity,
};

/// A transaction object.
pub(super) const TRANSACTION: Param = required("transaction", "TRANSACTION").of(ParamSubject::Transaction);

/// The row of a method that uses the node's keys or changes the chain. Web pages of other origins may not call such a method.
/// `names` are its name, and its other names.
pub(super) const fn write(
    names: (&'static str, &'static [&'static str]),
    params: &'static [Param],
    result: &'static str,
    doc: &'static str,
    handler: Write,
) -> Method {
    let row = Method::new(names.0, params, result, doc, Handler::Write(handler)).also(names.1);
    row.at(Level::Local).costs(100).pages(PageAccess::Own)
}

/// The same row for a brief method, which adds one transaction and mines at most one block, unless an optional parameter
/// demands more.
pub(super) const fn brief(row: Method) -> Method {
    Method { cost: BRIEF_COST, ..row }
}

/// Replaces a result by `null`: anvil answers `null` where hardhat's method of the same effect answers a boolean.
pub(super) fn unit(output: HandlerResult) -> HandlerResult {
    output.and_then(|_| done(&(), Level::Local))
}

/// The row of a method that only reads.
pub(super) const fn read(
    name: &'static str,
    params: &'static [Param],
    result: &'static str,
    doc: &'static str,
    handler: Read,
) -> Method {
    Method::local(name, params, result, doc, handler).costs(5)
}

/// The development chain; an error if the node follows another chain.
pub(super) fn chain(node: &mut dyn LocalNode) -> Result<&mut DevChain, RpcError> {
    node.dev().ok_or(RpcError::NeedsDevChain)
}

/// The development chain, and the host's time in seconds since 1970.
pub(super) fn chain_at(node: &mut dyn LocalNode) -> Result<(&mut DevChain, u64), RpcError> {
    let now = node.now();
    Ok((chain(node)?, now))
}

/// Converts the host's time to milliseconds since 1970, the unit of the wallet.
pub(super) fn milliseconds(now: u64) -> u64 {
    now.saturating_mul(1000)
}

/// An address in lower-case hex with `0x`.
pub(super) fn address(address: &Address) -> String {
    hex::encode_prefixed(address)
}

pub(super) fn addresses(all: &[Address]) -> Vec<String> {
    all.iter().map(address).collect()
}

pub(super) fn quantity(number: u64) -> Quantity {
    Quantity::from(number)
}

/// Parses a number given as a string or as a JSON number; tools use both.
pub(super) fn number(raw: &RawValue) -> Result<U256, ParamError> {
    let text: String = serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into());
    parse_number(&text)
}

/// The parameter at a position as a number of at most 64 bits.
pub(super) fn u64_param(params: Params<'_>, position: usize) -> Result<u64, ParamError> {
    let number = params.number(position)?;
    u64::try_from(number).map_err(|_| ParamError::Number(alloc::format!("{number}")))
}

/// As [`u64_param`]; `None` if the parameter is missing or null.
pub(super) fn optional_u64_param(params: Params<'_>, position: usize) -> Result<Option<u64>, ParamError> {
    if params.is_given(position) {
        return u64_param(params, position).map(Some);
    }
    Ok(None)
}
