//! The four messages of discovery, as the lists in datagrams.
//!
//! | type | items |
//! |---|---|
//! | 1 PING, 2 PONG | from, to, message id, network id; from and to are [host, UDP port, TCP port] |
//! | 3 FIND_NODE | node id, message id, network id |
//! | 4 NEIGHBORS | list of [host, UDP port, TCP port, node id], message id, network id |
//!
//! As in the reference, the network id may be missing, and more items or bytes after the list are ignored.

use alloc::string::String;
use alloc::vec::Vec;

use rootlight::types::rlp::{ListBuf, RlpReader, fixed, put_list, put_str, put_u64, uint63};
use rootlight::types::{FieldError, FieldRule};

use super::error::DatagramError;
use super::message_id::MessageId;
use crate::rlpx::NodeId;

/// Most nodes of a NEIGHBORS; a message with more is refused. The reference implementation sends at most 20.
pub const NEIGHBORS_MAX: usize = 20;
/// Most bytes of a host: the longest name of the domain name system.
const HOST_BYTES_MAX: usize = 253;

// Type bytes.
const PING: u8 = 1;
const PONG: u8 = 2;
const FIND_NODE: u8 = 3;
const NEIGHBORS: u8 = 4;

/// The address that a message names for a node. For the sender of a datagram, the address of the socket is used instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// An IP address or a host name, as text.
    pub host: String,
    /// The UDP port.
    pub udp_port: u16,
    /// The TCP port.
    pub tcp_port: u16,
}

/// A node that a NEIGHBORS message names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbor {
    /// The stated address.
    pub endpoint: Endpoint,
    /// The public key of the node.
    pub id: NodeId,
}

/// A message of discovery. `network_id` is `None` if the message has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Asks for a PONG.
    Ping {
        /// The sender.
        from: Endpoint,
        /// The receiver; the reference fills in the sender again.
        to: Endpoint,
        /// The answer repeats this id.
        message_id: MessageId,
        /// The network of the sender.
        network_id: Option<u64>,
    },
    /// Answers a PING.
    Pong {
        /// The sender.
        from: Endpoint,
        /// The receiver; the reference fills in the sender again.
        to: Endpoint,
        /// The id of the PING.
        message_id: MessageId,
        /// The network of the sender.
        network_id: Option<u64>,
    },
    /// Asks for nodes.
    FindNode {
        /// Not used by the reference, which answers with nodes near the sender.
        target: NodeId,
        /// The answer repeats this id.
        message_id: MessageId,
        /// The network of the sender.
        network_id: Option<u64>,
    },
    /// Answers a FIND_NODE.
    Neighbors {
        /// At most [`NEIGHBORS_MAX`].
        nodes: Vec<Neighbor>,
        /// The id of the FIND_NODE.
        message_id: MessageId,
        /// The network of the sender.
        network_id: Option<u64>,
    },
}

impl Packet {
    /// The byte that names the type.
    pub const fn type_byte(&self) -> u8 {
        match self {
            Self::Ping { .. } => PING,
            Self::Pong { .. } => PONG,
            Self::FindNode { .. } => FIND_NODE,
            Self::Neighbors { .. } => NEIGHBORS,
        }
    }

    /// The id that an answer repeats.
    pub const fn message_id(&self) -> &MessageId {
        match self {
            Self::Ping { message_id, .. }
            | Self::Pong { message_id, .. }
            | Self::FindNode { message_id, .. }
            | Self::Neighbors { message_id, .. } => message_id,
        }
    }

    /// The network of the sender, if it named one.
    pub const fn network_id(&self) -> Option<u64> {
        match self {
            Self::Ping { network_id, .. }
            | Self::Pong { network_id, .. }
            | Self::FindNode { network_id, .. }
            | Self::Neighbors { network_id, .. } => *network_id,
        }
    }

    /// Reads the list after the type.
    pub fn decode(type_byte: u8, data: &[u8]) -> Result<Self, DatagramError> {
        let mut items = RlpReader::new(data).next_list("datagram")?;
        match type_byte {
            PING | PONG => {
                let from = Endpoint::decode(&mut items.next_list("from")?)?;
                let to = Endpoint::decode(&mut items.next_list("to")?)?;
                let (message_id, network_id) = tail(&mut items)?;
                Ok(match type_byte {
                    PING => Self::Ping { from, to, message_id, network_id },
                    _ => Self::Pong { from, to, message_id, network_id },
                })
            }
            FIND_NODE => {
                let target = NodeId::from_bytes(fixed(items.next_str("nodeId")?, "nodeId")?);
                let (message_id, network_id) = tail(&mut items)?;
                Ok(Self::FindNode { target, message_id, network_id })
            }
            NEIGHBORS => {
                let mut list = items.next_list("nodes")?;
                let (message_id, network_id) = tail(&mut items)?;
                Ok(Self::Neighbors { nodes: neighbors(&mut list)?, message_id, network_id })
            }
            other => Err(DatagramError::Type(other)),
        }
    }

    /// Writes the list after the type.
    pub fn encode(&self) -> Vec<u8> {
        let mut list = ListBuf::with_capacity(256);
        let items = list.items();
        match self {
            Self::Ping { from, to, .. } | Self::Pong { from, to, .. } => {
                put_list(items, &from.encode());
                put_list(items, &to.encode());
            }
            Self::FindNode { target, .. } => put_str(items, target.as_bytes()),
            Self::Neighbors { nodes, .. } => {
                let mut payload = Vec::new();
                for node in nodes {
                    let mut item = node.endpoint.encode();
                    put_str(&mut item, node.id.as_bytes());
                    put_list(&mut payload, &item);
                }
                put_list(items, &payload);
            }
        }
        put_str(items, &self.message_id().text());
        if let Some(network_id) = self.network_id() {
            put_u64(items, network_id);
        }
        list.into_list()
    }
}

impl Endpoint {
    fn decode(items: &mut RlpReader<'_>) -> Result<Self, FieldError> {
        const HOST: &str = "endpoint.host";
        let host = items.next_str(HOST)?;
        if host.len() > HOST_BYTES_MAX {
            return Err(FieldError::new(
                HOST,
                FieldRule::TooLong { limit: HOST_BYTES_MAX, found: host.len() },
            ));
        }
        // Bytes that are not UTF-8 become U+FFFD, which is in no host's name.
        let host = String::from_utf8_lossy(host).into_owned();
        let udp_port = port(items.next_str("endpoint.udpPort")?)?;
        let tcp_port = port(items.next_str("endpoint.tcpPort")?)?;
        Ok(Self { host, udp_port, tcp_port })
    }

    /// The items, without the list header.
    fn encode(&self) -> Vec<u8> {
        let mut items = Vec::new();
        put_str(&mut items, self.host.as_bytes());
        put_u64(&mut items, self.udp_port.into());
        put_u64(&mut items, self.tcp_port.into());
        items
    }
}

/// Reads the nodes of a NEIGHBORS.
fn neighbors(list: &mut RlpReader<'_>) -> Result<Vec<Neighbor>, FieldError> {
    let mut nodes = Vec::new();
    while !list.is_empty() {
        if nodes.len() == NEIGHBORS_MAX {
            return Err(FieldError::new("nodes", FieldRule::TooMany(NEIGHBORS_MAX)));
        }
        let mut items = list.next_list("node")?;
        let endpoint = Endpoint::decode(&mut items)?;
        let id = NodeId::from_bytes(fixed(items.next_str("node.id")?, "node.id")?);
        nodes.push(Neighbor { endpoint, id });
    }
    Ok(nodes)
}

/// Reads a port.
fn port(bytes: &[u8]) -> Result<u16, FieldError> {
    const PORT: &str = "endpoint.port";
    u16::try_from(uint63(bytes, PORT)?).map_err(|_| FieldError::new(PORT, FieldRule::TooLarge(16)))
}

/// Reads the items at the end of every message: message id and network id.
fn tail(items: &mut RlpReader<'_>) -> Result<(MessageId, Option<u64>), DatagramError> {
    let message_id = MessageId::from_text(items.next_str("messageId")?)?;
    if items.is_empty() {
        return Ok((message_id, None));
    }
    Ok((message_id, Some(uint63(items.next_str("networkId")?, "networkId")?)))
}
