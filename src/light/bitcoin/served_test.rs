//! Bitcoin data that a client serves is read back and verifies; other bytes are refused or prove nothing else.

use alloc::sync::Arc;

use data_encoding::BASE64;
use proptest::prelude::*;

use super::stored_coinbases::{split_stored, stored_coinbases};
use super::{
    BitcoinFollower, DEEP_REORGANISATION, KEPT_COINBASES, MAX_SERVED_COINBASE, ServedBitcoinError,
    decode_bitcoin_headers, decode_coinbases, encode_bitcoin_headers, encode_coinbases,
};
use crate::consensus::bitcoin::coinbase_proof_test::{block, coinbase, tag};
use crate::consensus::bitcoin::testing::mine_on;
use crate::consensus::bitcoin::{
    BitcoinChain, BitcoinHeader, BitcoinNetwork, CoinbaseBytes, CoinbaseProof, CoinbaseProofBuf, HEADER_LEN,
    ProvenCoinbase,
};
use crate::consensus::{Genesis, HeaderChain, Network};

const NOW: u64 = 2_000_000_000;
const LOWEST: u32 = 100;
/// Most coinbases that a client asks for here.
const MOST: usize = 200;

/// A regtest chain of `count` headers above block 0.
fn mined(count: usize) -> Vec<[u8; HEADER_LEN]> {
    let BitcoinNetwork { checkpoint, limit, .. } = BitcoinNetwork::REGTEST;
    mine_on(checkpoint.hash, 0, 1_700_000_000, 600, limit, count)
}

fn followed(headers: &[[u8; HEADER_LEN]]) -> BitcoinFollower {
    let mut follower = BitcoinFollower::new(BitcoinNetwork::REGTEST);
    follower.insert(headers, NOW).unwrap();
    follower
}

/// The coinbase of the block at a height: every third has no tag, the script of the others is long.
fn coinbase_of(height: u32) -> Vec<u8> {
    let written = tag(&[height as u8; 32]);
    let outputs: &[&[u8]] = if height.is_multiple_of(3) { &[&[9; 90]] } else { &[&[9; 90], &written] };
    coinbase(&[&height.to_be_bytes()[..], &[7; 60]].concat(), outputs, true)
}

/// A coinbase without the witness that [`coinbase`] adds.
fn plain(height: u32) -> Vec<u8> {
    let bytes = coinbase_of(height);
    [&bytes[..4], &bytes[6..bytes.len() - 38], &bytes[bytes.len() - 4..]].concat()
}

/// A client with a chain of blocks from [`LOWEST`] on, whose coinbases it was shown whole.
fn server(blocks: u32) -> BitcoinFollower {
    let mut previous = [0; 32];
    let shown = (LOWEST..LOWEST + blocks).map(|height| {
        let (mut header, branch) = block(&plain(height), 9);
        header[4..36].copy_from_slice(&previous);
        previous = BitcoinHeader::from(&header).hash().0;
        (height, header, branch)
    });
    let shown: Vec<_> = shown.collect();
    let headers: Vec<_> = shown.iter().map(|(_, header, _)| *header).collect();
    let mut follower = BitcoinFollower::resume(BitcoinChain::of_headers(LOWEST, &headers));
    for (height, _, branch) in &shown {
        let whole = coinbase_of(*height);
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&whole), branch };
        follower.insert_coinbase_to_serve(*height, &proof).unwrap();
    }
    follower
}

/// Another client with the same headers and no coinbases.
fn client(server: &BitcoinFollower) -> BitcoinFollower {
    BitcoinFollower::resume(server.chain().clone())
}

fn binary(text: &str) -> Vec<u8> {
    BASE64.decode(text.as_bytes()).unwrap()
}

#[test]
fn headers_are_read_back_and_make_the_same_chain() {
    let headers = mined(50);
    let server = followed(&headers);
    for (from, count, expected) in [
        (0, 60, 0..50),
        (1, 2_016, 0..50),
        (1, 7, 0..7),
        (50, 9, 49..50),
        (51, 9, 0..0),
        (u32::MAX, 9, 0..0),
        (5, 0, 0..0),
    ] {
        let read =
            decode_bitcoin_headers(&encode_bitcoin_headers(server.chain(), from, count), count).unwrap();
        assert_eq!((read.lowest, read.tip), (1, 50), "{from} {count}");
        assert_eq!(read.headers, headers[expected], "{from} {count}");
    }
    let read = decode_bitcoin_headers(&encode_bitcoin_headers(server.chain(), 1, 50), 50).unwrap();
    assert_eq!(followed(&read.headers).chain().tip(), server.chain().tip());
    let none = followed(&[]);
    let read = decode_bitcoin_headers(&encode_bitcoin_headers(none.chain(), 0, 9), 9).unwrap();
    assert_eq!((read.lowest, read.tip, read.headers.len()), (1, 0, 0));
}

#[test]
fn more_headers_than_one_result_may_have_are_not_given() {
    let chain = followed(&mined(2_100));
    let text = encode_bitcoin_headers(chain.chain(), 1, u32::MAX);
    assert_eq!(decode_bitcoin_headers(&text, 2_016).unwrap().headers.len(), 2_016);
    assert!(matches!(decode_bitcoin_headers(&text, 2_015), Err(ServedBitcoinError::Packed(_))));
}

#[test]
fn headers_that_were_changed_make_no_chain() {
    let text = encode_bitcoin_headers(followed(&mined(60)).chain(), 1, 60);
    let bytes = binary(&text);
    // After the heights, up to the thirtieth header: those that follow name another parent then, and need new work.
    for at in 8..8 + 33 + 30 * 39 {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        if let Ok(read) = decode_bitcoin_headers(&BASE64.encode(&changed), 60) {
            let mut follower = BitcoinFollower::new(BitcoinNetwork::REGTEST);
            assert!(follower.insert(&read.headers, NOW).is_err(), "byte {at}");
        }
    }
}

#[test]
fn coinbases_are_read_back_and_prove_the_same_tags() {
    let server = server(40);
    let text = encode_coinbases(&server, LOWEST, 40);
    // A branch of four siblings, and a coinbase that is cut or short as a rule.
    assert!(binary(&text).len() < 40 * 340, "{}", binary(&text).len());
    let mut client = client(&server);
    for (height, proof) in (LOWEST..).zip(decode_coinbases(&text, 40).unwrap()) {
        let proof = proof.unwrap();
        let (has_tag, is_eighth) = (!height.is_multiple_of(3), height.is_multiple_of(8));
        assert_eq!(proof.is_cut, has_tag && !is_eighth, "no tag needs the whole coinbase, a height too");
        client.insert_coinbase(height, &proof.as_proof()).unwrap();
        let tag_at = |follower: &BitcoinFollower| {
            follower.coinbases().tag_at(follower.chain(), height).map(Option::<&_>::copied)
        };
        assert_eq!(tag_at(&client), tag_at(&server));
        assert_eq!(tag_at(&client).unwrap().is_some(), has_tag);
    }
    assert_eq!(client.missing_coinbases(), [] as [u32; 0]);
}

/// The tags judged are those below the block where a branch leaves that may still replace the tip.
#[test]
fn coinbases_are_asked_for_from_where_a_close_rival_leaves() {
    let headers = mined(300);
    let beside = |fork: u32, count| {
        let mut client = followed(&headers);
        let parent = client.chain().at(fork).unwrap();
        client.insert(&mine_on(parent.hash, 1, parent.time, 600, parent.bits, count), NOW).unwrap();
        let missing = client.missing_coinbases();
        assert!(missing.len() <= KEPT_COINBASES && missing.first() == Some(&300), "{missing:?}");
        missing.last().copied()
    };
    assert_eq!(beside(280, 19), Some(208));
    assert_eq!(beside(280, 17), Some(223), "three blocks behind");
    // The coinbases from where a deep rival leaves would have no room.
    assert_eq!(beside(100, 199), Some(157));
    // Other clients may be shown a rival, and ask this one for coinbases: it has all that they ask for.
    assert_eq!(followed(&headers).missing_coinbases().last(), Some(&223));
    for depth in 1..DEEP_REORGANISATION {
        assert_eq!(beside(300 - depth, depth as usize), Some(223), "{depth} blocks deep");
    }
    assert_eq!(beside(294, 6), Some(222), "the chain counts for nothing then");
}

#[test]
fn a_coinbase_that_is_kept_makes_a_new_report_due() {
    let (server, network) = (server(40), Arc::new(Network::regtest()));
    let genesis = Genesis::regtest().header(&network);
    let chain = HeaderChain::from_genesis(network, genesis).unwrap();
    let proof = server.coinbases().proof_at(server.chain(), LOWEST).unwrap();
    for is_served in [false, true] {
        let mut client = client(&server);
        client.follow(chain.view(), NOW);
        assert!(!client.is_due(chain.view(), NOW));
        let inserted = match is_served {
            false => client.insert_coinbase(LOWEST, &proof.as_proof()),
            true => client.insert_coinbase_to_serve(LOWEST, &proof.as_proof()),
        };
        assert!(inserted.is_ok() && client.is_due(chain.view(), NOW), "{is_served}");
    }
}

#[test]
fn coinbases_that_are_not_held_are_left_empty() {
    let server = server(40);
    let held = |follower: &BitcoinFollower, from, count| -> Vec<bool> {
        let read = decode_coinbases(&encode_coinbases(follower, from, count), MOST).unwrap();
        read.iter().map(Option::is_some).collect()
    };
    assert_eq!(held(&server, LOWEST - 2, 4), [false, false, true, true]);
    assert_eq!(held(&server, LOWEST + 38, 4), [true, true, false, false]);
    assert_eq!(held(&server, u32::MAX, 4), [] as [bool; 0]);
    assert_eq!(held(&server, 0, u32::MAX).len(), KEPT_COINBASES);
    // One who was not asked to keep proofs has tags alone.
    let mut client = client(&server);
    let proof = server.coinbases().proof_at(server.chain(), LOWEST).unwrap();
    client.insert_coinbase(LOWEST, &proof.as_proof()).unwrap();
    assert_eq!((client.coinbases().len(), held(&client, LOWEST, 1)), (1, vec![false]));
    assert_eq!(
        decode_coinbases(&encode_coinbases(&server, LOWEST, 3), 2),
        Err(ServedBitcoinError::TooMany { asked: 2 })
    );
}

/// A block that was replaced is not shown as the chain's.
#[test]
fn coinbases_of_replaced_blocks_are_not_served() {
    let headers = mined(20);
    let mut server = followed(&headers);
    let (lone, branch) = block(&plain(4), 1);
    let chain = BitcoinChain::of_headers(20, &[lone]);
    let mut other = BitcoinFollower::resume(chain);
    let whole = coinbase_of(4);
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&whole), branch: &branch };
    other.insert_coinbase_to_serve(20, &proof).unwrap();
    let kept = other.coinbases().clone();
    assert!(kept.proof_at(other.chain(), 20).is_some());
    assert!(kept.proof_at(server.chain(), 20).is_none());
    assert!(server.insert_coinbase_to_serve(20, &proof).is_err());
}

#[test]
fn a_coinbase_that_is_too_long_is_proven_and_not_served() {
    let mut outputs = vec![&[9; 200][..]; 200];
    let long = |outputs: &[&[u8]]| coinbase(&[7; 60], outputs, false);
    for served in [false, true] {
        outputs.truncate(if served { 150 } else { 200 });
        let bytes = long(&outputs);
        assert_eq!(bytes.len() <= MAX_SERVED_COINBASE, served);
        let (header, branch) = block(&bytes, 9);
        let mut follower = BitcoinFollower::resume(BitcoinChain::of_headers(LOWEST, &[header]));
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&bytes), branch: &branch };
        follower.insert_coinbase_to_serve(LOWEST, &proof).unwrap();
        assert_eq!(follower.coinbases().tag_at(follower.chain(), LOWEST), Some(None));
        assert_eq!(follower.coinbases().proof_at(follower.chain(), LOWEST).is_some(), served);
    }
}

#[test]
fn other_forms_are_refused() {
    for text in ["", "-", "AA==", "AsA=", "AQ==", "AYA=", "AcHA"] {
        // An empty list of coinbases is "AcA=".
        assert_eq!(decode_coinbases(text, 9).is_ok(), text == "AcHA", "{text}");
        assert!(decode_bitcoin_headers(text, 9).is_err(), "{text}");
    }
    assert_eq!(decode_coinbases("AcA=", 0), Ok(Vec::new()));
    // One entry with the flag 2.
    let two = BASE64.encode(&[1, 0xc4, 0xc3, 2, 0x80, 0x80]);
    assert_eq!(decode_coinbases(&two, 9), Err(ServedBitcoinError::Form));
    let more = BASE64.encode(&[1, 0xc5, 0xc4, 1, 0x80, 0x80, 0x80]);
    assert!(matches!(decode_coinbases(&more, 9), Err(ServedBitcoinError::Rlp(_))));
}

/// The coinbases of a server as they are stored, before a chain of which nothing is read here.
fn stored(server: &BitcoinFollower) -> Vec<u8> {
    let heights = LOWEST - 2..=server.chain().tip().height;
    [stored_coinbases(server.coinbases(), server.chain(), heights), b"chain".to_vec()].concat()
}

#[test]
fn stored_coinbases_are_read_back() {
    let server = server(40);
    let bytes = stored(&server);
    let (held, chain) = split_stored(&bytes);
    assert_eq!(chain, b"chain");
    let expected = (LOWEST..LOWEST + 40)
        .map(|height| (height, server.coinbases().proof_at(server.chain(), height).unwrap().clone()));
    assert_eq!(held, expected.collect::<Vec<_>>());
    let mut client = client(&server);
    held.into_iter().for_each(|(height, proof)| client.take_coinbase(height, proof));
    assert_eq!(client.missing_coinbases(), [] as [u32; 0]);
    assert_eq!(stored(&client), stored(&server));
    // A client without proofs stores nothing of them.
    let none = BitcoinFollower::resume(server.chain().clone());
    assert_eq!(stored(&none), b"chain");
    assert_eq!(none.stored(), none.chain().stored());
}

/// Pools that pay hundreds of miners make long coinbases.
#[test]
fn the_newest_coinbases_that_fit_are_stored() {
    let headers = mined(KEPT_COINBASES);
    let mut follower = followed(&headers);
    let tip = follower.chain().tip().height;
    for height in 1..=tip {
        let proven = ProvenCoinbase::stated(height, follower.chain().at(height).unwrap().hash, None);
        let proof =
            CoinbaseProofBuf { is_cut: false, coinbase: vec![1; MAX_SERVED_COINBASE], branch: Vec::new() };
        follower.keep_coinbase(&proven, Some(proof));
    }
    let bytes = stored_coinbases(follower.coinbases(), follower.chain(), 1..=tip);
    assert!(bytes.len() < 530_000, "{}", bytes.len());
    let (held, _) = split_stored(&bytes);
    let heights: Vec<u32> = held.iter().map(|(height, _)| *height).collect();
    assert_eq!(heights, (tip - 15..=tip).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn changed_stored_coinbases_prove_the_same(at: usize, value: u8) {
        let server = server(6);
        let mut bytes = stored(&server);
        let at = at % (bytes.len() - 5);
        bytes[at] = value;
        let (held, chain) = split_stored(&bytes);
        prop_assert!(held.len() <= KEPT_COINBASES && chain.len() <= bytes.len());
        let mut client = client(&server);
        for (height, proof) in held {
            client.take_coinbase(height, proof);
            if let Some(tag) = client.coinbases().tag_at(client.chain(), height) {
                prop_assert_eq!(Some(tag), server.coinbases().tag_at(server.chain(), height));
            }
        }
    }

    #[test]
    fn any_stored_bytes_are_split(bytes in proptest::collection::vec(any::<u8>(), 0..400), lowest: u32) {
        let length = (bytes.len() as u32).to_le_bytes();
        let framed = [&[3], &length[..], &lowest.to_le_bytes(), &bytes, b"chain"].concat();
        let (held, chain) = split_stored(&framed);
        prop_assert!(held.len() <= KEPT_COINBASES);
        prop_assert_eq!(chain, &b"chain"[..]);
        let (held, chain) = split_stored(&bytes);
        prop_assert!(held.len() <= KEPT_COINBASES && chain.len() <= bytes.len());
    }

    #[test]
    fn changed_coinbases_are_refused_or_prove_the_same(at: usize, value: u8) {
        let server = server(6);
        let mut bytes = binary(&encode_coinbases(&server, LOWEST, 6));
        let at = at % bytes.len();
        bytes[at] = value;
        let Ok(proofs) = decode_coinbases(&BASE64.encode(&bytes), 6) else { return Ok(()) };
        let mut client = client(&server);
        for (height, proof) in (LOWEST..).zip(proofs) {
            let Some(proof) = proof else { continue };
            if client.insert_coinbase(height, &proof.as_proof()).is_ok() {
                let tag = client.coinbases().tag_at(client.chain(), height);
                prop_assert_eq!(tag, server.coinbases().tag_at(server.chain(), height));
            }
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400), most in 0usize..9) {
        let text = BASE64.encode(&bytes);
        if let Ok(read) = decode_bitcoin_headers(&text, most as u32) {
            prop_assert!(read.headers.len() <= most);
        }
        if let Ok(proofs) = decode_coinbases(&text, most) {
            prop_assert!(proofs.len() <= most);
        }
    }
}
