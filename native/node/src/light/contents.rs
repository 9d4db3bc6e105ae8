//! The contents of a block, its transactions and receipts, as the light clients of one service send them to each other.

use alloy_primitives::B256;
use rootlight::consensus::{BodyError, VerifiedBody, VerifiedReceipts};
use rootlight::rpc::{LockKind, SharedClient};
use rootlight::types::rlp::{ListBuf, RlpReader};
use rootlight::types::{FieldError, Receipt, Transaction};
use thiserror::Error;

/// Why the contents of a block are not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// The bytes are no list of transactions and receipts.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    /// The block is not on a branch that this client has verified.
    #[error("block {0} is not known")]
    Unknown(B256),
    /// The header commits to other transactions or receipts.
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// The transactions and receipts of a block, as [`take_contents`] takes them: RLP of a list of transactions and a list of
/// receipts. `None` unless the client has proven both.
pub(super) fn contents<S: LockKind>(client: &SharedClient<S>, block: &B256) -> Option<Vec<u8>> {
    let (body, receipts) = client.block(block)?;
    let transactions = body.transactions().iter().map(Transaction::encode);
    let receipts = receipts.receipts().iter().map(Receipt::encode);
    let mut contents = ListBuf::of_payload(list(transactions).as_list());
    contents.items().extend_from_slice(list(receipts).as_list());
    Some(contents.into_list())
}

/// Takes the contents of a verified block. They are checked against its header as those of an upstream would be.
///
/// # Errors
/// [`ContentsError`]; nothing is taken.
pub(super) fn take_contents<S: LockKind>(
    client: &SharedClient<S>,
    block: &B256,
    contents: &[u8],
) -> Result<(), ContentsError> {
    let (network, header) = {
        let sync = client.sync();
        let header = sync.chain().and_then(|chain| chain.by_hash(block).cloned());
        (sync.network().clone(), header.ok_or(ContentsError::Unknown(*block))?)
    };
    let mut lists = RlpReader::list(contents, "contents")?;
    let transactions = read(lists.next_list("transactions")?, "transaction", Transaction::decode)?;
    let receipts = read(lists.next_list("receipts")?, "receipt", Receipt::decode)?;
    lists.finish("contents")?;
    let body = VerifiedBody::check(&header, transactions, &network)?;
    let receipts = VerifiedReceipts::check(&header, receipts, &network)?;
    Ok(client.keep_block(body, receipts)?)
}

/// A list of encoded items.
fn list(items: impl Iterator<Item = Vec<u8>>) -> ListBuf {
    let mut list = ListBuf::with_capacity(0);
    items.for_each(|item| list.items().extend(item));
    list
}

/// Reads the items of a list.
fn read<T>(
    mut list: RlpReader<'_>,
    field: &'static str,
    decode: impl Fn(&[u8]) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let mut items = Vec::new();
    while !list.is_empty() {
        items.push(decode(list.next_raw(field)?)?);
    }
    Ok(items)
}

#[cfg(test)]
#[path = "contents_test.rs"]
mod tests;
