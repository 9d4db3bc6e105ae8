//! Banned addresses and the reputation of upstreams (`sco_*`, for scoring), in the JSON shapes of the reference node, which calls
//! upstreams peers.

use rootlight::engine::{Level, View};
use rootlight::light::PinnedHead;
use rootlight::rpc::row::{done, required};
use rootlight::rpc::{BRIEF_COST, Handler, HandlerResult, Method, PageAccess, Param, Params, Read, RpcError};
use serde::Serialize;

use crate::bans::{AddressRange, BanRefusal, HostBans};

/// The row of a method for the operator of the host. `result` and `doc` describe the result and the method for `rpc.discover`.
const fn operator_method(
    name: &'static str,
    params: &'static [Param],
    (result, doc): (&'static str, &'static str),
    handler: Read,
) -> Method {
    let row = Method::new(name, params, result, doc, Handler::Read(handler));
    Method { level: Level::Local, cost: BRIEF_COST, pages: PageAccess::Operator, ..row }
}

const ADDRESS: &[Param] = &[required("address", "IP address or range")];

/// The rows of this file.
pub(super) const METHODS: &[Method] = &[
    operator_method(
        "sco_banAddress",
        ADDRESS,
        (
            "null",
            "Bans an IP address or range (192.0.2.0/24) for a day: its clients are refused, and upstreams there are not asked.",
        ),
        |view, params| {
            let range = range(params)?;
            bans(view)?.ban(range, &healthy(view)).map_err(not_banned)?;
            done(&(), Level::Local)
        },
    ),
    operator_method(
        "sco_unbanAddress",
        ADDRESS,
        ("null", "Ends the ban of an IP address or range."),
        |view, params| {
            let range = range(params)?;
            bans(view)?.unban(&range);
            done(&(), Level::Local)
        },
    ),
    operator_method(
        "sco_bannedAddresses",
        &[],
        ("array of strings", "The banned IP addresses, then the ranges."),
        |view, _| done(&bans(view)?.list(), Level::Local),
    ),
    operator_method(
        "sco_peerList",
        &[],
        ("array of peer scores", "The reputation of each upstream, credentials removed."),
        |view, _| done(&scores(view), Level::Local),
    ),
    operator_method(
        "sco_reputationSummary",
        &[],
        ("reputation summary", "The sums of sco_peerList."),
        summary,
    ),
];

fn summary(view: &dyn View, _: Params<'_>) -> HandlerResult {
    done(&Summary::of(&scores(view)), Level::Local)
}

/// The bans of the server that the view belongs to.
fn bans(view: &dyn View) -> Result<&HostBans, RpcError> {
    let bans = view.policy().host.and_then(|host| host.downcast_ref());
    bans.ok_or_else(|| RpcError::NotAvailable("sco_banAddress".into()))
}

/// The error of a ban that was refused: a limit (EIP-1474) or invalid parameters (JSON-RPC 2.0).
fn not_banned(refusal: BanRefusal) -> RpcError {
    let code = if refusal == BanRefusal::TooMany { -32005 } else { -32602 };
    RpcError::Host { code, text: format!("{refusal}"), data: None }
}

/// The range that the first parameter names.
fn range(params: Params<'_>) -> Result<AddressRange, RpcError> {
    let text = params.text(0);
    AddressRange::parse(&text).map_err(|_| {
        // The error repeats only the beginning of a long text; the longest range has fewer than 66 characters.
        let given: String = text.chars().take(66).collect();
        RpcError::Host { code: -32602, text: format!("invalid banned address {given}"), data: None }
    })
}

/// The indexes of the upstreams that answer well: they are not left alone for a while (`resting`), and have not lied.
fn healthy(view: &dyn View) -> Vec<usize> {
    let states = view.light().map_or(&[][..], PinnedHead::states);
    let is_healthy = |index: &usize| {
        states.get(*index).is_none_or(|state| state.resting.is_none() && state.record.lies == 0)
    };
    (0..view.upstreams().len()).filter(is_healthy).collect()
}

/// The score of an upstream. An upstream has no handshakes and announces no blocks or transactions, so that most counters of the
/// reference node stay 0.
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
    /// Demerits of the upstream, which bad responses add and good ones remove.
    invalid_messages: u32,
    timeout_messages: u32,
    unexpected_messages: u32,
    invalid_header: u32,
    /// Minus the demerits and the lies.
    score: i64,
    /// Lies: responses that no honest upstream gives.
    punishments: u32,
    good_reputation: bool,
    punished_until: u64,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The score of each upstream.
fn scores(view: &dyn View) -> Vec<PeerScore> {
    let states = view.light().map_or(&[][..], PinnedHead::states);
    let score = |(index, id): (usize, String)| {
        let record = states.get(index).map(|state| &state.record);
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

/// The sums over all upstreams.
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
