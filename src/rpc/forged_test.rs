//! Stores of headers that an attacker has written: a header's stated difficulty counts only once its proof of work is
//! checked.

use serde_json::json;

use super::mined_chain::{BASE_DIFFICULTY, Mined, START, ask, family};
use crate::{
    consensus::{
        ChainError, Checkpoint, HeaderChain, Rule, difficulty,
        testing::{child, header, mine},
    },
    light::{ClientConfig, HeaderStoreFault, HeaderSync, REPROVEN},
    rpc::Client,
    types::{Header, SealedHeader, U256},
};

/// Headers of the forged store without proof of work.
const FREE: usize = 1_100;

/// The trusted start of a chain.
fn checkpoint(mined: &Mined) -> Checkpoint {
    let total_difficulty = Some(U256::from(1_000));
    Checkpoint { number: START, hash: mined.blocks[0].0.hash(), total_difficulty }
}

/// A store of these headers, whether they have a proof of work or not.
fn pages(mined: &Mined, blocks: &[(SealedHeader, Vec<SealedHeader>)]) -> Vec<Vec<u8>> {
    let (network, base) = (mined.network.clone().into(), mined.blocks[0].0.clone());
    let chain = HeaderChain::from_checkpoint(network, &checkpoint(mined), base).unwrap();
    let mut chain = chain.with_window(u64::MAX);
    for (header, uncles) in blocks {
        chain.insert_linked(header.clone().into()).unwrap();
        let uncles = uncles.iter().map(|uncle| uncle.header().clone()).collect();
        chain.attach_linked(&header.hash(), uncles).unwrap();
    }
    HeaderSync::pages_of(checkpoint(mined), chain)
}

fn restored(mined: &Mined, pages: &[Vec<u8>]) -> (Client, Result<Option<u64>, HeaderStoreFault>) {
    let client = mined.start_as(ClientConfig { upstreams: vec!["miner".into()], ..ClientConfig::default() });
    let outcome = client.restore(pages.len() as u64, &mut |index| Ok(pages.get(index as usize).cloned()));
    (client, outcome)
}

/// Verifies the store step by step to its end. Returns the number of steps.
fn prove_all(client: &mut Client, pages: &[Vec<u8>]) -> Result<usize, HeaderStoreFault> {
    for steps in 0..10_000 {
        if !client.prove_restored(&mut |index| Ok(pages.get(index as usize).cloned()))? {
            return Ok(steps);
        }
    }
    panic!("no end");
}

/// A header with the difficulty that the rules require, but without a proof of work for it.
fn unmined(mined: &Mined, parent: &SealedHeader, change: impl FnOnce(&mut Header)) -> SealedHeader {
    let mut header = Header { gas_used: 5, ..child(&mined.network, parent) };
    change(&mut header);
    let easy = mine(Header { difficulty: U256::from(1).into(), ..header.clone() });
    Header {
        difficulty: difficulty::expected(&header, parent, &mined.network).into(),
        bitcoin_header: easy.bitcoin_header.clone(),
        merkle_proof: easy.merkle_proof.clone(),
        coinbase_tx: easy.coinbase_tx.clone(),
        ..header
    }
    .seal()
}

/// A forged chain. Without work, its difficulty rises and then falls again by absurd uncle counts; once it is low,
/// the headers are mined.
fn forged(mined: &Mined) -> Vec<(SealedHeader, Vec<SealedHeader>)> {
    let mut parent = mined.blocks[0].0.clone();
    let mut blocks = Vec::new();
    let mut add = |block: SealedHeader| {
        blocks.push((block.clone(), Vec::new()));
        block
    };
    for step in 0..FREE as u32 {
        let time = parent.timestamp + 1;
        // The difficulty rule multiplies the count by 14 in 32 bits, which makes it negative here.
        let uncles = if step < 300 { 0 } else { 1 << 28 };
        parent =
            add(unmined(mined, &parent, |header| (header.timestamp, header.uncle_count) = (time, uncles)));
    }
    assert!(parent.difficulty.value() < U256::from(BASE_DIFFICULTY / 2), "{:?}", parent.difficulty);
    for _ in 0..REPROVEN {
        let mut header = child(&mined.network, &parent);
        header.timestamp = parent.timestamp + 30;
        header.difficulty = difficulty::expected(&header, &parent, &mined.network).into();
        parent = add(mine(header));
    }
    blocks
}

fn work<'a>(blocks: impl IntoIterator<Item = &'a (SealedHeader, Vec<SealedHeader>)>) -> U256 {
    blocks.into_iter().map(|(header, _)| header.difficulty.value()).sum()
}

#[test]
fn only_the_checked_work_of_a_forged_store_counts() {
    let mut honest = Mined::new();
    let forged = forged(&honest);
    honest.grow(1_600, 14);
    let (claimed, shown) = (work(&forged), work(&forged[FREE..]));
    let true_work = work(&honest.blocks[1..]);
    assert!(shown < true_work && true_work < claimed, "{shown} {true_work} {claimed}");
    let pages = pages(&honest, &forged);

    let (mut client, outcome) = restored(&honest, &pages);
    let head = forged.last().unwrap().0.hash();
    assert_eq!(outcome, Ok(Some(START + (FREE + REPROVEN) as u64)));
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!((chain.head().hash(), chain.view().header_work(&head)), (head, Some(shown)));
    assert_eq!(chain.total_difficulty(&head), None);
    assert_eq!(chain.view().work_above(START), Some(shown));
    assert!(client.sync().low_work().is_some(), "the work floor applies to the checked work");
    assert_eq!(ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["headersToProve"], FREE);

    honest.follow(&mut client);
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!(chain.head().hash(), honest.head().hash());
    assert_eq!(chain.total_difficulty(&honest.head().hash()), Some(U256::from(1_000) + true_work));
    assert!(chain.by_hash(&head).is_none() && client.sync().unproven().is_none());
    assert!(client.sync().low_work().is_none());
}

/// Proofs are checked from the newest header down, until the first header without one.
#[test]
fn checking_the_older_headers_of_a_store_detects_the_forgery() {
    let mut honest = Mined::new();
    let pages = pages(&honest, &forged(&honest));
    let (mut client, _) = restored(&honest, &pages);
    let fault = prove_all(&mut client, &pages).unwrap_err();
    assert!(
        matches!(fault, HeaderStoreFault::Chain(ChainError::Rule { number, .. }) if number == START + FREE as u64),
        "{fault}"
    );
    assert!(client.sync().chain().is_none() && !client.sync().is_synced());
    honest.grow(5, 30);
    honest.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().hash(), honest.head().hash());
}

/// Uncles from a store must follow every rule, proof of work included, before they count.
#[test]
fn uncles_of_a_store_need_a_proof_of_work() {
    let (mut mined, uncle) = family();
    let parent = mined.blocks[9].0.clone();
    for (uncle, holds) in [(uncle, true), (unmined(&mined, &parent, |_| {}), false)] {
        mined.blocks.truncate(11);
        mined.adopt(1, uncle);
        let (client, outcome) = restored(&mined, &pages(&mined, &mined.blocks[1..]));
        assert_eq!(outcome.is_ok(), holds, "{outcome:?}");
        let uncles = matches!(outcome, Err(HeaderStoreFault::Chain(ChainError::Uncles { .. })));
        assert_eq!(uncles, !holds);
        assert_eq!(client.sync().chain().is_some(), holds);
    }
}

/// A store longer than the headers in memory is checked page by page down to the checkpoint. The total difficulty is
/// known only after that.
#[test]
fn a_long_store_is_checked_down_to_the_checkpoint() {
    let mut mined = Mined::under(&[(Rule::Rskip92, 0)]);
    mined.blocks[0].0 = mine(header(&mined.network, START));
    mined.grow(9_000, 30);
    let mut pages = pages(&mined, &mined.blocks[1..]);
    let (mut client, outcome) = restored(&mined, &pages);
    assert_eq!(outcome, Ok(Some(START + 9_000)));
    assert_eq!(client.sync().unproven(), Some(START + 9_000 - REPROVEN as u64));
    let head = mined.head().hash();
    assert_eq!(client.sync().chain().unwrap().total_difficulty(&head), None);
    let steps = prove_all(&mut client, &pages).unwrap();
    assert!(steps >= 6_000 / 64, "in small steps: {steps}");
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!(client.sync().unproven(), None);
    let total = U256::from(1_000) + work(&mined.blocks[1..]);
    assert_eq!(chain.total_difficulty(&head), Some(total));

    // One header below those in memory has an invalid proof.
    let mut blocks = mined.blocks[1..].to_vec();
    let (broken, _) = &mut blocks[100];
    let hash = broken.hash();
    *broken = Header { coinbase_tx: vec![0; 100].into(), ..broken.header().clone() }.seal();
    assert_eq!(broken.hash(), hash, "the hash does not cover the coinbase");
    pages = self::pages(&mined, &blocks);
    let (mut client, outcome) = restored(&mined, &pages);
    assert!(outcome.is_ok());
    let fault = prove_all(&mut client, &pages).unwrap_err();
    assert!(
        matches!(fault, HeaderStoreFault::Chain(ChainError::Rule { number, .. }) if number == START + 101),
        "{fault}"
    );
}

/// The difficulty fell without work below the headers in memory. Above, more cheap headers with one timestamp follow
/// than memory holds, so that no stretch of two hours is there to apply the work floor to.
#[test]
fn a_forged_store_longer_than_memory_is_below_the_work_floor_and_detected() {
    const CHEAP: usize = 8_300;
    let mut honest = Mined::new();
    let mut forged = forged(&honest);
    forged.truncate(FREE);
    let mut parent = forged.last().unwrap().0.clone();
    for _ in 0..CHEAP {
        let mut header = child(&honest.network, &parent);
        (header.timestamp, header.uncle_count) = (parent.timestamp, 1 << 28);
        header.difficulty = difficulty::expected(&header, &parent, &honest.network).into();
        parent = mine(header);
        forged.push((parent.clone(), Vec::new()));
    }
    honest.grow(1_600, 14);
    let pages = pages(&honest, &forged);
    let (mut client, outcome) = restored(&honest, &pages);
    assert_eq!(outcome, Ok(Some(START + (FREE + CHEAP) as u64)));
    let chain = client.sync().chain().unwrap().clone();
    assert!(chain.view().base().number > START + FREE as u64, "only the newest pages are in memory");
    assert!(client.sync().low_work().is_some(), "the work floor applies to the headers in memory");

    // The honest chain forks off below the headers in memory, so that the two cannot be compared yet.
    honest.follow(&mut client);
    assert!(!client.sync().is_synced() && client.sync().low_work().is_some());
    let fault = prove_all(&mut client, &pages).unwrap_err();
    assert!(
        matches!(fault, HeaderStoreFault::Chain(ChainError::Rule { number, .. }) if number <= START + FREE as u64),
        "{fault}"
    );
    honest.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().hash(), honest.head().hash());
    assert!(client.sync().is_synced() && client.sync().low_work().is_none());
}

/// The older pages must connect the newest pages with the checkpoint.
#[test]
fn newest_pages_of_another_chain_are_detected() {
    let mut mined = Mined::new();
    mined.grow(9_000, 14);
    let mut other = Mined::new();
    let first = other.next(|header| header.gas_used = 77);
    other.blocks.push((first, Vec::new()));
    other.grow(8_999, 14);
    let (good, strange) = (pages(&mined, &mined.blocks[1..]), pages(&other, &other.blocks[1..]));
    for from in [12, 20, 28] {
        let mixed = [&good[..from], &strange[from..]].concat();
        let (mut client, outcome) = restored(&mined, &mixed);
        assert_eq!(outcome, Ok(Some(START + 9_000)), "{from}");
        assert!(prove_all(&mut client, &mixed).is_err(), "{from}");
        assert!(client.sync().chain().is_none() && client.sync().unproven().is_none());
    }
    let (mut client, _) = restored(&mined, &good);
    assert!(prove_all(&mut client, &good).is_ok());
    // A page has disappeared.
    let (client, _) = restored(&mined, &good);
    let mut read = |index: u64| Ok((index != 30).then(|| good.get(index as usize).cloned()).flatten());
    let missing = (0..10_000).find_map(|_| client.prove_restored(&mut read).err());
    assert_eq!(missing, Some(HeaderStoreFault::Damaged { index: 30 }));
    assert!(client.sync().chain().is_none());
    // Without the page of the checkpoint, the difficulty at the checkpoint is unknown.
    let mut headless = good.clone();
    headless[7] = strange[8].clone();
    let (_, outcome) = restored(&mined, &headless);
    assert_eq!(outcome, Err(HeaderStoreFault::Gap(START)));
}

/// Uncles below the headers in memory must follow every rule too.
#[test]
fn uncles_below_the_headers_in_memory_need_a_proof_of_work() {
    let (start, uncle) = family();
    let parent = start.blocks[9].0.clone();
    let mut blocks = start.blocks.clone();
    for (uncle, holds) in [(uncle, true), (unmined(&start, &parent, |_| {}), false)] {
        let mut mined = Mined::new();
        blocks.truncate(11);
        mined.blocks = blocks.clone();
        let work = uncle.difficulty.value();
        mined.adopt(1, uncle);
        mined.grow(9_000, 14);
        let pages = pages(&mined, &mined.blocks[1..]);
        let (mut client, outcome) = restored(&mined, &pages);
        assert!(outcome.is_ok());
        let proven = prove_all(&mut client, &pages);
        assert_eq!(proven.is_ok(), holds, "{proven:?}");
        let uncles = matches!(proven, Err(HeaderStoreFault::Chain(ChainError::Uncles { .. })));
        assert_eq!(uncles, !holds);
        let chain = client.sync().chain().cloned();
        if let Some(chain) = chain {
            let total = U256::from(1_000) + self::work(&mined.blocks[1..]) + work;
            assert_eq!(chain.total_difficulty(&mined.head().hash()), Some(total));
            assert_eq!(chain.view().header_work(&mined.head().hash()), Some(self::work(&mined.blocks[1..])));
        }
    }
}

const FIELDS: [&str; 3] =
    ["bitcoinMergedMiningCoinbaseTransaction", "bitcoinMergedMiningMerkleProof", "hashForMergedMining"];

/// A header with the same hash and another coinbase, which the hash does not cover (RSKIP-92).
fn with_false_coinbase(header: &SealedHeader) -> SealedHeader {
    let coinbase_tx = [&header.coinbase_tx[..], &[0; 64]].concat().into();
    let changed = Header { coinbase_tx, ..header.header().clone() }.seal();
    assert_eq!(changed.hash(), header.hash(), "the hash does not cover the coinbase");
    changed
}

/// Whether the answers about a block contain its merged-mining fields; all or none of them.
fn shown(mined: &mut Mined, client: &mut Client, number: u64) -> bool {
    let answer = mined.ask(client, "eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
    let block = &answer["result"];
    assert!(block["bitcoinMergedMiningHeader"].is_string(), "the hash covers it: {answer}");
    let shown: Vec<bool> = FIELDS.iter().map(|field| block[field].is_string()).collect();
    let raw = mined.ask(client, "rsk_getRawBlockHeaderByNumber", json!([format!("{number:#x}")]));
    let raw = raw["result"].as_str().unwrap().len() / 2;
    let header = mined.blocks.iter().find(|(header, _)| header.number == number).unwrap();
    let full = header.0.encode(crate::types::HeaderForm::Full).len();
    assert!(raw + header.0.coinbase_tx.len() < full, "a raw header has no merged-mining fields");
    assert!(shown.iter().all(|one| *one == shown[0]), "{block}");
    shown[0]
}

/// Headers below the checkpoint are accepted because of their hashes.
#[test]
fn merged_mining_below_the_checkpoint_is_shown_where_it_was_checked() {
    let network = Mined::new().network;
    let mut mined = Mined::from(START - 449, network);
    for _ in 0..454 {
        let next = mined.next(|header| header.transactions_root = crate::trie::EMPTY_ROOT);
        mined.blocks.push((next, Vec::new()));
    }
    mined.blocks[445].0 = with_false_coinbase(&mined.blocks[445].0);
    let mut client = mined.client();
    let numbers = [START - 5, START - 4, START - 3, START, START + 1];
    assert_eq!(numbers.map(|number| shown(&mut mined, &mut client, number)), [true, false, true, true, true]);
    // A raw block has the proof too.
    for (number, is_given) in [(START - 5, true), (START - 4, false), (START - 3, true)] {
        let answer = mined.ask(&mut client, "debug_getRawBlock", json!([format!("{number:#x}")]));
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(answer["result"].is_string(), is_given, "{answer}");
        assert_eq!(words.contains("no valid Merkle proof"), !is_given, "{answer}");
    }
    // Other clients get only headers whose proof was checked.
    let batch = |client: &mut Client, first: u64| {
        let answer = ask(client, "rootlight_getHeaders", json!([format!("{first:#x}"), "0x20"]));
        let text = answer["result"].as_str().unwrap().to_owned();
        crate::light::decode_headers(&text, 256, &mined.network).unwrap().len()
    };
    assert_eq!((batch(&mut client, START - 6), batch(&mut client, START - 3)), (2, 9));
}

/// Headers that were restored from a store and are not all checked yet.
#[test]
fn merged_mining_of_a_store_is_shown_where_it_was_checked() {
    let mut mined = Mined::new();
    let empty = |header: &mut Header| header.transactions_root = crate::trie::EMPTY_ROOT;
    for _ in 0..REPROVEN + 50 {
        let next = mined.next(empty);
        mined.blocks.push((next, Vec::new()));
    }
    mined.blocks[20].0 = with_false_coinbase(&mined.blocks[20].0);
    let pages = pages(&mined, &mined.blocks[1..]);
    let (mut client, outcome) = restored(&mined, &pages);
    assert!(outcome.is_ok());
    mined.follow(&mut client);
    assert!(client.sync().unproven().is_some_and(|number| number > START + 20));
    let numbers = [START + 19, START + 20, START + 21, START + 100];
    assert_eq!(numbers.map(|number| shown(&mut mined, &mut client, number)), [true, false, true, true]);
}

/// The native contract that reads headers returns no coinbase that was not checked.
#[test]
fn contracts_read_merged_mining_where_it_was_checked() {
    let selector = crate::types::keccak256("getMergedMiningTags(int256)");
    let data =
        alloy_primitives::hex::encode_prefixed([&selector[..4], &U256::from(1).to_be_bytes::<32>()].concat());
    for honest in [true, false] {
        let mut mined = Mined::new();
        for _ in 0..2 {
            let next = mined.next(|header| header.state_root = crate::trie::EMPTY_ROOT);
            mined.blocks.push((next, Vec::new()));
        }
        if !honest {
            mined.blocks[0].0 = with_false_coinbase(&mined.blocks[0].0);
        }
        let mut client = mined.client();
        let call = json!([{ "to": "0x0000000000000000000000000000000001000010", "data": data }, "latest"]);
        let answer = mined.ask(&mut client, "eth_call", call);
        assert_eq!(answer["result"].is_string(), honest, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(message.contains("proof of work of block 5000 was not shown"), !honest, "{answer}");
    }
}

/// A header that is accepted because of its hash may have any coinbase and Merkle proof (RSKIP-92). They are shown
/// only if they were checked.
#[test]
fn merged_mining_is_shown_where_it_was_checked() {
    for honest in [true, false] {
        let mut mined = Mined::new();
        let transactions_root = crate::trie::EMPTY_ROOT;
        let base =
            Header { difficulty: BASE_DIFFICULTY.into(), transactions_root, ..header(&mined.network, START) };
        mined.blocks[0].0 = mine(base);
        mined.grow(2, 30);
        let base = mined.blocks[0].0.clone();
        if !honest {
            mined.blocks[0].0 = with_false_coinbase(&base);
        }
        let mut client = mined.client();
        let block = ask(&mut client, "eth_getBlockByNumber", json!([format!("{START:#x}"), false]));
        let block = &block["result"];
        assert_eq!(block["hash"], json!(base.hash()), "{block}");
        assert!(block["bitcoinMergedMiningHeader"].is_string(), "the hash covers it");
        for field in FIELDS {
            assert_eq!(block[field].is_string(), honest, "{field} {block}");
        }
    }
}
