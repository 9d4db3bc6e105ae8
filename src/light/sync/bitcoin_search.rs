//! How one upstream is asked for Bitcoin's chain: headers first, then the coinbases of the newest blocks.
//!
//! A client that has stored a chain requests the stored tip and the headers above it. An upstream that shows this tip at its
//! height thereby shows all of the stored chain, so that the client need not trust its store.
//!
//! A client without a header begins two changes of Bitcoin's target below the tip, at most 4,031 headers, rather than at the
//! built-in block. An upstream may state false heights for true headers, so the coinbase of one of the blocks must state its height
//! (BIP 34). The client begins in the same way again if an upstream's headers do not link to its tip, as after a reorganisation,
//! a few times a year; of two such chains it keeps the heavier one. So it needs no tree of branches, which would take a third more
//! code.

use alloc::{format, sync::Arc, vec::Vec};

use crate::{
    consensus::bitcoin::{
        BitcoinChain, BitcoinChainError, BitcoinNetwork, CoinbaseProofBuf, HEADER_LEN, HashedHeader,
        StoredBitcoinError,
    },
    light::{
        bitcoin::{BitcoinFollower, MAX_SERVED_HEADERS, decode_bitcoin_headers, decode_coinbases},
        clock::Now,
        upstream::UpstreamRequest,
    },
    types::B256,
};

/// Pause between two requests for an upstream's newer Bitcoin headers, in milliseconds: Bitcoin has a block every ten minutes.
const POLL: u64 = 60_000;

/// Pause after an upstream has said that it has no Bitcoin chain, in milliseconds. A Rootlight may follow one later.
const LATER: u64 = 10 * POLL;

/// Headers above which no more are requested before a chain is made of those that were collected: at most 4,031 are needed, and those
/// of blocks that were found meanwhile.
const MOST_BEGUN: usize = 2 * MAX_SERVED_HEADERS as usize;

/// Depth of the first block whose coinbase is requested to see its height stated. No reorganisation is as deep.
const STATED_BELOW: u32 = 72;

/// Number of coinbases that are requested to see a height stated: a server keeps every eighth one whole, and only whole ones state
/// it.
const STATED: u32 = 16;

/// Blocks between two changes of Bitcoin's target: as many as a server sends in one response.
const PERIOD: u32 = MAX_SERVED_HEADERS;

/// The state of asking an upstream for Bitcoin's chain.
#[derive(Debug, Default)]
pub(super) struct BitcoinSearch {
    /// The open request, until the upstream responds.
    pub(super) asked: Option<BitcoinAsk>,
    /// Whether the open request was sent without other requests.
    pub(super) is_alone: bool,
    /// When the upstream is asked next, in milliseconds of the monotonic clock; `None` if it is not asked any more.
    pub(super) due: Option<u64>,
    /// Whether the upstream's last response said that it has no Bitcoin chain.
    has_none: bool,
    /// The part of its chain that the upstream has shown, while a new chain is collected.
    begun: Option<BegunChain>,
    /// Hash of the tip for which missing coinbases were requested last.
    tags_for: B256,
}

/// A chain that is being collected from one upstream.
#[derive(Debug)]
struct BegunChain {
    /// Height of the first header.
    first: u32,
    /// A coinbase that states its height, with this height.
    stated: Option<(u32, CoinbaseProofBuf)>,
    /// The headers that have arrived, lowest first.
    headers: Vec<[u8; HEADER_LEN]>,
}

/// Bitcoin's chain of an earlier run, and the state that the host has stored last.
#[derive(Debug, Default)]
pub(super) struct StoredBitcoin {
    /// The chain, until an upstream shows its newest block or another chain.
    pub(super) chain: Option<Arc<BitcoinFollower>>,
    /// Hash of the newest stored block; zero if no chain is stored.
    pub(super) tip: B256,
    /// Blocks removed by the stored reorganisation.
    pub(super) removed: Option<u32>,
    /// Number of judged coinbases that the stored bytes lack.
    pub(super) missing: usize,
}

impl StoredBitcoin {
    /// Notes that the host has stored this chain.
    pub(super) fn note(&mut self, follower: &BitcoinFollower) {
        self.tip = follower.chain().tip().hash;
        self.removed = follower.reorganisation();
        self.missing = follower.missing_coinbases().len();
    }
}

/// A request for Bitcoin's chain to an upstream.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitcoinAsk {
    /// Whether coinbases are requested, for their tags, rather than headers.
    tags: bool,
    /// Height of the first block.
    from: u32,
    /// Most blocks.
    count: u32,
}

/// The decision after a response.
pub(super) enum NextAsk {
    /// This request is sent next.
    Ask(BitcoinAsk),
    /// The upstream is asked again after [`POLL`].
    Pause,
    /// The upstream has no Bitcoin chain.
    None,
    /// No honest upstream gives this response, for this reason.
    Lie(&'static str),
}

impl BitcoinAsk {
    /// Requests no headers: the response still states the height of the tip, from which follows where a chain begins.
    pub(super) const TIP: Self = Self { tags: false, from: 0, count: 0 };

    /// Requests headers from a height on.
    pub(super) const fn headers(from: u32) -> Self {
        Self { tags: false, from, count: MAX_SERVED_HEADERS }
    }

    /// Requests the coinbases of `count` blocks from a height on.
    const fn coinbases(from: u32, count: u32) -> Self {
        Self { tags: true, from, count }
    }

    pub(super) fn request(self) -> UpstreamRequest {
        let Self { tags, from, count } = self;
        let method = if tags { "rootlight_getBitcoinTags" } else { "rootlight_getBitcoinHeaders" };
        UpstreamRequest::new(method, format!(r#"["{from:#x}","{count:#x}"]"#))
    }
}

impl BitcoinSearch {
    /// Whether the upstream has no Bitcoin chain, or is not asked any more.
    pub(super) const fn is_over(&self) -> bool {
        (self.due.is_none() || self.has_none) && self.asked.is_none()
    }

    /// Asks the upstream again after the usual pause.
    pub(super) fn pause(&mut self, now: Now) {
        (self.due, self.begun, self.has_none) = (Some(now.plus(POLL)), None, false);
    }

    /// Notes that the upstream has no Bitcoin chain, and asks it much later again.
    pub(super) fn pause_without(&mut self, now: Now) {
        self.pause(now);
        (self.due, self.has_none) = (Some(now.plus(LATER)), true);
    }

    /// Makes the next request due at once, unless the upstream is not asked any more.
    pub(super) fn hasten(&mut self) {
        self.due = self.due.map(|_| 0);
    }

    /// Takes the response `text` to the request `asked`, and chooses the next request.
    pub(super) fn take(
        &mut self,
        asked: BitcoinAsk,
        text: &str,
        follower: &mut Arc<BitcoinFollower>,
        stored: &mut StoredBitcoin,
        network: BitcoinNetwork,
        now: Now,
    ) -> NextAsk {
        let BitcoinAsk { tags: false, from, count } = asked else {
            let Ok(proofs) = decode_coinbases(text, asked.count as usize) else {
                return NextAsk::Lie("not a list of Bitcoin's coinbases");
            };
            return self.take_coinbases((asked.from..).zip(proofs), follower);
        };
        let Ok(served) = decode_bitcoin_headers(text, count) else {
            return NextAsk::Lie("not packed headers of Bitcoin");
        };
        if count == 0 {
            return self.take_tip(network.checkpoint.height, served.lowest, served.tip);
        }
        let is_full = served.headers.len() >= MAX_SERVED_HEADERS as usize;
        if let Some(begun) = &mut self.begun {
            begun.headers.extend_from_slice(&served.headers);
            if is_full && begun.headers.len() <= MOST_BEGUN {
                return NextAsk::Ask(BitcoinAsk::headers(from.saturating_add(MAX_SERVED_HEADERS)));
            }
            return self.make_chain(follower, stored, network, now);
        }
        if follower.tip().is_none() {
            // The request was for the stored tip and what follows it.
            let shown = served.headers.first().map(|header| *HashedHeader::new(*header).hash());
            let Some(chain) = stored.chain.take_if(|chain| shown == Some(chain.chain().tip().hash)) else {
                return NextAsk::Ask(BitcoinAsk::TIP);
            };
            stored.note(&chain);
            *follower = chain;
        }
        match Arc::make_mut(follower).extend(&served.headers, now.unix) {
            Ok(1..) if is_full => NextAsk::Ask(BitcoinAsk::headers(from.saturating_add(count))),
            Ok(_) => self.coinbases(follower),
            Err(BitcoinChainError::Unlinked { .. }) => NextAsk::Ask(BitcoinAsk::TIP),
            // The clock of this host may be wrong, so this is no lie.
            Err(BitcoinChainError::FutureTime { .. }) => NextAsk::Pause,
            Err(_) => NextAsk::Lie("a header breaks a rule of Bitcoin"),
        }
    }

    /// Takes the heights between which the upstream has headers, and chooses where a chain begins. `built_in` is the height of the
    /// network's checkpoint.
    fn take_tip(&mut self, built_in: u32, lowest: u32, tip: u32) -> NextAsk {
        let first = first_height(built_in, tip);
        if lowest > first || first > tip {
            // The upstream has no headers, or not all of those that are needed.
            return NextAsk::Pause;
        }
        self.begun = Some(BegunChain { first, stated: None, headers: Vec::new() });
        // The height of headers that link to the built-in block is known, so no coinbase has to state it.
        let is_linked = first == built_in.saturating_add(1);
        NextAsk::Ask(match is_linked {
            true => BitcoinAsk::headers(first),
            false => BitcoinAsk::coinbases(tip.saturating_sub(STATED_BELOW), STATED),
        })
    }

    /// Makes a chain of the collected headers, and follows it if it is heavier.
    fn make_chain(
        &mut self,
        follower: &mut Arc<BitcoinFollower>,
        stored: &mut StoredBitcoin,
        network: BitcoinNetwork,
        now: Now,
    ) -> NextAsk {
        let Some(BegunChain { first, stated, headers }) = self.begun.take() else { return NextAsk::Pause };
        match BitcoinChain::begin(network, first, &headers, now.unix) {
            Ok(chain) => {
                let is_proven = |(height, proof): (u32, CoinbaseProofBuf)| {
                    let header = chain.header_at(height);
                    header.is_some_and(|header| proof.as_proof().prove(height, &header).is_ok())
                };
                if !stated.is_none_or(is_proven) {
                    return NextAsk::Lie("the coinbase that states a height is of no block of Bitcoin there");
                }
                let present = follower.chain();
                // The chains are compared from the lowest height that both have, but at least over the newest period of each, in
                // case an upstream states false heights.
                let newest_period =
                    |chain: &BitcoinChain| chain.tip().height.saturating_sub(PERIOD.saturating_sub(1));
                let lowest = chain
                    .lowest()
                    .max(present.lowest())
                    .min(newest_period(&chain))
                    .min(newest_period(present));
                if chain.work_of(lowest..) > present.work_of(lowest..) {
                    let follower = Arc::make_mut(follower);
                    // Bitcoin may have been reorganised since the chain was stored, and this shows how deep.
                    stored.chain.take().iter().for_each(|stored| follower.remember(stored));
                    follower.replace_chain(chain);
                }
                self.coinbases(follower)
            }
            // If the upstream's chain was replaced between two responses, their headers do not link, which is no lie.
            Err(StoredBitcoinError::Header(
                BitcoinChainError::FutureTime { .. } | BitcoinChainError::Unlinked { .. },
            )) => NextAsk::Pause,
            Err(_) => NextAsk::Lie("its headers are no chain of Bitcoin"),
        }
    }

    /// Requests the missing coinbases, from the lowest to the highest height. An upstream is asked once for each tip.
    fn coinbases(&mut self, follower: &BitcoinFollower) -> NextAsk {
        let (tip, missing) = (follower.chain().tip().hash, follower.missing_coinbases());
        match (missing.last(), missing.first()) {
            (Some(from), Some(to)) if core::mem::replace(&mut self.tags_for, tip) != tip => {
                let count = to.saturating_sub(*from).saturating_add(1);
                NextAsk::Ask(BitcoinAsk::coinbases(*from, count))
            }
            _ => NextAsk::Pause,
        }
    }

    /// Takes coinbases of blocks, with their heights. While a chain is collected, one of them must state its height, and the headers
    /// are requested then.
    fn take_coinbases(
        &mut self,
        proofs: impl Iterator<Item = (u32, Option<CoinbaseProofBuf>)>,
        follower: &mut Arc<BitcoinFollower>,
    ) -> NextAsk {
        for (height, proof) in proofs {
            let Some(proof) = proof else { continue };
            match (&mut self.begun, proof.stated_height()) {
                (_, Some(stated)) if stated != height => {
                    return NextAsk::Lie("a coinbase of Bitcoin states another height");
                }
                (Some(begun), Some(_)) => {
                    begun.stated = Some((height, proof));
                    return NextAsk::Ask(BitcoinAsk::headers(begun.first));
                }
                (Some(_), None) => {}
                // If the upstream is on another Bitcoin branch, the coinbase is not proven and is ignored.
                (None, _) => Arc::make_mut(follower).take_coinbase(height, proof),
            }
        }
        // If a chain is being collected, no coinbase stated its height, and collecting begins again after the pause.
        NextAsk::Pause
    }
}

/// The height from which a client without a header requests headers: the start of a period, from which 2,016 to 4,031 headers lead to
/// the tip, or fewer if the built-in block is nearer. The built-in block is the last one of a period.
fn first_height(built_in: u32, tip: u32) -> u32 {
    let above_built_in = tip.saturating_sub(built_in).saturating_sub(PERIOD);
    built_in.saturating_add(above_built_in).saturating_sub(above_built_in % PERIOD).saturating_add(1)
}
