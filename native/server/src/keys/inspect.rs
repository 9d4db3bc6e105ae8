//! What a message costs its API key: the methods that the message calls, their weight, and whether the key allows them.

use alloy_primitives::Address;
use rootlight::rpc::{BRIEF_COST, Call, Message, Method};

use super::meter::Charge;
use super::rules::KeyRules;

/// Longest name of a method that an error repeats, in characters.
const SHOWN: usize = 60;

/// A message as a key's limits see it.
#[derive(Debug)]
pub(crate) struct Inspected {
    /// What the message counts in the key's limits.
    pub(crate) charge: Charge,
    /// The fault of the first call that the key does not allow; `None` if the key allows the message.
    pub(crate) unfit: Option<NotAllowed>,
}

/// Why a key does not allow a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAllowed {
    /// The method is not in the key's list.
    #[error("method {0} is not allowed for this key")]
    Method(String),
    /// The call is about a contract that is not in the key's list, or names none.
    #[error("{0}: the contract is not allowed for this key")]
    Contract(&'static str),
    #[error("State override is not allowed")]
    StateOverride,
}

/// Inspects a message by the rules of its key. A message that is not JSON-RPC counts as one request, and the service answers it
/// with an error.
pub(crate) fn inspect(message: &Message, rules: &KeyRules) -> Inspected {
    let mut charge = Charge::default();
    let mut unfit = None;
    for entry in message.entries() {
        let row = entry.call.as_ref().ok().and_then(|call| call.row);
        charge.weight = charge.weight.saturating_add(row.map_or(1, weight));
        count(&mut charge.classes, row.map_or("unknown", Method::namespace));
        if let (None, Ok(call)) = (&unfit, &entry.call) {
            unfit = refuse(call, rules);
        }
    }
    charge.requests = u32::try_from(message.entries().len()).unwrap_or(u32::MAX).max(1);
    charge.weight = charge.weight.max(1);
    Inspected { charge, unfit }
}

/// The weight of a method in requests: one, and one more for each further [`BRIEF_COST`] of its cost.
fn weight(row: &Method) -> u64 {
    row.cost.div_ceil(BRIEF_COST).max(1).into()
}

/// Adds one request to the count of its class, which is the namespace of its method.
fn count(classes: &mut Vec<(&'static str, u32)>, class: &'static str) {
    match classes.iter_mut().find(|(known, _)| *known == class) {
        Some((_, count)) => *count = count.saturating_add(1),
        None => classes.push((class, 1)),
    }
}

/// Why the rules do not allow a call; `None` if they do.
fn refuse(call: &Call, rules: &KeyRules) -> Option<NotAllowed> {
    if !rules.allows(&call.method, call.row) {
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        return Some(NotAllowed::Method(call.method.chars().filter(plain).take(SHOWN).collect()));
    }
    let row = call.row?;
    if !rules.state_override && row.overrides(&call.params) {
        return Some(NotAllowed::StateOverride);
    }
    let allowed = |named: Vec<Address>| named.iter().all(|contract| rules.contracts.contains(contract));
    let fits = rules.contracts.is_empty() || row.contracts(&call.params).is_some_and(allowed);
    (!fits).then_some(NotAllowed::Contract(row.name))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use data_encoding::HEXLOWER_PERMISSIVE;
    use rootlight::types::Transaction;
    use serde_json::{Value, json};

    use super::*;
    use crate::methods::dispatcher;
    use crate::service::read;

    const SHOP: &str = "0x77045e71a7a2c50903d88e564cd72fab11e82051";
    const OTHER: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

    fn call(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    fn see(message: &Value, rules: &KeyRules) -> Inspected {
        inspect(&read(message.to_string().as_bytes()), rules)
    }

    #[test]
    fn a_message_weighs_what_its_methods_cost() {
        let rules = KeyRules::default();
        let weight = |method: &str| see(&call(method, json!([])), &rules).charge.weight;
        assert_eq!((weight("eth_chainId"), weight("eth_getBalance"), weight("nonsense")), (1, 1, 1));
        let row = dispatcher().find("trace_filter").unwrap();
        assert_eq!(weight("trace_filter"), u64::from(row.cost / BRIEF_COST));
        let batch = json!([call("eth_chainId", json!([])), call("trace_filter", json!([{}])), 5]);
        let charge = see(&batch, &rules).charge;
        assert_eq!((charge.requests, charge.weight), (3, 2 + weight("trace_filter")));
        assert_eq!(charge.classes, [("eth", 1), ("trace", 1), ("unknown", 1)]);
        for unusable in ["", "{", "[]", "5"] {
            let charge = inspect(&read(unusable.as_bytes()), &rules).charge;
            assert_eq!((charge.requests, charge.weight), (1, 1), "{unusable}");
        }
    }

    #[test]
    fn calls_about_other_contracts_are_not_allowed() {
        let rules = KeyRules { contracts: vec![SHOP.parse().unwrap()], ..KeyRules::default() };
        let upper = SHOP.to_uppercase().replace("0X", "0x");
        for allowed in [
            call("eth_call", json!([{"to": SHOP}, "latest"])),
            call("eth_call", json!([{"to": upper}, "latest"])),
            call("eth_getLogs", json!([{"address": SHOP}])),
            call("eth_getLogs", json!([{"address": [SHOP, SHOP]}])),
            call("eth_getStorageAt", json!([SHOP, "0x0", "latest"])),
            call("eth_getBalance", json!([OTHER, "latest"])),
            call("eth_subscribe", json!(["logs", {"address": SHOP}])),
            call("eth_subscribe", json!(["newHeads"])),
            call("eth_blockNumber", json!([])),
            call("trace_filter", json!([{"toAddress": SHOP}])),
        ] {
            assert_eq!(see(&allowed, &rules).unfit, None, "{allowed}");
        }
        for refused in [
            call("eth_call", json!([{"to": OTHER}, "latest"])),
            call("eth_call", json!([{}, "latest"])),
            call("eth_call", json!([{"to": null}, "latest"])),
            call("eth_estimateGas", json!([{"to": OTHER}])),
            call("eth_getLogs", json!([{}])),
            call("eth_getLogs", json!([{"address": []}])),
            call("eth_getLogs", json!([{"address": [SHOP, OTHER]}])),
            call("eth_newFilter", json!([{"address": OTHER}])),
            call("eth_getCode", json!([OTHER, "latest"])),
            call("eth_subscribe", json!(["logs", {"topics": []}])),
            call("eth_subscribe", json!(["logs"])),
            call("trace_filter", json!([{"fromAddress": SHOP}])),
            json!([call("eth_chainId", json!([])), call("eth_call", json!([{"to": OTHER}, "latest"]))]),
        ] {
            let unfit = see(&refused, &rules).unfit;
            assert!(matches!(unfit, Some(NotAllowed::Contract(_))), "{refused}: {unfit:?}");
        }
        // Two receivers: whichever of them the engine would use, the call is not allowed.
        let twice =
            format!(r#"{{"id":1,"method":"eth_call","params":[{{"to":"{OTHER}","to":"{SHOP}"}},"latest"]}}"#);
        assert!(inspect(&read(twice.as_bytes()), &rules).unfit.is_some());
    }

    /// A signed transaction to this account, or the creation of a contract.
    fn signed(to: Option<&str>) -> Value {
        let to = to.map(|to| to.parse().unwrap());
        let one = U256::from(1);
        let transaction = Transaction { to, v: 27, r: one, s: one, ..Transaction::remasc(2) };
        let raw = HEXLOWER_PERMISSIVE.encode(&transaction.encode());
        call("eth_sendRawTransaction", json!([format!("0x{raw}")]))
    }

    #[test]
    fn transactions_to_other_contracts_are_not_allowed() {
        let rules = KeyRules { contracts: vec![SHOP.parse().unwrap()], ..KeyRules::default() };
        for allowed in [signed(Some(SHOP)), call("eth_sendTransaction", json!([{"from": OTHER, "to": SHOP}]))]
        {
            assert_eq!(see(&allowed, &rules).unfit, None, "{allowed}");
        }
        for refused in [
            signed(Some(OTHER)),
            signed(None),
            call("eth_sendRawTransaction", json!(["0x00"])),
            call("eth_sendRawTransaction", json!(["zz"])),
            call("eth_sendRawTransaction", json!([7])),
            call("eth_sendTransaction", json!([{"from": OTHER, "to": OTHER}])),
            call("eth_sendTransaction", json!([{"from": SHOP, "data": "0x00"}])),
            json!([signed(Some(SHOP)), signed(Some(OTHER))]),
        ] {
            let unfit = see(&refused, &rules).unfit;
            assert!(matches!(unfit, Some(NotAllowed::Contract(_))), "{refused}: {unfit:?}");
        }
        assert_eq!(see(&signed(None), &KeyRules::default()).unfit, None);
    }

    #[test]
    fn overrides_need_a_key_that_allows_them() {
        let none = KeyRules::default();
        let all = KeyRules { state_override: true, ..KeyRules::default() };
        let with = |third: Value| call("eth_call", json!([{"to": SHOP}, "latest", third]));
        for empty in [json!(null), json!({})] {
            assert_eq!(see(&with(empty), &none).unfit, None);
        }
        let given = with(json!({SHOP: {"balance": "0x1"}}));
        assert_eq!(see(&given, &none).unfit, Some(NotAllowed::StateOverride));
        assert_eq!(see(&given, &all).unfit, None);
    }

    #[test]
    fn a_refused_method_is_named_without_odd_characters() {
        let rules = KeyRules { methods: vec!["eth_call".into()], ..KeyRules::default() };
        let unfit = see(&call("eth_x\u{1b}\"<b>", json!([])), &rules).unfit;
        assert_eq!(unfit, Some(NotAllowed::Method("eth_xb".into())));
        assert_eq!(see(&call("eth_call", json!([])), &rules).unfit, None);
    }
}
