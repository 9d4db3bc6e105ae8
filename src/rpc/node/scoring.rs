//! Banned addresses and the reputation of upstreams (`sco_*`), in the shapes of the reference node.

use alloc::{string::String, vec::Vec};

use serde::Serialize;

use super::read;
use crate::{
    engine::{AddressRange, BanList, Level, LightStatus, MAX_BANS, Node, View},
    rpc::{
        error::{ParamError, RpcError},
        method::{BRIEF_COST, Handler, Method, Pages, Write, done, required, told},
        params::Params,
    },
};

/// The row of a method that uses the list of banned addresses. Web pages of other origins may not call it.
const fn guarded(
    name: &'static str,
    params: &'static [crate::rpc::method::Param],
    (result, doc): (&'static str, &'static str),
    handler: Write,
) -> Method {
    let (result, doc, handler) = (told(result), told(doc), Handler::Write(handler));
    let (level, pages) = (Level::Local, Pages::Own);
    Method { name, aliases: &[], params, result, level, cost: BRIEF_COST, pages, doc, handler }
}

pub(super) const METHODS: &[Method] = &[
    guarded(
        "sco_banAddress",
        &[required("address", "IP address or range")],
        ("null", "Bans an IP address or range (192.0.2.0/24) for a day."),
        |node, params| {
            let (range, now) = (range(params)?, node.now());
            if !bans(node)?.ban(range, now) {
                return Err(RpcError::TooManyBans(MAX_BANS).into());
            }
            done(&(), Level::Local)
        },
    ),
    guarded(
        "sco_unbanAddress",
        &[required("address", "IP address or range")],
        ("null", "Ends the ban of an IP address or range."),
        |node, params| {
            let range = range(params)?;
            bans(node)?.unban(&range);
            done(&(), Level::Local)
        },
    ),
    guarded(
        "sco_bannedAddresses",
        &[],
        ("array of strings", "The banned IP addresses, then the ranges."),
        |node: &mut dyn Node, _| {
            let now = node.now();
            done(&bans(node)?.list(now), Level::Local)
        },
    ),
    read(
        "sco_peerList",
        &[],
        ("array of peer scores", "The reputation of each upstream, credentials removed."),
        (Level::Local, 5),
        |view, _| done(&scores(view), Level::Local),
    ),
    read(
        "sco_reputationSummary",
        &[],
        ("reputation summary", "The sums of sco_peerList."),
        (Level::Local, 5),
        |view, _| done(&Summary::of(&scores(view)), Level::Local),
    ),
];

/// The list of banned addresses of a node.
fn bans(node: &mut dyn Node) -> Result<&mut BanList, RpcError> {
    node.bans().ok_or(RpcError::NeedsDevChain)
}

fn range(params: Params<'_>) -> Result<AddressRange, ParamError> {
    let text = params.text(0);
    AddressRange::parse(&text).map_err(|_| ParamError::BannedAddress(text.chars().take(66).collect()))
}

/// The score of a peer. Rootlight has no handshakes and exchanges no blocks or transactions with peers, so that most
/// counters of the reference node stay 0.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PeerScore {
    successful_handshakes: u32,
    failed_handshakes: u32,
    invalid_networks: u32,
    repeated_messages: u32,
    valid_blocks: u32,
    valid_transactions: u32,
    invalid_blocks: u32,
    invalid_transactions: u32,
    /// Responses that break a rule.
    invalid_messages: u32,
    timeout_messages: u32,
    unexpected_messages: u32,
    invalid_header: u32,
    /// Demerits and false answers, below zero.
    score: i64,
    /// False answers.
    punishments: u32,
    good_reputation: bool,
    punished_until: u64,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

fn scores(view: &dyn View) -> Vec<PeerScore> {
    let states = view.light().map_or(&[][..], LightStatus::upstreams);
    let score = |(place, id): (usize, String)| {
        let record = states.get(place).map(|state| &state.record);
        let (demerits, lies) = record.map_or((0, 0), |record| (record.demerits, record.lies));
        PeerScore {
            invalid_messages: demerits,
            score: 0_i64.saturating_sub(i64::from(demerits)).saturating_sub(i64::from(lies)),
            punishments: lies,
            good_reputation: lies == 0,
            id,
            kind: "upstream",
            ..PeerScore::default()
        }
    };
    view.upstreams().into_iter().enumerate().map(score).collect()
}

/// The sums over all peers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    count: usize,
    successful_handshakes: u32,
    failed_handshakes: u32,
    invalid_header: u32,
    valid_blocks: u32,
    invalid_blocks: u32,
    valid_transactions: u32,
    invalid_transactions: u32,
    invalid_networks: u32,
    invalid_messages: u32,
    repeated_messages: u32,
    timeout_messages: u32,
    unexpected_messages: u32,
    peers_total_score: i64,
    punishments: u32,
    good_reputation_count: usize,
    bad_reputation_count: usize,
}

impl Summary {
    fn of(peers: &[PeerScore]) -> Self {
        let good = peers.iter().filter(|peer| peer.good_reputation).count();
        Self {
            count: peers.len(),
            invalid_messages: peers.iter().map(|peer| peer.invalid_messages).fold(0, u32::saturating_add),
            peers_total_score: peers.iter().map(|peer| peer.score).fold(0, i64::saturating_add),
            punishments: peers.iter().map(|peer| peer.punishments).fold(0, u32::saturating_add),
            good_reputation_count: good,
            bad_reputation_count: peers.len().saturating_sub(good),
            ..Self::default()
        }
    }
}
