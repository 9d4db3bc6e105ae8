//! `eth_submitWork` and `eth_submitHashrate`, which miners of Ethereum used. Rootstock is merge-mined with Bitcoin: its miners use
//! `mnr_*`, and these methods only check their parameters.

use super::{
    error::ParamError,
    method::{HandlerResult, Method, done, required},
    params::Params,
};
use crate::engine::{Level, View};

pub(super) const METHODS: &[Method] = &[
    Method::local(
        "eth_submitWork",
        &[required("nonce", "DATA, 8 bytes"), required("powHash", "HASH"), required("mixDigest", "HASH")],
        "boolean",
        "Always false: no nonce of Ethereum's proof of work makes a block valid. Miners submit Bitcoin blocks by mnr_*.",
        submit_work,
    ),
    Method::local(
        "eth_submitHashrate",
        &[required("hashrate", "DATA, 32 bytes"), required("clientId", "DATA, 32 bytes")],
        "boolean",
        "Always true; the hash rate is not kept. eth_hashrate reports what the chain shows.",
        submit_hashrate,
    ),
];

fn submit_work(_: &dyn View, params: Params<'_>) -> HandlerResult {
    sized(params, 0, 8)?;
    sized(params, 1, 32)?;
    sized(params, 2, 32)?;
    done(&false, Level::Local)
}

fn submit_hashrate(_: &dyn View, params: Params<'_>) -> HandlerResult {
    sized(params, 0, 32)?;
    sized(params, 1, 32)?;
    done(&true, Level::Local)
}

/// Checks that a parameter has exactly this many bytes.
fn sized(params: Params<'_>, position: usize, bytes: usize) -> Result<(), ParamError> {
    let expected = if bytes == 8 { "8 bytes in hex" } else { "32 bytes in hex" };
    if params.data(position)?.len() == bytes { Ok(()) } else { Err(ParamError::Type { position, expected }) }
}
