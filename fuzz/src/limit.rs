//! Bounded allocation: a parser may hold some multiple of its input, not what a length field promises.

use std::alloc::System;

use cap::Cap;

/// Refuses what exceeds the limit; a refused allocation aborts, which the fuzzer reports.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that every run may hold whatever its input: tables, messages, a few hundred hashes.
const BASE: usize = 1 << 20;

/// Bytes that may be held per byte of input: the fields themselves, vectors that grew by doubling, copies that the
/// properties make, and nodes of maps and tries around single bytes.
const PER_BYTE: usize = 256;

/// Runs `f` with as much memory on top of what is held now as an input of `len` bytes may cost.
pub fn with_limit<T>(len: usize, f: impl FnOnce() -> T) -> T {
    with_at_most(len * PER_BYTE, f)
}

/// Runs `f` with so many bytes, and what every run may hold, on top of what is held now.
pub fn with_at_most<T>(bytes: usize, f: impl FnOnce() -> T) -> T {
    let allowed = ALLOCATOR.allocated() + BASE + bytes;
    // Fails only if more is held already, which the line above excludes.
    ALLOCATOR.set_limit(allowed).expect("more than is held");
    let result = f();
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
    result
}
