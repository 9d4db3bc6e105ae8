//! Helpers of the core's tests that read recordings and name arguments.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../../tests/support/arguments.rs"]
pub mod arguments;
#[path = "../../../../tests/support/recording.rs"]
pub mod recording;

pub fn u64_of(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}
