//! Headers in the compressed form of messages.

use alloy_primitives::{B256, Bloom, keccak256};
use rootlight::consensus::pow::MergedMiningProof;
use rootlight::consensus::{HeaderCandidate, Network, PowError, Seal, verify_merged_mining};
use rootlight::types::rlp::{ListBuf, RlpReader, fixed, put_str};
use rootlight::types::{FieldError, FieldRule, Header, HeaderError, HeaderShape, HeaderVersion};
use rootlight_p2p::message::{Extension, ExtensionFields};

use super::error::CheckError;

/// Number of items before the mining fields in every header; a UMM root adds one.
const COMMON_ITEMS: usize = 16;
/// Index of the bloom (version 0) or of the list of version and extension hash.
const BLOOM: usize = 6;
/// Index of the number.
const NUMBER: usize = 8;
/// Mining fields: Bitcoin header, Merkle proof and coinbase.
const MINING_ITEMS: usize = 3;
/// The first of them, in hashes that do not cover the proof.
const BITCOIN_HEADER_ONLY: usize = 1;
/// How many leading bytes of the hash are hashed together with the UMM root.
const UMM_PREFIX: usize = 20;

/// A header from a message, not verified. From version 1 on its extension (bloom, event, edges) is known only by hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerHeader {
    /// With an empty extension, if that is not known.
    header: Header,
    hash: B256,
    mining_hash: Result<B256, HeaderError>,
    /// The bytes as received, for [`Self::complete`]; `None` for version 0, which has no extension.
    compressed: Option<Vec<u8>>,
}

impl PeerHeader {
    /// Decodes a header in the compressed form, with all mining fields.
    ///
    /// # Errors
    /// The bytes are not a header of this network.
    pub(crate) fn decode(rlp: &[u8], network: &Network) -> Result<Self, CheckError> {
        let items = HeaderItems::split(rlp)?;
        let number = items.number()?;
        let shape = network.header_shape(number);
        let base = COMMON_ITEMS.saturating_add(usize::from(shape.umm_root));
        let found = items.list.len();
        if found != base.saturating_add(MINING_ITEMS) {
            return Err(match found > base {
                true => CheckError::NoProof(number),
                false => HeaderError::Items { number, found, base }.into(),
            });
        }
        if shape.version == HeaderVersion::V0 {
            let candidate = HeaderCandidate::decode(rlp, network)?;
            let (mining_hash, sealed) = (candidate.mining_hash().clone(), candidate.into_header());
            let hash = sealed.hash();
            return Ok(Self { header: sealed.into_header(), hash, mining_hash, compressed: None });
        }
        items.check_extension(shape.version)?;
        let mining_items = if shape.hash_covers_proof { MINING_ITEMS } else { BITCOIN_HEADER_ONLY };
        let hash = items.hash_of_first(base.saturating_add(mining_items));
        let empty = ExtensionFields {
            bloom: Bloom::ZERO,
            base_event: (shape.version == HeaderVersion::V2).then_some(&[]),
            edges: shape.edges.then_some(&[]),
        };
        let header = items.complete(&shape, &empty, network)?;
        let mining_base = mix_umm_root(items.hash_of_first(base), &header.umm_root);
        let mining_hash = header.complete_mining_hash(mining_base);
        Ok(Self { header, hash, mining_hash, compressed: Some(rlp.to_vec()) })
    }

    /// The block hash.
    pub(crate) const fn hash(&self) -> B256 {
        self.hash
    }

    /// Hash of the parent.
    pub(crate) const fn parent_hash(&self) -> B256 {
        self.header.parent_hash
    }

    /// The block number.
    pub(crate) const fn number(&self) -> u64 {
        self.header.number
    }

    /// Checks the proof of work by the rules at the header's height. The genesis block has none.
    ///
    /// # Errors
    /// The rule that the proof breaks.
    pub(crate) fn check_work(&self, network: &Network) -> Result<Seal, PowError> {
        let header = &self.header;
        if self.compressed.is_none() {
            return verify_merged_mining(header, network);
        }
        // Blocks signed instead of mined are older than all extensions, so this one is mined.
        let rules = network.rules(header.number);
        let proof = MergedMiningProof {
            bitcoin_header: &header.bitcoin_header,
            merkle_proof: &header.merkle_proof,
            coinbase: &header.coinbase_tx,
        };
        let bitcoin = proof.check_work(header.difficulty.value(), rules)?;
        let hash = self.mining_hash.clone().map_err(PowError::MiningHash)?;
        proof.check_commitment(&bitcoin, &hash, rules)?;
        Ok(Seal::MergedMining)
    }

    /// The whole header, with the extension of the block's body.
    ///
    /// # Errors
    /// The header commits to another extension, or to none.
    pub(crate) fn complete(
        &self,
        extension: Option<&Extension<'_>>,
        network: &Network,
    ) -> Result<HeaderCandidate, CheckError> {
        let wrong = CheckError::Extension(self.header.number);
        let header = match (&self.compressed, extension) {
            (None, None) => self.header.clone(),
            (Some(compressed), Some(extension)) => {
                let (shape, fields) = (&self.header.shape, extension.read_fields()?);
                if extension.version != shape.version || fields.edges.is_some() != shape.edges {
                    return Err(wrong);
                }
                HeaderItems::split(compressed)?.complete(shape, &fields, network)?
            }
            _ => return Err(wrong),
        };
        let candidate = HeaderCandidate::from(header);
        match candidate.header().hash() == self.hash {
            true => Ok(candidate),
            false => Err(wrong),
        }
    }

    /// The fields, those of the extension empty if it is not known.
    pub(super) const fn fields(&self) -> &Header {
        &self.header
    }
}

/// The string items of a header.
struct HeaderItems<'a> {
    list: Vec<&'a [u8]>,
}

impl<'a> HeaderItems<'a> {
    fn split(rlp: &'a [u8]) -> Result<Self, FieldError> {
        let most = COMMON_ITEMS.saturating_add(1).saturating_add(MINING_ITEMS);
        let mut reader = RlpReader::list(rlp, "header")?;
        let mut list = Vec::with_capacity(most);
        while !reader.is_empty() {
            if list.len() >= most {
                let rule = FieldRule::Items { expected: most, found: most.saturating_add(1) };
                return Err(FieldError::new("header", rule));
            }
            list.push(reader.next_str("header.item")?);
        }
        Ok(Self { list })
    }

    fn number(&self) -> Result<u64, FieldError> {
        rootlight::types::rlp::uint63(self.list.get(NUMBER).copied().unwrap_or(&[]), "header.number")
    }

    /// The item in the place of the bloom must be the list of version and hash.
    fn check_extension(&self, version: HeaderVersion) -> Result<(), FieldError> {
        let field = "header.extension";
        let mut pair = RlpReader::list(self.list.get(BLOOM).copied().unwrap_or(&[]), field)?;
        let [found] = fixed::<1>(pair.next_str("header.version")?, "header.version")?;
        fixed::<32>(pair.next_str(field)?, field)?;
        pair.finish(field)?;
        let (expected, found) = (u64::from(version.byte()), u64::from(found));
        match expected == found {
            true => Ok(()),
            false => Err(FieldError::new("header.version", FieldRule::Value { expected, found })),
        }
    }

    /// Keccak-256 of the list of the first items.
    fn hash_of_first(&self, count: usize) -> B256 {
        let mut list = ListBuf::with_capacity(1024);
        self.list.iter().take(count).for_each(|item| put_str(list.items(), item));
        keccak256(list.as_list())
    }

    fn complete(
        &self,
        shape: &HeaderShape,
        extension: &ExtensionFields<'_>,
        network: &Network,
    ) -> Result<Header, HeaderError> {
        let mining = self.list.len().saturating_sub(MINING_ITEMS);
        let mut full = ListBuf::with_capacity(2048);
        for (index, item) in self.list.iter().enumerate() {
            if index == mining {
                put_str(full.items(), &[shape.version.byte()]);
                [extension.edges, extension.base_event]
                    .into_iter()
                    .flatten()
                    .for_each(|item| put_str(full.items(), item));
            }
            put_str(full.items(), if index == BLOOM { extension.bloom.as_slice() } else { item });
        }
        Header::decode(full.as_list(), &|number| network.header_shape(number))
    }
}

/// Combines a hash with the root of umbrella merged mining (RSKIP-UMM), if there is one.
fn mix_umm_root(hash_without_umm: B256, umm_root: &[u8]) -> B256 {
    if umm_root.is_empty() {
        return hash_without_umm;
    }
    let prefix = hash_without_umm.iter().take(UMM_PREFIX).chain(umm_root).copied();
    keccak256(prefix.collect::<Vec<u8>>())
}
