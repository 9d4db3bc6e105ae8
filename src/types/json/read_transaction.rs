//! Transactions from `eth_getTransactionBy*` and full blocks.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::error::JsonError;
use super::field::JsonField;
use super::slots::{RawMember, slots};
use super::write_transaction::Location;
use crate::types::error::FieldRule;
use crate::types::number::RawUint;
use crate::types::transaction::Transaction;

slots! {
    struct RawTransaction {
        hash: "hash",
        nonce: "nonce",
        gas_price: "gasPrice",
        gas: "gas",
        to: "to",
        value: "value",
        input: "input",
        v: "v",
        r: "r",
        s: "s",
    }
}

slots! {
    struct RawLocation {
        block_hash: "blockHash",
        block_number: "blockNumber",
        transaction_index: "transactionIndex",
    }
}

/// Rebuilds a transaction from its JSON.
///
/// `claimed` is the hash the transaction must have; without it, the `hash` field of the JSON is used. The
/// possible encodings of the fields are tried: `v` shown as 27 or 28 (or 0 or 1) although `chain_id` was
/// signed, a gas price or gas limit of zero written as the byte 00 or the empty string, and one leading zero
/// byte before gas limit and nonce.
pub fn transaction_from_json(
    json: &str,
    claimed: Option<B256>,
    chain_id: u64,
) -> Result<Transaction, JsonError> {
    let raw = RawTransaction::from_json(json).map_err(|error| JsonError::of("transaction", &error))?;
    let claimed = match claimed {
        Some(hash) => hash,
        None => JsonField::new("transaction.hash", raw.hash).hash()?,
    };
    let tx = raw.fields()?;
    search(tx, claimed, chain_id)
}

/// The location stated in the JSON of a transaction or receipt. `None` if the JSON names no block, as for a
/// pending transaction.
pub fn location_from_json(json: &str) -> Result<Option<Location>, JsonError> {
    let raw = RawLocation::from_json(json).map_err(|error| JsonError::of("transaction", &error))?;
    let block = JsonField::new("transaction.blockHash", raw.block_hash);
    if !block.is_present() {
        return Ok(None);
    }
    Ok(Some(Location {
        block_hash: block.hash()?,
        block_number: JsonField::new("transaction.blockNumber", raw.block_number).uint63()?,
        index: JsonField::new("transaction.transactionIndex", raw.transaction_index).uint63()?,
    }))
}

impl RawTransaction<'_> {
    /// The transaction with the usual byte form of each field.
    fn fields(&self) -> Result<Transaction, JsonError> {
        let number = |name, slot| JsonField::new(name, slot).uint();
        // Old nodes show the signature of the REMASC transaction as null.
        let optional = |name, slot: RawMember<'_>| {
            let field = JsonField::new(name, slot);
            if field.is_present() { field.uint() } else { Ok(U256::ZERO) }
        };
        let v = optional("transaction.v", self.v)?;
        Ok(Transaction {
            nonce: RawUint::minimal(number("transaction.nonce", self.nonce)?),
            gas_price: gas_price(number("transaction.gasPrice", self.gas_price)?),
            gas_limit: RawUint::minimal(number("transaction.gas", self.gas)?),
            to: JsonField::new("transaction.to", self.to).optional_address()?,
            value: number("transaction.value", self.value)?,
            data: JsonField::new("transaction.input", self.input).data_or_empty(usize::MAX)?,
            v: u8::try_from(v)
                .map_err(|_| JsonField::new("transaction.v", self.v).error(FieldRule::TooLarge(8)))?,
            r: optional("transaction.r", self.r)?,
            s: optional("transaction.s", self.s)?,
        })
    }
}

/// The usual byte form: the byte 00 for zero, otherwise no leading zeros.
fn gas_price(value: U256) -> RawUint {
    if value.is_zero() { RawUint::signed_minimal(value) } else { RawUint::minimal(value) }
}

/// Tries the possible encodings until the transaction has the claimed hash, the likeliest first.
fn search(mut tx: Transaction, claimed: B256, chain_id: u64) -> Result<Transaction, JsonError> {
    let vs = v_candidates(&tx, chain_id);
    let prices = with_other(tx.gas_price, RawUint::minimal(tx.gas_price.value()));
    let limits = leading_zero(tx.gas_limit);
    // A nonce of zero is always the empty string.
    let nonces = if tx.nonce.is_empty() { alloc::vec![tx.nonce] } else { leading_zero(tx.nonce) };
    let mut tried = 0usize;
    for v in vs {
        tx.v = v;
        for price in &prices {
            tx.gas_price = *price;
            for limit in &limits {
                tx.gas_limit = *limit;
                for nonce in &nonces {
                    tx.nonce = *nonce;
                    tried = tried.saturating_add(1);
                    if tx.hash() == claimed {
                        return Ok(tx);
                    }
                }
            }
        }
    }
    Err(JsonError::Hash { object: "transaction", claimed, tried })
}

/// The `v` shown, then the possible values with the chain id that an older node does not show.
fn v_candidates(tx: &Transaction, chain_id: u64) -> Vec<u8> {
    let mut out = alloc::vec![tx.v];
    let odd = match tx.v {
        27 | 0 => 0,
        28 | 1 => 1,
        _ => return out,
    };
    // An unsigned transaction, such as that of REMASC.
    if tx.r.is_zero() && tx.s.is_zero() {
        return out;
    }
    if tx.v <= 1 {
        out.push(27u8.saturating_add(odd));
    }
    // EIP-155: 35 or 36, and twice the chain id.
    let with_chain = chain_id.checked_mul(2).and_then(|x| x.checked_add(35 + u64::from(odd)));
    out.extend(with_chain.and_then(|v| u8::try_from(v).ok()));
    out
}

/// The number as it is, then with one leading zero byte (for zero, the byte 00).
fn leading_zero(number: RawUint) -> Vec<RawUint> {
    let longer = RawUint::padded(number.value(), number.len().saturating_add(1));
    alloc::vec![number, longer]
}

/// Both forms, or one if they are equal.
fn with_other(first: RawUint, second: RawUint) -> Vec<RawUint> {
    if first == second { alloc::vec![first] } else { alloc::vec![first, second] }
}
