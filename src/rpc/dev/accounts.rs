//! `eth_accounts` and `eth_sign`: the accounts whose keys the node holds.

use alloy_primitives::hex;

use super::{addresses, chain_at, milliseconds, read, write};
use crate::{
    engine::{Level, Node},
    rpc::{
        error::{ParamError, RpcError},
        method::{Done, Failure, Method, done, required},
        params::Params,
    },
};

pub(in crate::rpc) const ACCOUNTS: Method = read(
    "eth_accounts",
    &[],
    "array of ADDRESS",
    "The accounts whose keys the node holds. Only development chains hold keys.",
    |view, _| done(&addresses(&view.accounts()), Level::Local),
);

pub(super) const METHODS: &[Method] = &[
    ACCOUNTS,
    write(
        ("eth_sign", &[]),
        &[required("account", "ADDRESS"), required("message", "DATA")],
        "DATA, 65 bytes",
        "Signs a message, with the Ethereum prefix, with the key of an account.",
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
