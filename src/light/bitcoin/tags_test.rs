//! Classes of tags, and chains whose tags are not accepted.

use super::hidden::{HiddenBranch, contested};
use super::testing::{LOWEST, Shown, bitcoin, hash};
use super::{
    BranchRange, Coinbases, DatedWork, KEPT_COINBASES, TagClass, TagCounts, TagFault, TagReport, accept_all,
    classify, count_classes, judge_tags,
};
use crate::consensus::bitcoin::{ProvenCoinbase, Tag};

const HEAD: u64 = 10_000;

fn range(after: u64, until: u64) -> BranchRange {
    BranchRange { after: Some(after), until }
}

/// Counts of 72 classes, and whether 36 and 72 are accepted.
fn judge_classes(classes: impl IntoIterator<Item = TagClass>) -> (TagCounts, Result<(), TagFault>) {
    let counts = count_classes(classes);
    (counts[1], accept_all(&counts))
}

fn counts(own: u32, kin: u32, foreign: u32, none: u32) -> TagCounts {
    TagCounts { own, kin, foreign, none, ..TagCounts::default() }
}

#[test]
fn tags_are_classed_by_hash_and_commitments() {
    let mut shown = Shown::new(HEAD);
    let own = shown.own_tag(HEAD - 20);
    assert_eq!(classify(&own, &shown), TagClass::Own);
    assert_eq!(classify(&shown.tag(HEAD - 20, 1), &shown), TagClass::Kin);
    assert_eq!(classify(&shown.tag(HEAD + 8, 1), &shown), TagClass::Kin);
    assert_eq!(classify(&shown.tag(HEAD + 9, 1), &shown), TagClass::Ahead);
    // The number is part of the tag, the hash decides: a shown block may be named with any commitments.
    assert_eq!(classify(&Tag { cpv: [0; 7], ..own }, &shown), TagClass::Own);
}

#[test]
fn a_fork_is_foreign_from_its_first_commitment_on() {
    let shown = Shown::new(HEAD);
    // 9,600 is a multiple of 64; a block commits to it from 9,601 on.
    let hidden = Shown::forked(HEAD, 9_599);
    assert_eq!(classify(&hidden.tag(9_600, 1), &shown), TagClass::Kin);
    for number in [9_601, 9_700, 9_984] {
        assert_eq!(classify(&hidden.tag(number, 1), &shown), TagClass::Foreign(range(9_536, 9_600)));
    }
    // Seven commitments later the fork is out of their reach.
    let below = BranchRange { after: None, until: 9_600 };
    assert_eq!(classify(&hidden.tag(9_985, 1), &shown), TagClass::Foreign(below));
    // A byte that is equal by chance hides no lower one.
    let mut lucky = Shown::forked(HEAD, 9_599);
    lucky.bytes.remove(&9_728);
    assert_eq!(classify(&lucky.tag(9_750, 1), &shown), TagClass::Foreign(range(9_536, 9_600)));
}

#[test]
fn a_tag_far_ahead_is_foreign_if_its_commitments_differ() {
    let shown = Shown::new(HEAD);
    let hidden = Shown::forked(HEAD + 500, 9_599);
    let class = classify(&hidden.tag(HEAD + 20, 1), &shown);
    assert_eq!(class, TagClass::Foreign(BranchRange { after: None, until: 9_600 }));
}

#[test]
fn tags_that_cannot_be_compared_support_nothing() {
    let shown = Shown { lowest: 9_900, ..Shown::new(HEAD) };
    assert_eq!(classify(&shown.tag(9_900, 1), &shown), TagClass::None);
    assert_eq!(classify(&shown.tag(9_985, 1), &shown), TagClass::Kin, "by one commitment");
    let garbage = Tag { hash20: [9; 20], cpv: [9; 7], uncles: 9, number: 0 };
    assert_eq!(classify(&garbage, &shown), TagClass::None);
    assert_eq!(classify(&Tag { number: u32::MAX, ..garbage }, &shown), TagClass::Ahead);
}

#[test]
fn acceptance_is_that_of_the_rule() {
    assert_eq!(counts(4, 12, 8, 48).accept(), Ok(()));
    assert_eq!(counts(3, 9, 0, 60).accept(), Err(TagFault::Own), "below 5 % of 72");
    assert_eq!(counts(2, 0, 0, 34).accept(), Ok(()), "at least 5 % of 36");
    assert_eq!(counts(1, 0, 0, 35).accept(), Err(TagFault::Own));
    assert_eq!(counts(4, 13, 0, 55).accept(), Err(TagFault::Kin));
    assert_eq!(counts(4, 12, 9, 47).accept(), Err(TagFault::Foreign), "9 of 16");
    let ahead = TagCounts { ahead: 9, ..counts(4, 12, 0, 47) };
    assert_eq!(ahead.accept(), Err(TagFault::Ahead));
    let both = TagCounts { ahead: 1, ..counts(4, 12, 8, 47) };
    assert_eq!(both.accept(), Err(TagFault::Ahead));
}

/// A source cannot hide that miners stand behind another chain by withholding their coinbases.
#[test]
fn withheld_coinbases_count_against_the_chain() {
    let withheld = |own, withheld| TagCounts { withheld, ..counts(own, 0, 0, 72 - own - withheld) };
    assert_eq!(withheld(10, 5).accept(), Ok(()));
    assert_eq!(withheld(10, 6).accept(), Err(TagFault::Withheld));
    let (counts, verdict) = judge_classes([]);
    assert_eq!((counts.withheld, verdict), (72, Err(TagFault::Withheld)));
}

#[test]
fn both_numbers_of_tags_must_be_accepted() {
    let classes = |newest: TagClass, older: TagClass| {
        let half = |class| core::iter::repeat_n([class, TagClass::None], 18).flatten();
        judge_classes(half(newest).chain(half(older)))
    };
    assert_eq!(classes(TagClass::Own, TagClass::Own), (counts(36, 0, 0, 36), Ok(())));
    let foreign = TagClass::Foreign(range(0, 64));
    // Inherited own tags below a fork of 36 blocks do not help it.
    assert_eq!(classes(foreign, TagClass::Own), (counts(18, 0, 18, 36), Err(TagFault::Foreign)));
    assert_eq!(classes(TagClass::Own, foreign), (counts(18, 0, 18, 36), Err(TagFault::Foreign)));
    assert_eq!(classes(TagClass::None, TagClass::Own).1, Err(TagFault::Own));
    // Tags that only look like the chain, however many.
    assert_eq!(classes(TagClass::Kin, TagClass::Kin), (counts(0, 36, 0, 36), Err(TagFault::Own)));
}

/// Siblings with one content differ in their Bitcoin headers only: a tag is of both, and a Bitcoin block has one tag.
#[test]
fn siblings_with_one_content_share_a_tag() {
    let mut shown = Shown::new(HEAD);
    let tag = shown.own_tag(HEAD - 3);
    let report = judged(&shown, |height| (height < LOWEST + 30).then_some(tag));
    assert_eq!(report.all().own, 30);
}

/// Judges 80 coinbases above [`LOWEST`].
fn judged(shown: &Shown, tag: impl Fn(u32) -> Option<Tag>) -> TagReport {
    let (chain, mut coinbases) = (bitcoin(LOWEST + 71), Coinbases::default());
    for height in LOWEST..=LOWEST + 71 {
        coinbases.insert(&ProvenCoinbase::stated(height, hash(height), tag(height)));
    }
    judge_tags(shown, &chain, &coinbases, &DatedWork::default(), LOWEST + 71)
}

/// A forged chain whose makers search Bitcoin hashes until the commitments are those of the honest chain.
#[test]
fn mimicked_commitments_do_not_suffice() {
    let mut shown = Shown::new(HEAD);
    let honest = Shown::new(HEAD);
    let own = shown.own_tag(HEAD - 5);
    let report = judged(&shown, |height| match height % 20 {
        0 | 10 => Some(own),
        1..10 => Some(honest.tag(HEAD - 5, 1)),
        _ => None,
    });
    assert_eq!((report.all().own, report.all().kin), (8, 36));
    assert_eq!(report.verdict, Err(TagFault::Kin));
    assert_eq!(report.foreign, []);
}

#[test]
fn two_foreign_tags_that_agree_are_a_hidden_branch() {
    let mut shown = Shown::new(HEAD);
    let own = shown.own_tag(HEAD - 5);
    let hidden = Shown::forked(HEAD, 9_700);
    let report = judged(&shown, |height| match height % 24 {
        0 => Some(hidden.tag(9_800 + u64::from(height - LOWEST), 2)),
        // Garbage, each other than the rest.
        1 => Some(Tag { cpv: [height as u8; 7], ..own }).map(|tag| Tag { hash20: [height as u8; 20], ..tag }),
        _ => Some(own),
    });
    assert_eq!(report.verdict, Ok(()), "a warning, not a refusal");
    assert_eq!(report.all().foreign, 6);
    let found = HiddenBranch::of(&report.foreign, &shown);
    assert_eq!(found, Some(HiddenBranch { range: range(9_664, 9_728), tags: 3 }));
    assert_eq!(HiddenBranch::of(&report.foreign[..1], &shown), None);
}

/// Tags of the newest and of the oldest blocks have no commitment in common, those between them do.
#[test]
fn tags_far_apart_are_of_one_branch_if_tags_between_them_agree() {
    let shown = Shown::new(HEAD);
    let hidden = Shown::forked(HEAD, 8_300);
    // A tag every 96 blocks: seven commitments reach 448 blocks down.
    let report = judged(&shown, |height| {
        let tag = u64::from(height - LOWEST);
        (tag < 18).then(|| hidden.tag(8_370 + 96 * tag, 1))
    });
    assert_eq!(report.all().foreign, 18);
    let branch = HiddenBranch { range: range(8_256, 8_320), tags: 18 };
    assert_eq!(HiddenBranch::of(&report.foreign, &shown), Some(branch));
    let apart: Vec<_> = report.foreign.iter().step_by(6).copied().collect();
    assert_eq!((apart.len(), HiddenBranch::of(&apart, &shown)), (3, None));
}

/// A pool of a fifth of Bitcoin's blocks writes made-up tags into all of them, or makes a chain on which no other pool mines.
#[test]
fn a_chain_is_contested_if_more_blocks_name_another_branch() {
    let mut shown = Shown::new(HEAD);
    let own = shown.own_tag(HEAD - 5);
    let hidden = Shown::forked(HEAD, 9_700);
    // Of each ten blocks so many name this chain, a block of it that no upstream shows, and the other branch.
    for (names, verdict, is_contested) in [
        ([4, 1, 2], Ok(()), false),
        ([3, 1, 3], Err(TagFault::Foreign), false),
        ([2, 1, 3], Err(TagFault::Foreign), false),
        ([2, 1, 4], Err(TagFault::Foreign), true),
        ([2, 0, 4], Err(TagFault::Foreign), true),
    ] {
        let [named, kin, foreign] = names;
        let tag = |height: u32| match height % 10 {
            place if place < named => Some(own),
            place if place < named + kin => Some(shown.tag(HEAD - 5, 3)),
            place if place < named + kin + foreign => Some(hidden.tag(9_800 + u64::from(height - LOWEST), 2)),
            _ => None,
        };
        let report = judged(&shown, tag);
        assert_eq!(
            (report.verdict, contested(&report, &shown).is_some()),
            (verdict, is_contested),
            "{names:?}"
        );
        // The same number of tags that name something else each.
        let garbage = |height: u32| {
            let garbage = Tag { hash20: [height as u8; 20], cpv: [height as u8; 7], ..own };
            tag(height).map(|tag| if tag.hash20[19] == 2 { garbage } else { tag })
        };
        let report = judged(&shown, garbage);
        assert_eq!((report.verdict, contested(&report, &shown).is_some()), (verdict, false), "{names:?}");
    }
}

#[test]
fn a_coinbase_of_a_stale_block_is_withheld() {
    let (chain, mut coinbases) = (bitcoin(LOWEST + 71), Coinbases::default());
    coinbases.insert(&ProvenCoinbase::stated(LOWEST + 5, hash(LOWEST + 6), None));
    assert_eq!(coinbases.tag_at(&chain, LOWEST + 5), None);
    assert_eq!(coinbases.wanted(&chain, LOWEST, LOWEST + 80).count(), 72);
    coinbases.insert(&ProvenCoinbase::stated(LOWEST + 5, hash(LOWEST + 5), None));
    assert_eq!(coinbases.tag_at(&chain, LOWEST + 5), Some(None));
    assert_eq!(coinbases.wanted(&chain, LOWEST, LOWEST + 80).count(), 71);
    for height in 0..1_000 {
        coinbases.insert(&ProvenCoinbase::stated(height, hash(height), None));
    }
    assert_eq!(coinbases.len(), KEPT_COINBASES);
}
