//! Bitcoin Merkle proofs of both eras: the partial tree and the list of siblings.

use alloy_primitives::B256;
use rootlight::consensus::merkle::{BranchError, MAX_BRANCH_LEN, branch_root};
use rootlight::consensus::partial_merkle::partial_tree_root;
use sha2::{Digest, Sha256};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// Most leaves of a tree made here.
const MAX_LEAVES: usize = 40;

/// First byte 0: a leaf and a proof as it is, in both forms. Else: choices for a tree whose proofs are made and changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    with_limit(data.len(), || match input.byte() % 4 {
        0 => {
            let leaf = B256::from(input.array::<32>());
            check_branch(input.clone().rest(), leaf);
            let _ = partial_tree_root(input.rest(), leaf);
        }
        1 => check_branch_of_tree(&mut input),
        _ => check_partial_tree(&mut input),
    });
}

fn pair(left: &B256, right: &B256) -> B256 {
    let both = [left.as_slice(), right.as_slice()].concat();
    B256::from_slice(&Sha256::digest(Sha256::digest(both)))
}

fn reversed(hash: &B256) -> B256 {
    let mut bytes = *hash;
    bytes.reverse();
    bytes
}

/// Whatever is accepted is the plain fold over the siblings; whatever is refused is too long, uneven or suspicious.
fn check_branch(branch: &[u8], leaf: B256) {
    let siblings = branch.chunks_exact(32).map(|sibling| reversed(&B256::from_slice(sibling)));
    let plain = siblings.fold(leaf, |node, sibling| pair(&node, &sibling));
    for limited in [true, false] {
        match branch_root(branch, leaf, limited) {
            Ok(root) => {
                assert_eq!(root, plain);
                assert!(branch.len() % 32 == 0 && !(limited && branch.len() > MAX_BRANCH_LEN));
            }
            Err(BranchError::TooLong { found }) => {
                assert!(limited && found == branch.len() && found > MAX_BRANCH_LEN)
            }
            Err(BranchError::Length { found }) => assert!(found == branch.len() && found % 32 != 0),
            Err(BranchError::TransactionShape { level }) => assert!(level < branch.len() / 32),
            Err(other) => panic!("a new error: {other}"),
        }
    }
}

/// Hashes of a tree, level by level from the leaves up; an odd last node is paired with itself.
fn levels(leaves: Vec<B256>) -> Vec<Vec<B256>> {
    let mut levels = vec![leaves];
    while let Some(below) = levels.last().filter(|level| level.len() > 1) {
        let above = below.chunks(2).map(|two| pair(&two[0], two.last().unwrap_or(&two[0]))).collect();
        levels.push(above);
    }
    levels
}

fn leaves(input: &mut Input<'_>) -> Vec<B256> {
    let count = input.below(MAX_LEAVES) + 1;
    let salt = input.array::<4>();
    (0..count).map(|i| B256::from_slice(&Sha256::digest([&salt[..], &[i as u8]].concat()))).collect()
}

/// The branch of the first leaf gives the tree's root; changed, it gives the root for no other leaf.
fn check_branch_of_tree(input: &mut Input<'_>) {
    let levels = levels(leaves(input));
    let root = levels[levels.len() - 1][0];
    let leaf = levels[0][0];
    let siblings = levels.iter().filter(|level| level.len() > 1).map(|level| level[1]);
    let mut branch: Vec<u8> = siblings.flat_map(|sibling| reversed(&sibling).0).collect();
    // Hashes of chosen words do not have the shape of a transaction but by chance of one in millions.
    let Ok(found) = branch_root(&branch, leaf, true) else { return };
    assert_eq!(found, root);

    let honest = branch.clone();
    for _ in 0..input.byte() % 4 {
        change(&mut branch, input);
    }
    if input.byte() % 2 == 0 {
        branch.drain(..branch.len().min(32));
    }
    check_branch(&branch, leaf);
    if branch != honest {
        assert_ne!(branch_root(&branch, leaf, true).ok(), Some(root));
    }
}

/// A partial tree made as Bitcoin does it gives the root and finds the matched leaves only; changed, it gives the root
/// for nothing that is not a node of the tree.
fn check_partial_tree(input: &mut Input<'_>) {
    let levels = levels(leaves(input));
    let root = levels[levels.len() - 1][0];
    let count = levels[0].len();
    let pattern = u64::from_le_bytes(input.array());
    let matched: Vec<bool> = (0..count).map(|i| pattern >> i & 1 == 1).collect();
    let mut made = Partial { levels: &levels, matched: &matched, bits: Vec::new(), hashes: Vec::new() };
    made.walk(levels.len() - 1, 0);
    let mut field = made.field();
    let wanted = input.below(count);
    // As above: a suspicious node would be chance.
    let Ok(proven) = partial_tree_root(&field, levels[0][wanted]) else { return };
    assert_eq!(proven, (root, matched[wanted]));
    assert_eq!(partial_tree_root(&field, B256::repeat_byte(0x55)), Ok((root, false)));

    for _ in 0..input.byte() % 6 {
        change(&mut field, input);
    }
    let mut candidates = vec![B256::ZERO, B256::repeat_byte(0x55)];
    // What the changed field itself offers as leaves.
    candidates
        .extend(field.get(5..).into_iter().flat_map(|rest| rest.chunks_exact(32)).map(B256::from_slice));
    for leaf in candidates.into_iter().chain(levels.iter().flatten().copied()) {
        if partial_tree_root(&field, leaf) == Ok((root, true)) {
            assert!(levels.iter().flatten().any(|node| *node == leaf));
        }
    }
}

/// Bitcoin's way of writing a partial tree.
struct Partial<'a> {
    levels: &'a [Vec<B256>],
    matched: &'a [bool],
    bits: Vec<bool>,
    hashes: Vec<B256>,
}

impl Partial<'_> {
    fn walk(&mut self, height: usize, position: usize) {
        let first = position << height;
        let last = ((position + 1) << height).min(self.matched.len());
        let above_match = self.matched[first..last].contains(&true);
        self.bits.push(above_match);
        if height == 0 || !above_match {
            self.hashes.push(self.levels[height][position]);
            return;
        }
        self.walk(height - 1, 2 * position);
        if 2 * position + 1 < self.levels[height - 1].len() {
            self.walk(height - 1, 2 * position + 1);
        }
    }

    fn field(&self) -> Vec<u8> {
        let mut field = (self.matched.len() as u32).to_le_bytes().to_vec();
        field.push(self.hashes.len() as u8);
        field.extend(self.hashes.iter().flat_map(|hash| hash.0));
        let packed =
            self.bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        let packed: Vec<u8> = packed.collect();
        field.push(packed.len() as u8);
        field.extend(packed);
        field
    }
}
