//! `eth_accounts`, and signatures of messages with the keys of accounts that the node has.

use alloc::string::String;

use alloy_primitives::{Address, hex};

use super::{addresses, chain, chain_at, milliseconds, read, write};
use crate::{
    dev::PrivateKey,
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{Failure, HandlerResult, Method, PageAccess, account_of, done, optional, required},
    },
};

const ACCOUNTS: Method = Method {
    pages: PageAccess::Own,
    // Programs that expect a wallet call the method by this name (EIP-1102).
    aliases: &["eth_requestAccounts"],
    ..read(
        "eth_accounts",
        &[],
        "array of ADDRESS",
        "The accounts whose keys the node holds. Only development chains hold keys.",
        |view, _| done(&addresses(&view.accounts()), Level::Local),
    )
};

pub(super) const METHODS: &[Method] = &[
    ACCOUNTS,
    write(
        ("eth_sign", &[]),
        &[account_of("account"), required("message", "DATA")],
        "DATA, 65 bytes",
        "Signs a message, with the Ethereum prefix, with the key of an account.",
        |node, params| {
            let message = params.data(1)?;
            let key = key(node, params.address(0)?)?;
            signature(key.sign_message(&message))
        },
    ),
    write(
        ("personal_sign", &[]),
        &[required("message", "DATA"), account_of("account"), optional("passphrase", "string")],
        "DATA, 65 bytes",
        "As eth_sign, with the parameters in the other order. A passphrase opens an account that is locked.",
        |node, params| {
            let (message, address) = (params.data(0)?, params.address(1)?);
            let key = match params.value::<String>(2, "a passphrase")? {
                Some(passphrase) if key(node, address).is_err() => {
                    chain(node)?.wallet().key_with(address, &passphrase).map_err(ParamError::Unlock)?
                }
                _ => key(node, address)?,
            };
            signature(key.sign_message(&message))
        },
    ),
    // Browser modules leave out the counterpart of personal_sign: libraries recover signers themselves.
    #[cfg(feature = "catalogue")]
    write(
        ("personal_ecRecover", &[]),
        &[required("message", "DATA"), required("signature", "DATA, 65 bytes")],
        "ADDRESS",
        "The account that signed a message, as eth_sign and personal_sign do.",
        |node, params| {
            // Like the other methods of this file, the method is refused on other chains than development chains.
            chain(node)?;
            let signer = crate::dev::message_signer(&params.data(0)?, &params.data(1)?);
            let wrong =
                ParamError::Type { position: 1, expected: "a signature: r, s and v, which is 27 or 28" };
            done(&super::address(&signer.ok_or(wrong)?), Level::Local)
        },
    ),
    write(
        ("eth_signTypedData_v4", &["eth_signTypedData"]),
        &[account_of("account"), required("typedData", "typed data object, or its JSON as a string")],
        "DATA, 65 bytes",
        "Signs typed data (EIP-712) with the key of an account.",
        |node, params| {
            let key = key(node, params.address(0)?)?;
            signature(key.sign_typed_data(&params.text(1)).map_err(ParamError::TypedData)?)
        },
    ),
];

/// The key of an account that is not locked.
fn key(node: &mut dyn LocalNode, address: Address) -> Result<PrivateKey, Failure> {
    let (chain, now) = chain_at(node)?;
    let key = chain.wallet().key(&address, milliseconds(now)).cloned();
    Ok(key.ok_or(ParamError::AccountNotFound)?)
}

/// The answer with a signature.
fn signature(bytes: Option<[u8; 65]>) -> HandlerResult {
    done(&hex::encode_prefixed(bytes.ok_or(RpcError::Internal)?), Level::Local)
}
