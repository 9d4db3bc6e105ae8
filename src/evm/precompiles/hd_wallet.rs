//! 0x01000009 (RSKIP-106): the native contract for Bitcoin addresses, hashes of multisignature scripts, and derived public keys (BIP-32).

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::Bytes;
use hmac::{Hmac, Mac as _};
use k256::elliptic_curve::PrimeField as _;
use k256::elliptic_curve::ops::{MulByGenerator as _, Reduce};
use k256::elliptic_curve::sec1::{FromEncodedPoint as _, ToEncodedPoint as _};
use k256::{AffinePoint, EncodedPoint, ProjectivePoint, Scalar};
use sha2::Sha512;

use super::abi::{Arg, ArgKind, bytes_result, decode};
use super::bitcoin::{base58check, from_base58check, hash160, multisig};
use crate::types::insert_sorted;

/// Most levels in a derivation path.
const MAX_LEVELS: usize = 10;
/// Length of an extended public key in bytes: version 4, depth 1, fingerprint of the parent key 4, index 4, chain code 32, key 33.
const EXTENDED: usize = 78;

/// The methods.
#[derive(Clone, Copy)]
enum WalletMethod {
    /// `toBase58Check`: the address of a hash160 and a version.
    ToBase58Check,
    /// `deriveExtendedPublicKey`: the extended key at a path below another one.
    Derive,
    /// `extractPublicKeyFromExtendedPublicKey`
    Extract,
    /// `getMultisigScriptHash`: the hash160 of a multisignature script.
    MultisigHash,
}

/// Parses method and arguments; `None` if the input cannot run.
fn parse(input: &[u8]) -> Option<(WalletMethod, Vec<Arg<'_>>)> {
    let (selector, rest) = input.split_first_chunk::<4>()?;
    let (method, kinds): (_, &[ArgKind]) = match u32::from_be_bytes(*selector) {
        0x838c_2a31 => (WalletMethod::ToBase58Check, &[ArgKind::Bytes, ArgKind::Word]),
        0xab65_ddb7 => (WalletMethod::Derive, &[ArgKind::Bytes, ArgKind::Bytes]),
        0x815a_4f90 => (WalletMethod::Extract, &[ArgKind::Bytes]),
        0x8ad1_3825 => (WalletMethod::MultisigHash, &[ArgKind::Word, ArgKind::BytesList]),
        _ => return None,
    };
    Some((method, decode(rest, kinds)?))
}

/// Price of the method; 0 for input that cannot run.
pub(super) fn price(input: &[u8]) -> u64 {
    match parse(input) {
        None => 0,
        Some((WalletMethod::ToBase58Check, _)) => 13_000,
        Some((WalletMethod::Derive, _)) => 107_000,
        Some((WalletMethod::Extract, _)) => 11_300,
        Some((WalletMethod::MultisigHash, args)) => {
            let keys = args.get(1).map_or(0, |keys| keys.list().len()) as u64;
            keys.saturating_sub(2).saturating_mul(700).saturating_add(20_000)
        }
    }
}

/// Runs the method; `None` if it fails.
pub(super) fn run(input: &[u8]) -> Option<Bytes> {
    let (method, args) = parse(input)?;
    let output = match (method, args.as_slice()) {
        (WalletMethod::ToBase58Check, [hash, version]) => to_base58check(hash.bytes(), version)?.into_bytes(),
        (WalletMethod::Derive, [key, path]) => {
            let path = String::from_utf8_lossy(path.bytes());
            derive(ExtendedKey::read(key.bytes())?, &parse_path(&path)?)?.into_bytes()
        }
        (WalletMethod::Extract, [key]) => ExtendedKey::read(key.bytes())?.key.to_vec(),
        (WalletMethod::MultisigHash, [required, keys]) => multisig_hash(required, keys.list())?.to_vec(),
        _ => return None,
    };
    Some(bytes_result(&output))
}

/// The address of a hash of 20 bytes with this version byte.
fn to_base58check(hash: &[u8], version: &Arg<'_>) -> Option<String> {
    let version = u8::try_from(version.signed()?).ok()?;
    let mut bytes = alloc::vec![version];
    bytes.extend_from_slice(<&[u8; 20]>::try_from(hash).ok()?);
    Some(base58check(&bytes))
}

/// Hash of a multisignature script of 2 to 15 keys, compressed and sorted.
fn multisig_hash(required: &Arg<'_>, keys: &[&[u8]]) -> Option<[u8; 20]> {
    let required = usize::try_from(required.signed()?).ok()?;
    if required == 0 || !(2..=15).contains(&keys.len()) || required > keys.len() {
        return None;
    }
    let mut compressed: Vec<Vec<u8>> = Vec::new();
    for key in keys {
        insert_sorted(&mut compressed, compress(key)?);
    }
    Some(hash160(&multisig(required, &compressed)))
}

/// Compresses a key of 33 or 65 bytes to 33 bytes. The hybrid form (first byte 6 or 7) is accepted too.
pub(super) fn compress(key: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = key.to_vec();
    match (key.len(), key.first()?) {
        (33, 2 | 3) | (65, 4) => {}
        (65, form @ (6 | 7)) if key.last()? & 1 == form & 1 => *bytes.first_mut()? = 4,
        _ => return None,
    }
    Some(point(&bytes)?.to_encoded_point(true).as_bytes().to_vec())
}

/// The point of the curve with this encoding.
fn point(key: &[u8]) -> Option<AffinePoint> {
    AffinePoint::from_encoded_point(&EncodedPoint::from_bytes(key).ok()?).into()
}

/// The parts of an extended public key (BIP-32).
struct ExtendedKey {
    version: [u8; 4],
    depth: u8,
    chain_code: [u8; 32],
    key: [u8; 33],
}

impl ExtendedKey {
    /// Reads `xpub...` or `tpub...`.
    fn read(text: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(text).ok()?;
        let version: [u8; 4] = match text.get(..4)? {
            "xpub" => [0x04, 0x88, 0xb2, 0x1e],
            "tpub" => [0x04, 0x35, 0x87, 0xcf],
            _ => return None,
        };
        let bytes = from_base58check(text)?;
        if bytes.len() != EXTENDED || !bytes.starts_with(&version) {
            return None;
        }
        let key: [u8; 33] = *bytes.last_chunk()?;
        compress(&key)?;
        let chain_code = *bytes.get(13..)?.first_chunk()?;
        Some(Self { version, depth: *bytes.get(4)?, chain_code, key })
    }
}

/// Derives a public key along a path of at least one level.
fn derive(mut key: ExtendedKey, path: &[u32]) -> Option<String> {
    let mut fingerprint = [0u8; 4];
    let mut child = 0u32;
    for index in path {
        let mut data = key.key.to_vec();
        data.extend_from_slice(&index.to_be_bytes());
        let mut mac = Hmac::<Sha512>::new_from_slice(&key.chain_code).ok()?;
        mac.update(&data);
        let hash: [u8; 64] = mac.finalize().into_bytes().into();
        let (left, right) = hash.split_first_chunk::<32>()?;
        fingerprint = *hash160(&key.key).first_chunk()?;
        key.key = tweak(&key.key, left)?;
        key.chain_code = *right.first_chunk()?;
        key.depth = key.depth.wrapping_add(1);
        child = *index;
    }
    let mut bytes = Vec::with_capacity(EXTENDED);
    bytes.extend_from_slice(&key.version);
    bytes.push(key.depth);
    bytes.extend_from_slice(&fingerprint);
    bytes.extend_from_slice(&child.to_be_bytes());
    bytes.extend_from_slice(&key.chain_code);
    bytes.extend_from_slice(&key.key);
    Some(base58check(&bytes))
}

/// The key plus `left * G`. `None` if `left` is not below the group order or the sum is infinity.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
fn tweak(key: &[u8; 33], left: &[u8; 32]) -> Option<[u8; 33]> {
    let number = <Scalar as Reduce<k256::U256>>::reduce_bytes(&(*left).into());
    if <[u8; 32]>::from(number.to_repr()) != *left {
        return None;
    }
    let sum = ProjectivePoint::mul_by_generator(&number) + ProjectivePoint::from(point(key)?);
    sum.to_affine().to_encoded_point(true).as_bytes().try_into().ok()
}

/// Parses a path `n/n/...`. Numbers are up to 2^31 - 1 and parsed like Java's `Integer.parseInt`. The first
/// and the last character must be digits.
fn parse_path(path: &str) -> Option<Vec<u32>> {
    digit(path.chars().next()?)?;
    digit(path.chars().next_back()?)?;
    let levels: Vec<&str> = path.split('/').collect();
    if levels.len() > MAX_LEVELS {
        return None;
    }
    levels.into_iter().map(parse_int).collect()
}

/// Parses a non-negative number: an optional sign, then decimal digits of any script in Unicode's first
/// plane.
fn parse_int(text: &str) -> Option<u32> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u32;
    for c in digits.chars() {
        number = number.checked_mul(10)?.checked_add(digit(c)?)?;
    }
    (i32::try_from(number).is_ok() && !(negative && number > 0)).then_some(number)
}

/// Code points of the digit zero of each script in the first plane of Unicode 14. The nine other digits follow each.
const ZEROS: [u16; 37] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
];

/// The value of a decimal digit of any script.
fn digit(c: char) -> Option<u32> {
    let c = u32::from(c);
    ZEROS.iter().find_map(|zero| c.checked_sub(u32::from(*zero)).filter(|digit| *digit < 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_as_in_java() {
        assert_eq!(parse_path("1/+2"), Some(alloc::vec![1, 2]));
        assert_eq!(parse_path("00001"), Some(alloc::vec![1]));
        assert_eq!(parse_path("1/-0/\u{661}"), Some(alloc::vec![1, 0, 1]));
        assert_eq!(parse_path("2147483647"), Some(alloc::vec![i32::MAX as u32]));
        for bad in ["", "+1", "1/", "/1", "1//2", "0'/1", "1/2/3/4/5/6/7/8/9/0/1", "2147483648", "1/-1/2"] {
            assert_eq!(parse_path(bad), None, "{bad}");
        }
    }

    /// BIP-32, test vector 2, m to m/0.
    #[test]
    fn derivation_follows_bip_32() {
        let root = "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB";
        let child = "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH";
        let key = ExtendedKey::read(root.as_bytes()).unwrap();
        assert_eq!(derive(key, &[0]).unwrap(), child);
    }
}
