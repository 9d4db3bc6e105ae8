//! Addresses as people write them: with a checksum in the case of their letters, or without one.
//!
//! EIP-55 has one checksum for all chains. The checksum of RSKIP-60 depends on the chain id, so Rootstock's wallets write one account
//! differently on mainnet and on testnet.

use alloy_primitives::Address;
use rootlight::consensus::Network;

/// The chain ids of RSKIP-60: mainnet and testnet.
const RSKIP60_CHAINS: [u64; 2] = [30, 31];

/// Hexadecimal digits of an address.
const DIGITS: usize = 40;

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AccountError {
    #[error("an address begins with 0x; names are not looked up")]
    Prefix,
    #[error("an address has {DIGITS} digits after 0x, this one has {0}")]
    Length(usize),
    #[error("{0:?} is no hexadecimal digit")]
    Digit(char),
    #[error(
        "its letters are neither the checksum of EIP-55 nor that of RSKIP-60 for mainnet or testnet, so a digit or a letter \
         is wrong; an address in small letters has no checksum"
    )]
    Checksum,
}

/// An account that the user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedAccount {
    pub(super) address: Address,
    /// The chain id whose RSKIP-60 checksum the address has, if this is not the chain id of the network.
    pub(super) other_chain: Option<u64>,
}

impl NamedAccount {
    /// Reads an address, and compares its checksum if it has one.
    pub(super) fn read(text: &str, network: &Network) -> Result<Self, AccountError> {
        let digits = text.strip_prefix("0x").ok_or(AccountError::Prefix)?;
        if let Some(wrong) = digits.chars().find(|digit| !digit.is_ascii_hexdigit()) {
            return Err(AccountError::Digit(wrong));
        }
        let address: Address = digits.parse().map_err(|_| AccountError::Length(digits.len()))?;
        let has = |is_kind: fn(&u8) -> bool| digits.as_bytes().iter().any(is_kind);
        let is_checksum_of = |chain| address.to_checksum(chain) == text;
        // Letters of one case have no checksum.
        let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        if !mixed || is_checksum_of(None) || is_checksum_of(Some(network.chain_id)) {
            return Ok(Self { address, other_chain: None });
        }
        let other = RSKIP60_CHAINS.into_iter().find(|chain| is_checksum_of(Some(*chain)));
        let other_chain = Some(other.ok_or(AccountError::Checksum)?);
        Ok(Self { address, other_chain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RSKIP-60: mainnet, then testnet.
    const EXAMPLES: [[&str; 2]; 2] = [
        ["0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD", "0xFb6916095cA1Df60bb79ce92cE3EA74c37c5d359"],
        ["0x5aAeb6053F3e94c9b9A09F33669435E7EF1BEaEd", "0xFb6916095CA1dF60bb79CE92ce3Ea74C37c5D359"],
    ];

    fn read(text: &str) -> Result<Option<u64>, AccountError> {
        NamedAccount::read(text, &Network::mainnet()).map(|account| account.other_chain)
    }

    #[test]
    fn checksums_of_both_networks_and_of_eip_55_are_accepted() {
        for (examples, other) in EXAMPLES.into_iter().zip([None, Some(31)]) {
            for text in examples {
                assert_eq!(read(text), Ok(other), "{text}");
            }
        }
        assert_eq!(read("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), Ok(None), "EIP-55");
        let regtest = NamedAccount::read(EXAMPLES[0][0], &Network::regtest()).unwrap();
        assert_eq!(regtest.other_chain, Some(30));
    }

    #[test]
    fn addresses_of_one_case_have_no_checksum() {
        let small = EXAMPLES[0][0].to_lowercase();
        let address = NamedAccount::read(&small, &Network::mainnet()).unwrap().address;
        assert_eq!(format!("{address:#x}"), small);
        assert_eq!(read(&format!("0x{}", small[2..].to_uppercase())), Ok(None));
        assert_eq!(read(&format!("0x{}", "12".repeat(20))), Ok(None));
    }

    #[test]
    fn wrong_addresses_are_refused_with_the_reason() {
        let example = EXAMPLES[0][0];
        let one_case = example.replacen("aaEB", "aaeB", 1);
        assert_eq!(read(&one_case), Err(AccountError::Checksum));
        assert_eq!(read(&example.replacen("6053", "6054", 1)), Err(AccountError::Checksum));
        assert_eq!(read(&example[2..]), Err(AccountError::Prefix));
        assert_eq!(read(&example.replacen("0x", "0X", 1)), Err(AccountError::Prefix));
        assert_eq!(read("alice.rsk"), Err(AccountError::Prefix));
        assert_eq!(read(&example[..41]), Err(AccountError::Length(39)));
        assert_eq!(read(&format!("{example}00")), Err(AccountError::Length(42)));
        assert_eq!(read("0x"), Err(AccountError::Length(0)));
        assert_eq!(read(&example.replacen('5', "g", 1)), Err(AccountError::Digit('g')));
        assert_eq!(read(&format!("{example} ")), Err(AccountError::Digit(' ')));
    }
}
