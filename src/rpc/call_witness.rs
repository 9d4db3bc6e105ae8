//! The witness of traced calls, which is the trie nodes that they read. A light client requests the witness of a simulation
//! (`eth_simulateV1`) of the same calls instead, because `rootlight_getWitness` takes one call or a simulation only.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::method::{Method, ParamSubject};

/// The state overrides among the options of traced calls.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CallOptionsObject<'a> {
    #[serde(borrow, default)]
    state_overrides: Option<&'a RawValue>,
}

/// The calls of a bundle.
#[derive(Deserialize)]
struct BundleObject<'a> {
    #[serde(borrow)]
    transactions: Vec<&'a RawValue>,
}

/// The parameter of a simulation that reads the same state as the calls of a request, given the method and the parameters of
/// the request. `None` for a signed transaction, and for a parameter that does not parse as a list of calls.
pub(super) fn as_simulation(method: &Method, values: &[Box<RawValue>]) -> Option<String> {
    let (mut calls, mut overrides) = (Vec::new(), "null");
    for (param, value) in method.params.iter().zip(values) {
        let text = value.get();
        match param.subject {
            ParamSubject::Simulation => return Some(text.into()),
            ParamSubject::Signed => return None,
            ParamSubject::Call => calls = vec![text],
            ParamSubject::Bundles => {
                let bundles: Vec<BundleObject<'_>> = serde_json::from_str(text).ok()?;
                calls =
                    bundles.iter().flat_map(|bundle| &bundle.transactions).map(|call| call.get()).collect();
            }
            ParamSubject::TracedCalls => {
                // Each call is followed by the kinds of its traces.
                let traced: Vec<(&RawValue, &RawValue)> = serde_json::from_str(text).ok()?;
                calls = traced.iter().map(|(call, _)| call.get()).collect();
            }
            ParamSubject::Overrides => overrides = text,
            ParamSubject::CallOptions => {
                // The handler refuses a call whose options do not parse, so that its witness has no use.
                let options: CallOptionsObject<'_> = serde_json::from_str(text).unwrap_or_default();
                overrides = options.state_overrides.map_or("null", RawValue::get);
            }
            // The block is a parameter of its own in the request for the witness; other parameters select what traces show.
            _ => {}
        }
    }
    Some(format!(r#"{{"blockStateCalls":[{{"calls":[{}],"stateOverrides":{overrides}}}]}}"#, calls.join(",")))
}
