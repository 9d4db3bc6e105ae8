//! Blocks that the hosts of one service tell each other of, so that one of them asks the upstreams.

use alloc::{string::String, sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::{SharedClient, contents_error::ContentsError};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    light::{FactStore, Known, Now, PinnedHead, ToldError},
    rpc::{Lock as _, Message, Session, Share},
    types::{FieldError, Receipt, Transaction, rlp::ListBuf, rlp::Reader},
};

impl<S: Share> SharedClient<S> {
    /// Starts answering a message of the host itself, as [`Self::open`] does, on the newest verified chain whatever
    /// messages are shown.
    pub fn open_on_newest(&self, message: Message, now: Now) -> Session {
        let pinned = PinnedHead::new(&self.sync.read(), self.config.clone(), now);
        Session::new(self.connection.clone(), pinned, message).with_beside(self.beside.clone())
    }

    /// Headers for another host of the service; see [`crate::light::HeaderSync::tell`].
    pub fn tell_headers(&self, blocks: &[B256]) -> String {
        self.sync.read().tell(blocks)
    }

    /// Takes headers from another host of the service; see [`crate::light::HeaderSync::take_told`].
    ///
    /// # Errors
    /// A header that is not taken.
    pub fn take_headers(&self, text: &str, now: Now) -> Result<bool, ToldError> {
        self.sync.write().take_told(text, now)
    }

    /// The transactions and receipts of a block, as [`Self::take_contents`] takes them: RLP of a list of transactions and
    /// a list of receipts. `None` unless both were proven here.
    pub fn contents(&self, block: &B256) -> Option<Vec<u8>> {
        let (learned, cache) = (self.learned.read(), self.cache.read());
        let none = FactStore::default();
        let find = |store: &FactStore| {
            let known = Known::new(store, &cache);
            Some((known.body(block)?.clone(), known.receipts(block)?.clone()))
        };
        let (body, receipts) = learned.iter().chain([&none]).find_map(find)?;
        let transactions = body.transactions().iter().map(Transaction::encode);
        let receipts = receipts.receipts().iter().map(Receipt::encode);
        let mut contents = ListBuf::of_payload(list(transactions).as_list());
        contents.items().extend_from_slice(list(receipts).as_list());
        Some(contents.into_list())
    }

    /// Takes the contents of a verified block from another host of the service. They are checked against its header as
    /// those of an upstream would be.
    ///
    /// # Errors
    /// [`ContentsError`]; nothing is taken.
    pub fn take_contents(&self, block: &B256, contents: &[u8]) -> Result<(), ContentsError> {
        let (network, header) = {
            let sync = self.sync.read();
            let header = sync.chain().and_then(|chain| chain.by_hash(block).cloned());
            (sync.network().clone(), header.ok_or(ContentsError::Unknown(*block))?)
        };
        let mut lists = Reader::list(contents, "contents")?;
        let transactions = read(lists.next_list("transactions")?, "transaction", Transaction::decode)?;
        let receipts = read(lists.next_list("receipts")?, "receipt", Receipt::decode)?;
        lists.finish("contents")?;
        let body = VerifiedBody::check(&header, transactions, &network)?;
        let receipts = VerifiedReceipts::check(&header, receipts, &network)?;
        receipts.matches(&body)?;
        let block_bytes = body.bytes().saturating_add(receipts.bytes());
        let mut facts = FactStore { block_bytes, ..FactStore::default() };
        facts.bodies.insert(*block, Arc::new(body));
        facts.receipts.insert(*block, Arc::new(receipts));
        self.keep(facts);
        Ok(())
    }
}

/// A list of encoded items.
fn list(items: impl Iterator<Item = Vec<u8>>) -> ListBuf {
    let mut list = ListBuf::with_capacity(0);
    items.for_each(|item| list.items().extend(item));
    list
}

/// Reads the items of a list.
fn read<T>(
    mut list: Reader<'_>,
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
#[path = "fan_out_test.rs"]
mod tests;
