//! `eth_getStorageValues`: cells of several contracts in one answer, for tools that would make a call for each.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use alloy_primitives::{Address, U256, hex};

use super::{
    entries::Entries,
    error::ParamError,
    lookup::require,
    method::{AT_BLOCK, Failure, HandlerResult, Method, ParamSubject, required, verified},
    params::{MAX_PROOF_KEYS, Params, parse_address, parse_number},
    state::word,
};
use crate::{
    engine::{Stop, View},
    state::{Fact, Facts, StateError},
    types::BlockRef,
};

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_getStorageValues",
    &[required("cells", "CELLS").of(ParamSubject::Cells), AT_BLOCK],
    "map of ADDRESS to array of DATA, 32 bytes",
    "Storage cells of several contracts: an object has a list of slots for each address, at most 1,024 in all.",
    storage_values,
)
.costs(30)];

/// Most bytes of the first parameter in JSON: twice those of [`MAX_PROOF_KEYS`] contracts with one slot each, some 120 bytes. The limit
/// bounds memory before the parameter is parsed.
const MAX_CELLS_JSON: usize = 256 << 10;

/// The requested slots, by contract.
fn cells(params: Params<'_>) -> Result<BTreeMap<Address, Vec<U256>>, ParamError> {
    let expected = "a map of addresses to slots, at most 1,024 in all";
    if params.length(0) > MAX_CELLS_JSON {
        return Err(ParamError::Type { position: 0, expected });
    }
    let given: Option<Entries<Vec<String>>> = params.object(0, expected)?;
    let given = given.ok_or(ParamError::Type { position: 0, expected })?;
    // A contract without slots counts as one cell, so that the number of contracts is limited too.
    let count = given.0.iter().fold(0_usize, |sum, (_, slots)| sum.saturating_add(slots.len().max(1)));
    if count > MAX_PROOF_KEYS {
        return Err(ParamError::TooManyKeys { given: count, max: MAX_PROOF_KEYS });
    }
    let mut cells = BTreeMap::<Address, Vec<U256>>::new();
    for (address, slots) in &given.0 {
        let parsed = cells.entry(parse_address(address)?).or_default();
        for slot in slots {
            parsed.push(parse_number(slot)?);
        }
    }
    Ok(cells)
}

/// The contracts whose cells a call reads; `None` if its handler refuses the parameter.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn contracts(params: Params<'_>) -> Option<Vec<Address>> {
    Some(cells(params).ok()?.into_keys().collect())
}

fn storage_values(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let cells = cells(params)?;
    let header = require(view, &params.block(1)?)?;
    let (state, block) = (view.state(&header)?, BlockRef { number: header.number, hash: header.hash() });
    let (mut values, mut missing) = (BTreeMap::new(), Facts::new());
    for (address, slots) in &cells {
        let contract_values: &mut Vec<String> = values.entry(format!("{address:#x}")).or_default();
        for slot in slots {
            match state.storage(address, slot) {
                Ok(value) => contract_values.push(hex::encode_prefixed(word(&value))),
                // The loop goes on after a missing value, so that one round fetches all of them.
                Err(StateError::Missing(key)) => drop(missing.insert(Fact::State(block, key))),
                Err(corrupt) => return Err(super::lookup::state_failure(&header, corrupt)),
            }
        }
    }
    if !missing.is_empty() {
        return Err(Failure::Stop(Stop::Missing(missing)));
    }
    verified(&values)
}
