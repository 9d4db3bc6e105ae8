//! The witness of traced calls: what a simulation of the same calls reads.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

/// The parameter of a simulation that reads what the calls of a request read; `None` for a transaction that is signed, and
/// for what is no list of calls.
pub(super) fn as_simulation(method: &str, values: &[Box<RawValue>]) -> Option<String> {
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
    let text = |position: usize| values.get(position).map_or("null", |value| value.get());
    let options: Options<'_> = serde_json::from_str(text(2)).unwrap_or_default();
    let overrides = options.state_overrides.map_or("null", RawValue::get);
    let (calls, overrides): (Vec<&str>, &str) = match method {
        "eth_simulateV1" => return Some(text(0).into()),
        "debug_traceCall" => (vec![text(0)], overrides),
        "trace_call" => (vec![text(0)], text(3)),
        "debug_traceCallMany" => {
            let bundles: Vec<Bundle<'_>> = serde_json::from_str(text(0)).ok()?;
            (
                bundles.iter().flat_map(|bundle| &bundle.transactions).map(|call| call.get()).collect(),
                overrides,
            )
        }
        "trace_callMany" => {
            let calls: Vec<(&RawValue, &RawValue)> = serde_json::from_str(text(0)).ok()?;
            (calls.iter().map(|(call, _)| call.get()).collect(), "null")
        }
        _ => return None,
    };
    Some(format!(r#"{{"blockStateCalls":[{{"calls":[{}],"stateOverrides":{overrides}}}]}}"#, calls.join(",")))
}
