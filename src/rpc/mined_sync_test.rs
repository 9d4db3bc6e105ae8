//! How a client asks its only upstream, and how it handles incomplete responses.

use serde_json::{Value, json, value::RawValue};

use super::{
    Client, SessionStep,
    mined_chain::{HeaderAnswers, Mined, START, ask, block_json, family, first_step},
};
use crate::{
    consensus::{
        Rule, difficulty,
        testing::{Bitcoin, child, easy_network, mine},
    },
    light::{HeaderPage, HeaderStoreFault, Now, RequestFailure, SyncStep, UpstreamRequest, UpstreamResponse},
    types::{Header, uncles_hash},
};

/// Servers return at most 256 headers; windows above and below the checkpoint request no more.
#[test]
fn windows_request_at_most_256_headers() {
    let mut mined = Mined::from(START - 449, easy_network(&[], &[(Rule::Rskip110, u64::MAX)]));
    mined.grow(1_000, 14);
    let mut client = mined.start();
    client.set_batch(1_000);
    mined.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
    assert_eq!(client.sync().chain().unwrap().view().lowest(), START - 449);
    assert_eq!(mined.windows().map(|(_, count)| count).max(), Some(256));
}

/// Whether the client reports that the head's fork-detection data were compared with the chain.
fn compared(client: &mut Client) -> Value {
    ask(client, "rootlight_verification", json!(["latest"]))["result"]["forkDetectionComplete"].clone()
}

/// Fork-detection data commit to headers below the checkpoint. Headers that were inserted before those arrived are
/// compared when they arrive.
#[test]
fn fork_detection_data_are_compared_as_soon_as_they_can_be() {
    let mut mined = Mined::from(START - 449, easy_network(&[], &[]));
    mined.grow(448, 14);
    // The checkpoint, and five above it.
    for _ in 0..6 {
        let parent = mined.head().clone();
        let mut header = child(&mined.network, &parent);
        header.difficulty = difficulty::expected(&header, &parent, &mined.network).into();
        // Seven bytes of earlier Bitcoin headers, no uncles, the number.
        let mut data = [9; 12];
        data[7..].copy_from_slice(&[&[0], &(header.number as u32).to_be_bytes()[..]].concat());
        mined.blocks.push((Bitcoin::for_header(data).mine(header), Vec::new()));
    }
    mined.header_answers = HeaderAnswers::Forgetful;
    let mut client = mined.client();
    assert_eq!(client.sync().chain().unwrap().head().number, START + 5, "nothing to compare with yet");
    assert_eq!(compared(&mut client), false);
    mined.header_answers = HeaderAnswers::Exact;
    client.sync_poll();
    mined.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().number, START);
    let state = client.sync().upstreams().remove(0);
    let evidence = state.record.evidence.back().unwrap();
    assert!(evidence.lie && evidence.rule.contains("commitment"), "{state:?}");
}

/// Late headers below the checkpoint that match cause no further request.
#[test]
fn headers_below_the_checkpoint_that_come_late_change_nothing() {
    let mut mined = Mined::from(START - 449, easy_network(&[], &[(Rule::Rskip110, u64::MAX)]));
    mined.grow(460, 14);
    mined.header_answers = HeaderAnswers::Forgetful;
    let mut client = mined.client();
    let pages = client.export();
    mined.header_answers = HeaderAnswers::Exact;
    mined.asked.clear();
    client.sync_poll();
    mined.follow(&mut client);
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!((chain.view().lowest(), chain.head().hash()), (START - 449, mined.head().hash()));
    let again = mined.windows().filter(|(first, _)| (START..START + 11).contains(first)).count();
    assert_eq!(again, 0, "{:?}", mined.asked);
    assert_eq!(compared(&mut client), true);
    // A later run requests them as well.
    let mut later = mined.start();
    assert_eq!(restore(&mut later, &pages), Ok(Some(START + 11)));
    mined.follow(&mut later);
    assert_eq!(later.sync().chain().unwrap().view().lowest(), START - 449);
}

/// `eth_syncing` is `false` only at a fresh head: not before the end of synchronization, and not when no block has
/// come for five minutes. An announced height without headers does not change that.
#[test]
fn eth_syncing_is_false_only_at_a_fresh_head() {
    let mut mined = Mined::new();
    mined.grow(6, 30);
    let time = mined.head().timestamp;
    let mut client = mined.start();
    client.set_batch(2);
    let syncing = |client: &mut Client| ask(client, "eth_syncing", json!([]))["result"].clone();
    let mut steps = 0;
    let now = Now { unix: time, millis: 0 };
    while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
        assert!(syncing(&mut client).is_object(), "{steps}");
        assert_eq!(ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["synced"], false);
        let error = ask(&mut client, "eth_blockNumber", json!([]))["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("still synchronizing"), "{error}");
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
        steps += 1;
    }
    assert!(steps > 4 && client.sync().is_synced());
    for (unix, fresh) in [(time, true), (time + 300, true), (time + 301, false), (time, true)] {
        client.sync_next(0, Now { unix, millis: 1 });
        let reported = syncing(&mut client);
        assert_eq!(reported == false, fresh, "{reported}");
        let stale = ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["stale"].clone();
        assert_eq!(stale.is_null(), fresh, "{stale}");
    }
    // Without a rule on timestamps, blocks have no age.
    let mut network = easy_network(&[], &[(Rule::Rskip110, u64::MAX)]);
    network.params.future_bound = 0;
    let mut untimed = Mined::from(START, network);
    let mut timeless = untimed.client();
    timeless.sync_next(0, Now { unix: time + 10_000, millis: 1 });
    assert_eq!(syncing(&mut timeless), false);
    client.sync_poll();
    let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("due") };
    assert_eq!(calls[0].method, "eth_blockNumber");
    let higher = RawValue::from_string(format!("\"{:#x}\"", mined.head().number + 4)).unwrap();
    client.sync_feed(0, vec![Ok(higher)], now);
    assert_eq!(syncing(&mut client), false);
}

/// Headers of other heights are not accepted for the requested ones. Headers that a short response lacks are
/// requested in another form.
#[test]
fn shifted_or_short_binary_responses_are_completed_in_json() {
    for (header_answers, reached) in [(HeaderAnswers::Shifted, None), (HeaderAnswers::Short, Some(START + 3))]
    {
        let mut mined = Mined::new();
        mined.grow(10, 30);
        mined.header_answers = header_answers;
        let client = mined.client();
        assert_eq!(client.sync().chain().map(|chain| chain.head().number), reached);
        let state = client.sync().upstreams().remove(0);
        assert!(state.record.lies == 0 && state.can.headers == Some(true), "{state:?}");
        let form = format!(r#"["{:#x}",false]"#, reached.map_or(START, |number| number + 1));
        assert!(mined.asked.iter().any(|call| call.method == "eth_getBlockByNumber" && call.params == form));
    }
}

/// No rule ties a header's uncle count to its list, so in the end every index is requested. An upstream is not blamed
/// for having no uncle at an index.
#[test]
fn uncles_beyond_the_stated_count_are_found() {
    for (served, errors) in [(true, false), (true, true), (false, true)] {
        let (mut mined, uncle) = family();
        let list = [uncle.header().clone()];
        let one = mined.next(|header| header.uncles_hash = uncles_hash(&list));
        mined.blocks.push((one, vec![uncle]));
        let head = mined.head().hash();
        let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
        let whole = mined.client();
        let expected = total(&whole);
        assert!(expected.is_some());
        (mined.omits_uncles, mined.family) = (true, served.then_some((whole, errors)));
        let client = mined.client();
        assert_eq!(total(&client), expected.filter(|_| served), "{served} {errors}");
        let state = client.sync().upstreams().remove(0);
        assert!(state.record.lies == 0 && state.resting.is_none(), "{state:?}");
        assert!(client.sync().uncles_complete());
        // One attempt is enough, whether the upstream has them or not.
        let requests =
            |mined: &Mined| mined.asked.iter().filter(|call| call.method.contains("Uncle")).count();
        let (mut client, before) = (client, requests(&mined));
        mined.follow_at(&mut client, 60_000);
        assert!(before > 0 && requests(&mined) == before, "{before}");
        let reported =
            ask(&mut client, "rootlight_verification", json!([]))["result"]["unclesProven"].clone();
        assert_eq!(reported, served);
    }
}

/// JSON does not contain an uncle's own uncle count. An uncle whose count exceeds the possible ones cannot be
/// restored from JSON and is fetched raw. If no upstream serves it raw, its work does not count and no upstream is
/// blamed.
#[test]
fn an_uncle_with_an_uncle_count_of_eleven_blames_no_upstream() {
    for raw in [true, false] {
        let (mut mined, _) = family();
        let uncle = {
            let parent = mined.blocks[9].0.clone();
            let mut uncle = Header { gas_used: 1, uncle_count: 11, ..child(&mined.network, &parent) };
            uncle.difficulty = difficulty::expected(&uncle, &parent, &mined.network).into();
            mine(uncle)
        };
        mined.adopt(1, uncle);
        let head = mined.head().hash();
        let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
        let whole = mined.client();
        let expected = total(&whole);
        assert!(expected.is_some());
        (mined.omits_uncles, mined.raw, mined.family) = (true, raw, Some((whole, false)));
        let client = mined.client();
        assert!(client.sync().uncles_complete());
        assert_eq!(total(&client), expected.filter(|_| raw), "{raw}");
        let state = client.sync().upstreams().remove(0);
        let of_uncles =
            |call: &UpstreamRequest| call.method.contains("Uncle") || call.method.contains("ByHash");
        assert!(
            state.record.lies == 0 && state.record.demerits <= 1,
            "the binary response had no uncles: {state:?}"
        );
        assert!(!state.record.evidence.iter().any(|evidence| of_uncles(&evidence.request)), "{state:?}");
        assert!(state.resting.is_none(), "{state:?}");
    }
}

/// False uncles in a binary response are recorded as a lie. An uncle that was used before is not counted; its miner
/// is at fault and not the upstream, because the header commits to the list.
#[test]
fn false_uncles_are_a_lie_and_reused_uncles_do_not_count() {
    let (mut mined, uncle) = family();
    let list = [uncle.header().clone()];
    let one = mined.next(|header| (header.uncle_count, header.uncles_hash) = (1, uncles_hash(&list)));
    let other = mined.blocks[3].0.clone();
    mined.blocks.push((one, vec![other]));
    let client = mined.client();
    let record = client.sync().upstreams().remove(0).record;
    let reported =
        record.evidence.iter().any(|evidence| evidence.lie && evidence.rule.contains("uncles of block 5011"));
    assert!(record.lies == 1 && reported, "{record:?}");
    assert_eq!(client.sync().chain().unwrap().total_difficulty(&mined.head().hash()), None);

    mined.blocks.last_mut().unwrap().1 = vec![uncle.clone()];
    mined.adopt(1, uncle);
    let client = mined.client();
    let chain = client.sync().chain().unwrap().clone();
    assert!(chain.total_difficulty(&mined.blocks[11].0.hash()).is_some());
    assert_eq!(chain.total_difficulty(&mined.head().hash()), None);
    let record = client.sync().upstreams().remove(0).record;
    assert!(record.demerits == 0 && record.evidence.is_empty(), "the upstream is not to blame: {record:?}");
}

/// Uncles whose parents are below the checkpoint cannot be checked: they do not count, and no upstream is blamed.
#[test]
fn uncles_with_parents_below_the_checkpoint_do_not_count() {
    let mut mined = Mined::new();
    let uncle = mine(Header { gas_used: 1, ..mined.head().header().clone() });
    mined.adopt(1, uncle);
    let client = mined.client();
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!((chain.head().number, chain.total_difficulty(&mined.head().hash())), (START + 1, None));
    let record = client.sync().upstreams().remove(0).record;
    assert!(record.demerits == 0 && record.evidence.is_empty(), "{record:?}");
}

fn restore(client: &mut Client, pages: &[HeaderPage]) -> Result<Option<u64>, HeaderStoreFault> {
    client.restore(pages.len() as u64, &mut |index| {
        Ok(pages.get(index as usize).map(|page| page.bytes.clone()))
    })
}

/// Uncles are stored with their blocks, so that they are not requested again.
#[test]
fn uncles_are_restored_with_their_blocks() {
    let mut mined = siblings(3);
    let client = mined.client();
    let pages = client.export();
    let mut again = mined.start();
    assert_eq!(restore(&mut again, &pages), Ok(Some(mined.head().number)));
    let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&mined.head().hash());
    assert!(total(&client).is_some() && total(&again) == total(&client));
    mined.asked.clear();
    mined.follow(&mut again);
    assert!(again.sync().uncles_complete() && mined.asked.iter().all(|call| !call.method.contains("Uncle")));
}

/// During synchronization, pages are written only in large groups; at the head, one is written for every block.
#[test]
fn pages_are_written_in_large_groups_until_the_head_is_reached() {
    let mut mined = Mined::new();
    mined.grow(1_100, 14);
    let mut client = mined.start();
    client.set_batch(60);
    let (now, mut last, mut written) = (mined.now(), START, Vec::new());
    while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
        let head = client.sync().chain().map_or(START, |chain| chain.head().number);
        if !client.export().is_empty() {
            written.push((head - last, client.sync().is_synced()));
            last = head;
        }
    }
    assert_eq!(written.remove(0), (0, false), "the first page begins with the checkpoint");
    let early: Vec<u64> = written.iter().filter(|(_, synced)| !synced).map(|(new, _)| *new).collect();
    assert!(early.len() == 2 && early.iter().all(|new| (512..572).contains(new)), "{written:?}");
    assert_eq!(written.last().map(|(_, synced)| *synced), Some(true));
    mined.grow(1, 14);
    mined.follow_at(&mut client, 60_000);
    assert_eq!(client.export().len(), 1);
}

/// A slow upstream's response with the checkpoint's header does not reset the chain.
#[test]
fn a_late_checkpoint_header_does_not_reset_the_chain() {
    let mut mined = Mined::new();
    mined.grow(20, 14);
    let (mut client, now) = (mined.start_with(2), mined.now());
    let SyncStep::Fetch(asked) = client.sync_next(1, now) else { panic!("due") };
    let late = asked.iter().map(|call| mined.answer(call)).collect();
    mined.follow(&mut client);
    let head = |client: &Client| client.sync().chain().unwrap().head().hash();
    assert_eq!(head(&client), mined.head().hash());
    client.sync_feed(1, late, now);
    assert_eq!(head(&client), mined.head().hash());
}

/// A reorganisation down to the checkpoint: the search for the common ancestor goes further back at each step, and
/// never below the checkpoint.
#[test]
fn the_common_ancestor_is_searched_down_to_the_checkpoint() {
    for length in [5, 30, 700] {
        let mut mined = Mined::new();
        mined.grow(length, 14);
        let mut client = mined.client();
        mined.blocks.truncate(1);
        mined.grow(length + 5, 13);
        mined.asked.clear();
        mined.follow_at(&mut client, 60_000);
        assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash(), "{length}");
        assert!(mined.windows().all(|(first, count)| first > START && count <= 256), "{:?}", mined.asked);
        let record = client.sync().upstreams().remove(0).record;
        assert_eq!((record.lies, record.demerits), (0, 0));
    }
}

/// The bloom of a header proves that its block has no matching log, so that nothing is requested about it.
#[test]
fn blocks_that_their_bloom_excludes_are_not_requested() {
    let mut mined = Mined::new();
    mined.grow(50, 14);
    let mut client = mined.client();
    let (address, topic) = (format!("0x{}", "11".repeat(20)), format!("0x{}", "22".repeat(32)));
    let range = |mut filter: Value| {
        filter["fromBlock"] = json!(format!("{:#x}", START + 1));
        filter["toBlock"] = json!("latest");
        json!([filter])
    };
    for filter in [
        json!({ "address": address }),
        json!({ "topics": [topic] }),
        json!({ "topics": [null, [topic, topic]] }),
        json!({ "address": [address], "topics": [topic] }),
    ] {
        assert_eq!(ask(&mut client, "eth_getLogs", range(filter))["result"], json!([]));
    }
    let any = first_step(&mut client, "eth_getLogs", range(json!({})));
    assert!(matches!(any, SessionStep::Fetch(_)), "a filter for any log needs receipts");
}

/// Blocks that each name the sibling of the previous block as an uncle.
fn siblings(blocks: usize) -> Mined {
    let mut mined = Mined::new();
    mined.grow(10, 14);
    for _ in 0..blocks {
        let uncle = mine(Header { gas_used: 1, ..mined.head().header().clone() });
        mined.adopt(1, uncle);
    }
    mined
}

/// Single uncles are requested in groups of at most 64.
#[test]
fn uncles_are_fetched_in_groups() {
    let mut mined = siblings(100);
    let whole = mined.client();
    let total = |client: &Client, mined: &Mined| {
        client.sync().chain().unwrap().total_difficulty(&mined.head().hash())
    };
    let expected = total(&whole, &mined);
    (mined.omits_uncles, mined.family) = (true, Some((whole, false)));
    let (client, now, mut most) = (mined.start(), mined.now(), 0);
    while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
        most = most.max(calls.iter().filter(|call| call.method.contains("Uncle")).count());
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
    }
    assert_eq!((most, total(&client, &mined)), (64, expected));
    assert!(expected.is_some());
}

/// An upstream may lack the methods for uncles. A false uncle is a lie, whichever method returned it.
#[test]
fn a_false_uncle_is_a_lie_even_if_the_other_method_is_missing() {
    for (by_hash, by_number) in [(None, Some("{}")), (Some("{}"), None)] {
        let mut mined = siblings(1);
        mined.omits_uncles = true;
        let (client, now) = (mined.start(), mined.now());
        while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
            let answer = |call: &UpstreamRequest| {
                let uncle = match call.method {
                    "eth_getUncleByBlockHashAndIndex" => by_hash,
                    "eth_getUncleByBlockNumberAndIndex" => by_number,
                    _ => None,
                };
                match uncle {
                    Some(text) => Ok(RawValue::from_string(text.into()).unwrap()),
                    None => mined.answer(call),
                }
            };
            let answers = calls.iter().map(answer).collect();
            client.sync_feed(0, answers, now);
        }
        let record = client.sync().upstreams().remove(0).record;
        assert_eq!(record.lies, 1, "{by_hash:?} {by_number:?} {record:?}");
    }
}

/// An unsupported override is refused rather than ignored.
#[test]
fn precompiles_are_not_moved() {
    let mut mined = Mined::new();
    let mut client = mined.client();
    let (one, other) = (format!("0x{:040x}", 1), format!("0x{:040x}", 77));
    let moved = json!([{ "to": one }, "latest", { one.clone(): { "movePrecompileToAddress": other } }]);
    let error = &ask(&mut client, "eth_call", moved)["error"];
    assert!(
        error["message"].as_str().unwrap().contains("movePrecompileToAddress is not supported"),
        "{error}"
    );
}

/// Each traced block costs its body and a witness.
#[test]
fn trace_filter_traces_at_most_128_blocks() {
    let mut mined = Mined::new();
    mined.grow(200, 14);
    let mut client = mined.client();
    let range = |blocks: u64| json!([{ "fromBlock": format!("{:#x}", START + 10), "toBlock": format!("{:#x}", START + 9 + blocks) }]);
    let error = &ask(&mut client, "trace_filter", range(129))["error"];
    assert!(error["code"] == -32005 && error["message"].as_str().unwrap().contains("128"), "{error}");
    // The blocks are empty, but their bodies have to be fetched.
    assert!(matches!(first_step(&mut client, "trace_filter", range(128)), SessionStep::Fetch(_)));
}

/// An upstream that is a light client itself returns `null` for proofs of work that it has not checked. That is not a
/// lie, and it is asked again later. A wrong proof is a lie.
#[test]
fn a_missing_proof_of_work_is_not_a_lie_but_a_wrong_one_is() {
    for (proof, lies) in [(Value::Null, 0), (json!("0x"), 1)] {
        let mut mined = Mined::new();
        mined.grow(3, 30);
        let (client, now) = (mined.start_with(2), mined.now());
        for _ in 0..100 {
            let SyncStep::Fetch(calls) = client.sync_next(0, now) else { break };
            let answers = calls.iter().map(|call| shown_in_json(&mut mined, call, &proof)).collect();
            client.sync_feed(0, answers, now);
        }
        let state = client.sync().upstreams().remove(0);
        assert_eq!(state.record.lies, lies, "{state:?}");
        assert!(state.resting.is_some(), "{state:?}");
        assert_eq!(client.sync().chain().map(|chain| chain.head().number), Some(START));
    }
}

/// The response of an upstream that serves headers in JSON only, those above the checkpoint with `proof` as their
/// proof.
fn shown_in_json(mined: &mut Mined, call: &UpstreamRequest, proof: &Value) -> UpstreamResponse {
    if call.method == "eth_blockNumber" {
        return mined.answer(call);
    }
    let missing = Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() });
    if call.method != "eth_getBlockByNumber" {
        return missing;
    }
    let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
    let number = u64::from_str_radix(&params[0].as_str().unwrap()[2..], 16).unwrap();
    let header = mined.blocks.iter().map(|(header, _)| header).find(|header| header.number == number);
    let mut block: Value =
        header.map_or(Value::Null, |header| serde_json::from_str(&block_json(header)).unwrap());
    if number > START && block.is_object() {
        for field in ["MerkleProof", "CoinbaseTransaction"] {
            block[format!("bitcoinMergedMining{field}")] = proof.clone();
        }
    }
    Ok(RawValue::from_string(block.to_string()).unwrap())
}
