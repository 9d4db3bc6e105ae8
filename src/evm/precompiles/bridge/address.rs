//! Bitcoin addresses, whose first byte tells the network and whether the hash is of a key or of a script.

use alloc::string::String;

use super::super::bitcoin::{base58check, from_base58check};
use super::constants::Constants;

/// Address of a public key by its hash160.
pub(super) fn of_key(constants: &Constants, hash: &[u8]) -> String {
    let [version, _] = constants.address_versions();
    text(version, hash)
}

/// Address of a script by its hash160.
pub(super) fn of_script(constants: &Constants, hash: &[u8]) -> String {
    let [_, version] = constants.address_versions();
    text(version, hash)
}

/// The address with this version byte.
fn text(version: u8, hash: &[u8]) -> String {
    let mut bytes = alloc::vec![version];
    bytes.extend_from_slice(hash);
    base58check(&bytes)
}

/// The hash160 in an address of this network, of a key or of a script.
pub(super) fn hash_of(constants: &Constants, text: &[u8]) -> Option<[u8; 20]> {
    let bytes = from_base58check(core::str::from_utf8(text).ok()?)?;
    let (version, hash) = bytes.split_first()?;
    constants.address_versions().contains(version).then(|| hash.try_into().ok())?
}
