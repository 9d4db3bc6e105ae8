//! Header RLP in every layout.

use alloy_primitives::keccak256;
use rootlight::types::{Header, HeaderForm, HeaderShape, HeaderVersion};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// First byte: the layout at every height. Second: how many bytes at the end choose a change. Then the RLP.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let shape = shape(input.byte());
    let changes = usize::from(input.byte() % 8);
    let rest = input.rest();
    let (rlp, choices) = rest.split_at(rest.len().saturating_sub(changes));
    with_limit(data.len(), || check_header(rlp, shape, &mut Input::new(choices)));
}

/// The layout that the bits of a byte choose.
pub fn shape(byte: u8) -> HeaderShape {
    let bit = |n: u8| byte >> n & 1 == 1;
    let version = match byte & 3 {
        0 | 3 => HeaderVersion::V0,
        1 => HeaderVersion::V1,
        _ => HeaderVersion::V2,
    };
    HeaderShape {
        version,
        umm_root: bit(2),
        edges: bit(3),
        hash_covers_proof: bit(4),
        fork_detection: bit(5),
        base_event_optional: bit(6),
    }
}

/// The byte that chooses a layout.
pub fn shape_byte(shape: HeaderShape) -> u8 {
    let flags = [
        shape.umm_root,
        shape.edges,
        shape.hash_covers_proof,
        shape.fork_detection,
        shape.base_event_optional,
    ];
    let set = flags.iter().enumerate().map(|(n, set)| u8::from(*set) << (n + 2));
    shape.version.byte() | set.sum::<u8>()
}

fn check_header(rlp: &[u8], shape: HeaderShape, choices: &mut Input<'_>) {
    let shape_of = |_: u64| shape;
    let decoded = Header::decode(rlp, &shape_of);
    let sealed = Header::decode_sealed(rlp, &shape_of);
    assert_eq!(decoded.is_ok(), sealed.is_ok());
    let (Ok(header), Ok((sealed, mining_base))) = (decoded, sealed) else { return };
    assert_eq!(&header, sealed.header());
    check_encodings(rlp, &header);
    let hashed = header.encode(HeaderForm::Hash);
    assert_eq!(sealed.hash(), keccak256(&hashed));
    assert_eq!(sealed.hash(), header.hash());
    assert_eq!(mining_base, header.mining_base_hash());
    let hashes = header.hashes();
    assert_eq!((hashes.hash, hashes.mining_base), (sealed.hash(), mining_base));
    check_fork_detection(&header);

    let mut changed = rlp.to_vec();
    change(&mut changed, choices);
    if let Ok(other) = Header::decode(&changed, &shape_of) {
        check_injective(&header, other, rlp, &changed);
    }
}

/// The input is one of the two node forms; the full form always reads back.
fn check_encodings(rlp: &[u8], header: &Header) {
    let full = header.encode(HeaderForm::Full);
    let shape_of = |_: u64| header.shape;
    if full != rlp && header.encode(HeaderForm::Raw) != rlp {
        // Only the missing base event may be written differently: as the empty string, one byte more.
        assert!(header.shape.base_event_optional && header.base_event.is_empty());
        assert_eq!(Header::decode(&full, &shape_of).as_ref(), Ok(header));
    }
    // A raw header whose one mining field is empty is refused, so this has mining fields or none.
    assert_eq!(Header::decode(&full, &shape_of).as_ref(), Ok(header));
}

fn check_fork_detection(header: &Header) {
    let base = header.mining_base_hash();
    match (header.hash_for_merged_mining(), header.fork_detection_data()) {
        (Ok(hash), Some(data)) => {
            assert_eq!(hash[..20], base[..20]);
            assert_eq!(hash[20..], data);
        }
        (Ok(hash), None) => assert!(!header.shape.fork_detection && hash == base),
        (Err(_), found) => assert!(header.shape.fork_detection && found.is_none()),
    }
}

/// Two headers with the same hash preimage differ only in what the hash does not cover.
fn check_injective(header: &Header, mut other: Header, rlp: &[u8], changed: &[u8]) {
    if rlp == changed {
        assert_eq!(header, &other);
        return;
    }
    if *header == other {
        // The header with an empty base event and the one without that optional field are equal.
        assert!(header.shape.base_event_optional && header.base_event.is_empty());
        return;
    }
    if header.encode(HeaderForm::Hash) != other.encode(HeaderForm::Hash) {
        return;
    }
    assert!(!header.shape.hash_covers_proof);
    other.merkle_proof = header.merkle_proof.clone();
    other.coinbase_tx = header.coinbase_tx.clone();
    assert_eq!(header, &other);
}
