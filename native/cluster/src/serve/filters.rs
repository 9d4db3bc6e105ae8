//! Filters that all front ends share: between two polls a filter is in the hot store, and during a poll in the light client of the
//! front end that answers.
//!
//! A message takes the filters that it names, is answered, and gives them back. While a filter is taken, other messages that
//! name it wait. The scripts `take.lua`, `put.lua` and `own.lua` change the store.

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
const LIFETIME_MILLIS: u64 = FILTER_IDLE * 1_000;
/// Milliseconds for which a message may have a filter. If its front end is killed, the filter can be polled again afterwards.
const TAKEN_MILLIS: u64 = 10_000;
/// How long a message waits for other messages that poll its filters, and for the store to take the filters back.
const WAIT: Duration = Duration::from_secs(3);
/// Time that is left for the store's answer after the last moment at which it may put a filter back. A store that stalls may
/// execute a command after its sender has given up; the filter must not be put back then, because the caller has got an error
/// and not the results.
const CONFIRMATION: Duration = Duration::from_millis(500);
/// Pause between two attempts to take a filter or to put it.
const PAUSE: Duration = Duration::from_millis(20);
/// Most filters of one key, or of one address without a key.
const MAX_OWN_FILTERS: usize = 256;
/// Most bytes of the filters of one key, or of one address without a key. A filter of blocks or logs takes some 10 KiB for
/// the blocks that it has seen, so about 100 such filters fit.
const MAX_OWN_BYTES: usize = 1 << 20;
/// All web pages of other origins at one address together may have a quarter of these filters and bytes, besides the whole for
/// the programs at that address.
const PAGES_DIVISOR: usize = 4;
/// Most bytes of a new filter; a filter with the most addresses and topics takes less.
const MAX_FILTER_BYTES: usize = 160 << 10;
/// How much of the store's memory may be in use when a filter is made, in percent. The rest is for limits and keys.
const MAX_MEMORY_PERCENT: usize = 75;
/// Most filters that one message may name: each is a question to the store.
const MAX_NAMED: usize = 64;

/// Why a message about filters is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error("filters cannot be reached at present; ask again")]
    Store(#[from] HotStoreError),
    /// Another message polls the same filter all the time.
    #[error("the filter is being polled by another request; ask again")]
    Busy,
    /// The answer took longer than a message may have a filter, so its results are discarded.
    #[error("the poll took too long; ask again")]
    Late,
    #[error("a message may use at most {MAX_NAMED} filters")]
    TooMany,
    #[error("the filters take too much room: {MAX_FILTER_BYTES} bytes each and {0} together at most")]
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
    /// The number of the chain, which is in all keys of the store.
    chain: u64,
    take: Script,
    put: Script,
    own: Script,
}

/// The filters that a message has taken. They are given back when the message is answered.
pub(super) struct TakenFilters {
    /// The name of the message, which no other message has.
    name: String,
    owner: Asker,
    filters: BTreeMap<u128, TakenFilter>,
}

/// A filter that a message has taken.
struct TakenFilter {
    /// The last sent transaction that was added to the filter.
    stream_id: StreamId,
    /// When the store gave the filter, by the store's clock in milliseconds.
    taken_at: u64,
    /// When the store's answer came, which is later.
    received: Instant,
    /// The bytes that were put back; 0 if the filter was removed.
    bytes: usize,
}

impl TakenFilter {
    /// The last moment, by the store's clock in milliseconds, at which the store may put the filter back for a message that gives up
    /// at `give_up`.
    fn last_moment(&self, give_up: Instant) -> u64 {
        let left = give_up.saturating_duration_since(self.received).saturating_sub(CONFIRMATION);
        self.taken_at.saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl SharedFilters {
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, sent: Arc<SentTransactions>, chain: u64) -> Self {
        let put = concat!(include_str!("../store/memory.lua"), include_str!("put.lua"));
        let [take, put, own] = [include_str!("take.lua"), put, include_str!("own.lua")].map(Script::new);
        Self { store, seal, sent, chain, take, put, own }
    }

    /// Takes filters out of the store, and gives those that exist to the light client. `name` is that of the message.
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
            (TakenFilters { name, owner, filters: BTreeMap::new() }, Instant::now() + WAIT);
        // Ids without a filter count too: each is a question to the store.
        for (position, id) in wanted.enumerate() {
            let result = match position {
                MAX_NAMED.. => Err(FilterError::TooMany),
                _ => self.take_one(light, (self.key(id, owner), id), &taken.name, until).await,
            };
            match result {
                Ok(Some(filter)) => _ = taken.filters.insert(id, filter),
                // The light client answers that the filter does not exist, or has a subscription with this id.
                Ok(None) => {}
                Err(error) => {
                    // If this fails, the filters can be taken again once their time is over.
                    self.give_back(light, &mut taken).await.ok();
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Takes one filter, and waits while another message has it; `None` if it does not exist.
    async fn take_one(
        &self,
        light: &LightService,
        (key, id): (String, u128),
        name: &str,
        until: Instant,
    ) -> Result<Option<TakenFilter>, FilterError> {
        let arguments =
            [name.to_owned(), TAKEN_MILLIS.to_string(), LIFETIME_MILLIS.to_string()].map(String::into_bytes);
        loop {
            let (state, sealed, taken_at): (String, Vec<u8>, u64) =
                self.store.script(&self.take, &key, &arguments).await?;
            let received = Instant::now();
            match state.as_str() {
                "taken" => {
                    return Ok(self
                        .import(light, (&key, id), &sealed, taken_at)
                        .map(|stream_id| TakenFilter { stream_id, taken_at, received, bytes: 0 }));
                }
                "busy" if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                "busy" => return Err(FilterError::Busy),
                // `none`.
                _ => return Ok(None),
            }
        }
    }

    /// Gives a filter of the store to the light client, with the transactions that its asker has sent meanwhile. `now` is the store's
    /// time. `None` if no front end of this version has written the filter.
    fn import(
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

    /// Puts filters back as the light client has them now; those that it does not have any more are removed from the store.
    ///
    /// # Errors
    /// [`FilterError`]: the store has the filters as they were before, so the next poll reports the same results again.
    pub(super) async fn give_back(
        &self,
        light: &LightService,
        taken: &mut TakenFilters,
    ) -> Result<(), FilterError> {
        let (mut outcome, until) = (Ok(()), Instant::now() + WAIT);
        for (id, filter) in &mut taken.filters {
            let key = self.key(*id, taken.owner);
            let value = exported_bytes(light, *id).map(|bytes| self.sealed(&key, filter.stream_id, &bytes));
            filter.bytes = value.as_ref().map_or(0, Vec::len);
            let kind = ("taken", filter.last_moment(until));
            // The script removes a filter whose value is empty.
            let put = self.put((&key, &taken.name, kind), value.unwrap_or_default(), until).await;
            outcome = outcome.and(put);
        }
        outcome
    }

    /// The sealed value of a filter in the store.
    fn sealed(&self, key: &str, stream_id: StreamId, bytes: &[u8]) -> Vec<u8> {
        self.seal.seal(key, &[&stream_id.to_bytes(), bytes].concat())
    }

    /// Puts a filter into the store. `kind` is `taken` for one that is given back, or `new`; the store does not put a taken one after
    /// `last_moment`. After an error that leaves open whether the store has the filter, this is tried again until `until`.
    async fn put(
        &self,
        (key, name, (kind, last_moment)): (&str, &str, (&str, u64)),
        value: Vec<u8>,
        until: Instant,
    ) -> Result<(), FilterError> {
        let lifetime = LIFETIME_MILLIS.to_string().into_bytes();
        let (kind, last_moment) = (kind.as_bytes().to_vec(), last_moment.to_string().into_bytes());
        let memory = MAX_MEMORY_PERCENT.to_string().into_bytes();
        let arguments = [name.as_bytes().to_vec(), value, lifetime, kind, last_moment, memory];
        loop {
            match self.store.script(&self.put, key, &arguments).await {
                Ok(1_u64) => return Ok(()),
                Ok(2) => return Err(FilterError::Crowded),
                // The last moment is over, another message has taken the filter, or the filter is gone: it has expired, or an earlier
                // attempt, whose answer was lost, has removed it.
                Ok(_) => return Err(FilterError::Late),
                Err(error @ (HotStoreError::Full | HotStoreError::Answer(_))) => return Err(error.into()),
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Moves the filters with these ids that the light client has into the store. If their owner has too many filters then, those
    /// that were used longest ago are removed.
    ///
    /// # Errors
    /// [`FilterError`]. Filters that could not be put into the store do not exist.
    pub(super) async fn add(
        &self,
        light: &LightService,
        ids: &[u128],
        (name, owner): (&str, Asker),
    ) -> Result<(), FilterError> {
        let (stream_id, until) = (self.sent.last(), Instant::now() + WAIT);
        let sealed = |id: &u128| {
            Some((*id, self.sealed(&self.key(*id, owner), stream_id, &exported_bytes(light, *id)?)))
        };
        let new: Vec<(u128, Vec<u8>)> = ids.iter().filter_map(sealed).collect();
        let sizes = || new.iter().map(|(id, value)| (*id, value.len()));
        let all = sizes().map(|(_, bytes)| bytes).fold(0, usize::saturating_add);
        let most = MAX_OWN_BYTES / divisor(owner);
        if all > most || sizes().any(|(_, bytes)| bytes > MAX_FILTER_BYTES) {
            return Err(FilterError::TooLarge(most));
        }
        // The filters are counted before they are stored, so that no owner has more in the store than the limit, whatever fails.
        self.count_own(sizes(), owner).await?;
        for (id, value) in new {
            self.put((&self.key(id, owner), name, ("new", u64::MAX)), value, until).await?;
        }
        Ok(())
    }

    /// Notes that the owner has used the filters.
    pub(super) async fn note_used(&self, taken: &TakenFilters) -> Result<(), FilterError> {
        self.count_own(taken.filters.iter().map(|(id, filter)| (*id, filter.bytes)), taken.owner).await
    }

    /// The key of a filter in the store.
    fn key(&self, id: u128, owner: Asker) -> String {
        filter_key(self.chain, id, owner)
    }

    /// Notes that an owner uses filters of these sizes (0 if one was removed), and removes from the store those that were used longest
    /// ago beyond the owner's limits.
    async fn count_own(
        &self,
        filters: impl Iterator<Item = (u128, usize)>,
        owner: Asker,
    ) -> Result<(), FilterError> {
        let most = [MAX_OWN_FILTERS, MAX_OWN_BYTES].map(|most| (most / divisor(owner)).to_string());
        let mut arguments = Vec::from(most);
        arguments.push(LIFETIME_MILLIS.to_string());
        let without_filters = arguments.len();
        arguments.extend(filters.flat_map(|(id, bytes)| [format!("{id:x}"), bytes.to_string()]));
        if arguments.len() == without_filters {
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

/// The key of a filter in the store. It names the owner if others must not see the filter, so that no other caller can take,
/// count or remove it.
fn filter_key(chain: u64, id: u128, owner: Asker) -> String {
    match owner.is_isolated() {
        true => format!("filter:{chain}:{}:{id:x}", group(owner)),
        false => format!("filter:{chain}:{id:x}"),
    }
}

/// The bytes of a filter, which is removed from the light client. `None` if the light client does not have it.
fn exported_bytes(light: &LightService, id: u128) -> Option<Vec<u8>> {
    carried::to_bytes(light.export_filter(id)?)
}

/// Adds the transactions that the filter's asker has sent through any front end meanwhile; a filter of pending transactions reports
/// them.
fn add_sent(filter: &mut ExportedFilter, sent: &[StreamedTransaction]) {
    let asker = filter.asker.shared_id();
    filter.pending.extend(sent.iter().filter(|(_, sender)| *sender == asker).map(|(hash, _)| *hash));
}

/// By how much the limits of filters and bytes are divided for an owner.
fn divisor(owner: Asker) -> usize {
    if is_page(owner) { PAGES_DIVISOR } else { 1 }
}

/// Whether the filters of an owner count together with those of all pages of its caller.
fn is_page(owner: Asker) -> bool {
    owner.counts_as().page != 0
}

/// The name of the owners whose filters count together with those of this one.
fn group(owner: Asker) -> String {
    let pages = if is_page(owner) { ":pages" } else { "" };
    format!("{:x}{pages}", owner.number)
}

/// The key in the store of the list of filters that count together with those of an owner.
fn own_key(chain: u64, owner: Asker) -> String {
    format!("own:{chain}:{}", group(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_pages_count_apart_from_those_of_the_programs_of_their_address() {
        let of = |asker: Asker| (own_key(33, asker), divisor(asker));
        let (program, key) = (Asker::from(0x7f00_0001), Asker::from(rootlight::types::KEY_ASKERS.start));
        assert_eq!(of(program), ("own:33:7f000001".to_owned(), 1));
        for origin in ["https://a.example", "https://b.example", "null"] {
            let page = of(program.on_page(Some(origin), 1));
            assert_eq!(page, ("own:33:7f000001:pages".to_owned(), PAGES_DIVISOR));
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
