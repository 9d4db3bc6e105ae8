//! Tests of the data types: RLP and JSON encodings of headers, blocks, transactions and receipts.

#[path = "../support/mod.rs"]
mod support;

mod json_rules;
mod properties;
mod realdata;
mod recordings;
mod rules;
mod vectors;
