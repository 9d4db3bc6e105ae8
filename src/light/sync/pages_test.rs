//! The pages that are stored and taken back.

use alloc::{sync::Arc, vec, vec::Vec};

use alloy_primitives::{B256, keccak256};

use super::{HeaderStoreFault, HeaderSync};
use crate::{
    consensus::{
        Checkpoint, HeaderCandidate, HeaderChain, Rule,
        testing::{child, easy_network, header, mine},
    },
    light::header_batch::{MAX_BATCH_BYTES, encode_list},
};

const START: u64 = 5_000;

/// A machine that has reached the end of a chain with this many blocks above its checkpoint, and keeps `window` headers
/// in memory. The third block claims to have uncles.
fn synced(blocks: u64, window: u64) -> HeaderSync {
    let network = Arc::new(easy_network(&[], &[(Rule::Rskip110, u64::MAX)]));
    let base = mine(header(&network, START));
    let checkpoint = Checkpoint { number: START, hash: base.hash(), total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, base.clone()).unwrap();
    let (mut chain, mut parent) = (chain.with_window(window), base);
    for number in 1..=blocks {
        let mut next = child(&network, &parent);
        if number == 3 {
            next.uncles_hash = B256::repeat_byte(3);
        }
        let next = mine(next);
        chain.insert(HeaderCandidate::from(next.clone()), None).unwrap();
        parent = next;
    }
    let mut sync = HeaderSync::new(network, checkpoint);
    (sync.followed.chain, sync.followed.synced_once) = (Some(chain), true);
    sync
}

/// If a later page is invalid, nothing of the earlier ones stays, not even open requests.
#[test]
fn nothing_stays_of_pages_with_an_invalid_one() {
    let mut sync = synced(100, 8_192);
    let (network, checkpoint) = (sync.network().clone(), *sync.checkpoint());
    sync.followed.touch(0);
    let mut pages: Vec<Vec<u8>> = sync.export().into_iter().map(|page| page.bytes).collect();
    let restored = |pages: &[Vec<u8>]| {
        let mut sync = HeaderSync::new(network.clone(), checkpoint);
        let held = sync.restore(pages.len() as u64, &mut |index| Ok(pages.get(index as usize).cloned()));
        let wanted = (!sync.followed.backlog.is_empty(), !sync.followed.backfill.is_complete());
        (held.ok(), sync.followed.chain.is_some(), wanted)
    };
    assert_eq!(restored(&pages), (Some(Some(START + 100)), true, (true, true)));
    pages.last_mut().unwrap()[40] ^= 1;
    assert_eq!(restored(&pages), (None, false, (false, false)));
}

/// Passes in pages until one is refused. Returns the number of that page, or the outcome.
fn give(sync: &mut HeaderSync, pages: &[Vec<u8>]) -> Result<Option<u64>, u64> {
    let mut restoring = sync.restoring(pages.len() as u64);
    while let Some(index) = restoring.page() {
        sync.restore_page(&mut restoring, &pages[index as usize]).map_err(|_| index)?;
    }
    Ok(sync.finish_restore(restoring).unwrap())
}

/// If pages are taken back one by one, those before a damaged one are used, and the headers after them are exported
/// again.
#[test]
fn pages_before_a_damaged_one_are_used() {
    let mut sync = synced(200, 8_192);
    let (network, checkpoint) = (sync.network().clone(), *sync.checkpoint());
    sync.followed.touch(0);
    let mut pages: Vec<Vec<u8>> = sync.export().into_iter().map(|page| page.bytes).collect();
    // The last header of the page before the damaged one: pages begin 449 blocks below the checkpoint.
    let damaged = pages.len() - 2;
    let prefix = START - 449 + 64 * damaged as u64 - 1;
    pages[damaged][40] ^= 1;

    let mut again = HeaderSync::new(network, checkpoint);
    assert_eq!(give(&mut again, &pages), Err(damaged as u64));
    assert!(again.chain().is_none());
    assert_eq!(give(&mut again, &pages[..damaged]), Ok(Some(prefix)));
    assert_eq!(again.chain().unwrap().head().number, prefix);
    assert!(!again.followed.backlog.is_empty(), "the third block's uncles are still requested");
    again.followed.synced_once = true;
    assert!(again.export().is_empty());
    again.store_again(damaged as u64 - 1);
    assert_eq!(again.export().iter().map(|page| page.index).collect::<Vec<_>>(), [damaged as u64 - 1]);
}

/// Pages that end before the checkpoint, or that start again below it, are refused.
#[test]
fn pages_without_the_checkpoint_are_refused() {
    let mut sync = synced(100, 8_192);
    let (network, checkpoint) = (sync.network().clone(), *sync.checkpoint());
    sync.followed.touch(0);
    let pages: Vec<Vec<u8>> = sync.export().into_iter().map(|page| page.bytes).collect();
    let outcome = |pages: &[Vec<u8>]| {
        let mut sync = HeaderSync::new(network.clone(), checkpoint);
        sync.restore(pages.len() as u64, &mut |index| Ok(pages.get(index as usize).cloned()))
    };
    assert_eq!(outcome(&[]), Ok(None));
    assert_eq!(outcome(&pages[..1]), Err(HeaderStoreFault::Gap(START)));
    let repeated = [&pages[..], &pages[7..8]].concat();
    assert_eq!(outcome(&repeated), Err(HeaderStoreFault::Gap(START)));
    assert_eq!(outcome(&pages), Ok(Some(START + 100)));
    let mut halfway = HeaderSync::new(network.clone(), checkpoint);
    let restoring = halfway.restoring(pages.len() as u64);
    assert_eq!(
        halfway.finish_restore(restoring),
        Err(HeaderStoreFault::Gap(START)),
        "before all pages were passed in"
    );
}

/// Pages begin 449 blocks below the checkpoint and hold 64 numbers. A page that reaches below the headers in memory
/// could be written only in part, so it is left as it is.
#[test]
fn pages_that_are_only_partly_in_memory_are_not_written() {
    let mut sync = synced(300, 100);
    let lowest = sync.chain().unwrap().view().lowest();
    assert_eq!(lowest, START + 201);
    let mut written = |from: u64| {
        sync.followed.touch(from);
        sync.export().iter().map(|page| page.index).collect::<Vec<_>>()
    };
    let page = |number: u64| (number - (START - 449)) / 64;
    assert_eq!(written(START), (page(lowest) + 1..=page(START + 300)).collect::<Vec<_>>());
    assert_eq!(written(START + 299), [page(START + 299)]);
    assert!(written(0).iter().all(|index| START - 449 + index * 64 >= lowest));
}

/// A page takes up to eight times its size when it is decoded, and a header may come with any number of uncles.
#[test]
fn a_page_above_the_size_limit_is_damaged() {
    let mut sync = synced(0, 8_192);
    let old = mine(header(sync.network(), START - 400));
    let page = |uncles: usize| {
        let list =
            encode_list([(old.header(), Some(&vec![old.clone(); uncles][..]))].into_iter()).into_list();
        (list.len(), [keccak256(&list).to_vec(), list].concat())
    };
    let (short, long) = (page(1), page(MAX_BATCH_BYTES / (page(2).0 - page(1).0) + 1));
    assert!(long.0 > MAX_BATCH_BYTES && long.0 < MAX_BATCH_BYTES + 2_000);
    let mut read = |page: &[u8]| {
        let mut restoring = sync.restoring(8);
        sync.restore_page(&mut restoring, page)
    };
    assert_eq!(read(&short.1), Ok(()));
    assert_eq!(read(&long.1), Err(HeaderStoreFault::Damaged { index: 0 }));
}
