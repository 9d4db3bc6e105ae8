//! 0x01000016 and 0x01000017 (RSKIP-516): addition and multiplication on secp256k1. Points are two 32-byte
//! coordinates; (0, 0) is the point at infinity. Missing input reads as zero.

use alloc::vec::Vec;

use k256::elliptic_curve::bigint::U256;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::sec1::{FromEncodedPoint, ToEncodedPoint};
use k256::{AffinePoint, EncodedPoint, ProjectivePoint, Scalar};

use super::padded;

/// The sum of two points; `None` if one is not on the curve.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
pub(super) fn add(input: &[u8]) -> Option<Vec<u8>> {
    Some(encode(decode(input, 0)? + decode(input, 64)?))
}

/// The product of a point and an unsigned 256-bit number; `None` if the point is not on the curve.
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
pub(super) fn mul(input: &[u8]) -> Option<Vec<u8>> {
    let point = decode(input, 0)?;
    let scalar = <Scalar as Reduce<U256>>::reduce_bytes(&padded::<32>(input, 64).into());
    Some(encode(point * scalar))
}

/// Reads a point; `None` if it is not on the curve.
fn decode(input: &[u8], offset: usize) -> Option<ProjectivePoint> {
    let xy: [u8; 64] = padded(input, offset);
    if xy.iter().all(|byte| *byte == 0) {
        return Some(ProjectivePoint::IDENTITY);
    }
    let encoded = EncodedPoint::from_untagged_bytes(&xy.into());
    Option::<AffinePoint>::from(AffinePoint::from_encoded_point(&encoded)).map(Into::into)
}

/// The coordinates of a point in 64 bytes; zeros for the point at infinity.
fn encode(point: ProjectivePoint) -> Vec<u8> {
    let encoded = point.to_affine().to_encoded_point(false);
    match encoded.as_bytes().get(1..) {
        Some(xy) if xy.len() == 64 => xy.to_vec(),
        _ => [0; 64].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\
                     483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";

    #[test]
    fn doubling_is_multiplying_by_two() {
        let g = hex::decode(G).unwrap();
        let twice = add(&[g.clone(), g.clone()].concat()).unwrap();
        let mut two = [0; 32];
        two[31] = 2;
        assert_eq!(mul(&[g.clone(), two.to_vec()].concat()).unwrap(), twice);
        assert_eq!(add(&g).unwrap(), g, "infinity is neutral");
        assert_eq!(add(&[]).unwrap(), [0; 64]);
    }

    #[test]
    fn points_off_the_curve_are_refused() {
        let mut bad = hex::decode(G).unwrap();
        bad[63] ^= 1;
        assert_eq!(add(&bad), None);
        assert_eq!(mul(&bad), None);
    }
}
