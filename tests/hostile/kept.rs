//! Data that is kept between two runs: read back if it is valid, refused as a whole if not.

use rootlight::{
    consensus::{HeaderCandidate, Network, Origin},
    light::{HeaderPage, HeaderStoreFault, Now, PAGE_HEADERS, SyncStep},
    rpc::Client,
    types::{HeaderForm, rlp::list_of},
};

use crate::mainnet::{client, headers, run};

/// Takes pages over as a host does.
pub(crate) fn keep(store: &mut Vec<Vec<u8>>, pages: Vec<HeaderPage>) {
    let Some(last) = pages.last() else { return };
    store.resize(last.index as usize + 1, Vec::new());
    for page in pages {
        store[page.index as usize] = page.bytes;
    }
}

pub(crate) fn restore(client: &mut Client, store: &[Vec<u8>]) -> Result<Option<u64>, HeaderStoreFault> {
    client.restore(store.len() as u64, &mut |index| Ok(store.get(index as usize).cloned()))
}

/// A synchronized client's store, from header 500 on with those below it.
fn stored(headers: &[HeaderCandidate]) -> Vec<Vec<u8>> {
    let mut client = client(headers, 500);
    run(&mut client, headers, headers[1_199].header().timestamp, 0, 60);
    let mut store = Vec::new();
    keep(&mut store, client.export());
    assert!(client.export().is_empty(), "nothing new");
    store
}

#[test]
fn what_was_kept_is_taken_back_and_not_asked_for_again() {
    let Some(headers) = headers() else { return };
    let store = stored(&headers);
    let mut again = client(&headers, 500);
    let last = headers[1_199].header();
    assert_eq!(restore(&mut again, &store), Ok(Some(last.number)));
    let chain = again.sync().chain().unwrap().clone();
    assert_eq!((chain.head().hash(), chain.view().lowest()), (last.hash(), headers[51].header().number));
    for header in &headers[501..] {
        let kept = chain.by_hash(&header.header().hash()).unwrap();
        assert!(
            matches!(kept.evidence().origin, Origin::Mined(_))
                && kept.evidence().fork_detection.is_complete()
        );
    }
    assert!(!again.sync().is_synced(), "an upstream may have more");
    let mut asked = Vec::new();
    for millis in 0..3 {
        let now = Now { unix: last.timestamp, millis };
        let SyncStep::Fetch(calls) = again.sync_next(0, now) else { break };
        // The recording has no uncles: they stay wanted.
        let new = calls.iter().filter(|call| !call.method.contains("Uncle"));
        asked.extend(new.map(|call| format!("{}{}", call.method, call.params)));
        let answers = calls.iter().map(|call| crate::mainnet::answer(&headers, call)).collect();
        again.sync_feed(0, answers, now);
    }
    // The head itself is shown again: the upstream may be on another branch.
    let from_head = format!(r#"rootlight_getHeaders["{:#x}","0x2"]"#, last.number);
    assert_eq!(asked, ["eth_blockNumber[]", &from_head]);
    assert!(again.sync().is_synced() && again.export().is_empty());
    assert_eq!(again.sync().progress().start, last.number);
}

/// An upstream that keeps no old blocks: the first pages are empty, and the rest comes back all the same.
#[test]
fn what_was_kept_without_the_window_below_comes_back_too() {
    let Some(headers) = headers() else { return };
    let (last, mut store) = (headers[1_199].header(), Vec::new());
    let mut cold = client(&headers, 0);
    run(&mut cold, &headers, last.timestamp, 0, 60);
    let pages = cold.export();
    assert_eq!(pages[0].index, 0);
    keep(&mut store, pages);
    assert_eq!(restore(&mut client(&headers, 0), &store), Ok(Some(last.number)));
}

/// Any bit of any page: the hash of the page finds it.
#[test]
fn damage_is_found_wherever_it_is() {
    let Some(headers) = headers() else { return };
    let store = stored(&headers);
    for step in 0..200_usize {
        let mut damaged = store.clone();
        let index = step * 7 % damaged.len();
        let place = step * 7_919 % damaged[index].len();
        if step % 5 == 0 {
            damaged[index].truncate(place);
        } else {
            damaged[index][place] ^= 1 << (step % 8);
        }
        let mut client = client(&headers, 500);
        assert!(restore(&mut client, &damaged).is_err(), "page {index} byte {place}");
        assert!(client.sync().chain().is_none() && client.export().is_empty(), "nothing of it stays");
    }
}

fn page_of(lists: &[Vec<u8>]) -> Vec<u8> {
    let list = list_of(lists.iter().map(Vec::as_slice));
    [&alloy_primitives::keccak256(&list)[..], &list].concat()
}

/// A header without uncles as a store has it.
fn entry(header: &HeaderCandidate) -> Vec<u8> {
    let header = header.header().encode(HeaderForm::Full);
    list_of([header.as_slice(), &[0xc0]])
}

/// Pages whose hashes are right, as an attacker who writes to the disk could make them.
fn forged(headers: &[HeaderCandidate]) -> Vec<Vec<u8>> {
    let entries: Vec<Vec<u8>> = headers.iter().map(entry).collect();
    entries.chunks(PAGE_HEADERS as usize).map(page_of).collect()
}

#[test]
fn a_header_without_its_proof_of_work_is_refused_however_well_it_is_stored() {
    let Some(headers) = headers() else { return };
    let good = &headers[500..700];
    assert!(restore(&mut client(&headers, 500), &forged(good)).is_ok());
    for place in [1, 100, 199] {
        let mut bad = good.to_vec();
        // The block's hash does not cover the proof.
        let mut header = good[place].header().header().clone();
        let mut proof = header.merkle_proof.to_vec();
        proof[0] ^= 1;
        header.merkle_proof = proof.into();
        bad[place] = HeaderCandidate::from(header);
        assert_eq!(bad[place].header().hash(), good[place].header().hash());
        let fault = restore(&mut client(&headers, 500), &forged(&bad)).unwrap_err();
        assert!(matches!(fault, HeaderStoreFault::Chain(_)), "{fault}");
        assert!(fault.to_string().contains("bitcoinMergedMiningMerkleProof"), "{fault}");
    }
}

#[test]
fn broken_links_gaps_and_foreign_chains_are_refused() {
    let Some(headers) = headers() else { return };
    let check = |list: &[HeaderCandidate], start: usize| restore(&mut client(&headers, start), &forged(list));
    let missing = [&headers[500..550], &headers[551..600]].concat();
    assert!(matches!(check(&missing, 500), Err(HeaderStoreFault::Chain(_))), "one left out");
    let changed = {
        let mut list = headers[500..600].to_vec();
        let mut header = list[50].header().header().clone();
        header.timestamp += 1;
        list[50] = HeaderCandidate::from(header);
        list
    };
    assert!(matches!(check(&changed, 500), Err(HeaderStoreFault::Chain(_))), "another hash");
    assert!(
        matches!(check(&headers[500..600], 400), Err(HeaderStoreFault::Gap(_))),
        "above the checkpoint only"
    );
    assert!(
        matches!(check(&headers[300..400], 500), Err(HeaderStoreFault::Gap(_))),
        "below the checkpoint only"
    );
    assert!(
        matches!(check(&headers[0..600], 500), Err(HeaderStoreFault::Gap(_))),
        "more below than is ever kept"
    );
    let behind = [&headers[500..600], &headers[450..451]].concat();
    assert!(matches!(check(&behind, 500), Err(HeaderStoreFault::Gap(_))), "below the checkpoint, after it");
    let entries: Vec<Vec<u8>> = headers[500..565].iter().map(entry).collect();
    let long = restore(&mut client(&headers, 500), &[page_of(&entries)]);
    assert!(matches!(long, Err(HeaderStoreFault::Decode { index: 0, .. })), "a page of 65: {long:?}");
    let header = headers[500].header().encode(HeaderForm::Full);
    let wide = list_of([header.as_slice(), &[0xc0], &[0xc0]]);
    let wide = restore(&mut client(&headers, 500), &[page_of(&[wide])]);
    assert!(
        matches!(wide, Err(HeaderStoreFault::Decode { index: 0, .. })),
        "more than a header and its uncles"
    );
    let mut regtest = Client::new(
        Network::regtest().into(),
        *client(&headers, 500).sync().checkpoint(),
        Default::default(),
    );
    assert!(restore(&mut regtest, &forged(&headers[500..600])).is_err(), "another network");
    assert_eq!(restore(&mut client(&headers, 500), &[]), Ok(None), "nothing was kept");
}
