//! A proven balance as the lines that `rootlight balance` prints.

use rootlight::consensus::Network;
use rootlight_limits::sanitize::cell;

use super::answer::{AnswerBasis, BalanceAnswer, BitcoinBasis, RunFigures};
use super::sources::short_name;
use crate::rbtc::in_rbtc;

/// The lines of a balance. `is_built_in` says that a trusted block, if there is one, is a checkpoint of the program.
pub(super) fn lines(
    answer: &BalanceAnswer,
    network: &Network,
    run: &RunFigures,
    is_built_in: bool,
) -> Vec<String> {
    let mut lines = vec![
        line("balance", format!("{} RBTC", in_rbtc(answer.balance))),
        line("", format!("{} wei", answer.balance)),
        line("account", format!("{:#x}", answer.account)),
        line("network", format!("{} (chain id {})", cell(&network.name), network.chain_id)),
        line("block", format!("{} {}", answer.number, answer.hash)),
        line("age", age(answer.time, run.now)),
    ];
    lines.extend(basis_lines(&answer.basis, is_built_in));
    let provers: Vec<String> = run.provers.iter().map(|name| cell(short_name(name)).to_string()).collect();
    lines.push(line("proof", format!("from {}", provers.join(", "))));
    let (seconds, tenths) = (run.milliseconds / 1_000, run.milliseconds % 1_000 / 100);
    lines.push(line("took", format!("{seconds}.{tenths} s, {} bytes of responses", run.bytes)));
    lines
}

/// The lines about the evidence for a balance.
fn basis_lines(basis: &AnswerBasis, is_built_in: bool) -> Vec<String> {
    let (number, hash) = basis.first;
    let blocks = if basis.depth == 1 { "block" } else { "blocks" };
    let start = match (basis.start.as_str(), number) {
        ("checkpoint", 0) => format!("block 0 {hash}, genesis"),
        ("checkpoint", _) if is_built_in => format!("block {number} {hash}, a checkpoint that is built in"),
        ("checkpoint", _) => format!("block {number} {hash}, which --checkpoint trusts"),
        ("upstream", _) => format!("block {number} {hash}, which the upstreams show and nothing proves"),
        (start, _) => format!("{}: no block is trusted, the work since block {number} counts", cell(start)),
    };
    let mut lines = vec![
        line("level", format!("{}, {} {blocks} on top", cell(&basis.level), basis.depth)),
        line("start", start),
    ];
    if let Some(cost) = basis.attack_cost {
        lines.push(line("forgery", format!("of this block and those on top costs at least {cost} hashes")));
    }
    lines.extend(basis.bitcoin.as_ref().map(|bitcoin| line("bitcoin", bitcoin_line(bitcoin))));
    lines
}

/// The line about Bitcoin's evidence above the block.
fn bitcoin_line(basis: &BitcoinBasis) -> String {
    let blocks = match (basis.blocks, basis.age) {
        (0, _) | (_, None) => "no block commits to this one or one above it yet".to_owned(),
        (1, Some(age)) => format!("1 block commits to this one or one above it, {} min ago", age / 60),
        (count, Some(age)) => {
            format!("{count} blocks commit to this one or one above it, the newest {} min ago", age / 60)
        }
    };
    // The tags are those of the newest 72 Bitcoin blocks, as `rootlight_verification` counts them.
    let (this, other) = basis.tags;
    let reason = basis.reason.as_deref().map(|reason| format!("; {}", cell(reason))).unwrap_or_default();
    let verdict = cell(&basis.verdict);
    format!("{verdict}: {blocks}; of the newest 72 {this} name this chain, {other} another{reason}")
}

fn line(label: &str, text: String) -> String {
    format!("{label:<10}{text}")
}

/// The age of a block, whose time may be ahead of this machine's clock.
fn age(time: u64, now: u64) -> String {
    let seconds = now.saturating_sub(time);
    // A larger unit begins at five of it, so that rounding down does not distort the age.
    match seconds {
        0 if time > now => format!("{} s in the future by this machine's clock", time - now),
        0..=299 => format!("{seconds} s"),
        300..=17_999 => format!("{} min", seconds / 60),
        18_000..=432_000 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256, U256};
    use serde_json::json;

    use super::*;

    fn answer(start: &str, number: u64, attack_cost: Option<u64>) -> BalanceAnswer {
        BalanceAnswer {
            account: Address::repeat_byte(0xab),
            balance: U256::from(1_500_000_000_000_000_001_u64),
            number: 9_440_450,
            hash: B256::repeat_byte(0x11),
            time: 1_795_000_000,
            basis: AnswerBasis {
                level: "verified".into(),
                depth: 0,
                start: start.into(),
                first: (number, B256::repeat_byte(0x22)),
                attack_cost: attack_cost.map(U256::from),
                bitcoin: None,
            },
        }
    }

    fn run() -> RunFigures {
        RunFigures {
            provers: vec![format!("{}@127.0.0.1:5050", "ab".repeat(64)), "https://node.example".into()],
            milliseconds: 3_249,
            bytes: 2_203_512,
            now: 1_795_000_012,
        }
    }

    #[test]
    fn a_balance_is_printed_with_what_it_rests_on() {
        let lines = lines(&answer("checkpoint", 9_000_000, None), &Network::mainnet(), &run(), true);
        let (block, first) = ("11".repeat(32), "22".repeat(32));
        let expected = format!(
            "\
balance   1.500000000000000001 RBTC
          1500000000000000001 wei
account   0x{account}
network   mainnet (chain id 30)
block     9440450 0x{block}
age       12 s
level     verified, 0 blocks on top
start     block 9000000 0x{first}, a checkpoint that is built in
proof     from abababab..abab@127.0.0.1:5050, https://node.example
took      3.2 s, 2203512 bytes of responses",
            account = "ab".repeat(20),
        );
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn each_start_says_what_is_trusted() {
        let first = "22".repeat(32);
        let start =
            |start, number, cost, is_built_in| basis_lines(&answer(start, number, cost).basis, is_built_in);
        assert_eq!(start("checkpoint", 0, None, true)[1], format!("start     block 0 0x{first}, genesis"));
        let shown = format!("start     block 0 0x{first}, which the upstreams show and nothing proves");
        assert_eq!(start("upstream", 0, None, true)[1], shown);
        let given = format!("start     block 7 0x{first}, which --checkpoint trusts");
        assert_eq!(start("checkpoint", 7, None, false)[1], given);
        assert_eq!(
            start("work", 7, Some(1_000), true)[1..],
            [
                "start     work: no block is trusted, the work since block 7 counts",
                "forgery   of this block and those on top costs at least 1000 hashes",
            ]
        );
    }

    #[test]
    fn the_line_of_bitcoin_says_what_stands_above_the_block() {
        let basis = |blocks, age, reason: Option<&str>| BitcoinBasis {
            verdict: if reason.is_some() { "weak" } else { "held" }.into(),
            reason: reason.map(str::to_owned),
            blocks,
            age,
            tags: (35, 0),
        };
        assert_eq!(
            bitcoin_line(&basis(3, Some(1_320), None)),
            "held: 3 blocks commit to this one or one above it, the newest 22 min ago; of the newest 72 35 name this \
             chain, 0 another"
        );
        assert_eq!(
            bitcoin_line(&basis(0, None, Some("no coinbases were shown"))),
            "weak: no block commits to this one or one above it yet; of the newest 72 35 name this chain, 0 another; no \
             coinbases were shown"
        );
    }

    #[test]
    fn ages_have_a_fitting_unit() {
        for (age_of, text) in
            [(0, "0 s"), (299, "299 s"), (300, "5 min"), (18_000, "5 h"), (432_001, "5 days")]
        {
            assert_eq!(age(1_000_000, 1_000_000 + age_of), text);
        }
        assert_eq!(age(20, 10), "10 s in the future by this machine's clock");
    }

    #[test]
    fn the_json_object_has_the_values_of_the_text() {
        let object = answer("work", 7, Some(1_000)).to_json(&Network::mainnet(), &run());
        let expected = json!({
            "network": "mainnet",
            "chainId": 30,
            "account": format!("0x{}", "ab".repeat(20)),
            "rbtc": "1.500000000000000001",
            "wei": "1500000000000000001",
            "block": {
                "number": 9_440_450, "hash": format!("0x{}", "11".repeat(32)),
                "timestamp": 1_795_000_000_u64, "ageSeconds": 12,
            },
            "level": "verified",
            "depth": 0,
            "start": "work",
            "firstBlock": { "number": 7, "hash": format!("0x{}", "22".repeat(32)) },
            "attackCost": "1000",
            "bitcoin": null,
            "provenBy": run().provers,
            "milliseconds": 3_249,
            "receivedBytes": 2_203_512,
        });
        assert_eq!(object, expected);
    }
}
