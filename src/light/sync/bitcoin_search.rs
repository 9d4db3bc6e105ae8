//! How one upstream is asked for Bitcoin's chain: headers first, then the coinbases of the newest blocks.
//!
//! A client that has stored a chain asks for the tip of it and what follows. An upstream that shows this tip at its
//! height shows all of the chain, so that the store is trusted for nothing.
//!
//! A client without a header begins two changes of Bitcoin's target below the tip, at most 4,031 headers, rather than at the
//! built-in block. An upstream may say any heights of true headers, so the coinbase of one of the blocks must state its height
//! (BIP 34). The client begins so again where an upstream's headers do not link to its tip, which a reorganisation does a few
//! times a year; of two such chains the heavier one stays. So it needs no tree of branches, whose code would be a third more.

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

/// Pause between two looks at an upstream's Bitcoin chain, in milliseconds.
const POLL: u64 = 60_000;

/// Pause after an upstream has said that it has none, in milliseconds. It may be a Rootlight that follows one later.
const LATER: u64 = 10 * POLL;

/// Headers with which a chain is complete: there are at most 4,031, and those of blocks that were found meanwhile.
const MOST_BEGUN: usize = 2 * MAX_SERVED_HEADERS as usize;

/// Blocks below the tip at which the first coinbase is asked for that may state its height. No reorganisation is as deep.
const STATED_BELOW: u32 = 72;

/// Coinbases that are asked for to that end. A server keeps every eighth one whole.
const STATED: u32 = 16;

/// Blocks between two changes of Bitcoin's target: as many as a server gives at once.
const PERIOD: u32 = MAX_SERVED_HEADERS;

/// How an upstream is asked for Bitcoin's chain.
#[derive(Debug, Default)]
pub(super) struct BitcoinSearch {
    /// The open request, until the upstream responds.
    pub(super) asked: Option<BitcoinAsk>,
    /// Whether that was sent without other requests.
    pub(super) is_alone: bool,
    /// When it is asked next, on the monotonic clock; `None` if it is not asked.
    pub(super) due: Option<u64>,
    /// Whether it has said that it has none, the last time that it was asked.
    has_none: bool,
    /// The part of its own chain that the upstream has shown, until the chain is complete.
    begun: Option<BegunChain>,
    /// The tip for which it was asked for coinbases last.
    tags_for: B256,
}

/// What an upstream has shown of a chain that is begun.
#[derive(Debug)]
struct BegunChain {
    /// Height of the first header.
    first: u32,
    /// A coinbase that states its height, with this height.
    stated: Option<(u32, CoinbaseProofBuf)>,
    headers: Vec<[u8; HEADER_LEN]>,
}

/// Bitcoin's chain of an earlier run, and what of it the host has stored.
#[derive(Debug, Default)]
pub(super) struct StoredBitcoin {
    /// The chain, until an upstream shows its newest block or another chain.
    pub(super) chain: Option<Arc<BitcoinFollower>>,
    /// Hash of the newest block that is stored; zero if none is.
    pub(super) tip: B256,
    /// Blocks removed by the reorganisation that is stored.
    pub(super) removed: Option<u32>,
    /// Number of judged coinbases that were not held when the chain was stored, so that the stored bytes lack them.
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
    /// Whether coinbases are asked for rather than headers.
    tags: bool,
    from: u32,
    count: u32,
}

/// What follows a response.
pub(super) enum NextAsk {
    Ask(BitcoinAsk),
    Pause,
    /// The upstream has no Bitcoin chain.
    None,
    /// No honest upstream says so.
    Lie(&'static str),
}

impl BitcoinAsk {
    /// No headers, but the height of the tip: it says where a chain begins.
    pub(super) const TIP: Self = Self { tags: false, from: 0, count: 0 };

    pub(super) const fn headers(from: u32) -> Self {
        Self { tags: false, from, count: MAX_SERVED_HEADERS }
    }

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

    /// The upstream is asked again later.
    pub(super) fn pause(&mut self, now: Now) {
        (self.due, self.begun, self.has_none) = (Some(now.plus(POLL)), None, false);
    }

    /// The upstream has no Bitcoin chain, and is asked much later whether it has one then.
    pub(super) fn pause_without(&mut self, now: Now) {
        self.pause(now);
        (self.due, self.has_none) = (Some(now.plus(LATER)), true);
    }

    /// An upstream that is asked at all is asked at once.
    pub(super) fn hasten(&mut self) {
        self.due = self.due.map(|_| 0);
    }

    /// Takes a response, and chooses what to ask next.
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
            return self.begin(follower, stored, network, now);
        }
        if follower.tip().is_none() {
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
            // The clock may be wrong.
            Err(BitcoinChainError::FutureTime { .. }) => NextAsk::Pause,
            Err(_) => NextAsk::Lie("a header breaks a rule of Bitcoin"),
        }
    }

    /// Takes the heights between which the upstream has headers, and chooses where a chain begins.
    fn take_tip(&mut self, built_in: u32, lowest: u32, tip: u32) -> NextAsk {
        let first = first_of(built_in, tip);
        if lowest > first || first > tip {
            // A server without a header, or without those.
            return NextAsk::Pause;
        }
        self.begun = Some(BegunChain { first, stated: None, headers: Vec::new() });
        // Headers on the built-in block have its height.
        let is_linked = first == built_in.saturating_add(1);
        NextAsk::Ask(match is_linked {
            true => BitcoinAsk::headers(first),
            false => BitcoinAsk::coinbases(tip.saturating_sub(STATED_BELOW), STATED),
        })
    }

    /// Makes a chain of the collected headers, and follows it if it is heavier.
    fn begin(
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
                let held = follower.chain();
                // Each counts with its newest period at least: a server may say any heights.
                let period =
                    |chain: &BitcoinChain| chain.tip().height.saturating_sub(PERIOD.saturating_sub(1));
                let lowest = chain.lowest().max(held.lowest()).min(period(&chain)).min(period(held));
                if chain.work_of(lowest..) > held.work_of(lowest..) {
                    let follower = Arc::make_mut(follower);
                    // A reorganisation since then may be a deep one.
                    stored.chain.take().iter().for_each(|stored| follower.remember(stored));
                    follower.replace_chain(chain);
                }
                self.coinbases(follower)
            }
            // Headers of a chain that was replaced meanwhile do not link.
            Err(StoredBitcoinError::Header(
                BitcoinChainError::FutureTime { .. } | BitcoinChainError::Unlinked { .. },
            )) => NextAsk::Pause,
            Err(_) => NextAsk::Lie("its headers are no chain of Bitcoin"),
        }
    }

    /// The coinbases that are missing, from the lowest to the highest. An upstream is asked once for those of a tip.
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

    /// Takes coinbases of blocks, with their heights. The first ones of a chain that is begun must state a height.
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
                // A coinbase of another branch is not proven; another upstream may show ours.
                (None, _) => Arc::make_mut(follower).take_coinbase(height, proof),
            }
        }
        NextAsk::Pause
    }
}

/// The height from which a client without a header asks for them: two changes of the target below the tip.
fn first_of(built_in: u32, tip: u32) -> u32 {
    let deep = tip.saturating_sub(built_in).saturating_sub(PERIOD);
    built_in.saturating_add(deep).saturating_sub(deep % PERIOD).saturating_add(1)
}
