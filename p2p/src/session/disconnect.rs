//! The message DISCONNECT, by which a side ends a session and states the reason.

use alloc::vec::Vec;

use rootlight::types::rlp::{RlpReader, put_list, put_str};

/// The reason of a DISCONNECT message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// 0x00
    Requested,
    /// 0x01
    TcpError,
    /// 0x02: a message broke the protocol.
    BadProtocol,
    /// 0x03: nothing in common.
    UselessPeer,
    /// 0x04
    TooManyPeers,
    /// 0x05: another connection of the same id.
    DuplicatePeer,
    /// 0x06: another version of the protocol.
    IncompatibleProtocol,
    /// 0x07: in the reference also another network.
    NullIdentity,
    /// 0x08
    Quitting,
    /// 0x09: not the id that was expected.
    UnexpectedIdentity,
    /// 0x0a: the id is our own.
    LocalIdentity,
    /// 0x0b
    PingTimeout,
    /// 0x10
    UserReason,
    /// 0x11: another genesis block.
    OtherGenesis,
    /// Any other byte.
    Other(u8),
    /// The message states no reason that can be read.
    Unspecified,
}

impl DisconnectReason {
    /// The reasons with their bytes.
    const KNOWN: [(u8, Self); 14] = [
        (0x00, Self::Requested),
        (0x01, Self::TcpError),
        (0x02, Self::BadProtocol),
        (0x03, Self::UselessPeer),
        (0x04, Self::TooManyPeers),
        (0x05, Self::DuplicatePeer),
        (0x06, Self::IncompatibleProtocol),
        (0x07, Self::NullIdentity),
        (0x08, Self::Quitting),
        (0x09, Self::UnexpectedIdentity),
        (0x0a, Self::LocalIdentity),
        (0x0b, Self::PingTimeout),
        (0x10, Self::UserReason),
        (0x11, Self::OtherGenesis),
    ];

    /// The reason with this byte.
    pub fn from_byte(byte: u8) -> Self {
        Self::KNOWN.iter().find(|(known, _)| *known == byte).map_or(Self::Other(byte), |(_, reason)| *reason)
    }

    /// The byte of the reason; 0 for [`Self::Unspecified`].
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Other(byte) => byte,
            reason => Self::KNOWN.iter().find(|(_, known)| *known == reason).map_or(0, |(byte, _)| *byte),
        }
    }

    /// Reads the payload of a DISCONNECT. The connection ends in any case, so no payload is refused: one that is not a list that starts
    /// with one byte is [`Self::Unspecified`]. The empty string is the number 0.
    pub fn decode(payload: &[u8]) -> Self {
        let first = RlpReader::new(payload)
            .next_list("disconnect")
            .and_then(|mut items| items.next_str("disconnect.reason"));
        match first {
            Ok([]) => Self::Requested,
            Ok([byte]) => Self::from_byte(*byte),
            _ => Self::Unspecified,
        }
    }

    /// The payload of a DISCONNECT with this reason.
    pub fn encode(self) -> Vec<u8> {
        let (mut item, mut list) = (Vec::new(), Vec::new());
        // The reference reads and writes one byte, also for zero, whose RLP would be the empty string.
        put_str(&mut item, &[self.to_byte()]);
        put_list(&mut list, &item);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_reason() {
        for byte in 0..=u8::MAX {
            let reason = DisconnectReason::from_byte(byte);
            assert_eq!(reason.to_byte(), byte);
            assert_eq!(DisconnectReason::decode(&reason.encode()), reason);
        }
        assert_eq!(DisconnectReason::OtherGenesis.encode(), [0xc1, 0x11]);
        assert_eq!(DisconnectReason::decode(&[0xc1, 0x80]), DisconnectReason::Requested);
        for nothing in [&[][..], &[0xc0], &[0x04], &[0xc3, 0x82, 1, 1], &[0xc5]] {
            assert_eq!(DisconnectReason::decode(nothing), DisconnectReason::Unspecified);
        }
    }
}
