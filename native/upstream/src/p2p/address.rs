//! The address of a node, `ID@HOST:PORT`, where `ID` is the public key that the node proves to have.

use std::fmt;
use std::str::FromStr;

use rootlight_p2p::rlpx::NodeId;

/// A node's id and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// The node's public key, which the handshake checks, so that no other node can answer at the address.
    pub id: NodeId,
    /// Host name or IP address; an IPv6 address in brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Why a text is no `ID@HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PeerAddressError {
    #[error("a peer is ID@HOST:PORT, with the node's public key as ID")]
    NoId,
    /// The part before `@` is no public key.
    #[error("the id of a peer has 128 hexadecimal digits: {0}")]
    Id(String),
    /// The part after `@` has no port, or no host.
    #[error("a peer is ID@HOST:PORT; HOST or PORT is missing")]
    NoPort,
    #[error("the port of a peer is a number from 1 to 65535, not {0}")]
    Port(String),
}

impl FromStr for PeerAddress {
    type Err = PeerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (id, address) = text.split_once('@').ok_or(PeerAddressError::NoId)?;
        let id = id.parse::<NodeId>().map_err(|error| PeerAddressError::Id(error.to_string()))?;
        let (host, port) = address.rsplit_once(':').ok_or(PeerAddressError::NoPort)?;
        if host.is_empty() {
            return Err(PeerAddressError::NoPort);
        }
        let valid = port.parse::<u16>().ok().filter(|port| *port > 0);
        let port = valid.ok_or_else(|| PeerAddressError::Port(port.to_owned()))?;
        Ok(Self { id, host: host.to_owned(), port })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.id, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use rootlight_p2p::rlpx::NodeKey;

    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        let id = *NodeKey::from_bytes(&[7; 32]).unwrap().id();
        for address in ["127.0.0.1:5050", "node.example:1", "[::1]:65535"] {
            let text = format!("{id}@{address}");
            assert_eq!(text.parse::<PeerAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn unusable_addresses_are_refused_with_the_reason() {
        let id = *NodeKey::from_bytes(&[7; 32]).unwrap().id();
        let error = |text: String| text.parse::<PeerAddress>().unwrap_err();
        assert_eq!(error("127.0.0.1:5050".into()), PeerAddressError::NoId);
        assert!(matches!(error("12@127.0.0.1:5050".into()), PeerAddressError::Id(_)));
        assert_eq!(error(format!("{id}@127.0.0.1")), PeerAddressError::NoPort);
        assert_eq!(error(format!("{id}@:5050")), PeerAddressError::NoPort);
        for port in ["0", "65536", "", "5050x"] {
            assert_eq!(error(format!("{id}@127.0.0.1:{port}")), PeerAddressError::Port(port.into()));
        }
    }
}
