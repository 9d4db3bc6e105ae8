//! Answers one message of a caller on a light client: runs the handlers, fetches and proves the facts they miss, and runs them
//! again. The host sends the requests and waits for the responses:
//! ```text
//! loop { match session.step(&cache, filters, &interrupt) { Fetch(round) => session.feed(ask(round), &cache), Done(answer) => break } }
//! let (facts, observations, pinned) = session.finish();
//! ```
//! All requests of a message see the same head.

use alloc::{borrow::ToOwned as _, boxed::Box, collections::BTreeSet, string::String, sync::Arc, vec::Vec};

use super::{
    auxiliary::{AuxiliaryAnswer, AuxiliaryRequest, AuxiliarySource, HostQuestion},
    caller::Caller,
    error::RpcError,
    fetch_refusal::{
        Failures, MAX_FACT_BYTES, MAX_FACTS, MAX_MESSAGE_REQUESTS, MAX_ROUNDS, failure, fetch_refusal,
    },
    hints::{LocationHint, LocationHints, ask_others, hint, is_about},
    message::Message,
    method::{Effect, Failure, Handler},
    poll::{PollOutcome, UpstreamPoll},
    prefetch::Prefetch,
    progress::{MessageProgress, RequestState},
    reply::Reply,
    round::{PartResponses, Round, in_order},
};
use crate::{
    engine::{Filters, Level, LightView, Refusal, Stop},
    light::{
        AttemptFailure, ConnectOutcome, FactCache, FactFailure, FactStore, Fetch, FetchOutcome, FetchTarget,
        KnownFacts, Observation, PinnedHead, TouchedKey, UpstreamFetch, UpstreamResponse, plan,
    },
    state::{Fact, Facts},
};

/// Most upstream requests of one round (four batches of forty), because the responses of a round are in memory together. A
/// single fact that needs more requests exceeds the limit.
const MAX_REQUESTS: usize = 160;

/// Approximate memory of a fetch in bytes, with its requests and its entry in `fetched` or `failed`.
const FETCH_BYTES: usize = 4096;

/// The host's next step.
#[derive(Debug)]
pub enum SessionStep {
    /// Send the requests of each part to the upstream that it names, and pass the responses to [`Session::feed`]; answer each
    /// question, and pass the answer to [`Session::take_answer`].
    Fetch(Round),
    /// The reply is complete.
    Done(Reply),
}

/// A message that is being answered.
#[derive(Debug)]
pub struct Session {
    /// The client's state when the message arrived.
    pinned: PinnedHead,
    progress: MessageProgress,
    /// The facts proven for this message.
    facts: FactStore,
    /// The fetches that have not ended; the first ones are in the present round.
    fetches: Vec<Fetch>,
    /// How requests to upstreams ended.
    observations: Vec<Observation>,
    hints: LocationHints,
    /// Facts that runs have missed and that were requested.
    fetched: BTreeSet<Fact>,
    failed: Failures,
    /// Facts to prefetch in the next round, because earlier calls like the present ones read them.
    prefetch: Facts,
    /// Facts that were only prefetched: no run has missed them.
    guessed: Facts,
    /// Requests of the message that upstreams answer in place of a handler.
    polls: Vec<UpstreamPoll>,
    /// Questions to the host, with the indexes of their requests.
    questions: Vec<(usize, Box<dyn HostQuestion>)>,
    rounds: usize,
    /// Requests for facts that were sent to upstreams.
    requests: usize,
    /// The host's auxiliary source.
    auxiliary: Option<Arc<dyn AuxiliarySource>>,
}

impl Session {
    /// Starts to answer a message of a caller. Its requests see the chain in `pinned`, and the data of the auxiliary source.
    pub fn new(
        caller: Arc<Caller>,
        pinned: PinnedHead,
        message: Message,
        auxiliary: Option<Arc<dyn AuxiliarySource>>,
    ) -> Self {
        let asker = caller.owner().asker;
        Self {
            pinned,
            progress: MessageProgress::new(caller, message),
            facts: FactStore { asker, ..FactStore::default() },
            fetches: Vec::new(),
            observations: Vec::new(),
            hints: LocationHints::new(),
            fetched: BTreeSet::new(),
            failed: Failures::new(),
            prefetch: Facts::new(),
            guessed: Facts::new(),
            polls: Vec::new(),
            questions: Vec::new(),
            rounds: 0,
            requests: 0,
            auxiliary,
        }
    }

    /// Whether running the message takes no longer than a few look-ups ([`MessageProgress::is_brief`]).
    pub fn is_brief(&self) -> bool {
        self.progress.is_brief()
    }

    /// Bytes of the results that are finished.
    pub fn finished_bytes(&self) -> usize {
        self.progress.result_bytes
    }

    /// Approximate memory, in bytes, of the proven blocks and state that the message keeps until it is answered, and of its
    /// fetches, those that failed included.
    pub fn fact_bytes(&self) -> usize {
        let fetches = self.fetches.len().saturating_add(self.failed.len());
        self.facts.bytes().saturating_add(fetches.saturating_mul(FETCH_BYTES))
    }

    /// Whether a request of the message needs the filters.
    pub fn uses_filters(&self) -> bool {
        self.progress.pending_requests().any(|request| request.row.uses_filters())
    }

    /// Runs the message as far as the known facts allow. Long runs stop when `interrupt` returns `true`. Without filters,
    /// requests that need them are refused.
    pub fn step(
        &mut self,
        cache: &FactCache,
        mut filters: Option<&mut Filters>,
        interrupt: &dyn Fn() -> bool,
    ) -> SessionStep {
        if let Some(filters) = &mut filters {
            filters.set_owner(self.progress.caller().owner());
        }
        loop {
            if self.requests >= MAX_MESSAGE_REQUESTS {
                // Without fetches, `fetch_refusal` refuses the requests that wait for facts.
                self.fetches.clear();
            }
            if self.is_waiting() {
                return SessionStep::Fetch(self.round());
            }
            self.ask_instead(cache);
            let missing = self.run_pending(cache, filters.as_deref_mut(), interrupt);
            if missing.is_empty() && !self.is_waiting() {
                return SessionStep::Done(self.progress.reply());
            }
            self.rounds = self.rounds.saturating_add(1);
            self.start_fetches(&missing, cache);
        }
    }

    /// Takes the responses to the parts of the last [`SessionStep::Fetch`]. Responses for which the host had no memory are
    /// requested again, if other responses of the round have freed some.
    pub fn feed(&mut self, parts: Vec<PartResponses>, cache: &FactCache) {
        let later = self.fetches.split_off(self.due_fetches());
        let mut fed = core::mem::replace(&mut self.fetches, later);
        // The position of a fetch's first request in the round: all its requests go to the same upstream.
        let mut position = 0_usize;
        for fetch in &mut fed {
            if parts.iter().any(|part| part.is_of_spare(position)) {
                fetch.use_spare();
            }
            position = position.saturating_add(fetch.current.requests().len());
        }
        let mut responses = in_order(parts).into_iter();
        for fetch in &mut fed {
            for (index, response) in (0..fetch.current.requests().len()).zip(&mut responses) {
                fetch.current.take_response(index, response);
            }
        }
        let frees_memory = !fed.iter().all(|fetch| fetch.current.lacks_memory());
        for mut fetch in fed {
            if frees_memory && fetch.current.lacks_memory() {
                fetch.current.forget_responses();
                self.fetches.push(fetch);
            } else {
                self.settle(fetch, cache);
            }
        }
        self.end_polls(&mut responses);
        self.connect(cache);
    }

    /// Connects headers that were requested by hash to the pinned chain; requests missing headers in between.
    fn connect(&mut self, cache: &FactCache) {
        let known = KnownFacts::new(&self.facts, cache);
        for fact in &self.fetched {
            let Fact::Header(wanted) = *fact else { continue };
            if failure(&self.failed, fact).is_some() || !matches!(known.header(&wanted), Some(Some(_))) {
                continue;
            }
            let refusal = match self.pinned.connect(wanted, &known) {
                ConnectOutcome::Connected => continue,
                ConnectOutcome::Needs(next) => match failure(&self.failed, &Fact::Header(next)) {
                    Some(failure) => failure.clone(),
                    None => {
                        let target = FetchTarget::One(Fact::Header(next));
                        if self.fetches.iter().all(|fetch| fetch.current.target != target) {
                            self.fetches.push(Fetch::new(UpstreamFetch::new(target), &self.pinned.roster));
                        }
                        continue;
                    }
                },
                // The block does not lead to the chain, or breaks a rule. No single upstream has caused that: the attempt names none.
                ConnectOutcome::Refused(cause) => {
                    let (upstream, name, method) = (0, String::new(), "eth_getBlockByHash");
                    let attempts = alloc::vec![AttemptFailure { upstream, name, method, cause }];
                    FactFailure { target: alloc::format!("{fact}"), attempts }
                }
            };
            self.failed.push((*fact, refusal));
        }
    }

    /// Whether there are requests or questions to send.
    fn is_waiting(&self) -> bool {
        let asks = |fetch: &Fetch| !fetch.current.requests().is_empty();
        let polls = || self.polls.iter().any(|poll| !poll.upstreams.is_empty());
        !self.questions.is_empty() || self.fetches.iter().any(asks) || polls()
    }

    /// The round that is due.
    fn round(&mut self) -> Round {
        let due = self.questions.len().min(MAX_REQUESTS);
        let mut round = Round { questions: self.questions.drain(..due).collect(), ..Round::default() };
        for fetch in self.fetches.iter().take(self.due_fetches()) {
            let (upstream, spare) = (fetch.current.upstream, fetch.spare(&self.pinned));
            self.requests = self.requests.saturating_add(fetch.current.requests().len());
            fetch.current.requests().iter().for_each(|request| round.add(upstream, spare, request));
        }
        self.polls.iter().take(self.due_polls()).for_each(|poll| poll.add_to(&mut round));
        round
    }

    /// How many fetches are sent in the next round. Large numbers of requests are split into rounds, so that the
    /// responses of a round are proven and freed before those of the next arrive.
    fn due_fetches(&self) -> usize {
        let mut requests = 0_usize;
        let fits = |fetch: &&Fetch| {
            let first = requests == 0;
            requests = requests.saturating_add(fetch.current.requests().len());
            first || requests <= MAX_REQUESTS
        };
        self.fetches.iter().take_while(fits).count()
    }

    /// As [`Self::due_fetches`], for polls: each call of a batch may have one.
    fn due_polls(&self) -> usize {
        let mut requests = 0_usize;
        let fits = |poll: &&UpstreamPoll| {
            let first = requests == 0;
            requests = requests.saturating_add(poll.upstreams.len());
            first || requests <= MAX_REQUESTS
        };
        self.polls.iter().take_while(fits).count()
    }

    /// Asks others instead of running a handler: upstreams for transactions to forward, because a light client has no pool, and
    /// the auxiliary source for requests that it intercepts.
    fn ask_instead(&mut self, cache: &FactCache) {
        let mut finished = Vec::new();
        let known = KnownFacts::new(&self.facts, cache);
        for (index, member) in self.progress.members.iter_mut().enumerate() {
            let RequestState::Pending(request) = &member.state else { continue };
            let poll = match (request.row.handler, &self.auxiliary) {
                (Handler::Forward(..), _) => {
                    UpstreamPoll::send(index, request, &self.pinned, self.facts.asker)
                }
                (_, Some(auxiliary)) => match auxiliary.intercept(request, &self.pinned, known) {
                    Some(Ok(AuxiliaryRequest::Host(question))) => {
                        self.questions.push((index, question));
                        member.state = RequestState::Polled;
                        continue;
                    }
                    Some(Ok(AuxiliaryRequest::Upstream(request, evaluate))) => {
                        Ok(UpstreamPoll::auxiliary(index, request, evaluate, &self.pinned))
                    }
                    Some(Err(error)) => Err(error),
                    None => continue,
                },
                (_, None) => continue,
            };
            let cached =
                poll.as_ref().ok().and_then(|poll| known.own_node_response(poll.auxiliary_request()?));
            if let Some(cached) = cached {
                member.marks.level = Some(Level::Unproven);
                finished.push((index, cached.to_owned()));
                continue;
            }
            member.state = match poll {
                Ok(poll) => {
                    self.polls.push(poll);
                    RequestState::Polled
                }
                Err(error) => RequestState::Finished(Err(error)),
            };
        }
        // `finish` limits the bytes of the whole answer, also with responses cached from earlier messages.
        finished.into_iter().for_each(|(index, cached)| self.progress.finish(index, Ok(cached), None));
    }

    /// Evaluates the responses to the polls of the round.
    fn end_polls(&mut self, responses: &mut impl Iterator<Item = UpstreamResponse>) {
        let later = self.polls.split_off(self.due_polls());
        for poll in core::mem::replace(&mut self.polls, later) {
            let asked = poll.auxiliary_request().cloned();
            match poll.evaluate_responses(responses, &self.pinned, &mut self.observations) {
                (index, PollOutcome::Sent(outcome, sent)) => {
                    let effect = sent.as_ref().map(|sent| Effect::Sent(sent.hash));
                    self.progress.finish(index, outcome, effect);
                    self.facts.sent.extend(sent);
                }
                (index, PollOutcome::Answer(answer)) => {
                    if let (AuxiliaryAnswer::Final(response), Some(asked)) = (&answer, asked) {
                        self.facts.keep_own_node_response(asked, response);
                    }
                    self.take_answer(index, answer);
                }
            }
        }
    }

    /// Takes the answer to a question of the last [`SessionStep::Fetch`], whose request has this index in the message.
    pub fn take_answer(&mut self, index: usize, answer: AuxiliaryAnswer) {
        let Some(member) = self.progress.members.get_mut(index) else { return };
        let outcome = match answer {
            AuxiliaryAnswer::Part(part, rest) => {
                member.marks.level = Some(Level::Unproven);
                return self.progress.continue_with(index, part, rest);
            }
            AuxiliaryAnswer::Whole(outcome) => outcome,
            // `end_polls` has stored the response.
            AuxiliaryAnswer::Final(response) => Ok(response),
        };
        // If the answer is too long, `finish` replaces it by an error and clears the level.
        member.marks.level = outcome.is_ok().then_some(Level::Unproven);
        self.progress.finish(index, outcome, None);
    }

    /// Returns the facts that were proven, for the cache, how each upstream request ended, and the client's state that the
    /// session saw.
    pub fn finish(self) -> (FactStore, Vec<Observation>, PinnedHead) {
        (self.facts, self.observations, self.pinned)
    }

    /// Runs every unfinished request once. Returns the facts that they miss together.
    fn run_pending(
        &mut self,
        cache: &FactCache,
        mut filters: Option<&mut Filters>,
        interrupt: &dyn Fn() -> bool,
    ) -> Facts {
        let (mut missing, mut touched) = (Facts::new(), Vec::new());
        for index in 0..self.progress.members.len() {
            // The other requests run once these facts are proven, because a message may miss only so many at once.
            if missing.len() >= MAX_FACTS {
                break;
            }
            let mut stop = self.run(index, cache, filters.as_deref_mut(), interrupt);
            let mut supplied = 0_usize;
            while let Some(Stop::Missing(facts)) = &stop {
                stop = match self.supply_state(facts, cache) {
                    Ok(false) => break,
                    Ok(true) if supplied < MAX_ROUNDS => {
                        self.run(index, cache, filters.as_deref_mut(), interrupt)
                    }
                    Ok(true) => Some(Stop::Refused(Refusal::TooManyRounds { rounds: MAX_ROUNDS })),
                    Err(refusal) => Some(Stop::Refused(refusal)),
                };
                supplied = supplied.saturating_add(1);
            }
            match stop {
                None => {}
                Some(Stop::Refused(refusal)) => self.refuse(index, refusal),
                Some(Stop::Missing(facts)) => {
                    let (spent, bytes) = ((self.rounds, self.requests), self.facts.bytes());
                    match fetch_refusal(&facts, &self.failed, &self.fetched, spent, bytes) {
                        Some(refusal) => self.refuse_or_poll(index, refusal),
                        None => missing.extend(self.facts_to_fetch(index, facts, cache, &mut touched)),
                    }
                }
            }
        }
        self.facts.touched.extend(touched);
        missing
    }

    /// Takes missing state from the host's auxiliary source. Returns whether the source has supplied any.
    fn supply_state(&mut self, facts: &Facts, cache: &FactCache) -> Result<bool, Refusal> {
        let Some(auxiliary) = &self.auxiliary else { return Ok(false) };
        let known = KnownFacts::new(&self.facts, cache);
        let Some(nodes) = auxiliary.supply_state(facts, &self.pinned, known)? else { return Ok(false) };
        let merged = self.facts.nodes.merge(nodes);
        match merged.is_err() || self.facts.bytes() > MAX_FACT_BYTES {
            true => Err(Refusal::TooManyBytes { max: MAX_FACT_BYTES }),
            false => Ok(true),
        }
    }

    /// Runs the request at this index of the message, if it is not finished yet. Returns why its handler stopped; `None` if the
    /// request has its outcome, or if upstreams are asked in its place.
    fn run(
        &mut self,
        index: usize,
        cache: &FactCache,
        filters: Option<&mut Filters>,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Stop> {
        let member = self.progress.members.get_mut(index)?;
        let RequestState::Pending(request) = &member.state else { return None };
        if interrupt() {
            self.refuse_or_poll(index, Refusal::Interrupted);
            return None;
        }
        let view = LightView::new(&self.pinned, KnownFacts::new(&self.facts, cache), interrupt);
        let result = request.run(&view, filters, self.pinned.now);
        let unproven = view.take_unproven().then_some(Level::UnprovenAbsence);
        let unproven = match view.take_of_own_node() || member.part.is_some() {
            true => Some(Level::Unproven),
            false => unproven,
        };
        #[cfg(feature = "local")]
        let executed = view.take_executed();
        self.facts.call_cache.absorb(view.into_call_cache());
        #[cfg(feature = "local")]
        {
            member.executing = executed.stopped;
            executed.receipts.into_iter().for_each(|receipts| self.facts.keep_receipts(receipts));
        }
        let result = match result {
            Err(Failure::Stop(stop)) => return Some(stop),
            Err(Failure::Error(error)) => Err(error),
            Ok(done) => Ok(done),
        };
        // Errors have a level too: "Block not found" may rest on an unproven absence.
        member.marks.level = unproven;
        // An answer that does not depend on the chain has no mark about the chain.
        if result.as_ref().is_ok_and(|done| done.level != Level::Local) {
            member.marks.start = self.pinned.untrusted_start();
            member.marks.bitcoin = self.pinned.bitcoin_doubt().map(|verdict| verdict.name());
        }
        match result {
            Ok(done) => self.progress.finish(index, Ok(done.value), done.effect),
            Err(RpcError::Refused(refusal)) => self.refuse_or_poll(index, refusal),
            Err(error) => self.progress.finish(index, Err(error), None),
        }
        None
    }

    /// Refuses the request at this index. If the reason is the location of a transaction that an upstream reported, other
    /// upstreams are asked first.
    fn refuse(&mut self, index: usize, refusal: Refusal) {
        if self.fetches.iter().any(|fetch| is_about(fetch, &refusal)) {
            return;
        }
        match ask_others(&refusal, &mut self.hints, &self.pinned, &mut self.observations) {
            Some(fetch) => self.fetches.push(fetch),
            None => self.refuse_or_poll(index, refusal),
        }
    }

    /// Refuses the request at this index, unless the auxiliary source answers it, or the host accepts unproven answers.
    fn refuse_or_poll(&mut self, index: usize, refusal: Refusal) {
        let Some(member) = self.progress.members.get_mut(index) else { return };
        let RequestState::Pending(request) = &member.state else { return };
        // The handler executed a block because its receipts could not be fetched: the error gives that reason too.
        #[cfg(feature = "local")]
        let refusal = match member.executing.and_then(|block| failure(&self.failed, &Fact::Receipts(block))) {
            Some(failure) => refusal.of_execution(failure),
            None => refusal,
        };
        let auxiliary = self.auxiliary.as_ref();
        let poll = match auxiliary.and_then(|auxiliary| auxiliary.fall_back(request, &self.pinned, &refusal))
        {
            Some(Ok(AuxiliaryRequest::Host(question))) => {
                self.questions.push((index, question));
                member.state = RequestState::Polled;
                return;
            }
            Some(Ok(AuxiliaryRequest::Upstream(request, evaluate))) => {
                Ok(UpstreamPoll::auxiliary(index, request, evaluate, &self.pinned))
            }
            Some(Err(error)) => Err(error),
            None => UpstreamPoll::unproven(index, request, &self.pinned, refusal),
        };
        match poll {
            Ok(poll) => {
                self.polls.push(poll);
                member.state = RequestState::Polled;
            }
            Err(error) => self.progress.finish(index, Err(error), None),
        }
    }

    /// The missing facts of the request at this index that are to be fetched: none, if a witness that contains all of them is
    /// requested. The first time, facts that earlier calls like this one read are added to the prefetch.
    fn facts_to_fetch(
        &mut self,
        index: usize,
        facts: Facts,
        cache: &FactCache,
        touched: &mut Vec<TouchedKey>,
    ) -> Facts {
        let Some(member) = self.progress.members.get_mut(index) else { return facts };
        let RequestState::Pending(request) = &member.state else { return facts };
        let prefetch = Prefetch::new(request, &facts);
        prefetch.touch(touched);
        let first = !core::mem::replace(&mut member.prefetched.touched, true);
        if prefetch.witness(&self.pinned, &mut member.prefetched.witnesses, &mut self.fetches) {
            return Facts::new();
        }
        if first {
            let known = KnownFacts::new(&self.facts, cache);
            prefetch.add_touched_before(&mut self.prefetch, &known, &self.pinned);
        }
        facts
    }

    /// Starts fetches of missing facts and of those to prefetch.
    fn start_fetches(&mut self, missing: &Facts, cache: &FactCache) {
        self.fetched.extend(missing.iter().copied());
        let mut wanted = missing.clone();
        let prefetch = core::mem::take(&mut self.prefetch);
        self.guessed.extend(prefetch.iter().filter(|fact| !missing.contains(fact)).copied());
        wanted.extend(prefetch);
        for fetch in plan::fetches(&wanted, &KnownFacts::new(&self.facts, cache), &self.pinned) {
            let fetch = Fetch::new(fetch, &self.pinned.roster);
            // A fetch without upstream requests (receipts of a block without transactions) is complete already.
            if fetch.current.requests().is_empty() {
                self.settle(fetch, cache);
            } else {
                self.fetches.push(fetch);
            }
        }
    }

    /// Proves the facts of a fetch from its responses, or continues with its next attempt or upstream.
    fn settle(&mut self, fetch: Fetch, cache: &FactCache) {
        let target = fetch.current.target.clone();
        let is_location = matches!(target, FetchTarget::One(Fact::Location(_)));
        let asked = fetch.current.requests().first().filter(|_| is_location);
        let asked = asked.map(|request| (fetch.current.upstream, request.clone()));
        match fetch.settle(&self.pinned, &KnownFacts::new(&self.facts, cache), &mut self.observations) {
            FetchOutcome::Proven(mut facts, others) => {
                let hinted = match (&target, asked) {
                    (FetchTarget::One(Fact::Location(hash)), Some(asked)) => {
                        hint(&mut self.hints, *hash, LocationHint::default).map(|hint| (hash, asked, hint))
                    }
                    _ => None,
                };
                if let Some((hash, asked, hint)) = hinted {
                    (hint.asked, hint.others) = (Some(asked), others);
                    // An upstream named a block that is too old to be proven here, so that "not found" of another upstream is no
                    // answer.
                    if hint.old && !facts.is_mined(hash) {
                        facts.locations.remove(hash);
                    }
                }
                self.facts.merge(*facts);
            }
            FetchOutcome::Again(fetch) => self.fetches.push(*fetch),
            FetchOutcome::Failed(failure) => {
                // A prefetch must not make a needed fact fail: the needed facts are requested again alone.
                let facts = plan::facts_of(&target);
                let has_guessed = facts.iter().any(|fact| self.guessed.contains(fact));
                for fact in facts {
                    if has_guessed {
                        self.fetched.remove(&fact);
                        self.guessed.remove(&fact);
                    } else {
                        #[cfg(feature = "local")]
                        if failure.is_unsupported() {
                            self.facts.unsupported.insert(fact);
                        }
                        self.facts.refused.insert(fact);
                        self.failed.push((fact, failure.clone()));
                    }
                }
            }
        }
    }
}

#[cfg(all(test, feature = "local"))]
#[path = "session_test.rs"]
mod tests;
