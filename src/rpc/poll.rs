//! Requests that a session sends to upstreams in place of running a handler: transactions to forward, requests to an upstream
//! that is the auxiliary source and, where the host allows it, requests whose answers cannot be proven.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};

use alloy_primitives::B256;
use serde_json::{from_str, value::RawValue};

use super::{
    auxiliary::{AuxiliaryAnswer, EvaluateResponse},
    envelope::Outcome,
    error::RpcError,
    logs::pinned_range,
    method::Handler,
    params::{BlockParam, any_block_param, tag_in_any_case},
    request::Request,
    round::Round,
    signed,
};
use crate::{
    consensus::ChainView,
    engine::{FINALIZED_DEPTH, Level, Refusal, SAFE_DEPTH},
    light::{
        Cause, Observation, PinnedHead, RequestFailure, SentTransaction, UnprovenPolicy, UpstreamRequest,
        UpstreamResponse, has_taken,
    },
    types::Asker,
};

/// Most upstreams that a transaction is forwarded to. Further ones would not make it reach miners sooner.
const MAX_SENDS: usize = 4;

/// Most upstreams that are asked for an unproven answer. The limit bounds the requests that one call causes.
const MAX_ASKED: usize = 16;

/// Depth of nesting down to which responses are compared by meaning. The comparison is recursive, so that the limit bounds its
/// stack; objects of blocks and receipts are nested less.
const MAX_NESTED: usize = 16;

/// Longest responses, in bytes, that are compared by meaning: during the comparison the members of an object take
/// many times the memory of their text, and a response may have megabytes.
const MAX_COMPARED: usize = 1024 * 1024;

/// One request that is sent to several upstreams at once.
#[derive(Debug)]
pub(super) struct UpstreamPoll {
    /// Index of the call in its message.
    pub(super) member: usize,
    kind: PollKind,
    request: UpstreamRequest,
    /// The upstreams, by number, best first.
    pub(super) upstreams: Vec<usize>,
}

/// How the responses become an answer.
#[derive(Debug)]
enum PollKind {
    /// A transaction to forward: one upstream that accepts it is enough.
    Send(SentTransaction),
    /// The answer is the response on which this many upstreams of different domains agree; without agreement, this error.
    Agree(usize, RpcError),
    /// A request to the upstream that is the host's auxiliary source.
    Auxiliary(EvaluateResponse),
}

/// How a poll ended.
pub(super) enum PollOutcome {
    /// The answer about a transaction, and the transaction if an upstream has accepted it.
    Sent(Outcome, Option<SentTransaction>),
    /// An answer without proof.
    Answer(AuxiliaryAnswer),
}

impl UpstreamPoll {
    /// Forwards the transaction of a request. No upstream sees a transaction that does not decode or whose signature is not for
    /// this chain.
    ///
    /// # Errors
    /// Why the transaction is invalid, or that there is no upstream.
    pub(super) fn send(
        member: usize,
        request: &Request,
        pinned: &PinnedHead,
        asker: Asker,
    ) -> Result<Self, RpcError> {
        let raw = request.params().data(0)?;
        let (transaction, sender) = signed::decode(&raw, pinned.network().chain_id)?;
        let params = format!(r#"["{}"]"#, alloy_primitives::hex::encode_prefixed(&raw));
        let request = UpstreamRequest::new(request.row.name, params);
        let upstreams: Vec<usize> = healthy_upstreams(pinned).take(MAX_SENDS).collect();
        if upstreams.is_empty() {
            return Err(RpcError::NoUpstream);
        }
        let sent =
            SentTransaction { hash: transaction.hash(), sender, asker, transaction: Arc::new(transaction) };
        Ok(Self { member, kind: PollKind::Send(sent), request, upstreams })
    }

    /// Asks the upstream that is the host's auxiliary source.
    pub(super) fn auxiliary(
        member: usize,
        request: UpstreamRequest,
        evaluate: EvaluateResponse,
        pinned: &PinnedHead,
    ) -> Self {
        let upstreams = pinned.roster().iter().copied().take(1).collect();
        Self { member, kind: PollKind::Auxiliary(evaluate), request, upstreams }
    }

    /// Asks upstreams for the answer to a request that was refused because it cannot be proven, if the host accepts unproven
    /// answers. The request to upstreams has [`Request::pinned_params`].
    ///
    /// # Errors
    /// The refusal, if upstreams are not asked.
    pub(super) fn unproven(
        member: usize,
        request: &Request,
        pinned: &PinnedHead,
        refusal: Refusal,
    ) -> Result<Self, RpcError> {
        let wanted = match pinned.unproven() {
            UnprovenPolicy::Refuse => None,
            UnprovenPolicy::Quorum(count) => Some(count.max(1)),
            UnprovenPolicy::Trust => Some(1),
        };
        let without_proof = refusal.lacks_proof();
        // Upstreams have neither the methods of Rootlight nor the filters of this host.
        let row = Some(request.row).filter(|row| {
            let is_read = matches!(row.handler, Handler::Read(_));
            row.level == Level::Verified && row.namespace() != "rootlight" && is_read
        });
        let upstream_request =
            row.and_then(|row| Some(UpstreamRequest::new(row.name, request.pinned_params(pinned)?)));
        let (Some(wanted), Some(upstream_request), true) = (wanted, upstream_request, without_proof) else {
            return Err(RpcError::Refused(refusal));
        };
        let upstreams: Vec<usize> = healthy_upstreams(pinned).take(MAX_ASKED).collect();
        if upstreams.is_empty() {
            return Err(RpcError::Refused(refusal));
        }
        let kind = PollKind::Agree(wanted, RpcError::Refused(refusal));
        Ok(Self { member, kind, request: upstream_request, upstreams })
    }

    /// The request, if it goes to the auxiliary source.
    pub(super) fn auxiliary_request(&self) -> Option<&UpstreamRequest> {
        matches!(self.kind, PollKind::Auxiliary(_)).then_some(&self.request)
    }

    /// Adds the requests to a round, without a spare upstream (`None`): a poll counts the upstreams, or needs just one.
    pub(super) fn add_to(&self, round: &mut Round) {
        self.upstreams.iter().for_each(|upstream| round.add(*upstream, None, &self.request));
    }

    /// Takes one response for each upstream from `responses`, and evaluates them. Returns the index of the call in its message,
    /// and how the poll ended.
    pub(super) fn evaluate_responses(
        self,
        responses: &mut impl Iterator<Item = UpstreamResponse>,
        pinned: &PinnedHead,
        observations: &mut Vec<Observation>,
    ) -> (usize, PollOutcome) {
        let answered: Vec<(usize, UpstreamResponse)> = self.upstreams.into_iter().zip(responses).collect();
        let outcome = match self.kind {
            PollKind::Send(transaction) => {
                let outcome = sent(transaction.hash, &self.request, &answered, (pinned, observations));
                let sent = outcome.is_ok().then_some(transaction);
                PollOutcome::Sent(outcome, sent)
            }
            PollKind::Auxiliary(evaluate) => {
                let silent = || Err(RequestFailure::Transport("no response".into()));
                let answer = answered.into_iter().next().map_or_else(silent, |(_, answer)| answer);
                PollOutcome::Answer(evaluate(answer, pinned))
            }
            PollKind::Agree(wanted, refusal) => {
                let agreed = agreement(wanted, &answered, pinned);
                PollOutcome::Answer(AuxiliaryAnswer::Whole(agreed.ok_or(refusal)))
            }
        };
        (self.member, outcome)
    }
}

/// Upstreams that do not rest after a failure, best first; all upstreams if all of them rest.
fn healthy_upstreams(pinned: &PinnedHead) -> impl Iterator<Item = usize> + '_ {
    let all_rest = pinned.roster().iter().all(|upstream| pinned.rests(*upstream));
    pinned.roster().iter().copied().filter(move |upstream| all_rest || !pinned.rests(*upstream))
}

impl Request {
    /// The parameters of a request, with each block parameter replaced by the block of the pinned chain that it names: by its hash
    /// where the method takes one, else by its number. Both ends of a log filter become numbers, also those that are missing. The
    /// heads and branches of upstreams differ, so that a tag would name other blocks there. Returns `None` if a parameter cannot be
    /// rewritten.
    pub fn pinned_params(&self, pinned: &PinnedHead) -> Option<String> {
        let mut params: Vec<String> = self.values().iter().map(|value| value.get().into()).collect();
        for (index, param) in self.row.params.iter().enumerate() {
            let given = params.get(index).map_or("null", String::as_str);
            let pinned_param = match param.kind {
                "BLOCK" => pinned_block(given, self.row.takes_hash, pinned.chain()?)?,
                "LOG_FILTER" => {
                    let chain = pinned.chain()?;
                    // `false`: an end of a log filter is no hash.
                    pinned_range(given, |bound| pinned_block(bound, false, chain))?
                }
                // Other kinds are left as they are. Of these, a trace filter (`TRACE_FILTER`) and a state context
                // (`STATE_CONTEXT`) can name a block by a tag, which then is the upstream's.
                _ => continue,
            };
            let count = params.len();
            match params.get_mut(index) {
                Some(param) => *param = pinned_param,
                // A missing block parameter means the newest block, which must be named too.
                None if index == count => params.push(pinned_param),
                None => return None,
            }
        }
        Some(format!("[{}]", params.join(",")))
    }
}

/// The block that a parameter names on the pinned chain, as a parameter: its hash if the method takes one (`by_hash`) and the
/// chain has the header, else its number. `None` if the parameter does not parse.
fn pinned_block(given: &str, by_hash: bool, chain: &ChainView) -> Option<String> {
    let head = chain.head().number;
    let at_depth = |depth: u64| head.saturating_sub(depth);
    let param = match given {
        "null" => BlockParam::Latest,
        given => tag_in_any_case(any_block_param(from_str(given).ok()?)).ok()?,
    };
    let hash = |hash: &B256| format!(r#"{{"blockHash":"{hash}","requireCanonical":"true"}}"#);
    let number = match param {
        BlockParam::Latest | BlockParam::Pending => head,
        BlockParam::Safe => at_depth(SAFE_DEPTH),
        BlockParam::Finalized => at_depth(FINALIZED_DEPTH),
        BlockParam::Earliest => 0,
        BlockParam::Number(number, _) => number?,
        BlockParam::Hash { hash: given, .. } if by_hash => return Some(hash(&given)),
        BlockParam::Hash { .. } => return Some(given.into()),
    };
    let header = chain.by_number(number).filter(|_| by_hash);
    Some(header.map_or_else(|| format!("\"{number:#x}\""), |header| hash(&header.hash())))
}

/// The hash of a forwarded transaction if any upstream has accepted it. Otherwise an error: the first one that a node has
/// answered, else the first failed connection. A missing response counts against an upstream only if another one has accepted
/// the transaction, because only that shows that the transaction is valid.
fn sent(
    hash: B256,
    request: &UpstreamRequest,
    answered: &[(usize, UpstreamResponse)],
    (pinned, observations): (&PinnedHead, &mut Vec<Observation>),
) -> Outcome {
    let (mut taken, mut error, mut silent) = (false, None, Vec::new());
    for (upstream, answer) in answered {
        let observation =
            |cause| Observation { upstream: *upstream, request: request.clone(), outcome: Err(cause) };
        match answer {
            answer if has_taken(hash, answer) => taken = true,
            Ok(_) => {
                observations.push(observation(Cause::Refuted("another hash than the transaction's".into())))
            }
            Err(failure) => {
                if matches!(failure, RequestFailure::Transport(_)) {
                    silent.push(observation(Cause::Call(failure.clone())));
                }
                let is_answer = matches!(failure, RequestFailure::Rpc { .. });
                if error.is_none() || (is_answer && !matches!(error, Some((RequestFailure::Rpc { .. }, _)))) {
                    error = Some((failure.clone(), pinned.name_in_errors(*upstream)));
                }
            }
        }
    }
    if taken {
        observations.append(&mut silent);
        return Ok(serde_json::value::to_raw_value(&hash)?);
    }
    let refuted =
        || (RequestFailure::Malformed("another hash than the transaction's"), pinned.names_in_errors());
    let (failure, name) = error.unwrap_or_else(refuted);
    Err(RpcError::NotSent(failure, name))
}

/// The response on which enough domains agree.
fn agreement(
    wanted: usize,
    answered: &[(usize, UpstreamResponse)],
    pinned: &PinnedHead,
) -> Option<alloc::boxed::Box<RawValue>> {
    // The different responses, each with the domains of the upstreams that gave it.
    let mut groups: Vec<(&RawValue, Vec<&str>)> = Vec::new();
    for (upstream, answer) in answered {
        let Ok(raw) = answer else { continue };
        // Each upstream has a name. Upstreams without one would count as one domain.
        let name = pinned.upstream_name(*upstream).unwrap_or_default();
        let domain = domain(name);
        match groups.iter_mut().find(|(response, _)| is_same(response, raw, MAX_NESTED)) {
            Some((_, domains)) if domains.contains(&domain) => {}
            Some((_, domains)) => domains.push(domain),
            None => groups.push((raw, alloc::vec![domain])),
        }
    }
    // Two large enough groups of different responses are no agreement, unless one upstream is enough: then the best one's
    // response, which is first, counts.
    let mut large = groups.iter().filter(|(_, domains)| domains.len() >= wanted);
    let first = large.next()?;
    (wanted == 1 || large.next().is_none()).then(|| alloc::borrow::ToOwned::to_owned(first.0))
}

/// Whether two responses mean the same: the order of an object's members and white space do not count, numbers must
/// have the same text. Parts that are nested deeper than `depth`, or longer than [`MAX_COMPARED`], must be equal byte
/// for byte.
fn is_same(one: &RawValue, other: &RawValue, depth: usize) -> bool {
    type RawMembers<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
    let (one, other) = (one.get(), other.get());
    let by_meaning = one != other && one.len().max(other.len()) <= MAX_COMPARED;
    let Some(depth_below) = depth.checked_sub(1).filter(|_| by_meaning) else { return one == other };
    if let (Ok(one), Ok(other)) = (from_str::<RawMembers<'_>>(one), from_str::<RawMembers<'_>>(other)) {
        let same = |((name, value), (other_name, other)): ((&_, &&RawValue), (&_, &&RawValue))| {
            name == other_name && is_same(value, other, depth_below)
        };
        return one.len() == other.len() && one.iter().zip(&other).all(same);
    }
    match (from_str::<Vec<&RawValue>>(one), from_str::<Vec<&RawValue>>(other)) {
        (Ok(one), Ok(other)) => {
            one.len() == other.len()
                && one.iter().zip(&other).all(|(one, other)| is_same(one, other, depth_below))
        }
        // Equal strings may differ in their escapes.
        _ => {
            matches!((from_str::<Cow<'_, str>>(one), from_str::<Cow<'_, str>>(other)), (Ok(one), Ok(other)) if one == other)
        }
    }
}

/// The last two labels of a host name, as an approximation of the registered domain. Under suffixes like `co.uk`
/// different owners count as one, which only means that more upstreams have to agree. An IP address is returned
/// whole.
fn domain(name: &str) -> &str {
    let host = name.split_once("://").map_or(name, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // An IPv6 address is in brackets. Otherwise a port may follow.
    let bare = if host.starts_with('[') {
        host.split_once(']').map_or(host, |(address, _)| address)
    } else {
        host.split(':').next().unwrap_or_default()
    };
    let bare = bare.trim_end_matches('.');
    let mut dots = bare.rmatch_indices('.');
    let is_ipv4 = bare.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    match (dots.next(), dots.next()) {
        (Some(_), Some((second, _))) if !is_ipv4 => bare.get(second.saturating_add(1)..).unwrap_or(bare),
        _ => bare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        consensus::{Checkpoint, Network},
        light::{ClientConfig, HeaderSync, Now, SyncOptions, SyncStep},
        rpc::{
            message::{Dispatcher, Message},
            progress::MessageProgress,
        },
    };

    /// A client of two upstreams, of which `failed` have just failed.
    fn pin(failed: &[usize]) -> PinnedHead {
        let network = Arc::new(Network::regtest());
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        let mut sync = HeaderSync::with_upstreams(network, checkpoint, 2, SyncOptions::default());
        for upstream in failed {
            let SyncStep::Fetch(calls) = sync.next(*upstream, Now::default()) else { panic!("due") };
            let silent = || Err(RequestFailure::Transport("gone".into()));
            sync.feed(*upstream, calls.iter().map(|_| silent()).collect(), Now::default());
        }
        let config = ClientConfig { unproven: UnprovenPolicy::Trust, ..ClientConfig::default() };
        PinnedHead::new(&sync, Arc::new(config), Now::default())
    }

    #[test]
    fn resting_upstreams_are_asked_only_if_all_rest() {
        let asked = |failed: &[usize]| healthy_upstreams(&pin(failed)).collect::<Vec<_>>();
        assert_eq!(asked(&[]), [0, 1]);
        assert_eq!(asked(&[0]), [1]);
        assert_eq!(asked(&[1]), [0]);
        assert_eq!(asked(&[0, 1]), [0, 1]);
    }

    #[test]
    fn without_upstreams_an_unproven_answer_is_refused() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}"#;
        let dispatcher = Dispatcher::default();
        let exchange = MessageProgress::new(Arc::default(), Message::read(message, &dispatcher, 1));
        let request = exchange.pending_requests().next().unwrap();
        let poll = |pinned: &PinnedHead| {
            UpstreamPoll::unproven(0, request, pinned, Refusal::NoStateProofs { number: 5 })
                .map(|poll| poll.upstreams.len())
        };
        let mut pinned = pin(&[]);
        assert!(matches!(poll(&pinned), Ok(2)));
        pinned.roster.clear();
        assert!(matches!(poll(&pinned), Err(RpcError::Refused(Refusal::NoStateProofs { .. }))));
    }

    /// A node's error about a transaction tells more than a failed connection to another node.
    #[test]
    fn the_first_error_of_a_node_is_reported() {
        let (call, mut seen) = (UpstreamRequest::new("eth_sendRawTransaction", "[]".into()), Vec::new());
        let rpc = |text: &str| Err(RequestFailure::Rpc { code: -32010, message: text.into() });
        let silent = |text: &str| Err(RequestFailure::Transport(text.into()));
        let mut message = |answers: &[UpstreamResponse]| {
            let answered: Vec<(usize, UpstreamResponse)> = answers.iter().cloned().enumerate().collect();
            sent(B256::ZERO, &call, &answered, (&pin(&[]), &mut seen)).unwrap_err().to_string()
        };
        let first = message(&[rpc("nonce too low")]);
        assert!(first.contains("nonce too low"), "{first}");
        for others in [[silent("a"), rpc("nonce too low")], [rpc("nonce too low"), silent("a")]] {
            assert_eq!(message(&others), first);
        }
        assert_eq!(message(&[rpc("nonce too low"), rpc("too cheap")]), first);
        assert!(message(&[silent("first"), silent("second")]).contains("upstream 1: no response: first"));
    }

    #[test]
    fn responses_are_compared_by_meaning() {
        let same = |one: &str, other: &str| {
            let parsed = |text| from_str::<&RawValue>(text).unwrap();
            is_same(parsed(one), parsed(other), MAX_NESTED)
        };
        for (one, other) in [
            (r#"{"a":"0x1","b":[1,null]}"#, r#"{ "b": [1, null], "a": "0x1" }"#),
            (r#""0x1f""#, r#""0x\u0031f""#),
            (r#"[[{"a":{}}]]"#, r#"[ [ { "a" : { } } ] ]"#),
            ("null", "null"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":2}"#),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,2]"),
            (r#""1""#, "1"),
            ("null", "0"),
            ("{}", "[]"),
            ("{}", "null"),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
        let deep = |inner: &str| alloc::format!("{}{inner}{}", "[".repeat(20), "]".repeat(20));
        assert!(same(&deep("1"), &deep("1")));
        assert!(!same(&deep("1"), &deep(" 1")), "too deep to be compared by meaning");
        let long = |space: &str| alloc::format!("[{space}{}0]", "0,".repeat(MAX_COMPARED / 2));
        assert!(same(&long(""), &long("")));
        assert!(!same(&long(""), &long(" ")), "too long to be compared by meaning");
    }

    #[test]
    fn the_domain_of_an_upstream_is_its_last_two_labels() {
        for (name, expected) in [
            ("https://a.node.example/key", "node.example"),
            ("https://b.node.example:8545/x?y", "node.example"),
            ("wss://user@node.example.", "node.example"),
            ("http://127.0.0.1:4444", "127.0.0.1"),
            ("http://[::1]:4444/", "[::1"),
            ("http://localhost:1", "localhost"),
            ("https://a.one.co.uk", "co.uk"),
            ("replay", "replay"),
        ] {
            assert_eq!(domain(name), expected, "{name}");
        }
    }
}
