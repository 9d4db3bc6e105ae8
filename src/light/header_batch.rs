//! The result of `rootlight_getHeaders`: consecutive headers with merged-mining proofs and uncles, in base64.
//!
//! `base64(0x01 | LZ4 block of RLP([[header, [uncle, ...]], ...]))`, headers in full form, oldest first. The first byte is the
//! version of the encoding. An upstream that does not have a block's uncles leaves the list of uncles out: `[header]`. LZ4 helps,
//! because a third of a main network header repeats earlier headers or is zero. Decoding verifies nothing: each header is
//! hashed, linked and checked for work like any other.

use alloc::{string::String, vec::Vec};

use data_encoding::BASE64;
use lz4_flex::block;
use thiserror::Error;

use crate::{
    consensus::{HeaderCandidate, Network},
    types::{
        FieldError, Header, HeaderError, SealedHeader,
        header::{HeaderForm, HeaderShape},
        rlp::{ListBuf, RlpReader, put_list},
    },
};

/// Most headers in one result. On mainnet these are about 300 kB with uncles (1.2 kB each), and 235 kB as packed text (0.92 kB each),
/// as docs/light.md and docs/first-run.md state.
pub const MAX_BATCH_HEADERS: u64 = 256;

/// Longest list that is unpacked, in bytes: enough for 256 headers with ten uncles each, with every field as long
/// as the rules allow (2.1 kB per header).
pub const MAX_BATCH_BYTES: usize = 6 * 1024 * 1024;

/// The first byte of the encoding that is described above.
const PACKED: u8 = 1;

/// Why a text does not decode as a batch of headers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum BatchError {
    #[error("headers: not base64")]
    Base64,
    /// The first byte is missing, or this version does not know it.
    #[error("headers: form {0:?} is not known")]
    Form(Option<u8>),
    /// The rest is not an LZ4 block, or unpacks to more than [`MAX_BATCH_BYTES`].
    #[error("headers: not an LZ4 block of at most {MAX_BATCH_BYTES} bytes")]
    Packing,
    /// The list does not have the required structure.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    /// The bytes do not decode as a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// There are more headers than the request asked for.
    #[error("more than {asked} headers")]
    TooMany { asked: usize },
}

/// Decoded headers, each with the uncles that came with it; `None` if the list of uncles is left out. None of them is verified.
pub type Batch = Vec<(HeaderCandidate, Option<Vec<Header>>)>;

/// Encodes headers, each with its uncles if they are known.
pub fn encode_headers<'a>(headers: impl Iterator<Item = (&'a Header, Option<&'a [SealedHeader]>)>) -> String {
    packed(encode_list(headers))
}

/// Encodes headers that are in RLP in the full form already, each with the payload of its RLP list of uncles if they are
/// known.
pub fn encode_raw_headers<'a>(headers: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>) -> String {
    let mut list = ListBuf::with_capacity(0);
    for (header, uncles) in headers {
        let mut entry = ListBuf::with_capacity(header.len().saturating_add(1));
        entry.items().extend_from_slice(header);
        if let Some(uncles) = uncles {
            put_list(entry.items(), uncles);
        }
        list.items().extend_from_slice(entry.as_list());
    }
    packed(list)
}

/// Compresses a list of headers and encodes it as text.
fn packed(mut list: ListBuf) -> String {
    text(&block::compress(list.as_list()))
}

/// Encodes an LZ4 block as text, after the byte for the version.
fn text(block: &[u8]) -> String {
    let mut bytes = alloc::vec![PACKED];
    bytes.extend_from_slice(block);
    BASE64.encode(&bytes)
}

/// Unpacks an LZ4 block to at most `most` bytes. The library allocates the whole limit that it gets. So the first try allows only
/// twice the length of the block, which is enough for honest batches.
fn unpacked(block: &[u8], most: usize) -> Option<Vec<u8>> {
    let usual = block.len().saturating_mul(2).min(most);
    block::decompress(block, usual).or_else(|_| block::decompress(block, most)).ok()
}

/// The RLP list of headers, each with its uncles if they are known. Stored pages have such a list too, not compressed.
pub(super) fn encode_list<'a>(
    headers: impl Iterator<Item = (&'a Header, Option<&'a [SealedHeader]>)>,
) -> ListBuf {
    let mut list = ListBuf::with_capacity(0);
    for (header, uncles) in headers {
        let mut entry = ListBuf::with_capacity(0);
        entry.items().extend(header.encode(HeaderForm::Full));
        if let Some(uncles) = uncles {
            let mut uncle_list = ListBuf::with_capacity(0);
            uncles.iter().for_each(|uncle| uncle_list.items().extend(uncle.encode(HeaderForm::Full)));
            entry.items().extend(uncle_list.as_list());
        }
        list.items().extend(entry.as_list());
    }
    list
}

/// Decodes at most `most` headers with their uncles.
///
/// # Errors
/// [`BatchError`]: the text is not a batch, or has more than `most` headers.
pub fn decode_headers(text: &str, most: usize, network: &Network) -> Result<Batch, BatchError> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| BatchError::Base64)?;
    match bytes.split_first() {
        Some((&PACKED, block)) => {
            let list = unpacked(block, MAX_BATCH_BYTES).ok_or(BatchError::Packing)?;
            decode_list(&list, most, network)
        }
        form => Err(BatchError::Form(form.map(|(form, _)| *form))),
    }
}

/// Decodes an RLP list of at most `most` headers with their uncles.
pub(super) fn decode_list(bytes: &[u8], most: usize, network: &Network) -> Result<Batch, BatchError> {
    let shape = |number| network.header_shape(number);
    let mut list = RlpReader::list(bytes, "headers")?;
    let mut headers = Vec::with_capacity(most.min(MAX_BATCH_HEADERS as usize));
    while !list.is_empty() {
        if headers.len() >= most {
            return Err(BatchError::TooMany { asked: most });
        }
        let mut entry = list.next_list("entry")?;
        let header = HeaderCandidate::decode(entry.next_raw("header")?, network)?;
        let uncles = match entry.is_empty() {
            true => None,
            false => Some(decode_uncles(entry.next_list("uncles")?, &shape)?),
        };
        entry.finish("entry")?;
        headers.push((header, uncles));
    }
    Ok(headers)
}

fn decode_uncles(
    mut list: RlpReader<'_>,
    shape: &dyn Fn(u64) -> HeaderShape,
) -> Result<Vec<Header>, BatchError> {
    let mut uncles = Vec::new();
    while !list.is_empty() {
        uncles.push(Header::decode(list.next_raw("uncle")?, shape)?);
    }
    Ok(uncles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::testing::{chain, child, easy_network, mine};
    use proptest::prelude::*;

    /// Consecutive headers, each with one uncle.
    fn family(blocks: u64) -> (Network, Vec<(SealedHeader, Vec<SealedHeader>)>) {
        let network = easy_network(&[], &[]);
        let mut parent = chain(network.clone(), 5_000).head().sealed().clone();
        let mut next = |gas| {
            let uncle = mine(Header { gas_used: gas, ..child(&network, &parent) });
            parent = mine(child(&network, &parent));
            (parent.clone(), vec![uncle])
        };
        let headers = (0..blocks).map(&mut next).collect();
        (network, headers)
    }

    fn packed(headers: &[(SealedHeader, Vec<SealedHeader>)]) -> String {
        encode_headers(headers.iter().map(|(header, uncles)| (header.header(), Some(&uncles[..]))))
    }

    #[test]
    fn encoded_headers_decode_to_the_same_headers() {
        let (network, headers) = family(20);
        let text = packed(&headers);
        let read = decode_headers(&text, 20, &network).unwrap();
        assert_eq!(read.len(), 20);
        for ((header, uncles), (read, others)) in headers.iter().zip(&read) {
            assert_eq!(header, read.header());
            assert_eq!(read.mining_hash(), &header.hash_for_merged_mining());
            let others = others.as_ref().expect("the list was sent");
            assert_eq!(others.iter().map(Header::hash).collect::<Vec<_>>(), [uncles[0].hash()]);
        }
        let mut list =
            encode_list(headers.iter().map(|(header, uncles)| (header.header(), Some(&uncles[..]))));
        assert!(
            text.len() * 2 < list.as_list().len(),
            "zeros and the hashes of earlier headers take no space"
        );
        assert_eq!(decode_headers(&text, 19, &network), Err(BatchError::TooMany { asked: 19 }));
    }

    #[test]
    fn an_entry_without_a_list_says_nothing_about_uncles() {
        let (network, headers) = family(3);
        let lists = [None, Some(&[][..]), Some(&headers[2].1[..])];
        let text =
            encode_headers(headers.iter().zip(lists).map(|((header, _), list)| (header.header(), list)));
        let read = decode_headers(&text, 3, &network).unwrap();
        let raw: Vec<Vec<u8>> =
            headers.iter().map(|(header, _)| header.header().encode(HeaderForm::Full)).collect();
        let uncle = headers[2].1[0].encode(HeaderForm::Full);
        let payloads = [None, Some(&[][..]), Some(&uncle[..])];
        let unpacked = encode_raw_headers(raw.iter().map(Vec::as_slice).zip(payloads));
        assert_eq!(decode_headers(&unpacked, 3, &network).unwrap(), read);
        let counts: Vec<_> = read.iter().map(|(_, uncles)| uncles.as_ref().map(Vec::len)).collect();
        assert_eq!(counts, [None, Some(0), Some(1)]);
    }

    #[test]
    fn unknown_formats_are_refused() {
        let network = easy_network(&[], &[]);
        let read = |text: &str| decode_headers(text, 10, &network);
        assert_eq!(read("ARDA"), Ok(Vec::new()), "no headers");
        assert_eq!(read(""), Err(BatchError::Form(None)));
        assert_eq!(read("wA=="), Err(BatchError::Form(Some(0xc0))), "a list by itself");
        assert_eq!(read("AhDA"), Err(BatchError::Form(Some(2))));
        assert_eq!(read("AQ=="), Err(BatchError::Packing));
        assert_eq!(read("-"), Err(BatchError::Base64));
        assert!(matches!(read(&text(b"\x10\x80")), Err(BatchError::Rlp(_))), "a string");
    }

    #[test]
    fn a_list_above_the_size_limit_is_refused() {
        let network = easy_network(&[], &[]);
        let zeros = |count: usize| text(&block::compress(&vec![0; count]));
        assert!(zeros(MAX_BATCH_BYTES).len() < MAX_BATCH_BYTES / 100);
        assert!(matches!(decode_headers(&zeros(MAX_BATCH_BYTES), 10, &network), Err(BatchError::Rlp(_))));
        assert_eq!(decode_headers(&zeros(MAX_BATCH_BYTES + 1), 10, &network), Err(BatchError::Packing));
    }

    #[test]
    fn blocks_of_other_encoders_are_read() {
        let blocks: [(&[u8], &[u8]); 5] = [
            (b"\x00", b""),
            (b"\x30abc", b"abc"),
            // One literal, repeated 19 times from one byte back, and the literals that end a block.
            (b"\x1fa\x01\x00\x00\x50aaaaa", b"aaaaaaaaaaaaaaaaaaaaaaaaa"),
            (b"\x52abcde\x05\x00\x50fghij", b"abcdeabcdeafghij"),
            // 15 + 1 literals.
            (b"\xf0\x010123456789abcdef", b"0123456789abcdef"),
        ];
        for (block, bytes) in blocks {
            assert_eq!(unpacked(block, bytes.len()).as_deref(), Some(bytes));
            if let Some(less) = bytes.len().checked_sub(1) {
                assert_eq!(unpacked(block, less), None, "more than was allowed");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_block_are_refused() {
        let blocks: [&[u8]; 7] = [
            b"",
            b"\x30ab",
            b"\xf0\xff",
            b"\x10a\x01",
            // A distance beyond the first byte, and a distance of zero.
            b"\x10a\x02\x00\x00",
            b"\x10a\x00\x00\x00",
            // No literals after the match.
            b"\x10a\x01\x00",
        ];
        for block in blocks {
            assert_eq!(unpacked(block, 1 << 20), None, "{block:?}");
        }
    }

    #[test]
    fn a_small_block_that_unpacks_to_many_bytes_stays_within_the_limit() {
        let mut block = b"\x1fa\x01\x00".to_vec();
        block.resize(100_000, u8::MAX);
        block.extend(b"\x00\x50aaaaa");
        assert_eq!(unpacked(&block, 1 << 20), None);
        assert!(unpacked(&block, 100 << 20).is_some_and(|bytes| bytes.len() > 25_000_000));
    }

    #[test]
    fn only_canonical_base64_is_decoded() {
        let network = easy_network(&[], &[]);
        for text in [
            "AQ", "AQ=", "AR==", "ARD", "ARD=", "A===", "====", "AR A", "ARDA\n", "ARDA AQ=", "ARDAA-==",
            "ARD*ARDA",
        ] {
            assert_eq!(decode_headers(text, 1, &network), Err(BatchError::Base64), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decompress_within_the_limit(block in proptest::collection::vec(any::<u8>(), 0..200), most in 0usize..300) {
            if let Some(bytes) = unpacked(&block, most) {
                prop_assert!(bytes.len() <= most && bytes.capacity() <= most);
            }
        }

        /// Whichever bytes change, each decoded header still has the hash of its own encoding.
        #[test]
        fn changed_bytes_decode_to_other_headers_or_to_none(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4), cut in 0usize..2_000) {
            let (network, headers) = family(3);
            let mut bytes = BASE64.decode(packed(&headers).as_bytes()).unwrap();
            for (index, byte) in &changes {
                let index = index % bytes.len();
                bytes[index] = *byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut / 1_000 * (cut % 1_000)));
            if let Ok(read) = decode_headers(&BASE64.encode(&bytes), 3, &network) {
                for (header, _) in read {
                    prop_assert_eq!(header.header().hash(), header.header().header().hash());
                }
            }
        }
    }
}
