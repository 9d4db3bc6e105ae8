//! Filters that all front ends share: each is in the store between two polls, and at the front end that answers a poll
//! meanwhile.

mod carried;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rootlight::engine::{ExportedFilter, FILTER_IDLE};
use rootlight::types::Asker;
use rootlight_node::light::LightService;
use tokio::time::Instant;
use tracing::debug;

use super::sent_transactions::{SentTransactions, StreamId, StreamedTransaction};
use crate::Seal;
use crate::store::{HotStore, HotStoreError, Script};

/// Milliseconds without a poll after which a filter is dropped.
const LIFETIME: u64 = FILTER_IDLE * 1_000;
/// Milliseconds for which a front end may have a filter. Should it die, the filter can be polled again after them.
const TAKEN: u64 = 10_000;
/// How long a message waits for others that poll its filters, and for the store to take them back.
const PATIENCE: Duration = Duration::from_secs(3);
/// A store that stalls executes a command after its sender has given up. It must not put a filter back then, because the
/// caller was told that nothing was reported. So the last moment for that is this long before, which is left for the
/// confirmation.
const CONFIRMATION: Duration = Duration::from_millis(500);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Most filters of one key, or of one address without a key.
const MAX_OWN: usize = 256;
/// Most bytes of the filters of one key, or of one address without a key. A filter of blocks or logs takes some 10 KiB for
/// the blocks that it has seen.
const MAX_OWN_BYTES: usize = 1 << 20;
/// All pages of other origins that have one address have one in so many of these filters and bytes, beside its programs.
const PAGES_PART: usize = 4;
/// Most bytes of a new filter; one with the most addresses and topics takes less.
const MAX_BYTES: usize = 160 << 10;
/// How much of the memory of the store may be in use when a filter is made, in percent.
const MEMORY: usize = 75;
/// Most filters that one message may use.
const MAX_USED: usize = 64;

/// Why a message about filters is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error("filters cannot be reached at present; ask again")]
    Store(#[from] HotStoreError),
    /// Another message polls the same filter all the time.
    #[error("the filter is being polled by another request; ask again")]
    Busy,
    /// The answer took longer than a front end may keep a filter. Nothing was reported.
    #[error("the poll took too long; ask again")]
    Late,
    #[error("a message may use at most {MAX_USED} filters")]
    TooMany,
    #[error("the filters take too much room: {MAX_BYTES} bytes each and {0} together at most")]
    TooLarge(usize),
    /// The store keeps the rest of its memory for limits and keys.
    #[error("there is no room for another filter at present; ask again later")]
    Crowded,
}

/// The filters of all front ends.
pub(super) struct SharedFilters {
    store: Arc<HotStore>,
    seal: Seal,
    sent: Arc<SentTransactions>,
    chain: u64,
    take: Script,
    put: Script,
    own: Script,
}

/// Filters that this front end has taken. They go back when their message is answered.
pub(super) struct TakenFilters {
    /// The name of the message that has taken them; no other has it.
    name: String,
    owner: Asker,
    filters: BTreeMap<u128, TakenFilter>,
}

struct TakenFilter {
    /// Up to where it was told of transactions.
    stream_id: StreamId,
    /// When the store has lent it, by its clock, in milliseconds.
    lent: u64,
    /// A moment after that.
    at: Instant,
    /// The size of what was put back; 0 if it was removed.
    bytes: usize,
}

impl TakenFilter {
    /// The last moment, by the store's clock in milliseconds, at which it may be put back by who gives up then.
    fn last_moment(&self, give_up: Instant) -> u64 {
        let left = give_up.saturating_duration_since(self.at).saturating_sub(CONFIRMATION);
        self.lent.saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl SharedFilters {
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, sent: Arc<SentTransactions>, chain: u64) -> Self {
        let put = concat!(include_str!("../store/memory.lua"), include_str!("put.lua"));
        let [take, put, own] = [include_str!("take.lua"), put, include_str!("own.lua")].map(Script::new);
        Self { store, seal, sent, chain, take, put, own }
    }

    /// Takes filters, so that the light client has those that exist.
    ///
    /// # Errors
    /// [`FilterError`]. No filter stays taken.
    pub(super) async fn take(
        &self,
        light: &LightService,
        wanted: impl Iterator<Item = u128>,
        (name, owner): (String, Asker),
    ) -> Result<TakenFilters, FilterError> {
        let (mut taken, until) =
            (TakenFilters { name, owner, filters: BTreeMap::new() }, Instant::now() + PATIENCE);
        // Ids without a filter count too: each is a question to the store.
        for (asked, id) in wanted.enumerate() {
            let result = match asked {
                MAX_USED.. => Err(FilterError::TooMany),
                _ => self.take_one(light, (self.key(id, owner), id), &taken.name, until).await,
            };
            match result {
                Ok(Some(lent)) => _ = taken.filters.insert(id, lent),
                // The light client says that it does not exist, or has a subscription of this id.
                Ok(None) => {}
                Err(error) => {
                    self.give_back(light, &mut taken).await.ok();
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    async fn take_one(
        &self,
        light: &LightService,
        (key, id): (String, u128),
        name: &str,
        until: Instant,
    ) -> Result<Option<TakenFilter>, FilterError> {
        let arguments = [name.to_owned(), TAKEN.to_string(), LIFETIME.to_string()].map(String::into_bytes);
        loop {
            let (state, sealed, lent): (String, Vec<u8>, u64) =
                self.store.script(&self.take, &key, &arguments).await?;
            let at = Instant::now();
            match state.as_str() {
                "taken" => {
                    return Ok(self.admit(light, (&key, id), &sealed, lent).map(|stream_id| TakenFilter {
                        stream_id,
                        lent,
                        at,
                        bytes: 0,
                    }));
                }
                "busy" if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                "busy" => return Err(FilterError::Busy),
                _ => return Ok(None),
            }
        }
    }

    /// Gives a filter of the store, at this time of it, to the light client.
    fn admit(
        &self,
        light: &LightService,
        (key, id): (&str, u128),
        sealed: &[u8],
        now: u64,
    ) -> Option<StreamId> {
        let (stream_id, bytes) = self.seal.unseal(key, sealed)?.split_first_chunk()?;
        let (sent, stream_id) = self.sent.since(StreamId::from_bytes(*stream_id), now);
        let filter = carried::from_bytes(bytes);
        let mut filter = filter.inspect_err(|error| debug!("a filter of the store is {error}")).ok()?;
        add_sent(&mut filter, &sent);
        light.import_filter(id, filter);
        Some(stream_id)
    }

    /// Puts filters back as they are now; those that were removed are removed for all.
    ///
    /// # Errors
    /// [`FilterError`]: what the answer reports of the filters would be reported again.
    pub(super) async fn give_back(
        &self,
        light: &LightService,
        taken: &mut TakenFilters,
    ) -> Result<(), FilterError> {
        let (mut outcome, until) = (Ok(()), Instant::now() + PATIENCE);
        for (id, lent) in &mut taken.filters {
            let key = self.key(*id, taken.owner);
            let value = lent_bytes(light, *id).map(|bytes| self.sealed(&key, lent.stream_id, &bytes));
            lent.bytes = value.as_ref().map_or(0, Vec::len);
            let kind = ("taken", lent.last_moment(until));
            let put = self.put((&key, &taken.name, kind), value.unwrap_or_default(), until).await;
            outcome = outcome.and(put);
        }
        outcome
    }

    fn sealed(&self, key: &str, stream_id: StreamId, bytes: &[u8]) -> Vec<u8> {
        self.seal.seal(key, &[&stream_id.to_bytes(), bytes].concat())
    }

    /// Puts a filter into the store. If it is not known whether the store has it, that is tried again until a moment.
    async fn put(
        &self,
        (key, name, (kind, last_moment)): (&str, &str, (&str, u64)),
        value: Vec<u8>,
        until: Instant,
    ) -> Result<(), FilterError> {
        let lifetime = LIFETIME.to_string().into_bytes();
        let (kind, last_moment) = (kind.as_bytes().to_vec(), last_moment.to_string().into_bytes());
        let memory = MEMORY.to_string().into_bytes();
        let arguments = [name.as_bytes().to_vec(), value, lifetime, kind, last_moment, memory];
        loop {
            match self.store.script(&self.put, key, &arguments).await {
                Ok(1_u64) => return Ok(()),
                Ok(2) => return Err(FilterError::Crowded),
                // A filter that is gone was removed by the first of two tries, or has expired meanwhile.
                Ok(_) => return Err(FilterError::Late),
                Err(error @ (HotStoreError::Full | HotStoreError::Answer(_))) => return Err(error.into()),
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Puts the new filters among these numbers into the store. Those that were used longest ago by the same owner are removed
    /// if it has too many.
    ///
    /// # Errors
    /// [`FilterError`]. Filters that could not be put there do not exist.
    pub(super) async fn add(
        &self,
        light: &LightService,
        numbers: &[u128],
        (name, owner): (&str, Asker),
    ) -> Result<(), FilterError> {
        let (stream_id, until) = (self.sent.last(), Instant::now() + PATIENCE);
        let sealed =
            |id: &u128| Some((*id, self.sealed(&self.key(*id, owner), stream_id, &lent_bytes(light, *id)?)));
        let new: Vec<(u128, Vec<u8>)> = numbers.iter().filter_map(sealed).collect();
        let sizes = || new.iter().map(|(id, value)| (*id, value.len()));
        let all = sizes().map(|(_, bytes)| bytes).fold(0, usize::saturating_add);
        let most = MAX_OWN_BYTES / part(owner);
        if all > most || sizes().any(|(_, bytes)| bytes > MAX_BYTES) {
            return Err(FilterError::TooLarge(most));
        }
        // The filters are counted before they are stored, so that no owner has more in the store than the limit, whatever fails.
        self.own(sizes(), owner).await?;
        for (id, value) in new {
            self.put((&self.key(id, owner), name, ("new", u64::MAX)), value, until).await?;
        }
        Ok(())
    }

    /// Notes that the owner has used the filters.
    pub(super) async fn note(&self, taken: &TakenFilters) -> Result<(), FilterError> {
        self.own(taken.filters.iter().map(|(id, lent)| (*id, lent.bytes)), taken.owner).await
    }

    fn key(&self, id: u128, owner: Asker) -> String {
        filter_key(self.chain, id, owner)
    }

    async fn own(
        &self,
        filters: impl Iterator<Item = (u128, usize)>,
        owner: Asker,
    ) -> Result<(), FilterError> {
        let most = [MAX_OWN, MAX_OWN_BYTES].map(|most| (most / part(owner)).to_string());
        let mut arguments = Vec::from(most);
        arguments.push(LIFETIME.to_string());
        let limits = arguments.len();
        arguments.extend(filters.flat_map(|(id, bytes)| [format!("{id:x}"), bytes.to_string()]));
        if arguments.len() == limits {
            return Ok(());
        }
        let arguments: Vec<Vec<u8>> = arguments.into_iter().map(String::into_bytes).collect();
        let surplus: Vec<String> =
            self.store.script(&self.own, &own_key(self.chain, owner), &arguments).await?;
        for id in surplus.iter().filter_map(|id| u128::from_str_radix(id, 16).ok()) {
            self.store.remove(&self.key(id, owner)).await?;
        }
        Ok(())
    }
}

/// The key of a filter. It names the owner if others must not see the filter, so that no other caller takes, counts or removes
/// the filter.
fn filter_key(chain: u64, id: u128, owner: Asker) -> String {
    match owner.is_isolated() {
        true => format!("filter:{chain}:{}:{id:x}", group(owner)),
        false => format!("filter:{chain}:{id:x}"),
    }
}

/// The bytes of a filter of the light client, which does not exist there afterwards.
fn lent_bytes(light: &LightService, id: u128) -> Option<Vec<u8>> {
    carried::to_bytes(light.export_filter(id)?)
}

/// A filter of pending transactions is to report those that its asker has sent through any front end meanwhile.
fn add_sent(filter: &mut ExportedFilter, sent: &[StreamedTransaction]) {
    let asker = filter.asker.shared_id();
    filter.pending.extend(sent.iter().filter(|(_, sender)| *sender == asker).map(|(hash, _)| *hash));
}

/// The owner has one in so many of the filters and bytes of a caller.
fn part(owner: Asker) -> usize {
    if is_page(owner) { PAGES_PART } else { 1 }
}

/// Whether the filters of an owner count together with those of all pages of its caller.
fn is_page(owner: Asker) -> bool {
    owner.quota_owner().page != 0
}

/// The name of those whose filters count together with those of an owner.
fn group(owner: Asker) -> String {
    let pages = if is_page(owner) { ":pages" } else { "" };
    format!("{:x}{pages}", owner.number)
}

/// The key of the filters that count together with those of an owner.
fn own_key(chain: u64, owner: Asker) -> String {
    format!("own:{chain}:{}", group(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_pages_count_apart_from_those_of_the_programs_of_their_address() {
        let of = |asker: Asker| (own_key(33, asker), part(asker));
        let (program, key) = (Asker::from(0x7f00_0001), Asker::from(rootlight::types::KEY_ASKERS.start));
        assert_eq!(of(program), ("own:33:7f000001".to_owned(), 1));
        for origin in ["https://a.example", "https://b.example", "null"] {
            let page = of(program.on_page(Some(origin), 1));
            assert_eq!(page, ("own:33:7f000001:pages".to_owned(), PAGES_PART));
            assert_eq!(of(key.on_page(Some(origin), 1)), of(key), "a page with a key was given the key");
        }
    }
    #[test]
    fn the_store_key_of_a_private_filter_names_its_owner() {
        let (program, key) = (Asker::from(0x7f00_0001), Asker::from(rootlight::types::KEY_ASKERS.start));
        let page = program.on_page(Some("https://a.example"), 1);
        assert_eq!(filter_key(33, 0xab, program), "filter:33:ab");
        assert_eq!(filter_key(33, 0xab, page), "filter:33:7f000001:pages:ab");
        assert_eq!(filter_key(33, 0xab, key), "filter:33:100000000:ab");
        assert_eq!(
            filter_key(33, 0xab, key.on_page(Some("https://a.example"), 1)),
            filter_key(33, 0xab, key)
        );
    }

    #[test]
    fn a_filter_of_pending_transactions_is_given_those_that_its_asker_has_sent_meanwhile() {
        let hash = rootlight::types::B256::repeat_byte;
        let page = Asker::from(7).on_page(Some("https://a.example"), 1);
        for (asker, own) in [(Asker::default(), [2, 4]), (Asker::from(7), [3, 5]), (page, [6, 7])] {
            let mut filter = ExportedFilter {
                asker,
                rights: 0,
                fresh: false,
                spec: rootlight::engine::FilterSpec::Pending,
                reported: Vec::new(),
                pending: vec![hash(1)],
            };
            let sent = [(2, 0), (3, 7), (4, 0), (5, 7), (6, page.shared_id()), (7, page.shared_id())];
            add_sent(&mut filter, &sent.map(|(byte, sender)| (hash(byte), sender)));
            assert_eq!(filter.pending, [1, own[0], own[1]].map(hash));
        }
    }
}
