//! 0x06, 0x07, 0x08 (RSKIP-137): addition, multiplication and pairing check on the curve alt_bn128 (EIP-196, EIP-197). Coordinates have
//! 32 bytes; (0, 0) is the point at infinity. Missing input reads as zero.

use alloc::vec::Vec;

use substrate_bn::arith::U256;
use substrate_bn::{AffineG1, AffineG2, Fq, Fq2, Fr, G1, G2, Group as _, Gt, pairing_batch};

use super::{NativeFailure, padded};

/// Length of one pair of points in bytes.
const PAIR: usize = 192;
/// Number of pairs between two interrupt checks. The fixed cost of a batch is small compared to 16 pairs.
const PIECE: usize = 16;

/// Price of a pairing check: 45,000 gas, and 34,000 per complete pair.
pub(super) fn pairing_price(input: &[u8]) -> u64 {
    let pairs = (input.len() / PAIR) as u64;
    pairs.saturating_mul(34_000).saturating_add(45_000)
}

/// The sum of two points; `None` if one is not on the curve.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
pub(super) fn add(input: &[u8]) -> Option<Vec<u8>> {
    encode(g1(input, 0)? + g1(input, 64)?)
}

/// The product of a point and a number; `None` if the point is not on the curve.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
pub(super) fn mul(input: &[u8]) -> Option<Vec<u8>> {
    let point = g1(input, 0)?;
    let number = U256::from_slice(&padded::<32>(input, 64)).ok()?;
    encode(point * Fr::new_mul_factor(number))
}

/// Whether the product of the pairings is one, as a 32-byte word. `None` for invalid points or lengths.
///
/// # Errors
/// [`NativeFailure::Interrupted`] if `interrupted` returns `true`.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
pub(super) fn pairing(
    input: &[u8],
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>, NativeFailure> {
    if !input.len().is_multiple_of(PAIR) {
        return Ok(None);
    }
    let mut product = Gt::one();
    for (index, part) in input.chunks(PAIR.saturating_mul(PIECE)).enumerate() {
        if index > 0 && interrupted() {
            return Err(NativeFailure::Interrupted);
        }
        let pairs = part.chunks_exact(PAIR).map(|pair| Some((g1(pair, 0)?, g2(pair, 64)?)));
        let Some(pairs) = pairs.collect::<Option<Vec<(G1, G2)>>>() else { return Ok(None) };
        product = product * pairing_batch(&pairs);
    }
    let mut word = Vec::with_capacity(32);
    word.resize(31, 0);
    word.push(u8::from(product == Gt::one()));
    Ok(Some(word))
}

/// Reads a coordinate, which must be below the field's modulus.
fn field(input: &[u8], offset: usize) -> Option<Fq> {
    Fq::from_slice(&padded::<32>(input, offset)).ok()
}

/// Reads a point of G1; `None` if it is not on the curve.
fn g1(input: &[u8], offset: usize) -> Option<G1> {
    let x = field(input, offset)?;
    let y = field(input, offset.saturating_add(32))?;
    if x.is_zero() && y.is_zero() {
        return Some(G1::zero());
    }
    AffineG1::new(x, y).ok().map(Into::into)
}

/// Reads a point of G2. The imaginary part of each coordinate comes first. Points off the curve and points
/// outside the subgroup of prime order are refused.
fn g2(input: &[u8], offset: usize) -> Option<G2> {
    let coordinate = |i: usize| field(input, offset.saturating_add(i.saturating_mul(32)));
    let x = Fq2::new(coordinate(1)?, coordinate(0)?);
    let y = Fq2::new(coordinate(3)?, coordinate(2)?);
    if x.is_zero() && y.is_zero() {
        return Some(G2::zero());
    }
    AffineG2::new(x, y).ok().map(Into::into)
}

/// The coordinates of a point in 64 bytes; zeros for the point at infinity.
fn encode(point: G1) -> Option<Vec<u8>> {
    let mut bytes = [0; 64];
    if let Some(point) = AffineG1::from_jacobian(point) {
        let (x, y) = bytes.split_at_mut(32);
        point.x().to_big_endian(x).ok()?;
        point.y().to_big_endian(y).ok()?;
    }
    Some(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: u8, y: u8) -> Vec<u8> {
        let mut bytes = [0; 64];
        bytes[31] = x;
        bytes[63] = y;
        bytes.to_vec()
    }

    #[test]
    fn adding_a_point_to_itself_equals_doubling_it() {
        let g = point(1, 2);
        let twice = add(&[g.clone(), g.clone()].concat()).unwrap();
        let expected = "030644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd3\
                        15ed738c0e0a7c92e7845f96b2ae9c0a68a6a449e3538fc7ff3ebf7a5a18a2c4";
        assert_eq!(hex::encode(&twice), expected);
        let mut two = [0; 32];
        two[31] = 2;
        assert_eq!(mul(&[g.clone(), two.to_vec()].concat()).unwrap(), twice);
        assert_eq!(add(&g).unwrap(), g);
    }

    #[test]
    fn invalid_points_and_lengths_are_refused() {
        assert_eq!(add(&point(1, 3)), None);
        assert_eq!(mul(&[0xff; 96]), None);
        let pairing = |input: &[u8]| pairing(input, &|| true).unwrap();
        assert_eq!(pairing(&[0; 191]), None);
        assert_eq!(pairing(&[]).unwrap()[31], 1);
        assert_eq!(pairing(&[0; 192]).unwrap()[31], 1, "infinity pairs to one");
    }

    #[test]
    fn a_pairing_of_many_pairs_can_be_interrupted() {
        let many = [0; PAIR * (PIECE + 1)];
        assert_eq!(pairing(&many, &|| true), Err(NativeFailure::Interrupted));
        assert_eq!(pairing(&many, &|| false).unwrap().unwrap()[31], 1);
    }
}
