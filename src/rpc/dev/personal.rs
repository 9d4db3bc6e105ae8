//! `personal_*`: accounts protected by a passphrase.

use alloc::string::String;

use alloy_primitives::{B256, U256, hex};

use super::{TRANSACTION, address, addresses, chain, chain_at, milliseconds, send, write};
use crate::{
    dev::{DEFAULT_UNLOCK_MS, PrivateKey},
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{HandlerResult, Method, Runs, account_of, done, optional, required},
        params::Params,
    },
};

pub(super) const METHODS: &[Method] = &[
    write(
        ("personal_listAccounts", &[]),
        &[],
        "array of ADDRESS",
        "All accounts whose keys the node holds, unlocked or locked.",
        |node, _| done(&addresses(&chain(node)?.wallet().addresses()), Level::Local),
    ),
    write(
        ("personal_newAccountWithSeed", &[]),
        &[required("seed", "string")],
        "ADDRESS",
        "Makes an account whose key is the Keccak-256 hash of the seed. It is always unlocked.",
        |node, params| {
            let seed: String = params.value(0, "a seed")?.unwrap_or_default();
            let key = PrivateKey::from_seed(&seed).ok_or(RpcError::Internal)?;
            done(&address(&chain(node)?.wallet_mut().add(key)), Level::Local)
        },
    ),
    write(
        ("personal_newAccount", &[]),
        &[required("passphrase", "string")],
        "ADDRESS",
        "Makes an account with a random key protected by a passphrase, and unlocks it for 30 minutes.",
        new_account,
    ),
    write(
        ("personal_importRawKey", &[]),
        &[required("key", "DATA, 32 bytes"), required("passphrase", "string")],
        "ADDRESS",
        "Adds a key protected by a passphrase, and unlocks its account for 30 minutes.",
        import,
    ),
    write(
        ("personal_dumpRawKey", &[]),
        &[account_of("address")],
        "DATA, 32 bytes",
        "The key of an unlocked account.",
        |node, params| {
            let address = params.address(0)?;
            let (chain, now) = chain_at(node)?;
            let key = chain.wallet().key(&address, milliseconds(now)).ok_or(ParamError::Locked(address))?;
            done(&alloc::format!("{}", key.to_bytes()), Level::Local)
        },
    ),
    write(
        ("personal_lockAccount", &[]),
        &[account_of("address")],
        "boolean",
        "Locks an account; false if it was not unlocked.",
        |node, params| {
            let address = params.address(0)?;
            done(&chain(node)?.wallet_mut().lock(&address), Level::Local)
        },
    ),
    write(
        ("personal_unlockAccount", &[]),
        &[
            account_of("address"),
            required("passphrase", "string"),
            optional("duration", "QUANTITY, milliseconds, or a JSON integer, seconds"),
        ],
        "boolean",
        "Unlocks an account for a time, by default 30 minutes; false if there is no such account.",
        unlock,
    ),
    write(
        ("personal_sendTransaction", &[]),
        &[TRANSACTION, required("passphrase", "string")],
        "HASH",
        "Signs a transaction with a key protected by a passphrase, and sends it. Does not unlock the account.",
        |node, params| {
            let object = send::object(params)?;
            let from = object.sender()?;
            let (chain, now) = chain_at(node)?;
            let key = chain.wallet().key_with(from, &passphrase(params)?).map_err(ParamError::Unlock)?;
            let transaction = object.signed(chain, &key)?;
            send::submit(chain, transaction, from, now)
        },
    )
    .runs(Runs::Transaction),
];

/// The passphrase in the second parameter. As all passphrases, seeds and keys of these methods, it is a required parameter, so that the
/// default, an empty text, is never used.
fn passphrase(params: Params<'_>) -> Result<String, ParamError> {
    Ok(params.value(1, "a passphrase")?.unwrap_or_default())
}

fn new_account(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let passphrase: String = params.value(0, "a passphrase")?.unwrap_or_default();
    // About one random number in 2^128 is not a valid key.
    let mut key = PrivateKey::new(&node.random());
    while key.is_none() {
        key = PrivateKey::new(&node.random());
    }
    let key = key.ok_or(RpcError::Internal)?;
    add_key(node, key, &passphrase)
}

fn import(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let text: String = params.value(0, "a key")?.unwrap_or_default();
    let bad = || ParamError::Key(text.clone());
    let bytes = hex::decode(&text).map_err(|_| bad())?;
    // Shorter keys are numbers without their leading zeros.
    let bytes = B256::from(U256::try_from_be_slice(&bytes).ok_or_else(bad)?);
    let key = PrivateKey::new(&bytes).ok_or_else(bad)?;
    add_key(node, key, &passphrase(params)?)
}

/// Adds a key to the wallet, protected by a passphrase, and returns its account.
fn add_key(node: &mut dyn LocalNode, key: PrivateKey, passphrase: &str) -> HandlerResult {
    let salt = node.random();
    let (chain, now) = chain_at(node)?;
    let account = chain.wallet_mut().add_sealed(key, passphrase, salt, milliseconds(now));
    done(&address(&account), Level::Local)
}

fn unlock(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    use crate::dev::UnlockError;
    let address = params.address(0)?;
    let passphrase = passphrase(params)?;
    let duration = match params.value::<String>(2, "a duration") {
        Ok(None) => DEFAULT_UNLOCK_MS,
        Ok(Some(text)) if text.is_empty() => DEFAULT_UNLOCK_MS,
        // A hex string counts milliseconds, as in the reference node.
        Ok(Some(_)) => params.index(2)? as u64,
        // A JSON number counts seconds, as in geth; web3.js sends this form.
        Err(_) => match params.value::<u32>(2, "a number of seconds")? {
            Some(seconds) => u64::from(seconds).saturating_mul(1_000),
            None => DEFAULT_UNLOCK_MS,
        },
    };
    let (chain, now) = chain_at(node)?;
    let until = milliseconds(now).saturating_add(duration);
    match chain.wallet_mut().unlock(address, &passphrase, until) {
        Ok(()) => done(&true, Level::Local),
        Err(UnlockError::Unknown(_)) => done(&false, Level::Local),
        Err(error) => Err(ParamError::Unlock(error).into()),
    }
}
