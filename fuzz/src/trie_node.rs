//! Trie nodes: the parser takes exactly what the serializer writes.

use alloy_primitives::{B256, keccak256};
use rootlight::trie::{Bits, Child, Node, NodeStep, Value, parse_node, unwrap_node};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// The bytes as a node, and as choices for a node that is serialized, read back and changed.
pub fn check(data: &[u8]) {
    with_limit(data.len(), || {
        check_bytes(data);
        check_made(&mut Input::new(data));
    });
}

fn check_bytes(bytes: &[u8]) {
    if let Ok(inner) = unwrap_node(bytes) {
        // Raw, or the one RLP string around it.
        assert!(inner == bytes || alloy_rlp::encode(inner) == bytes);
    }
    let Ok(node) = parse_node(bytes) else { return };
    assert_eq!(node.to_bytes(), bytes);
    assert_eq!(node.encoded_len(), bytes.len());
    assert_eq!(node.hash(), keccak256(bytes));
    assert_eq!(unwrap_node(bytes), Ok(bytes));
    if bytes.len() > 1 {
        assert_eq!(unwrap_node(&alloy_rlp::encode(bytes)), Ok(bytes));
    }
    for child in [node.left, node.right].into_iter().flatten() {
        if let Child::Embedded(inside) = child {
            assert!(parse_node(inside).expect("checked with its parent").is_terminal());
        }
    }
    assert!(!node.is_terminal() || node.children_size == 0);
    check_step(&node, bytes);
}

/// Keys that follow the node's own path, one bit short, exactly, and further, and the bytes themselves as a key.
fn check_step(node: &Node<'_>, bytes: &[u8]) {
    let _ = node.step(Bits::of_key(bytes));
    let mut path = Vec::new();
    node.path.write_packed(&mut path);
    path.push(0x80);
    let along = |bits: usize| node.step(Bits::first(&path, bits));
    let len = node.path.len();
    assert!(matches!(along(len), NodeStep::Ends(value) if value == node.value));
    if len > 0 {
        assert!(matches!(along(len - 1), NodeStep::Leaves));
    }
    let at_end = Bits::first(&path, len + 1).get(len).expect("one bit more was packed");
    let expected = if at_end { node.right } else { node.left };
    match along(len + 1) {
        NodeStep::Goes(child, rest) => assert!(Some(child) == expected && rest.is_empty()),
        NodeStep::Leaves => assert!(expected.is_none()),
        NodeStep::Ends(_) => panic!("a longer key cannot end here"),
    }
}

/// A node of chosen parts comes back as it was; changed bytes are another node or none.
fn check_made(input: &mut Input<'_>) {
    let parts = NodeParts::new(input);
    let node = parts.node();
    let bytes = node.to_bytes();
    assert_eq!(parse_node(&bytes), Ok(node));
    let mut changed = bytes.clone();
    change(&mut changed, input);
    if let Ok(other) = parse_node(&changed) {
        assert_eq!(other == node, changed == bytes);
        assert_eq!(other.to_bytes(), changed);
    }
}

/// Owned parts of a node.
struct NodeParts {
    path: Vec<u8>,
    path_bits: usize,
    children: [Option<(B256, Option<Vec<u8>>)>; 2],
    size: u64,
    value: Vec<u8>,
    long: Option<(B256, u32)>,
}

impl NodeParts {
    fn new(input: &mut Input<'_>) -> Self {
        let path_bits = input.below(513);
        let path = input.take(path_bits.div_ceil(8)).to_vec();
        let path_bits = path_bits.min(path.len() * 8);
        let children = [child(input), child(input)];
        let size = if children.iter().all(Option::is_none) { 0 } else { u64::from_le_bytes(input.array()) };
        let len = input.below(33);
        let value = input.take(len).to_vec();
        let long_len = u32::try_from(input.short()).unwrap_or(0) + 33;
        let long = (input.byte() % 2 == 0).then(|| (B256::from(input.array::<32>()), long_len));
        Self { path, path_bits, children, size, value, long }
    }

    fn node(&self) -> Node<'_> {
        let [left, right] = self.children.each_ref().map(|child| {
            child.as_ref().map(|(hash, inside)| match inside {
                Some(bytes) => Child::Embedded(bytes),
                None => Child::Hash(hash),
            })
        });
        let value = match (&self.long, self.value.as_slice()) {
            (Some((hash, len)), _) => Value::Long { hash, len: *len },
            (None, []) => Value::None,
            (None, bytes) => Value::Inline(bytes),
        };
        Node { path: Bits::first(&self.path, self.path_bits), left, right, children_size: self.size, value }
    }
}

/// A child by hash, or one with path and value inside its parent.
fn child(input: &mut Input<'_>) -> Option<(B256, Option<Vec<u8>>)> {
    let kind = input.byte();
    match kind % 3 {
        0 => None,
        1 => Some((B256::from(input.array::<32>()), None)),
        _ => {
            let bits = input.below(65);
            let path = input.take(bits.div_ceil(8));
            let len = input.below(32);
            let value = match input.take(len) {
                [] => Value::None,
                bytes => Value::Inline(bytes),
            };
            let path = Bits::first(path, bits);
            let inside = Node { path, left: None, right: None, children_size: 0, value }.to_bytes();
            let fits = inside.len() <= rootlight::trie::limits::MAX_EMBEDDED_BYTES;
            Some((keccak256(&inside), fits.then_some(inside)))
        }
    }
}
