//! The development chain against a reference node that mines each transaction at once.

mod support;

use rootlight::dev::DevConfig;
use serde_json::Value;
use support::dev::Dev;
use support::recording::text_of;
use support::shared;

/// The recorded session of a node in instant mode, from its first block on: hashes, errors, data.
#[test]
fn instant_mode_is_the_references() {
    let Some(shared) = shared() else { return };
    let mut dev = Dev::new(DevConfig::reference());
    let mut compared = 0;
    for line in text_of(&shared.join("vectors/chain/instant_mode.jsonl")).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let method = line["request"]["method"].as_str().unwrap();
        // The miner's own fields and the time are not the recorded ones.
        if method == "eth_getBlockByNumber" {
            continue;
        }
        let answer = dev.ask(method, line["request"]["params"].clone());
        let of = |part: &str| (line["response"][part].clone(), answer[part].clone());
        for (recorded, found) in [of("result"), of("error")] {
            assert_eq!(found, recorded, "{} {}", line["label"], line["request"]);
        }
        compared += 1;
    }
    println!("{compared} answers equal");
    assert!(compared > 15);
}
