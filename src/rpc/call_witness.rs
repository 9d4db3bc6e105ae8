//! The witness of traced calls: what a simulation of the same calls reads.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::method::{Method, ParamSubject};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Options<'a> {
    #[serde(borrow, default)]
    state_overrides: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Bundle<'a> {
    #[serde(borrow)]
    transactions: Vec<&'a RawValue>,
}

/// The parameter of a simulation that reads what the calls of a request read; `None` for a transaction that is signed, and
/// for a parameter that is no list of calls.
pub(super) fn as_simulation(method: &Method, values: &[Box<RawValue>]) -> Option<String> {
    let (mut calls, mut overrides) = (Vec::new(), "null");
    for (param, value) in method.params.iter().zip(values) {
        let text = value.get();
        match param.subject {
            ParamSubject::Simulation => return Some(text.into()),
            ParamSubject::Signed => return None,
            ParamSubject::Call => calls = vec![text],
            ParamSubject::Bundles => {
                let bundles: Vec<Bundle<'_>> = serde_json::from_str(text).ok()?;
                calls =
                    bundles.iter().flat_map(|bundle| &bundle.transactions).map(|call| call.get()).collect();
            }
            ParamSubject::TracedCalls => {
                let traced: Vec<(&RawValue, &RawValue)> = serde_json::from_str(text).ok()?;
                calls = traced.iter().map(|(call, _)| call.get()).collect();
            }
            ParamSubject::Overrides => overrides = text,
            ParamSubject::CallOptions => {
                let options: Options<'_> = serde_json::from_str(text).unwrap_or_default();
                overrides = options.state_overrides.map_or("null", RawValue::get);
            }
            _ => {}
        }
    }
    Some(format!(r#"{{"blockStateCalls":[{{"calls":[{}],"stateOverrides":{overrides}}}]}}"#, calls.join(",")))
}
