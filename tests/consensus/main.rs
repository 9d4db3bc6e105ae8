//! Tests of the header rules with generated vectors and real headers.

#[path = "../support/mod.rs"]
mod support;

mod realdata;
mod vectors;
