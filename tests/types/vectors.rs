//! Compares header encodings and hashes with those of the reference node's own classes, and checks the
//! genesis headers of the public networks.

use rootlight::types::{Header, HeaderForm, HeaderShape, HeaderVersion};
use serde_json::Value;

/// Layout of version 1 and 2 headers, and of version 0 with the UMM root.
fn shape(version: HeaderVersion, fork_detection: bool) -> HeaderShape {
    HeaderShape {
        version,
        umm_root: true,
        edges: version != HeaderVersion::V0,
        hash_covers_proof: false,
        fork_detection,
        base_event_optional: false,
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    hex::decode(text.strip_prefix("0x").unwrap_or(text)).expect("hex in a vector file")
}

#[test]
fn headers_of_every_version_encode_and_hash_as_the_reference() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("../vectors/header_vectors.json")).unwrap();
    assert_eq!(vectors.len(), 9);
    for v in &vectors {
        let version = match v["ver"].as_u64().unwrap() {
            0 => HeaderVersion::V0,
            1 => HeaderVersion::V1,
            _ => HeaderVersion::V2,
        };
        let shape = shape(version, v["net"] != "regtest");
        let full = bytes(&v["full"]);
        let header = Header::decode(&full, &|number| {
            assert_eq!(number, v["number"].as_u64().unwrap());
            shape
        })
        .unwrap();
        assert_eq!(header.encode(HeaderForm::Full), full);
        assert_eq!(header.encode(HeaderForm::Raw), bytes(&v["encoded"]));
        assert_eq!(header.encode(HeaderForm::Compressed), bytes(&v["compressed"]));
        assert_eq!(header.hash().to_vec(), bytes(&v["hash"]));
        let mining = header.hash_for_merged_mining().unwrap();
        assert_eq!(mining.to_vec(), bytes(&v["hmm"]));
        let fdd = header.fork_detection_data().map(|d| d.to_vec()).unwrap_or_default();
        assert_eq!(fdd, bytes(&v["fdd"]));
        assert_eq!(header.umm_root.to_vec(), bytes(&v["umm"]));
        assert_eq!(header.base_event.to_vec(), bytes(&v["baseEvent"]));

        let (sealed, mining_base) = Header::decode_sealed(&full, &|_| shape).unwrap();
        assert_eq!(sealed.hash(), header.hash());
        assert_eq!(mining_base, header.mining_base_hash());
        assert_eq!(header.hashes().hash, header.hash());
        assert_eq!(header.hashes().mining_base, mining_base);

        let raw = bytes(&v["encoded"]);
        let from_raw = Header::decode(&raw, &|_| shape).unwrap();
        assert_eq!(from_raw.encode(HeaderForm::Raw), raw);
        assert_eq!(from_raw.hash(), header.hash());
    }
}
