//! Header pages that a light client writes and reads back at its next start.

use std::sync::{Arc, OnceLock};

use alloy_primitives::{Address, B256, U256, keccak256};
use rootlight::consensus::mining::mine;
use rootlight::consensus::{Checkpoint, Network, difficulty};
use rootlight::light::{HeaderSync, HeaderStoreFault, PAGE_HEADERS, HeaderPage};
use rootlight::types::{Header, HeaderForm, SealedHeader, uncles_hash};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// Number of the checkpoint's block. Pages begin 449 numbers below it.
const CHECKPOINT: u64 = 460;
const FIRST_KEPT: u64 = CHECKPOINT - 449;
/// Headers above the checkpoint: enough for an export before the first synchronization, over two pages.
const ABOVE: u64 = 70;
/// Blocks that have an uncle.
const UNCLE_EVERY: u64 = 9;
/// Nonces tried; difficulty 1 needs three on average.
const ATTEMPTS: u32 = 256;
/// Steps of the proofs of work: more than there are headers.
const STEPS: usize = 200;
/// Bytes of a page's hash.
const HASH: usize = 32;

type HeaderWithUncles = (SealedHeader, Vec<Header>);

/// A network on which a header needs a third of all hashes, and a chain on it.
struct PagesCase {
    network: Arc<Network>,
    checkpoint: Checkpoint,
    blocks: Vec<HeaderWithUncles>,
}

fn setting() -> &'static PagesCase {
    static SETTING: OnceLock<PagesCase> = OnceLock::new();
    SETTING.get_or_init(|| {
        let text = r#"{"name":"fuzz","base":"regtest","rules":{"rskip110":-1}}"#;
        let network = Network::from_json(text).expect("a network file");
        let base = base(&network);
        let checkpoint = Checkpoint { number: CHECKPOINT, hash: base.hash(), total_difficulty: None };
        let mut blocks = vec![(base, Vec::new())];
        extend(&network, &mut blocks, ABOVE);
        PagesCase { network: Arc::new(network), checkpoint, blocks }
    })
}

fn base(network: &Network) -> SealedHeader {
    let header = Header {
        parent_hash: B256::repeat_byte(1),
        coinbase: Some(Address::repeat_byte(5)),
        state_root: B256::repeat_byte(2),
        transactions_root: B256::repeat_byte(3),
        receipts_root: B256::repeat_byte(4),
        difficulty: U256::from(1).into(),
        gas_limit: 6_800_000u64.into(),
        gas_used: 21_000,
        timestamp: 1_600_000_000,
        minimum_gas_price: 1_000u64.into(),
        ..Header::empty(network.header_shape(CHECKPOINT), CHECKPOINT)
    };
    mine(header, &[0; 12], network, ATTEMPTS).expect("mined")
}

/// Mines `count` blocks on top.
fn extend(network: &Network, blocks: &mut Vec<HeaderWithUncles>, count: u64) {
    for _ in 0..count {
        let [.., (parent, _)] = blocks.as_slice() else { return };
        let uncle = match blocks.as_slice() {
            [.., (grandparent, _), _] if (parent.number + 1).is_multiple_of(UNCLE_EVERY) => {
                let sibling = Header { gas_used: 7, ..unmined(network, grandparent, &[]) };
                mine(sibling, &[0; 12], network, ATTEMPTS)
            }
            _ => None,
        };
        let uncles: Vec<Header> = uncle.map(SealedHeader::into_header).into_iter().collect();
        // A higher difficulty may ask for more than the attempts.
        let header = unmined(network, parent, &uncles);
        let Some(mined) = mine(header, &[0; 12], network, ATTEMPTS) else { return };
        blocks.push((mined, uncles));
    }
}

fn unmined(network: &Network, parent: &SealedHeader, uncles: &[Header]) -> Header {
    let mut header = Header {
        shape: network.header_shape(parent.number + 1),
        parent_hash: parent.hash(),
        number: parent.number + 1,
        timestamp: parent.timestamp + 14,
        uncles_hash: uncles_hash(uncles),
        uncle_count: uncles.len() as u32,
        ..parent.header().clone()
    };
    header.difficulty = difficulty::expected(&header, parent, network).into();
    header
}

fn list(items: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    alloy_rlp::Header { list: true, payload_length: items.len() }.encode(&mut out);
    out.extend_from_slice(items);
    out
}

/// The pages of blocks, by the format's description: `keccak256(list) | list`, a list of `[header, [uncle, ..]]`.
pub fn pages(blocks: &[HeaderWithUncles]) -> Vec<Vec<u8>> {
    let Some((last, _)) = blocks.last() else { return Vec::new() };
    let page_of = |number: u64| (number - FIRST_KEPT) / PAGE_HEADERS;
    let page = |index| {
        let here = blocks.iter().filter(|(header, _)| page_of(header.number) == index);
        let entry = |(header, uncles): &HeaderWithUncles| {
            let family: Vec<u8> = uncles.iter().flat_map(|uncle| uncle.encode(HeaderForm::Full)).collect();
            list(&[header.encode(HeaderForm::Full), list(&family)].concat())
        };
        hashed(list(&here.flat_map(entry).collect::<Vec<u8>>()))
    };
    (0..=page_of(last.number)).map(page).collect()
}

fn hashed(list: Vec<u8>) -> Vec<u8> {
    [&keccak256(&list)[..], &list].concat()
}

/// First byte: what is done to the pages of an honest chain, or that the rest is one page of any bytes.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let PagesCase { network, blocks, .. } = setting();
    let kind = input.byte() % 4;
    let pages = match kind {
        0 => vec![hashed(input.rest().to_vec())],
        1 => changed_headers(network, blocks, &mut input),
        kind => changed_pages(pages(blocks), kind == 2, &mut input),
    };
    let len = pages.iter().map(Vec::len).sum();
    let whole = with_limit(len, || restored(&pages));
    with_limit(len, || restored_until_fault(&pages, whole.is_ok()));
}

/// Up to eight changes of the pages, or of what stands in them with the hash made to fit.
fn changed_pages(mut pages: Vec<Vec<u8>>, fits: bool, input: &mut Input<'_>) -> Vec<Vec<u8>> {
    while !input.is_empty() {
        // The pages below the checkpoint's are empty lists: the last three are changed most.
        let choice = input.byte();
        let low = if choice >= 16 { pages.len().saturating_sub(3) } else { 0 };
        let at = low + input.below(pages.len() - low);
        match choice % 16 {
            0 => drop(pages.remove(at)),
            1 => pages.insert(at, pages[at].clone()),
            2 => pages.truncate(at),
            3 => pages.push(hashed(list(&[]))),
            _ => {
                let start = HASH.min(pages[at].len());
                let mut list = pages[at].split_off(start);
                let place = input.below(list.len());
                let mut tail = list.split_off(place);
                change(&mut tail, input);
                list.extend(tail);
                pages[at].extend(list.clone());
                if fits {
                    pages[at] = hashed(list);
                }
            }
        }
        if pages.is_empty() {
            break;
        }
    }
    pages
}

/// A branch: one header changed and mined again, and blocks mined on top of it.
fn changed_headers(network: &Network, blocks: &[HeaderWithUncles], input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let mut blocks = blocks[..1 + input.below(blocks.len())].to_vec();
    let Some((last, uncles)) = blocks.pop() else { return Vec::new() };
    let mut header = last.into_header();
    let amount = u64::from(input.byte());
    match input.byte() % 8 {
        0 => header.timestamp += amount,
        1 => header.timestamp -= amount,
        2 => header.difficulty = U256::from(amount).into(),
        3 => header.uncle_count = amount as u32 | (amount as u32) << 24,
        4 => header.gas_limit = (6_800_000 + amount * 100).into(),
        5 => header.number += amount,
        6 => header.extra_data = vec![1; amount as usize].into(),
        _ => header.gas_used = amount << 40,
    }
    let above = input.below(20) as u64;
    if let Some(mined) = mine(header, &[0; 12], network, ATTEMPTS) {
        if mined.number < CHECKPOINT + 2 * ABOVE {
            blocks.push((mined, uncles));
            extend(network, &mut blocks, above);
        }
    }
    pages(&blocks)
}

fn machine() -> HeaderSync {
    let PagesCase { network, checkpoint, .. } = setting();
    HeaderSync::new(network.clone(), *checkpoint)
}

/// All pages at once: a chain from the checkpoint whose own pages read back to the same, or a fault and no chain.
fn restored(pages: &[Vec<u8>]) -> Result<Option<u64>, HeaderStoreFault> {
    let mut sync = machine();
    let mut read = |index: u64| Ok(pages.get(index as usize).cloned());
    let outcome = sync.restore(pages.len() as u64, &mut read);
    match &outcome {
        Err(fault) => assert!(sync.chain().is_none() && !fault.to_string().is_empty()),
        Ok(None) => assert!(sync.chain().is_none()),
        Ok(Some(head)) => prove_and_check(&mut sync, *head, pages),
    }
    outcome
}

/// Page by page, as the browser reads them: after a fault the pages before it are tried alone.
fn restored_until_fault(pages: &[Vec<u8>], whole: bool) {
    let mut sync = machine();
    let mut restoring = sync.restoring(pages.len() as u64);
    while let Some(index) = restoring.page() {
        let page = &pages[index as usize];
        if sync.restore_page(&mut restoring, page).is_err() {
            assert!(!whole);
            return restored_until_fault(&pages[..index as usize], false);
        }
    }
    if let Ok(Some(head)) = sync.finish_restore(restoring) {
        prove_and_check(&mut sync, head, pages);
    }
}

/// Proves the restored headers from the head back: either all of them hold, or none stays.
fn prove_and_check(sync: &mut HeaderSync, head: u64, pages: &[Vec<u8>]) {
    for _ in 0..STEPS {
        match sync.prove_restored(&mut |index| Ok(pages.get(index as usize).cloned())) {
            Ok(true) => {}
            Ok(false) if sync.unproven().is_some() => return,
            Ok(false) => return check_chain(sync, head),
            Err(_) => return assert!(sync.chain().is_none()),
        }
    }
    panic!("proving does not end");
}

fn check_chain(sync: &mut HeaderSync, head: u64) {
    let PagesCase { network, checkpoint, .. } = setting();
    let chain = sync.chain().expect("restored");
    assert_eq!((chain.head().number, sync.unproven()), (head, None));
    let mut at = chain.head().sealed().clone();
    assert!(head < CHECKPOINT + 3 * ABOVE);
    while at.number > CHECKPOINT {
        let parent = chain.by_number(at.number - 1).expect("no gap");
        assert_eq!((at.hash(), at.parent_hash), (at.header().hash(), parent.hash()));
        assert!(chain.by_hash(&at.hash()).is_some_and(|header| header.shows_work(network)));
        at = parent.sealed().clone();
    }
    assert_eq!(at.hash(), checkpoint.hash);
    // Few headers are not worth writing before the first synchronization.
    sync.store_again(0);
    let written: Vec<HeaderPage> = sync.export();
    assert!(written.is_empty() == (head - FIRST_KEPT < 512));
    assert!(written.iter().map(|page| page.index).eq(0..written.len() as u64));
    if !written.is_empty() {
        let mut again = machine();
        let mut read = |index: u64| Ok(written.get(index as usize).map(|page| page.bytes.clone()));
        let read = again.restore(written.len() as u64, &mut read);
        assert_eq!(read, Ok(Some(head)));
        again.store_again(0);
        assert_eq!(again.export(), written);
    }
}

/// The honest chain is taken back whole, and its pages are those that the description gives.
#[test]
fn honest_pages_are_restored() {
    let PagesCase { blocks, .. } = setting();
    let pages = pages(blocks);
    assert_eq!(restored(&pages), Ok(Some(CHECKPOINT + ABOVE)));
    let mut sync = machine();
    let mut read = |index: u64| Ok(pages.get(index as usize).cloned());
    sync.restore(pages.len() as u64, &mut read).expect("honest pages");
    sync.store_again(0);
    assert!(sync.export().into_iter().map(|page| page.bytes).eq(pages));
    check(&[1, 5, 1, 0, 9]);
    check(&[2]);
}
