//! Tests of the header rules with generated vectors and real headers.

#[path = "../support/mod.rs"]
mod support;

mod bitcoin;
mod realdata;
mod vectors;
