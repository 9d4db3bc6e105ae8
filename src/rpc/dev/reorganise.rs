//! anvil's methods that take blocks off the chain again: `anvil_rollback` and `anvil_reorg`.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{chain, chain_at, number, optional_u64_param, send::transaction_of, u64_param, write};
use crate::{
    dev::{DevChain, DevError},
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{Failure, HandlerResult, Method, ParamSubject, done, optional, required},
        params::{Params, object, parse_data},
        signed,
    },
};

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_rollback", &[]),
        &[optional("depth", "QUANTITY")],
        "null",
        "Removes the newest blocks, by default one. Their transactions are gone; the pool stays.",
        |node, params| {
            let depth = optional_u64_param(params, 0)?.unwrap_or(1);
            chain(node)?.rollback(depth).map_err(RpcError::from)?;
            done(&(), Level::Local)
        },
    ),
    write(
        ("anvil_reorg", &[]),
        &[
            required("depth", "QUANTITY"),
            optional("tx_block_pairs", "array of [transaction object or DATA, index of the block]")
                .of(ParamSubject::Transactions),
        ],
        "null",
        "Replaces the newest blocks by as many others, which have these transactions only. The pool stays. The parameters \
         may be given by name, as alloy does.",
        reorganise,
    )
    .takes_names(),
];

/// A transaction as an object or encoded, and the index of its block, from 0 on.
#[derive(Deserialize)]
struct TransactionInBlock<'a>(#[serde(borrow)] &'a RawValue, #[serde(borrow)] &'a RawValue);

/// Why the blocks were not replaced. `DevChain::reorganise` needs an error type that a [`DevError`] converts to.
struct NotReplaced(Failure);

impl From<DevError> for NotReplaced {
    fn from(error: DevError) -> Self {
        Self(RpcError::from(error).into())
    }
}

fn reorganise(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let depth = u64_param(params, 0)?;
    let given: Vec<TransactionInBlock<'_>> =
        params.value(1, "transactions with the indexes of their blocks")?.unwrap_or_default();
    let mut by_block = BTreeMap::<u64, Vec<&RawValue>>::new();
    for TransactionInBlock(transaction, index) in given {
        let index = number(index)?;
        match u64::try_from(index) {
            Ok(index) if index < depth => by_block.entry(index).or_default().push(transaction),
            _ => return Err(ParamError::Number(alloc::format!("{index}")).into()),
        }
    }
    let (chain, now) = chain_at(node)?;
    let fill = &mut |chain: &mut DevChain, index: u64| {
        let mut of_block = by_block.get(&index).into_iter().flatten();
        of_block.try_for_each(|transaction| send(chain, transaction, now)).map_err(NotReplaced)
    };
    chain.reorganise(depth, now, fill).map_err(|NotReplaced(failure)| failure)?;
    done(&(), Level::Local)
}

/// Sends a transaction, given as an object or encoded, to the pool.
fn send(chain: &mut DevChain, given: &RawValue, now: u64) -> Result<(), Failure> {
    let (transaction, sender) = match serde_json::from_str::<String>(given.get()) {
        Ok(encoded) => signed::decode(&parse_data(&encoded)?, chain.view().network().chain_id)?,
        Err(_) => {
            let expected = "a transaction object or its encoding";
            let object = object(given).map_err(|_| ParamError::Type { position: 1, expected })?;
            transaction_of(chain, &object, now)?
        }
    };
    chain.submit(transaction, sender, now).map_err(RpcError::from)?;
    Ok(())
}
