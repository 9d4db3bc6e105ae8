//! `eth_accounts` and `eth_sign`: the accounts whose keys the node holds.

use alloy_primitives::hex;

use super::{addresses, chain_at, milliseconds, read, write};
use crate::{
    engine::{Level, Node},
    rpc::{
        error::{ParamError, RpcError},
        method::{done, required, Done, Failure, Method},
        params::Params,
    },
};

pub(super) const METHODS: &[Method] = &[
    read(
        "eth_accounts",
        &[],
        "array of ADDRESS",
        "Accounts whose keys are held: those of a development chain, none elsewhere.",
        |view, _| done(&addresses(&view.accounts()), Level::Local),
    ),
    write(
        ("eth_sign", &[]),
        &[required("account", "ADDRESS"), required("message", "DATA")],
        "DATA, 65 bytes",
        "Signs a message with the key of an account, the Ethereum prefix in front.",
        sign,
    ),
];

fn sign(node: &mut dyn Node, params: Params<'_>) -> Result<Done, Failure> {
    let address = params.address(0)?;
    let message = params.data(1)?;
    let (chain, now) = chain_at(node)?;
    let key = chain.wallet().key(&address, milliseconds(now)).ok_or(ParamError::AccountNotFound)?;
    let signature = key.sign_message(&message).ok_or(RpcError::Internal)?;
    done(&hex::encode_prefixed(signature), Level::Local)
}
