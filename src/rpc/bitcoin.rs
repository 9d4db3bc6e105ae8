//! `rootlight_getBitcoinHeaders` and `rootlight_getBitcoinTags`: headers and coinbases of Bitcoin's chain for other
//! Rootlights, which judge by them whether Bitcoin's miners work for the Rootstock chain. A tag is the mark in a coinbase that
//! names a Rootstock block.

use alloy_primitives::U256;

use super::{
    method::{HandlerResult, Method, done, required},
    params::Params,
};
use crate::{
    consensus::bitcoin::ServedBitcoin,
    engine::{Level, View},
};

pub(super) const METHODS: &[Method] = &[
    Method::local(
        "rootlight_getBitcoinHeaders",
        &[required("from", "QUANTITY"), required("count", "QUANTITY")],
        "base64 of the heights of the lowest and of the newest header held, 4 bytes each, and of packed headers; or null",
        "Bitcoin's headers from a height on, or from the lowest that is held, at most 2,016; null if no Bitcoin chain is followed.",
        headers,
    )
    .costs(20),
    Method::local(
        "rootlight_getBitcoinTags",
        &[required("from", "QUANTITY"), required("count", "QUANTITY")],
        "base64 of 0x01 and RLP [[cut, coinbase, branch], ...], or null",
        "The coinbases of Bitcoin's blocks from a height on, at most 144, each with its Merkle branch (docs/light.md); \
         null if no Bitcoin chain is followed.",
        tags,
    )
    .costs(50),
];

fn headers(view: &dyn View, params: Params<'_>) -> HandlerResult {
    serve(view, params, |bitcoin, from, count| bitcoin.served_headers(from, count))
}

fn tags(view: &dyn View, params: Params<'_>) -> HandlerResult {
    serve(view, params, |bitcoin, from, count| bitcoin.served_coinbases(from, count))
}

/// Answers with the data of Bitcoin's chain that `encode` writes, for the height and count that the parameters state.
fn serve(
    view: &dyn View,
    params: Params<'_>,
    encode: fn(&dyn ServedBitcoin, u32, u32) -> alloc::string::String,
) -> HandlerResult {
    let (from, count) = (height(params.number(0)?), height(params.number(1)?));
    done(&view.bitcoin().map(|bitcoin| encode(bitcoin, from, count)), Level::Local)
}

/// The height that a parameter states. A number above 32 bits becomes the largest height, at which there is no block.
fn height(number: U256) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
