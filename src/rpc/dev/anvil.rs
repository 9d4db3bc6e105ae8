//! `anvil_*` and `hardhat_*`: direct changes of accounts, impersonation, mining, the pool.

use alloc::string::String;

use alloy_primitives::U256;
use serde::Serialize;

use super::{chain, chain_at, optional_small, quantity, send::shown, small, write};
use crate::{
    dev::{Mining, Spacing},
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{Failure, HandlerOutput, Method, Param, account_of, contract_of, done, optional, required},
        params::Params,
    },
    types::json::Quantity,
};

const ADDRESS: Param = account_of("address");
const CONTRACT: Param = contract_of("address");
const MINE: &[Param] = &[optional("blocks", "QUANTITY"), optional("interval", "QUANTITY, seconds")];

/// Methods that change accounts.
pub(super) const STATE: &[Method] = &[
    write(
        ("anvil_setBalance", &["hardhat_setBalance"]),
        &[ADDRESS, required("balance", "QUANTITY, wei")],
        "boolean",
        "Sets the balance of an account.",
        |node, params| {
            let (address, balance) = (params.address(0)?, params.number(1)?);
            chain(node)?.set_balance(&address, balance);
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_addBalance", &[]),
        &[ADDRESS, required("amount", "QUANTITY, wei")],
        "boolean",
        "Adds to the balance of an account.",
        |node, params| {
            let (address, amount) = (params.address(0)?, params.number(1)?);
            let chain = chain(node)?;
            let balance = chain.account(&address).map_or(U256::ZERO, |account| account.balance);
            chain.set_balance(&address, balance.saturating_add(amount));
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_setNonce", &["hardhat_setNonce"]),
        &[ADDRESS, required("nonce", "QUANTITY")],
        "boolean",
        "Sets the nonce of an account.",
        |node, params| {
            let (address, nonce) = (params.address(0)?, small(params, 1)?);
            if nonce == u64::MAX {
                // No nonce comes after the last one (EIP-2681).
                return Err(ParamError::Number(alloc::format!("{nonce}")).into());
            }
            chain(node)?.set_nonce(&address, nonce);
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_setCode", &["hardhat_setCode"]),
        &[CONTRACT, required("code", "DATA")],
        "boolean",
        "Sets the code of an account.",
        |node, params| {
            let (address, code) = (params.address(0)?, params.data(1)?);
            chain(node)?.set_code(&address, code).map_err(RpcError::from)?;
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_setStorageAt", &["hardhat_setStorageAt"]),
        &[CONTRACT, required("position", "QUANTITY"), required("value", "DATA, 32 bytes")],
        "boolean",
        "Sets a storage cell of an account.",
        |node, params| {
            let (address, slot, value) = (params.address(0)?, params.number(1)?, params.number(2)?);
            chain(node)?.set_storage(&address, &slot, value);
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_impersonateAccount", &["hardhat_impersonateAccount"]),
        &[ADDRESS],
        "boolean",
        "Lets eth_sendTransaction send for an account whose key the node does not hold.",
        |node, params| {
            let address = params.address(0)?;
            chain(node)?.wallet_mut().impersonate(address);
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_stopImpersonatingAccount", &["hardhat_stopImpersonatingAccount"]),
        &[ADDRESS],
        "boolean",
        "Ends the impersonation of an account; false if it was not impersonated.",
        |node, params| {
            let address = params.address(0)?;
            done(&chain(node)?.wallet_mut().stop_impersonating(&address), Level::Local)
        },
    ),
    write(
        ("anvil_autoImpersonateAccount", &[]),
        &[required("enabled", "boolean")],
        "boolean",
        "Turns the impersonation of all accounts on or off.",
        |node, params| {
            let all = params.boolean(0, true)?;
            chain(node)?.wallet_mut().set_impersonate_all(all);
            done(&true, Level::Local)
        },
    ),
];

/// Methods that change the chain, the miner or the pool.
pub(super) const CHAIN: &[Method] = &[
    write(
        ("anvil_mine", &[]),
        MINE,
        "null",
        "Mines blocks, by default one, each with an optional interval between its timestamp and its parent's.",
        |node, params| mine(node, params, Spacing::Each),
    ),
    write(
        ("hardhat_mine", &[]),
        MINE,
        "null",
        "Mines blocks, by default one, with an optional interval between their timestamps.",
        |node, params| mine(node, params, Spacing::Later),
    ),
    write(
        ("anvil_getAutomine", &["hardhat_getAutomine"]),
        &[],
        "boolean",
        "Whether each transaction is mined at once.",
        |node, _| done(&(chain(node)?.mining() == Mining::Instant), Level::Local),
    ),
    write(
        ("anvil_getIntervalMining", &[]),
        &[],
        "QUANTITY or null",
        "Seconds between blocks if they are mined by the clock.",
        |node, _| {
            let seconds = match chain(node)?.mining() {
                Mining::Interval(seconds) => Some(quantity(seconds)),
                _ => None,
            };
            done(&seconds, Level::Local)
        },
    ),
    write(
        ("anvil_dropTransaction", &["hardhat_dropTransaction"]),
        &[required("transactionHash", "HASH")],
        "boolean",
        "Drops a transaction from the pool; false if the pool has none with this hash.",
        |node, params| {
            let hash = params.hash(0, "transaction hash")?;
            done(&chain(node)?.drop_transaction(&hash), Level::Local)
        },
    ),
    write(
        ("anvil_dropAllTransactions", &[]),
        &[],
        "boolean",
        "Drops all transactions from the pool.",
        |node, _| {
            chain(node)?.drop_transactions(None);
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_removePoolTransactions", &[]),
        &[ADDRESS],
        "boolean",
        "Drops the transactions of an account from the pool.",
        |node, params| {
            let address = params.address(0)?;
            chain(node)?.drop_transactions(Some(&address));
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_setCoinbase", &["hardhat_setCoinbase"]),
        &[ADDRESS],
        "boolean",
        "Sets the account that receives the fees of later blocks.",
        |node, params| {
            let address = params.address(0)?;
            chain(node)?.miner_settings_mut().coinbase = address;
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_setMinGasPrice", &["hardhat_setMinGasPrice"]),
        &[required("price", "QUANTITY, wei")],
        "boolean",
        "Sets the minimum gas price of transactions, at once. The header's approaches it by at most 1/100 per block, or 1 wei below 200 wei, as the rules demand: some 230 blocks for each factor of ten.",
        |node, params| {
            let price = params.number(0)?;
            chain(node)?.miner_settings_mut().minimum_gas_price = price;
            done(&true, Level::Local)
        },
    ),
    write(
        ("anvil_metadata", &["hardhat_metadata"]),
        &[],
        "metadata object",
        "Client name and version, chain id, and the head.",
        metadata,
    ),
];

fn mine(
    node: &mut dyn LocalNode,
    params: Params<'_>,
    spacing: fn(u64) -> Spacing,
) -> Result<HandlerOutput, Failure> {
    let (blocks, interval) = (optional_small(params, 0)?, optional_small(params, 1)?);
    let (chain, now) = chain_at(node)?;
    // viem sends 0 if no interval is asked for.
    let spacing = interval.filter(|seconds| *seconds > 0).map_or(Spacing::Clock, spacing);
    chain.mine_many(blocks.unwrap_or(1), spacing, now).map_err(RpcError::from)?;
    done(&(), Level::Local)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    client_version: String,
    chain_id: u64,
    instance_id: String,
    latest_block_number: u64,
    latest_block_hash: String,
    snapshots: Quantity,
}

fn metadata(node: &mut dyn LocalNode, _: Params<'_>) -> Result<HandlerOutput, Failure> {
    let chain = chain(node)?;
    let head = chain.view().head();
    let metadata = Metadata {
        client_version: chain.version().into(),
        chain_id: chain.view().network().chain_id,
        // The genesis hash identifies the chain.
        instance_id: shown(&chain.view().network().genesis_hash),
        latest_block_number: head.number,
        latest_block_hash: shown(&head.hash()),
        snapshots: quantity(chain.saved()),
    };
    done(&metadata, Level::Local)
}
