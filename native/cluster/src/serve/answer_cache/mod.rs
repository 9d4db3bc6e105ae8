//! The cache of answers that cannot change any more: in memory, and in the hot store for all front ends.
//!
//! An answer is cached when it is verified and the block that it is about is final. It is used only while that block is on the
//! chain that messages see, so that no reorganisation, however deep, brings back an answer of another branch. Answers with
//! a mark are not cached. A front end whose chain does not start at a trusted block caches and uses none, so a cached answer
//! always has the level verified. Values in the store are sealed ([`Seal`]).
//!
//! Measured without the cache, over a development chain: repeated reads of final blocks take a front end 3 to 12 times the
//! processor time, and a client that sends one request after the other waits 7 to 29 times as long.

mod cacheable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, keccak256};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::rpc::{Message, Reply, Response};
use rootlight::types::BlockRef;
use rootlight_limits::caller_id::CallerId;
use rootlight_node::light::LightService;
use rootlight_server::metrics::register_counters;
use rootlight_server::service::{Caller, ReservedReply, Service as _};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tracing::debug;

use self::cacheable::{CacheableRequest, is_final, verified_result};
use crate::Seal;
use crate::store::HotStore;

/// Longest result that is cached, in bytes.
const MAX_RESULT_BYTES: usize = 64 << 10;

/// How long the store keeps an answer.
const LIFETIME: Duration = Duration::from_secs(3_600);
/// How long a front end does not ask the store again for an answer that it did not have.
const ABSENT_TIME: Duration = Duration::from_secs(10);

/// Most answers that are noted as absent from the store.
const MAX_ABSENT: usize = 50_000;
/// Most answers that are written to the store at a time; further ones are not written.
const MAX_WRITES: usize = 32;
/// About how many answers the cache will hold, by which it sizes its tables.
const EXPECTED_ANSWERS: usize = 10_000;
/// Bytes that an answer takes in memory besides its result, approximately.
const OVERHEAD: usize = 200;

/// An answer that does not change while its block is on the chain.
struct CachedAnswer {
    block: BlockRef,
    result: Box<RawValue>,
}

/// The weight of an answer in the cache: its bytes.
#[derive(Clone)]
struct AnswerWeight;

impl Weighter<B256, Arc<CachedAnswer>> for AnswerWeight {
    fn weight(&self, _: &B256, cached: &Arc<CachedAnswer>) -> u64 {
        cached.result.get().len().saturating_add(OVERHEAD) as u64
    }
}

/// The answers that front ends share.
pub(super) struct AnswerCache {
    store: Arc<HotStore>,
    seal: Seal,
    /// The hash of the settings on which answers depend.
    settings: B256,
    cache: Cache<B256, Arc<CachedAnswer>, AnswerWeight>,
    /// Answers that the store did not have, with the time of the question.
    absent: Cache<B256, Instant>,
    writes: Arc<Semaphore>,
    in_memory: Counter,
    in_store: Counter,
    written: Counter,
}

impl AnswerCache {
    /// A cache for light clients with these settings, on which every answer may depend. At most `bytes` of answers are in memory.
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, settings: &str, bytes: u64) -> Self {
        Self {
            store,
            seal,
            settings: keccak256(settings),
            cache: Cache::with_weighter(EXPECTED_ANSWERS, bytes, AnswerWeight),
            absent: Cache::new(MAX_ABSENT),
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            in_memory: Counter::default(),
            in_store: Counter::default(),
            written: Counter::default(),
        }
    }

    /// Registers how often answers were found.
    pub(super) fn register(&self, registry: &mut Registry) {
        let counters = [
            ("kept_answers_memory", "Answers about final blocks that were found in memory", &self.in_memory),
            ("kept_answers_store", "Answers about final blocks that were found in the store", &self.in_store),
            (
                "kept_answers_written",
                "Answers about final blocks that were written to the store",
                &self.written,
            ),
        ];
        register_counters(registry, counters);
    }

    /// Answers a message from the cache if possible, and otherwise by the light client, whose answer is cached if it may be.
    /// `request` is that of the message ([`Self::cacheable`]).
    pub(super) async fn answer(
        &self,
        light: &LightService,
        caller: &Arc<Caller>,
        message: Message,
        request: CacheableRequest,
    ) -> ReservedReply {
        if let Some(cached) = self.find(light, &request).await {
            let reply = Reply::to_one(request.id.clone(), Ok(cached.result.clone()));
            if let Some(reserved) =
                light.limits().reserve_answer(CallerId::of(caller).quota_owner(), reply.bytes()).await
            {
                return ReservedReply { reserved, ..ReservedReply::of(reply) };
            }
        }
        // Nothing is cached, or the budget of answers has no bytes for it: the light client answers, or states that limit as an error.
        let answer = light.answer_message(caller, message).await;
        if let Some([response]) = answer.reply.as_ref().map(Reply::responses) {
            self.insert(light, &request, response, answer.fetched);
        }
        answer
    }

    /// The request of a message, if its answer may be cached.
    pub(super) fn cacheable(&self, message: &Message) -> Option<CacheableRequest> {
        CacheableRequest::of(message, &self.settings)
    }

    /// The cached answer, from memory or the store, if its block is final on the present chain.
    async fn find(&self, light: &LightService, request: &CacheableRequest) -> Option<Arc<CachedAnswer>> {
        let chain = light.trusted_chain()?;
        let is_valid = |cached: &CachedAnswer| is_final(&cached.block, &chain);
        if let Some(cached) = self.cache.get(&request.key) {
            if is_valid(&cached) {
                self.in_memory.inc();
                return Some(cached);
            }
            self.cache.remove(&request.key);
        }
        let is_absent = self.absent.get(&request.key).is_some_and(|since| since.elapsed() < ABSENT_TIME);
        if is_absent || !self.store.is_up() {
            return None;
        }
        let store_key = store_key(&request.key);
        let sealed = self.store.get(&store_key).await.ok()?;
        let cached = sealed.and_then(|sealed| read(self.seal.unseal(&store_key, &sealed)?));
        match cached.filter(is_valid) {
            Some(cached) => {
                let cached = Arc::new(cached);
                self.in_store.inc();
                self.cache.insert(request.key, cached.clone());
                Some(cached)
            }
            None => {
                self.absent.insert(request.key, Instant::now());
                None
            }
        }
    }

    /// Caches an answer if it cannot change any more. The answer is put into the store only if backends were asked for it (`fetched`): an
    /// answer from data in memory is made as quickly as it is read from the store.
    fn insert(&self, light: &LightService, request: &CacheableRequest, response: &Response, fetched: bool) {
        let Some(chain) = light.trusted_chain() else { return };
        let Some(result) = verified_result(response).filter(|result| result.get().len() <= MAX_RESULT_BYTES)
        else {
            return;
        };
        let Some(block) = request.block(response, &chain) else { return };
        let cached = CachedAnswer { block, result: result.to_owned() };
        if fetched && let Ok(permit) = self.writes.clone().try_acquire_owned() {
            let store_key = store_key(&request.key);
            let sealed = self.seal.seal(&store_key, &write(&cached));
            let (store, written) = (self.store.clone(), self.written.clone());
            tokio::spawn(async move {
                match store.set_unless_full(&store_key, &sealed, LIFETIME).await {
                    Ok(true) => drop(written.inc()),
                    Ok(false) => {}
                    Err(error) => debug!("an answer was not written to the store: {error}"),
                }
                drop(permit);
            });
        }
        self.cache.insert(request.key, Arc::new(cached));
    }
}

/// The key of an answer in the store.
fn store_key(key: &B256) -> String {
    format!("answer:{key:x}")
}

/// The bytes of an answer: the block's number (8 bytes, big-endian) and hash, and the result.
fn write(cached: &CachedAnswer) -> Vec<u8> {
    [&cached.block.number.to_be_bytes()[..], cached.block.hash.as_slice(), cached.result.get().as_bytes()]
        .concat()
}

/// Reads bytes of [`write`].
fn read(bytes: &[u8]) -> Option<CachedAnswer> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (hash, text) = rest.split_first_chunk::<32>()?;
    let result = RawValue::from_string(String::from_utf8(text.to_vec()).ok()?).ok()?;
    Some(CachedAnswer { block: BlockRef { number: u64::from_be_bytes(*number), hash: hash.into() }, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_from_the_store_as_it_was() {
        let block = BlockRef { number: 7, hash: B256::repeat_byte(3) };
        let result = RawValue::from_string(r#"{"a":"0x1"}"#.into()).unwrap();
        let bytes = write(&CachedAnswer { block, result });
        let back = read(&bytes).unwrap();
        assert_eq!((back.block, back.result.get()), (block, r#"{"a":"0x1"}"#));
        assert!(read(&bytes[..39]).is_none() && read(&bytes[..45]).is_none() && read(b"").is_none());
    }
}
