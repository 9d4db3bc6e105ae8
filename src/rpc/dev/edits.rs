//! Direct changes of accounts, and impersonation: sending for accounts whose keys the node does not have. hardhat's methods
//! answer a boolean, and anvil's `null`, because the clients of each expect that; only `anvil_setStorageAt` answers `true` too.

use alloy_primitives::U256;

use super::{chain, u64_param, unit, write};
use crate::{
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{HandlerResult, Method, Param, account_of, contract_of, done, required},
        params::Params,
    },
};

const ADDRESS: Param = account_of("address");
const CONTRACT: Param = contract_of("address");
const BALANCE: &[Param] = &[ADDRESS, required("balance", "QUANTITY, wei")];
const NONCE: &[Param] = &[ADDRESS, required("nonce", "QUANTITY")];
const CODE: &[Param] = &[CONTRACT, required("code", "DATA")];

pub(super) const METHODS: &[Method] = &[
    write(
        ("hardhat_setBalance", &["evm_setAccountBalance"]),
        BALANCE,
        "boolean",
        "Sets the balance of an account.",
        set_balance,
    ),
    write(
        ("anvil_setBalance", &["anvil_deal", "tenderly_setBalance"]),
        BALANCE,
        "null",
        "As hardhat_setBalance.",
        |node, params| unit(set_balance(node, params)),
    ),
    write(
        ("anvil_addBalance", &["hardhat_addBalance", "tenderly_addBalance"]),
        &[ADDRESS, required("amount", "QUANTITY, wei")],
        "null",
        "Adds to the balance of an account.",
        |node, params| {
            let (address, amount) = (params.address(0)?, params.number(1)?);
            let chain = chain(node)?;
            let balance = chain.account(&address).map_or(U256::ZERO, |account| account.balance);
            chain.set_balance(&address, balance.saturating_add(amount));
            done(&(), Level::Local)
        },
    ),
    write(
        ("hardhat_setNonce", &["evm_setAccountNonce"]),
        NONCE,
        "boolean",
        "Sets the nonce of an account.",
        set_nonce,
    ),
    write(("anvil_setNonce", &[]), NONCE, "null", "As hardhat_setNonce.", |node, params| {
        unit(set_nonce(node, params))
    }),
    write(
        ("hardhat_setCode", &["evm_setAccountCode"]),
        CODE,
        "boolean",
        "Sets the code of an account.",
        set_code,
    ),
    write(("anvil_setCode", &[]), CODE, "null", "As hardhat_setCode.", |node, params| {
        unit(set_code(node, params))
    }),
    write(
        ("anvil_setStorageAt", &["hardhat_setStorageAt", "evm_setAccountStorageAt"]),
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
        ("hardhat_impersonateAccount", &[]),
        &[ADDRESS],
        "boolean",
        "Lets eth_sendTransaction send for an account whose key the node does not hold.",
        impersonate,
    ),
    write(
        ("anvil_impersonateAccount", &[]),
        &[ADDRESS],
        "null",
        "As hardhat_impersonateAccount.",
        |node, params| unit(impersonate(node, params)),
    ),
    write(
        ("hardhat_stopImpersonatingAccount", &[]),
        &[ADDRESS],
        "boolean",
        "Ends the impersonation of an account; false if it was not impersonated.",
        stop_impersonating,
    ),
    write(
        ("anvil_stopImpersonatingAccount", &[]),
        &[ADDRESS],
        "null",
        "As hardhat_stopImpersonatingAccount.",
        |node, params| unit(stop_impersonating(node, params)),
    ),
    write(
        ("anvil_autoImpersonateAccount", &["hardhat_autoImpersonateAccount"]),
        &[required("enabled", "boolean")],
        "null",
        "Turns the impersonation of all accounts on or off.",
        |node, params| {
            // The parameter is required, so that its default (`true`) is never used.
            let all = params.boolean(0, true)?;
            chain(node)?.wallet_mut().set_impersonate_all(all);
            done(&(), Level::Local)
        },
    ),
];

fn set_balance(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let (address, balance) = (params.address(0)?, params.number(1)?);
    chain(node)?.set_balance(&address, balance);
    done(&true, Level::Local)
}

fn set_nonce(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let (address, nonce) = (params.address(0)?, u64_param(params, 1)?);
    if nonce == u64::MAX {
        // No nonce comes after the last one (EIP-2681).
        return Err(ParamError::Number(alloc::format!("{nonce}")).into());
    }
    chain(node)?.set_nonce(&address, nonce);
    done(&true, Level::Local)
}

fn set_code(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let (address, code) = (params.address(0)?, params.data(1)?);
    chain(node)?.set_code(&address, code).map_err(RpcError::from)?;
    done(&true, Level::Local)
}

fn impersonate(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    chain(node)?.wallet_mut().impersonate(address);
    done(&true, Level::Local)
}

fn stop_impersonating(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    done(&chain(node)?.wallet_mut().stop_impersonating(&address), Level::Local)
}
