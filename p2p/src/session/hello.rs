//! The message HELLO, the first one of both sides: node id, client name, and the protocols that the node speaks.

use alloc::string::String;
use alloc::vec::Vec;

use rootlight::types::rlp::{ListBuf, RlpReader, fixed, put_list, put_str, put_u64, uint63};
use rootlight::types::{FieldError, FieldRule};

use crate::rlpx::NodeId;

/// The version of the base protocol that we speak: without compression and without messages in parts.
pub(super) const BASE_VERSION: u64 = 4;
/// The version of `rsk`, which a peer must speak.
pub const RSK_VERSION: u64 = 62;
/// The version of `snap`, which a peer states if it serves state chunks.
pub const SNAP_VERSION: u64 = 1;
/// Names of the protocols.
const RSK: &str = "rsk";
const SNAP: &str = "snap";

/// Most capabilities that a HELLO may list.
const CAPABILITIES_MAX: usize = 32;
/// Most bytes of a capability's name.
const NAME_BYTES_MAX: usize = 32;
/// Most bytes of a client's name that are read; the rest of a longer name is ignored.
const CLIENT_BYTES_MAX: usize = 128;

/// A protocol above the base protocol, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// The protocol's name, in printable ASCII; any other byte is shown as `?`.
    pub name: String,
    /// The version of the protocol.
    pub version: u64,
}

/// The first message of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The version of the base protocol; 4 or 5 for the reference.
    pub version: u64,
    /// The client's name: at most 128 characters of printable ASCII, any other byte shown as `?`.
    pub client_id: String,
    /// The protocols that the sender speaks.
    pub capabilities: Vec<Capability>,
    /// The sender's TCP port; 0 if the sender does not listen.
    pub listen_port: u16,
    /// The id that the sender states.
    pub node_id: NodeId,
}

impl Hello {
    /// Our HELLO.
    pub(super) fn ours(client_id: &str, serves_snap: bool, listen_port: u16, node_id: NodeId) -> Self {
        let capability = |name: &str, version| Capability { name: name.into(), version };
        let snap = serves_snap.then(|| capability(SNAP, SNAP_VERSION));
        let capabilities = [capability(RSK, RSK_VERSION)].into_iter().chain(snap).collect();
        Self { version: BASE_VERSION, client_id: client_id.into(), capabilities, listen_port, node_id }
    }

    /// Whether the node speaks `rsk/62`.
    pub fn speaks_rsk(&self) -> bool {
        self.has(RSK, RSK_VERSION)
    }

    /// Whether the node serves state chunks (`snap/1`).
    pub fn serves_snap(&self) -> bool {
        self.has(SNAP, SNAP_VERSION)
    }

    /// Whether the sender speaks this version of a protocol.
    fn has(&self, name: &str, version: u64) -> bool {
        self.capabilities.iter().any(|known| known.name == name && known.version == version)
    }

    /// Reads the payload of a HELLO. Items after the node id are ignored, as EIP-8 demands.
    pub fn decode(payload: &[u8]) -> Result<Self, FieldError> {
        let mut items = RlpReader::list(payload, "hello")?;
        let version = uint63(items.next_str("hello.version")?, "hello.version")?;
        let client = items.next_str("hello.clientId")?;
        let mut list = items.next_list("hello.capabilities")?;
        let mut capabilities = Vec::new();
        while !list.is_empty() {
            if capabilities.len() == CAPABILITIES_MAX {
                return Err(FieldError::new("hello.capabilities", FieldRule::TooMany(CAPABILITIES_MAX)));
            }
            capabilities.push(Capability::decode(&mut list)?);
        }
        let port = uint63(items.next_str("hello.listenPort")?, "hello.listenPort")?;
        let listen_port =
            u16::try_from(port).map_err(|_| FieldError::new("hello.listenPort", FieldRule::TooLarge(16)))?;
        let node_id = NodeId::from_bytes(fixed(items.next_str("hello.nodeId")?, "hello.nodeId")?);
        let client_id = printable(client.get(..CLIENT_BYTES_MAX).unwrap_or(client));
        Ok(Self { version, client_id, capabilities, listen_port, node_id })
    }

    /// The payload of a HELLO.
    pub fn encode(&self) -> Vec<u8> {
        let mut capabilities = Vec::new();
        for capability in &self.capabilities {
            let mut item = Vec::new();
            put_str(&mut item, capability.name.as_bytes());
            put_u64(&mut item, capability.version);
            put_list(&mut capabilities, &item);
        }
        let mut list = ListBuf::with_capacity(256);
        put_u64(list.items(), self.version);
        put_str(list.items(), self.client_id.as_bytes());
        put_list(list.items(), &capabilities);
        put_u64(list.items(), self.listen_port.into());
        put_str(list.items(), self.node_id.as_bytes());
        list.into_list()
    }
}

impl Capability {
    fn decode(list: &mut RlpReader<'_>) -> Result<Self, FieldError> {
        const FIELD: &str = "hello.capability";
        let mut items = list.next_list(FIELD)?;
        let name = items.next_str(FIELD)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(FieldError::new(
                FIELD,
                FieldRule::TooLong { limit: NAME_BYTES_MAX, found: name.len() },
            ));
        }
        let version = uint63(items.next_str(FIELD)?, FIELD)?;
        Ok(Self { name: printable(name), version })
    }
}

/// A text that can be written to logs: it has only printable ASCII, so no control characters.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' }).collect()
}
