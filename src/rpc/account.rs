//! `eth_getAccount` and `eth_getAccountInfo`: the fields of an account in one answer, for tools that would make three
//! calls without them.

use alloy_primitives::{Address, B256};
use serde::Serialize;

use super::{
    lookup::require,
    method::{AT_BLOCK, Failure, HandlerResult, Method, Param, contract_of, verified},
    params::Params,
    state::{NO_ACCOUNT, read, storage_hash},
};
use crate::{
    engine::{BlockHeader, View},
    types::json::{Data, Quantity},
};

// Both answers show code or its hash, so that the address counts as a contract for API keys that are limited to some contracts.
const ACCOUNT: &[Param] = &[contract_of("address"), AT_BLOCK];

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "eth_getAccount",
        ACCOUNT,
        "{balance, nonce, codeHash, storageRoot} or null",
        "An account without its code, or null where there is none; codeHash and storageRoot are those of eth_getProof.",
        account,
    )
    .costs(20),
    Method::read(
        "eth_getAccountInfo",
        ACCOUNT,
        "{balance, nonce, code}",
        "An account with its code; an address without an account has zeros and no code.",
        account_info,
    )
    .costs(20),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountFields {
    balance: Quantity,
    nonce: Quantity,
    code_hash: B256,
    storage_root: B256,
}

#[derive(Serialize)]
struct AccountInfo {
    balance: Quantity,
    nonce: Quantity,
    code: Data,
}

/// Reads the account's address (first parameter) and the header of the block (second parameter).
fn account_and_block(view: &dyn View, params: Params<'_>) -> Result<(Address, BlockHeader), Failure> {
    Ok((params.address(0)?, require(view, &params.block(1)?)?))
}

fn account(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (address, header) = account_and_block(view, params)?;
    // The storage root is a hash over trie nodes, of which a chain that begins on another network's block lacks some.
    view.provable(&header)?;
    let found = read(view, &header, |state| {
        let Some(account) = state.account(&address)? else { return Ok(None) };
        Ok(Some((account, storage_hash(view, &header, &address)?)))
    })?;
    verified(&found.map(|(account, storage_root)| AccountFields {
        balance: account.balance.into(),
        nonce: account.nonce.into(),
        code_hash: account.code_hash,
        storage_root,
    }))
}

fn account_info(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (address, header) = account_and_block(view, params)?;
    let (account, code) = read(view, &header, |state| {
        let account = state.account(&address)?.unwrap_or(NO_ACCOUNT);
        Ok((account, state.code(&address)?))
    })?;
    verified(&AccountInfo { balance: account.balance.into(), nonce: account.nonce.into(), code: Data(code) })
}
