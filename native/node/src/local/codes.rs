//! A cache of the analysed code of the contracts that were called last, for the calls on a local chain.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use rootlight::exec::{CodeCache, ReadyCode};

/// Most codes in the cache. A further code replaces the one that was used least recently.
const MAX_CODES: usize = 64;

/// Longest code in the cache, in bytes: the limit of Rootstock's contracts. All codes together take at most 1.8 MB with their jump
/// targets.
const MAX_CODE_BYTES: usize = 24_576;

/// The codes, most recently used first. A look-up compares a few hashes, which takes less time than one step of an
/// analysis.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<Vec<(B256, ReadyCode)>>);

impl Codes {
    /// Locks the codes.
    fn all(&self) -> MutexGuard<'_, Vec<(B256, ReadyCode)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CodeCache for Codes {
    fn get(&self, hash: &B256) -> Option<ReadyCode> {
        let mut all = self.all();
        let at = all.iter().position(|(known, _)| known == hash)?;
        // The code moves to the front.
        all.get_mut(..=at)?.rotate_right(1);
        all.first().map(|(_, code)| code.clone())
    }

    fn keep(&self, hash: B256, code: ReadyCode) {
        if code.size() > MAX_CODE_BYTES {
            return;
        }
        let mut all = self.all();
        if all.iter().all(|(known, _)| *known != hash) {
            all.truncate(MAX_CODES - 1);
            all.insert(0, (hash, code));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::Address;
    use rootlight::dev::{DevAccounts, DevConfig};
    use rootlight::engine::{DevNode, HostInput, LocalNode as _};
    use rootlight::rpc::LocalClient;
    use serde_json::{Value, json};

    use super::*;

    struct CodeFixture {
        client: LocalClient,
        codes: Arc<Codes>,
    }

    impl CodeFixture {
        fn new() -> Self {
            let host_input = HostInput { now: 1_700_000_000, entropy: B256::ZERO };
            let mut node = DevNode::new(DevConfig::new(&DevAccounts::default()), host_input).unwrap();
            let codes = Arc::<Codes>::default();
            node.set_codes(codes.clone());
            Self { client: LocalClient::new(Box::new(node)), codes }
        }

        fn get(&mut self, method: &str, params: Value) -> Value {
            let message =
                json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
            let message = self.client.open(message.as_bytes());
            let host_input = HostInput { now: 1_700_000_000, entropy: B256::ZERO };
            let answer = self.client.answer(message, host_input, &|| false).into_text().unwrap();
            serde_json::from_str::<Value>(&answer).unwrap()["result"].take()
        }

        fn kept(&self) -> usize {
            self.codes.all().len()
        }
    }

    /// PUSH1 `word`, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
    fn returns(word: u8) -> String {
        format!("0x60{word:02x}60005260206000f3")
    }

    const CONTRACT: &str = "0x00000000000000000000000000000000000000c0";

    #[test]
    fn calls_find_code_and_changes_of_it_take_effect() {
        let mut calls = CodeFixture::new();
        let call = json!([{ "to": CONTRACT }, "latest"]);
        for word in [1, 2, 1] {
            calls.get("anvil_setCode", json!([CONTRACT, returns(word)]));
            for _ in 0..2 {
                assert_eq!(calls.get("eth_call", call.clone()), format!("{:#066x}", word));
            }
        }
        assert_eq!(calls.kept(), 2);
        let made_up = json!([{ "to": CONTRACT }, "latest", { (CONTRACT): { "code": returns(3) } }]);
        assert_eq!(calls.get("eth_call", made_up), format!("{:#066x}", 3));
        assert_eq!(calls.kept(), 2, "code of an override is not kept");
        assert_eq!(calls.get("eth_call", json!([{ "to": Address::ZERO }, "latest"])), "0x");
        assert_eq!(calls.kept(), 2, "an account without code");
    }

    /// A witness proves the code of a contract although an earlier call has analysed it.
    #[test]
    fn a_witness_has_code_that_was_found_in_the_cache() {
        let mut calls = CodeFixture::new();
        let code = format!("{}{}", returns(1), "00".repeat(60));
        calls.get("anvil_setCode", json!([CONTRACT, code]));
        let witness = |calls: &mut CodeFixture| {
            calls.get("rootlight_getWitness", json!([{ "to": CONTRACT }, "latest"])).to_string()
        };
        let before = witness(&mut calls);
        calls.get("eth_call", json!([{ "to": CONTRACT }, "latest"]));
        assert_eq!(calls.kept(), 1);
        assert!(before.len() > 100, "{before}");
        assert_eq!(witness(&mut calls), before);
    }

    #[test]
    fn the_codes_used_last_are_kept() {
        let mut calls = CodeFixture::new();
        let address = |number: usize| format!("{:#042x}", 0x1000 + number);
        let hash = |number: usize| {
            let code = alloy_primitives::hex::decode(returns(u8::try_from(number).unwrap())).unwrap();
            alloy_primitives::keccak256(code)
        };
        for number in 0..=MAX_CODES {
            calls.get("anvil_setCode", json!([address(number), returns(u8::try_from(number).unwrap())]));
        }
        for number in 0..=MAX_CODES {
            calls.get("eth_call", json!([{ "to": address(number) }, "latest"]));
            calls.get("eth_call", json!([{ "to": address(0) }, "latest"]));
        }
        assert_eq!(calls.kept(), MAX_CODES);
        assert!(calls.codes.get(&hash(0)).is_some(), "used between all others");
        assert!(calls.codes.get(&hash(1)).is_none(), "used least recently");
        assert!(calls.codes.get(&hash(2)).is_some());
    }
}
