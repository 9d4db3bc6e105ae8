//! RLP encoding of headers in all forms, which their hashes are computed over.

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

use super::header::{Header, HeaderForm, HeaderVersion};
use super::rlp::{ListBuf, put_str, put_u64, put_u256};

/// Estimated bytes of a header without extra data, edges, base event and mining fields.
const BASE_ESTIMATE: usize = 640;

impl Header {
    /// Encodes the header in the given form.
    pub fn encode(&self, form: HeaderForm) -> Vec<u8> {
        // Whether the extension is a hash, whether mining fields are written, and whether Merkle proof and coinbase are.
        let (compressed, mining, proof) = match form {
            HeaderForm::Full => (false, true, true),
            HeaderForm::Raw => (false, true, self.shape.hash_covers_proof),
            HeaderForm::Compressed => (true, true, true),
            HeaderForm::Hash => (true, true, self.shape.hash_covers_proof),
            HeaderForm::MergedMining => (true, false, false),
        };
        let mut list = self.encode_base(compressed);
        if mining && self.has_mining_fields() {
            self.put_mining_fields(list.items(), proof);
        }
        list.into_list()
    }

    /// Encodes all items before the mining fields. If `compressed` is set, a hash replaces bloom, edges and base event.
    pub(super) fn encode_base(&self, compressed: bool) -> ListBuf {
        let mut list = ListBuf::with_capacity(self.size_estimate());
        let out = list.items();
        put_str(out, self.parent_hash.as_slice());
        put_str(out, self.uncles_hash.as_slice());
        put_str(out, self.coinbase.as_ref().map_or(&[], |a| a.as_slice()));
        put_str(out, self.state_root.as_slice());
        put_str(out, self.transactions_root.as_slice());
        put_str(out, self.receipts_root.as_slice());
        let extension = self.shape.version != HeaderVersion::V0;
        if compressed && extension {
            put_str(out, &self.compressed_extension());
        } else {
            put_str(out, self.logs_bloom.as_slice());
        }
        self.difficulty.put(out);
        put_u64(out, self.number);
        self.gas_limit.put(out);
        put_u64(out, self.gas_used);
        put_u64(out, self.timestamp);
        put_str(out, &self.extra_data);
        put_u256(out, &self.paid_fees);
        self.minimum_gas_price.put(out);
        put_u64(out, u64::from(self.uncle_count));
        if self.shape.umm_root {
            put_str(out, &self.umm_root);
        }
        if !compressed && extension {
            put_str(out, &[self.shape.version.byte()]);
            if self.shape.edges {
                put_str(out, &self.edges_bytes());
            }
            if self.shape.version == HeaderVersion::V2 {
                put_str(out, &self.base_event);
            }
        }
        list
    }

    /// Appends the Bitcoin header and, if `proof` is set, the Merkle proof and the coinbase.
    pub(super) fn put_mining_fields(&self, out: &mut Vec<u8>, proof: bool) {
        put_str(out, &self.bitcoin_header);
        if proof {
            put_str(out, &self.merkle_proof);
            put_str(out, &self.coinbase_tx);
        }
    }

    /// The item that replaces the bloom in hash preimages: the list of version and extension hash.
    fn compressed_extension(&self) -> Vec<u8> {
        // A version byte and a hash with its header byte.
        let mut list = ListBuf::with_capacity(34);
        put_str(list.items(), &[self.shape.version.byte()]);
        put_str(list.items(), self.extension_hash().as_slice());
        list.into_list()
    }

    /// Keccak-256 of the list of bloom hash, base event and edges. The reference node puts the base event
    /// before the edges here, contrary to the text of RSKIP-535 and to the order in the full header.
    fn extension_hash(&self) -> B256 {
        let mut list = ListBuf::with_capacity(64);
        let out = list.items();
        put_str(out, keccak256(self.logs_bloom).as_slice());
        if self.shape.version == HeaderVersion::V2 {
            put_str(out, &self.base_event);
        }
        if self.shape.edges {
            put_str(out, &self.edges_bytes());
        }
        keccak256(list.as_list())
    }

    /// Edges as little-endian 16-bit values.
    fn edges_bytes(&self) -> Vec<u8> {
        self.edges.iter().flat_map(|edge| edge.to_le_bytes()).collect()
    }

    /// About the length of the encoding, in bytes. An edge has two bytes, so the edges count twice.
    fn size_estimate(&self) -> usize {
        [
            self.extra_data.len(),
            self.edges.len(),
            self.edges.len(),
            self.base_event.len(),
            self.bitcoin_header.len(),
            self.merkle_proof.len(),
            self.coinbase_tx.len(),
        ]
        .into_iter()
        .fold(BASE_ESTIMATE, usize::saturating_add)
    }
}
