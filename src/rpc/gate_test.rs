//! No method answers from a header that the gate refuses, whatever parameter selects it. Also: which blocks a caller
//! may select by hash.

use std::collections::BTreeSet;

use alloy_primitives::{B256, hex};
use serde_json::{Value, json};

use super::{
    Client, SessionStep,
    method::Method,
    mined_chain::{Mined, START, ask, block_json, first_step},
    table::methods,
};
use crate::{
    consensus::{
        Network, difficulty,
        testing::{child, mine},
    },
    light::{ClientConfig, MAX_BRANCH, Now, bitcoin::BitcoinFollower},
    trie,
    types::{Header, SealedHeader, U256, block::encode_block, uncles_hash},
};

#[path = "../../tests/support/errors.rs"]
mod errors;

use errors::is_documented;

/// Every form of block parameter for a chain of twenty blocks.
fn block_params(mined: &Mined) -> Vec<Value> {
    let (header, side) = (&mined.blocks[5].0, &mined.side[0]);
    let mut all = ["latest", "pending", "safe", "finalized"].map(Value::from).to_vec();
    for hash in [header.hash(), side.hash()] {
        all.extend([json!(hash), json!({ "blockHash": hash })]);
    }
    let number = format!("{:#x}", header.number);
    all.extend([json!(number), json!({ "blockNumber": number })]);
    all
}

/// A signed transaction for any network that calls a native contract.
const SIGNED: &str = "0x\
    f85f808082520894000000000000000000000000000000000000000980801ca0010072202beb9a0a240472404f578d5c\
    f8899059c684b719b7cf0c1f7cd6b393a018380f781f2dd1a88d1e69231beb2b492eefbbd1289a24bce82a3be6273f8e\
    ba";

/// The values that a parameter may have in a request about some block.
fn values(mined: &Mined, filters: &[Value], name: &str, kind: &str) -> Vec<Value> {
    let hashes = || vec![json!(mined.blocks[5].0.hash()), json!(mined.side[0].hash())];
    let call = || json!({ "to": "0x0000000000000000000000000000000000000009" });
    let number = format!("{:#x}", mined.blocks[5].0.number);
    match (name, kind) {
        (_, "BLOCK") => block_params(mined),
        ("blockHash", "HASH") => hashes(),
        ("transactionHash", "HASH") => vec![json!(B256::repeat_byte(8))],
        (_, "ADDRESS") => vec![json!("0x0000000000000000000000000000000000000001")],
        ("block", "DATA") => vec![json!(hex::encode_prefixed(encode_block(&mined.blocks[5].0, &[], &[])))],
        ("cells", "CELLS") => vec![json!({ "0x0000000000000000000000000000000000000001": ["0x0"] })],
        ("transaction", "TRANSACTION") => vec![call()],
        ("filterId", _) => filters.to_vec(),
        ("data" | "keyStart" | "subscriptionId", "DATA") => vec![json!("0xdead")],
        ("first" | "number", _) => vec![json!(number)],
        ("nonce", "DATA, 8 bytes") => vec![json!("0x0000000000000001")],
        ("powHash" | "mixDigest", "HASH") => vec![json!(B256::repeat_byte(8))],
        (_, "DATA, 32 bytes") => vec![json!(B256::repeat_byte(8))],
        ("call", _) => vec![call()],
        ("simulation", _) => vec![json!({ "blockStateCalls": [{ "calls": [call()] }] })],
        ("bundles", _) => vec![json!([{ "transactions": [call()] }])],
        ("calls", _) => vec![json!([[call(), ["trace"]]])],
        ("traceTypes", _) => vec![json!(["trace"])],
        ("rawTransaction", _) => vec![json!(SIGNED)],
        ("filter", "LOG_FILTER") => [
            json!({}),
            json!({ "fromBlock": number, "toBlock": number }),
            json!({ "fromBlock": number, "toBlock": "latest" }),
            json!({ "fromBlock": "safe" }),
        ]
        .into_iter()
        .chain(hashes().into_iter().map(|hash| json!({ "blockHash": hash })))
        .collect(),
        ("filter", _) => block_params(mined)
            .into_iter()
            .map(|from| json!({ "fromBlock": from, "toBlock": "latest" }))
            .collect(),
        (_, kind) if kind.starts_with("newHeads") => vec![json!("newHeads"), json!("logs")],
        (_, "array of HASH") => vec![json!([])],
        (_, kind) if kind.starts_with("array of one") => vec![json!(["0x0"])],
        (_, "boolean" | "BOOLEAN") => vec![json!(false)],
        (_, kind) if kind.starts_with("QUANTITY") => vec![json!("0x1")],
        other => panic!("a parameter that no test knows: {other:?}"),
    }
}

/// Every request that a method can get about a block: each parameter takes all its values, and an optional block is
/// also left out.
fn questions(mined: &Mined, filters: &[Value], method: &Method) -> Vec<Value> {
    // An id that no filter has, because the other methods need the filters.
    let unknown = [json!("0xdead")];
    let filters = if method.name == "eth_uninstallFilter" { &unknown } else { filters };
    let given = method.params.iter().filter(|param| param.required || param.kind == "BLOCK");
    let mut all = vec![Vec::new()];
    for param in given {
        let mut longer: Vec<Vec<Value>> = if param.required { Vec::new() } else { all.clone() };
        for value in values(mined, filters, param.name, param.kind) {
            longer
                .extend(all.iter().map(|params: &Vec<Value>| [params.clone(), vec![value.clone()]].concat()));
        }
        all = longer;
    }
    all.into_iter().map(Value::from).collect()
}

/// A chain of twenty blocks with a side block, and a client with filters of every kind.
fn world(config: ClientConfig) -> (Mined, Client, Vec<Value>) {
    let mut mined = Mined::new();
    mined.grow(20, 30);
    mined.fork(1);
    let mut client = mined.start_as(ClientConfig { upstreams: vec!["miner".into()], ..config });
    mined.follow(&mut client);
    let number = format!("{:#x}", START + 1);
    let mut filters = vec![ask(&mut client, "eth_newBlockFilter", json!([]))];
    filters.push(ask(&mut client, "eth_newFilter", json!([{ "fromBlock": number }])));
    filters.push(ask(&mut client, "eth_newFilter", json!([{ "blockHash": mined.side[0].hash() }])));
    let filters = filters.into_iter().map(|answer| answer["result"].clone()).collect();
    (mined, client, filters)
}

/// The methods that read no header: constants, computations, and what the client knows about itself and its
/// upstreams. Only these may answer while the chain must not be shown, whatever level their rows declare.
const WITHOUT_HEADERS: [&str; 35] = [
    "debug_accountTransactionQuota",
    // A light client refuses it.
    "debug_storageRangeAt",
    "debug_wireProtocolQueueSize",
    "eth_accounts",
    "eth_chainId",
    "eth_coinbase",
    "eth_hashrate",
    "eth_mining",
    "eth_newPendingTransactionFilter",
    "eth_pendingTransactions",
    "eth_protocolVersion",
    "eth_submitHashrate",
    "eth_submitWork",
    "eth_syncing",
    "eth_uninstallFilter",
    "eth_unsubscribe",
    "ext_protocolVersion",
    "net_listening",
    "net_peerCount",
    "net_peerList",
    "net_version",
    "ots_getApiLevel",
    "rootlight_checkpoint",
    // These methods give Bitcoin's chain, which proves itself.
    "rootlight_getBitcoinHeaders",
    "rootlight_getBitcoinTags",
    "rootlight_syncStatus",
    "rootlight_upstreams",
    "rpc.discover",
    "rpc_modules",
    "txpool_content",
    "txpool_contentFrom",
    "txpool_inspect",
    "txpool_status",
    "web3_clientVersion",
    "web3_sha3",
];

/// Calls every method about every block. Returns the methods that read headers and gave an answer other than a
/// refusal with one of these texts.
fn escapes(
    mined: &mut Mined,
    client: &mut Client,
    filters: &[Value],
    words: &[&str],
) -> BTreeSet<&'static str> {
    let mut escaped = BTreeSet::new();
    for method in methods().filter(|method| !method.writes()) {
        for params in questions(mined, filters, method) {
            let answer = mined.ask(client, method.name, params.clone());
            let text = answer["error"]["message"].as_str().unwrap_or_default();
            let refused = answer["error"]["code"] == -32002 && words.iter().any(|words| text.contains(words));
            // The filter expired, or it never existed.
            let gone = method.params.first().is_some_and(|param| param.name == "filterId")
                && text == "filter not found";
            if !refused && !gone && !WITHOUT_HEADERS.contains(&method.name) {
                println!("{} {params}: {answer}", method.name);
                escaped.insert(method.name);
            }
        }
    }
    escaped
}

/// Checks the set-up of the tests below: without a reason to refuse, the same requests are answered, or refused for
/// another reason.
#[test]
fn methods_answer_while_the_gate_is_open() {
    let (mut mined, mut client, filters) = world(ClientConfig { max_age: 600, ..ClientConfig::default() });
    for words in ["s up to block", "still synchronizing", "s old", "blocks on top"] {
        let refusing = methods().filter(|method| !method.writes()).count();
        assert!(escapes(&mut mined, &mut client, &filters, &[words]).len() > refusing / 3);
    }
    let block = mined.ask(&mut client, "eth_getBlockByNumber", json!(["latest", false]));
    assert!(block["error"]["message"].as_str().unwrap_or_default().contains("no proof of"), "{block}");
}

#[test]
fn no_method_answers_from_a_chain_with_too_little_work() {
    let (mut mined, mut client, filters) = world(ClientConfig::default());
    mined.grow(260, 30);
    mined.grow(1, 7_200);
    mined.follow_at(&mut client, 60_000);
    assert!(client.sync().low_work().is_some());
    assert_eq!(escapes(&mut mined, &mut client, &filters, &["s up to block"]), BTreeSet::new());
}

#[test]
fn no_method_answers_before_synchronization() {
    let (mut mined, _, _) = world(ClientConfig::default());
    // The second upstream has not responded yet.
    let mut client = mined.start_with(2);
    mined.follow(&mut client);
    assert!(client.sync().chain().unwrap().head().number == START + 20 && !client.sync().is_synced());
    // No filter can have been installed before.
    let words = mined.ask(&mut client, "eth_blockNumber", json!([]))["error"].to_string();
    assert!(is_documented("synchronizing", "miner, miner", &words), "{words}");
    assert_eq!(escapes(&mut mined, &mut client, &[], &["still synchronizing"]), BTreeSet::new());
}

#[test]
fn no_method_answers_from_a_stale_chain() {
    let (mut mined, mut client, filters) = world(ClientConfig { max_age: 200, ..ClientConfig::default() });
    let Now { unix, .. } = mined.now();
    // Synchronization does not learn the time: it waits for an upstream, or the machine slept.
    let mut later = |client: &mut Client, seconds: u64| {
        let (now, params) = (Now { unix: unix + seconds, millis: 1 }, json!(["latest"]));
        mined.ask_at(client, "eth_getBlockTransactionCountByNumber", params, now)["error"].to_string()
    };
    assert!(!later(&mut client, 200).contains("s old"));
    let stale = later(&mut client, 201);
    assert!(stale.contains("201 s old, at most 200 s are accepted (--max-age, maxAge)"), "{stale}");
    assert!(is_documented("too old", "miner", &stale), "{stale}");
    client.sync_next(0, Now { unix: unix + 201, millis: 1 });
    assert_eq!(escapes(&mut mined, &mut client, &filters, &["s old"]), BTreeSet::new());
}

/// The height may be answered and filters may be installed, because neither tells anything about the content of young
/// blocks.
#[test]
fn no_method_answers_about_blocks_that_are_too_young() {
    let (mut mined, mut client, filters) =
        world(ClientConfig { min_depth: 1_000, ..ClientConfig::default() });
    let escaped = escapes(&mut mined, &mut client, &filters, &["blocks on top", "is older than block"]);
    let harmless = [
        "eth_blockNumber",
        "eth_getFilterChanges",
        "eth_getFilterLogs",
        "eth_newBlockFilter",
        "eth_newFilter",
        "eth_subscribe",
        // Before block 1 there are no transactions.
        "ots_searchTransactionsBefore",
    ];
    assert_eq!(escaped, BTreeSet::from(harmless));
    for (index, method) in
        [(0, "eth_getFilterChanges"), (1, "eth_getFilterChanges"), (1, "eth_getFilterLogs")]
    {
        let answer = mined.ask(&mut client, method, json!([filters[index]]));
        assert_eq!(answer["result"], json!([]), "{answer}");
    }
    let answer = mined.ask(&mut client, "eth_getFilterLogs", json!([filters[2]]));
    assert!(answer["error"]["message"].as_str().unwrap().contains("blocks on top"), "{answer}");
}

/// A filter reports each block once it has the required depth.
#[test]
fn filters_report_blocks_once_they_are_deep_enough() {
    let (mut mined, mut client, filters) = world(ClientConfig { min_depth: 3, ..ClientConfig::default() });
    mined.grow(5, 30);
    mined.follow_at(&mut client, 60_000);
    let reported = mined.ask(&mut client, "eth_getFilterChanges", json!([filters[0]]));
    let expected: Vec<B256> = mined.blocks[18..=22].iter().map(|(header, _)| header.hash()).collect();
    assert_eq!(reported["result"], json!(expected));
}

/// Lets a client follow a Bitcoin chain of which no source has shown a block.
fn follow_bitcoin(client: &Client) {
    let network = Network::regtest().bitcoin.unwrap();
    client.sync_mut().follow_bitcoin(BitcoinFollower::new(network));
}

#[test]
fn no_method_answers_without_bitcoin_where_it_is_asked_for() {
    for follows in [false, true] {
        let (mut mined, mut client, _) =
            world(ClientConfig { min_bitcoin: Some(0), ..ClientConfig::default() });
        if follows {
            follow_bitcoin(&client);
        }
        // No filter can have been installed before.
        let words = ["(--min-bitcoin): unavailable: no source has shown"];
        assert_eq!(escapes(&mut mined, &mut client, &[], &words), BTreeSet::new(), "{follows}");
    }
}

/// The mark about Bitcoin's chain stands beside answers that depend on the chain, and beside no others.
#[test]
fn answers_about_the_chain_say_that_bitcoin_does_not_support_it() {
    let (_, mut client, _) = world(ClientConfig::default());
    assert_eq!(ask(&mut client, "eth_blockNumber", json!([])).get("bitcoin"), None);
    follow_bitcoin(&client);
    let height = ask(&mut client, "eth_blockNumber", json!([]));
    assert_eq!((&height["bitcoin"], height["result"].is_string()), (&json!("unavailable"), true), "{height}");
    for method in ["eth_chainId", "rootlight_syncStatus", "eth_noSuchMethod"] {
        assert_eq!(ask(&mut client, method, json!([])).get("bitcoin"), None, "{method}");
    }
}

/// A header whose parent is unknown and that states a difficulty of its own choice.
fn stranger(mined: &Mined, number: u64) -> SealedHeader {
    let parent = &mined.blocks[3].0;
    let header = child(&mined.network, parent);
    let parent_hash = B256::repeat_byte(0x77);
    mine(Header {
        number,
        parent_hash,
        difficulty: U256::from(1).into(),
        timestamp: mined.now().unix,
        ..header
    })
}

fn refusal(mined: &mut Mined, client: &mut Client, method: &str, params: Value) -> String {
    let answer = mined.ask(client, method, params);
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    answer["error"]["message"].as_str().unwrap().into()
}

/// The proof of work of the header is valid for the difficulty that the header itself states.
#[test]
fn a_block_by_hash_that_chooses_its_own_difficulty_is_refused() {
    for number in [START - 300, START + 3, START + 21, START + 1_000_000] {
        let (mut mined, mut client, _) = world(ClientConfig::default());
        let forged = stranger(&mined, number);
        mined.side.push(forged.clone());
        let balance = json!(["0x0000000000000000000000000000000000000001", { "blockHash": forged.hash() }]);
        let said = refusal(&mut mined, &mut client, "eth_getBalance", balance);
        assert!(said.contains("verified chain") || said.contains("no upstream has its ancestor"), "{said}");
        refusal(&mut mined, &mut client, "rootlight_verification", json!([forged.hash()]));
    }
    // A known parent does not help either.
    let (mut mined, mut client, _) = world(ClientConfig::default());
    let parent = mined.blocks[18].0.clone();
    let easy = mine(Header { difficulty: U256::from(1).into(), ..child(&mined.network, &parent) });
    mined.side.push(easy.clone());
    let said = refusal(&mut mined, &mut client, "eth_getBlockByHash", json!([easy.hash(), false]));
    assert!(said.contains("difficulty"), "{said}");
}

/// Side blocks that lead to the chain are verified, and have depth 0.
#[test]
fn a_side_block_by_hash_is_connected_and_has_no_depth() {
    let (mut mined, mut client, _) = world(ClientConfig::default());
    let branch = mined.fork(4);
    let tip = branch.last().unwrap();
    let reported = mined.ask(&mut client, "rootlight_verification", json!([tip.hash()]))["result"].clone();
    assert_eq!(
        (&reported["level"], &reported["origin"]),
        (&json!("verified"), &json!("mined")),
        "{reported}"
    );
    assert_eq!((&reported["canonical"], &reported["depth"]), (&json!(false), &json!("0x0")), "{reported}");
    assert_eq!(reported["workOnTop"], Value::Null);
    let head = ask(&mut client, "eth_blockNumber", json!([]))["result"].clone();
    assert_eq!(head, json!(format!("{:#x}", START + 20)), "the head stays where it is");
    let asked: Vec<&str> = mined.asked.iter().map(|call| call.method).collect();
    assert_eq!(asked.iter().filter(|method| **method == "eth_getBlockByHash").count(), branch.len());

    let (mut mined, mut client, _) = world(ClientConfig { min_depth: 1, ..ClientConfig::default() });
    let side = mined.side[0].hash();
    let said = refusal(&mut mined, &mut client, "eth_getBlockByHash", json!([side, false]));
    assert!(said.contains("has 0 blocks on top, at least 1"), "{said}");
}

/// A header may commit to any list of uncles. Their work counts only if they follow the rules for uncles.
#[test]
fn a_side_block_that_lists_one_uncle_twice_has_no_total_difficulty() {
    for (times, counts) in [(1, true), (2, false)] {
        let (mut mined, mut client, _) = world(ClientConfig::default());
        let uncle = mined.fork(1).pop().unwrap();
        let parent = mined.blocks.iter().find(|(header, _)| header.number == uncle.number).unwrap().0.clone();
        let list = vec![uncle.clone(); times];
        let hashed: Vec<Header> = list.iter().map(|uncle| uncle.header().clone()).collect();
        let mut header = Header {
            gas_used: 3,
            transactions_root: trie::EMPTY_ROOT,
            uncle_count: times as u32,
            uncles_hash: uncles_hash(&hashed),
            ..child(&mined.network, &parent)
        };
        header.difficulty = difficulty::expected(&header, &parent, &mined.network).into();
        let block = mine(header);
        mined.side.push(block.clone());
        mined.side_uncles = Some((block.clone(), list));
        let reported = mined.ask(&mut client, "eth_getBlockByHash", json!([block.hash(), false]));
        assert_eq!(reported["result"]["uncles"], json!(vec![uncle.hash(); times]), "{reported}");
        assert_eq!(reported["result"]["totalDifficulty"].is_string(), counts, "{reported}");
    }
}

/// The block's hash covers neither its Merkle proof nor its coinbase: an upstream that shows false ones does not hide
/// a block that another upstream shows completely.
#[test]
fn a_side_block_shown_without_its_proof_is_fetched_from_another_upstream() {
    let wrong = |block: &mut Value| block["bitcoinMergedMiningCoinbaseTransaction"] = json!("0x1234");
    let left_out = |block: &mut Value| {
        for field in ["MerkleProof", "CoinbaseTransaction"] {
            block[format!("bitcoinMergedMining{field}")] = Value::Null;
        }
    };
    type Disguise = fn(&mut Value);
    let disguises: [(Disguise, bool); 2] = [(wrong, true), (left_out, false)];
    for (disguise, lies) in disguises {
        let mut mined = Mined::new();
        mined.grow(20, 30);
        let branch = mined.fork(3);
        mined.disguise = Some(disguise);
        let mut client = mined.start_with(2);
        (0..2).for_each(|upstream| mined.follow_of(&mut client, upstream, 0));
        let tip = branch.last().unwrap();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "rootlight_verification",
            "params": [tip.hash()] });
        let mut session = client.open(message.to_string().as_bytes(), mined.now());
        let reported = mined.answers(&mut client, &mut session);
        client.close(session);
        assert_eq!(reported["result"]["canonical"], json!(false), "{reported}");
        assert_eq!(reported["result"]["origin"], json!("mined"), "{reported}");
        let record = client.sync().upstreams().remove(0).record;
        assert_eq!(record.lies > 0, lies, "{record:?}");
    }
}

/// Bounds how many headers an upstream can make this client fetch.
#[test]
fn a_side_block_too_far_from_the_chain_is_refused() {
    for (blocks, connects) in [(MAX_BRANCH, true), (MAX_BRANCH + 1, false)] {
        let (mut mined, mut client, _) = world(ClientConfig::default());
        let mut parent = mined.blocks[2].0.clone();
        for _ in 0..blocks {
            let mut header = Header { gas_used: 7, ..child(&mined.network, &parent) };
            header.difficulty = difficulty::expected(&header, &parent, &mined.network).into();
            parent = mine(header);
            mined.side.push(parent.clone());
        }
        let reported = mined.ask(&mut client, "rootlight_verification", json!([parent.hash()]));
        assert_eq!(reported["result"]["canonical"] == json!(false), connects, "{reported}");
        assert_eq!(reported["error"].to_string().contains("within 16 headers"), !connects, "{reported}");
    }
}

/// A call on a side block sees that block's ancestors, not those of the chain.
#[test]
fn a_call_on_a_side_block_reads_its_own_ancestors() {
    let (mut mined, mut client, _) = world(ClientConfig::default());
    let branch = mined.fork(4);
    let tip = branch.last().unwrap();
    // PUSH the number of the block two below, BLOCKHASH, return it; code of a new contract.
    let number = u16::try_from(tip.number - 2).unwrap();
    let code = format!("0x61{number:04x}4060005260206000f3");
    let call = json!([{ "data": code }, { "blockHash": tip.hash() }]);
    let answer = mined.ask(&mut client, "eth_call", call);
    assert_eq!(answer["result"], json!(branch[branch.len() - 3].hash()), "{answer}");
    let canonical = mined.blocks.iter().find(|(header, _)| header.number == tip.number - 2).unwrap();
    assert_ne!(answer["result"], json!(canonical.0.hash()));
}

/// An upstream has shown all its headers. Announcing a greater height in its next response does not make the client
/// report that height.
#[test]
fn an_announced_height_counts_only_up_to_the_shown_headers() {
    let (mut mined, mut client, _) = world(ClientConfig::default());
    for round in 1..5_u64 {
        mined.announced_ahead = 0;
        mined.follow_at(&mut client, round * 1_000_000);
        mined.follow_at(&mut client, round * 1_000_000 + 500_000);
        mined.announced_ahead = 1 << 62;
        let now = Now { millis: round * 1_000_000 + 900_000, ..mined.now() };
        let crate::light::SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("due") };
        assert_eq!(calls[0].method, "eth_blockNumber");
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
        // The upstream withholds the headers until the time limit.
        assert_eq!(client.sync().announced(), START + 20, "round {round}");
        assert_eq!(ask(&mut client, "eth_syncing", json!([]))["result"], false, "round {round}");
    }
}

/// Headers that were only announced do not make the client report that it is synchronizing.
#[test]
fn a_height_without_headers_does_not_change_eth_syncing() {
    let (mut mined, mut client, _) = world(ClientConfig::default());
    assert_eq!(ask(&mut client, "eth_syncing", json!([]))["result"], false);
    mined.announced_ahead = 1_000_000_000;
    for round in 1..5_u64 {
        mined.follow_at(&mut client, round * 1_000_000);
        // The next height is announced, and the headers above the present head have not arrived yet.
        let now = Now { millis: round * 1_000_000 + 900_000, ..mined.now() };
        let calls = match client.sync_next(0, now) {
            crate::light::SyncStep::Fetch(calls) => calls,
            wait @ crate::light::SyncStep::Wait(_) => panic!("{wait:?}"),
        };
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
        assert_eq!(client.sync().announced().max(START + 20), START + 20, "round {round}");
        assert_eq!(ask(&mut client, "eth_syncing", json!([]))["result"], false, "round {round}");
    }
    assert!(matches!(first_step(&mut client, "eth_blockNumber", json!([])), SessionStep::Done(_)));
    assert!(block_json(&mined.blocks[1].0).contains("0x"));
}
