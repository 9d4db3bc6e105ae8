//! Decides which block a front end shows to messages, and whether it lets messages in, after each report to the hot store: `heads.rs`
//! explains the agreement, sends the reports and applies the decisions. This part reads no clock and does no input or output,
//! so that tests decide in which order and how late everything happens.
//!
//! The shown block is the one that all front ends show. Each change of it is a round with a number.

use std::time::{Duration, Instant};

use rootlight::types::{B256, BlockRef};

/// How long a report counts. A front end that has stopped delays the others by no more.
pub(crate) const LIFETIME: Duration = Duration::from_millis(1_500);
/// By how much earlier this front end ends the time of its own report: clocks run at different rates, and messages take time.
const MARGIN: Duration = Duration::from_millis(250);
/// How long a front end may lag behind the others before they go on without it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(3_000);
/// How long reports fail before a front end goes on without the store: longer than a busy machine delays them.
const ALONE_AFTER: Duration = Duration::from_millis(5_000);

/// The blocks of a front end, and what its messages see of them.
pub(crate) trait HeadDisplay {
    /// A verified chain that can be shown.
    type Chain;
    /// The newest block of a chain.
    fn head_of(chain: &Self::Chain) -> BlockRef;
    /// The verified chain up to a block; `None` if the block is not on it.
    fn up_to(&self, block: &B256) -> Option<Self::Chain>;
    /// Whether a block is on the heaviest verified chain.
    fn is_canonical(&self, block: &BlockRef) -> bool;
    /// The newest block that messages see.
    fn newest_visible(&self) -> Option<BlockRef>;
    /// Makes messages see this chain.
    fn show(&self, chain: &Self::Chain);
    /// Makes messages see the newest verified block.
    fn show_newest(&self);
}

/// Whether messages are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryRule {
    /// Until this moment, each message after a look at the store that began after the message came, and that [`assures`] it.
    Until(Instant),
    /// All messages are let in, without the store.
    Alone,
    /// All messages wait.
    Waiting,
    /// All messages are refused, because this front end lags behind the others.
    Behind,
}

/// The store's reply to a report.
#[derive(Debug, Clone)]
pub(crate) struct HeadsReply {
    /// The role of this front end: `member` (its report counts), `behind` (the others go on without it), `wait`, or `fresh` while the
    /// store does not know all front ends yet.
    pub(crate) role: String,
    /// The present round, and the block that is shown next, as hash:number; empty if there is none.
    pub(crate) round: u64,
    pub(crate) next: String,
    /// The shown block, as hash:number, and the round in which it came to be shown.
    pub(crate) shown: String,
    pub(crate) shown_round: u64,
}

/// What is to be done after an answer of the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgreementStep {
    /// Whether messages are let in; `None` if nothing changes.
    pub(crate) entry: Option<EntryRule>,
    /// Whether to report again at once.
    pub(crate) again: bool,
}

/// Whether a look at the store lets messages in that see the block of the round `covers` ([`Participant::covers`]). `shown` is the
/// round of the shown block, as the store has it. If it is a later round, messages must see its block first. If it is an
/// earlier one, the store has lost the later block, and other front ends may not have read it.
pub(crate) fn assures(shown: Option<u64>, covers: u64) -> bool {
    shown == Some(covers)
}

/// The state of a front end in the agreement.
pub(crate) struct Participant<C> {
    /// The shown block as the store stated it last, and the round in which it came to be shown.
    shown: Option<BlockRef>,
    shown_round: u64,
    /// The last of these rounds whose block, or a later one, messages see here.
    covers: u64,
    /// The round for which messages were stopped, and the chain that is shown next. A store that forgets the round does not
    /// end the stop: another front end may show that block already.
    stopped: Option<(u64, C)>,
    /// Until when the last report surely counts at the store.
    counts_until: Option<Instant>,
    /// When the first of the reports that failed in a row did.
    failing_since: Option<Instant>,
    /// Whether messages were let in at any time before.
    was_open: bool,
    /// Whether no message is let in.
    is_closed: bool,
    /// Whether messages see a chosen block, and not the newest one.
    is_pinned: bool,
}

impl<C> Default for Participant<C> {
    fn default() -> Self {
        Self {
            shown: None,
            shown_round: 0,
            covers: 0,
            stopped: None,
            counts_until: None,
            failing_since: None,
            was_open: false,
            is_closed: true,
            is_pinned: false,
        }
    }
}

impl<C> Participant<C> {
    /// The shown block as the store stated it last.
    pub(crate) const fn shown(&self) -> Option<BlockRef> {
        self.shown
    }

    /// The last round whose block, or a later one, messages see here.
    pub(crate) const fn covers(&self) -> u64 {
        self.covers
    }

    /// Whether messages are stopped for a block that is shown next.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Whether this front end was a member in any report since the start, or since it last went on without the store.
    pub(crate) const fn counts(&self) -> bool {
        self.counts_until.is_some()
    }

    /// Notes that no message is let in.
    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// The arguments of a report, as `heads.lua` numbers them. `blocks` are the newest verified ones, newest first; `work` is that of
    /// their chain.
    pub(crate) fn report<D: HeadDisplay<Chain = C>>(
        &self,
        display: &D,
        name: &str,
        blocks: &[BlockRef],
        work: B256,
    ) -> [String; 11] {
        let canonical = self.shown.is_some_and(|shown| display.is_canonical(&shown));
        let (ack, next) =
            self.stopped.as_ref().map_or((0, None), |(round, chain)| (*round, Some(D::head_of(chain))));
        [
            name.to_owned(),
            LIFETIME.as_millis().to_string(),
            PATIENCE.as_millis().to_string(),
            self.shown.as_ref().map(text).unwrap_or_default(),
            u8::from(canonical).to_string(),
            ack.to_string(),
            format!("{work:x}"),
            blocks.iter().map(|block| format!("{},", text(block))).collect(),
            u8::from(self.is_closed).to_string(),
            self.shown_round.to_string(),
            next.as_ref().map(text).unwrap_or_default(),
        ]
    }

    /// Applies the store's answer to a report that was sent at this moment.
    pub(crate) fn apply_reply<D: HeadDisplay<Chain = C>>(
        &mut self,
        reply: &HeadsReply,
        sent: Instant,
        display: &D,
    ) -> AgreementStep {
        self.failing_since = None;
        let before = self.shown;
        // An earlier round means that the store has lost a later one.
        if reply.shown_round >= self.shown_round {
            (self.shown, self.shown_round) = (block(&reply.shown), reply.shown_round);
        }
        match reply.role.as_str() {
            "member" => self.apply_member(reply, sent, display),
            // The report did not contain the block that is shown now. The next one states whether this front end has that block.
            "behind" if before != self.shown => AgreementStep { entry: None, again: true },
            // The others wait for the report that no message is let in here.
            "behind" => self.shut(EntryRule::Behind),
            // `wait` or `fresh`.
            _ => self.shut(EntryRule::Waiting),
        }
    }

    /// Applies an answer to a member: stops for the next block, or shows the shown one and lets messages in.
    fn apply_member<D: HeadDisplay<Chain = C>>(
        &mut self,
        reply: &HeadsReply,
        sent: Instant,
        display: &D,
    ) -> AgreementStep {
        self.counts_until = sent.checked_add(LIFETIME.saturating_sub(MARGIN));
        if let Some(next) = block(&reply.next) {
            return self.stop(reply.round, &next, display);
        }
        let shown = self.shown;
        let stopped =
            self.stopped.take().map(|(_, chain)| chain).filter(|chain| Some(D::head_of(chain)) == shown);
        let is_shown = shown.is_some_and(|shown| self.adopt(&shown, stopped, display));
        match self.counts_until.filter(|_| is_shown) {
            // The others go on without this front end after that moment, unless it reports again.
            Some(until) => {
                (self.was_open, self.is_closed) = (true, false);
                AgreementStep { entry: Some(EntryRule::Until(until)), again: false }
            }
            None => AgreementStep { again: false, ..self.shut(EntryRule::Waiting) },
        }
    }

    /// Stops letting messages in, because this block is shown next.
    fn stop<D: HeadDisplay<Chain = C>>(&mut self, round: u64, next: &BlockRef, display: &D) -> AgreementStep {
        let unchanged = AgreementStep { entry: None, again: false };
        if self.stopped.as_ref().is_some_and(|(known, _)| *known == round) {
            return unchanged;
        }
        // If this front end has left a block that it reported, its next report says so.
        let Some(chain) = display.up_to(&next.hash) else { return unchanged };
        self.stopped = Some((round, chain));
        AgreementStep { again: true, ..self.shut(EntryRule::Waiting) }
    }

    /// Lets no message in. This is reported at once if messages were let in before.
    const fn shut(&mut self, entry: EntryRule) -> AgreementStep {
        let again = !self.is_closed;
        self.is_closed = true;
        AgreementStep { entry: Some(entry), again }
    }

    /// Makes messages see the shown block; returns whether they do. If this front end has shown a later block while it was alone,
    /// that block stays, and messages wait until the others show it too. `stopped` is the chain for which messages were stopped.
    fn adopt<D: HeadDisplay<Chain = C>>(
        &mut self,
        shown: &BlockRef,
        stopped: Option<C>,
        display: &D,
    ) -> bool {
        // The block that messages see now.
        let present = display.newest_visible();
        let later = present.filter(|present| {
            self.was_open && present.number > shown.number && display.is_canonical(present)
        });
        let wanted = later.unwrap_or(*shown);
        if !self.is_pinned || present != Some(wanted) {
            let stopped = stopped.filter(|chain| D::head_of(chain) == wanted);
            let Some(chain) = stopped.or_else(|| display.up_to(&wanted.hash)) else { return false };
            display.show(&chain);
            self.is_pinned = true;
        }
        if later.is_none() {
            self.covers = self.shown_round;
        }
        later.is_none()
    }

    /// Notes that a report failed. Goes on without the store once reports have failed for long.
    pub(crate) fn failed<D: HeadDisplay<Chain = C>>(
        &mut self,
        now: Instant,
        display: &D,
    ) -> Option<EntryRule> {
        let since = *self.failing_since.get_or_insert(now);
        let counts = self.counts_until.is_some_and(|until| now < until);
        if counts || now.saturating_duration_since(since) < ALONE_AFTER {
            return None;
        }
        (self.stopped, self.counts_until) = (None, None);
        if std::mem::take(&mut self.is_pinned) {
            display.show_newest();
        }
        (self.was_open, self.is_closed) = (true, false);
        Some(EntryRule::Alone)
    }
}

/// A block as hash:number, the hash without `0x`.
fn text(block: &BlockRef) -> String {
    format!("{:x}:{}", block.hash, block.number)
}

/// Reads a block of [`text`].
fn block(text: &str) -> Option<BlockRef> {
    let (hash, number) = text.split_once(':')?;
    Some(BlockRef { number: number.parse().ok()?, hash: hash.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct HeightDisplay {
        verified: Cell<u8>,
        pinned: Cell<Option<u8>>,
    }

    fn at(number: u8) -> BlockRef {
        BlockRef { number: number.into(), hash: B256::with_last_byte(number) }
    }

    impl HeadDisplay for HeightDisplay {
        type Chain = u8;

        fn head_of(chain: &u8) -> BlockRef {
            at(*chain)
        }

        fn up_to(&self, block: &B256) -> Option<u8> {
            Some(block[31]).filter(|number| *number <= self.verified.get())
        }

        fn is_canonical(&self, block: &BlockRef) -> bool {
            block.number <= self.verified.get().into()
        }

        fn newest_visible(&self) -> Option<BlockRef> {
            Some(at(self.pinned.get().unwrap_or(self.verified.get())))
        }

        fn show(&self, chain: &u8) {
            self.pinned.set(Some(*chain));
        }

        fn show_newest(&self) {
            self.pinned.set(None);
        }
    }

    fn reply(next: Option<u8>, shown: u8, round: u64) -> HeadsReply {
        let next = next.map(|number| text(&at(number))).unwrap_or_default();
        let shown_round = if next.is_empty() { round } else { round - 1 };
        HeadsReply { role: "member".into(), round, next, shown: text(&at(shown)), shown_round }
    }

    #[test]
    fn a_front_end_goes_on_alone_after_long_and_waits_for_the_others_when_it_comes_back() {
        let heights = HeightDisplay { verified: Cell::new(7), pinned: Cell::new(None) };
        let (mut participant, start) = (Participant::default(), Instant::now());
        assert!(matches!(
            participant.apply_reply(&reply(None, 5, 1), start, &heights).entry,
            Some(EntryRule::Until(_))
        ));
        assert_eq!((heights.newest_visible(), participant.covers()), (Some(at(5)), 1));
        // A busy machine is no outage.
        for millis in (0..5_000).step_by(100) {
            assert_eq!(participant.failed(start + Duration::from_millis(millis), &heights), None);
        }
        assert!(matches!(
            participant.apply_reply(&reply(None, 5, 1), start, &heights).entry,
            Some(EntryRule::Until(_))
        ));
        for millis in (0..5_000).step_by(100) {
            assert_eq!(participant.failed(start + Duration::from_millis(10_000 + millis), &heights), None);
        }
        assert_eq!(
            participant.failed(start + Duration::from_millis(15_000), &heights),
            Some(EntryRule::Alone)
        );
        assert_eq!(heights.newest_visible(), Some(at(7)));
        // The others show an earlier block, then the next one, then this one.
        for (shown, round) in [(5, 1), (6, 2)] {
            let step = participant.apply_reply(&reply(None, shown, round), start, &heights);
            assert_eq!(
                (step.entry, heights.newest_visible()),
                (Some(EntryRule::Waiting), Some(at(7))),
                "{shown}"
            );
        }
        assert_eq!(
            participant.apply_reply(&reply(Some(7), 6, 3), start, &heights).entry,
            Some(EntryRule::Waiting)
        );
        assert!(matches!(
            participant.apply_reply(&reply(None, 7, 3), start, &heights).entry,
            Some(EntryRule::Until(_))
        ));
        assert_eq!((heights.newest_visible(), participant.covers()), (Some(at(7)), 3));
    }

    #[test]
    fn messages_wait_from_the_stop_until_it_is_known_what_is_shown() {
        let heights = HeightDisplay { verified: Cell::new(6), pinned: Cell::new(None) };
        let (mut participant, start) = (Participant::default(), Instant::now());
        participant.apply_reply(&reply(None, 5, 1), start, &heights);
        let stop = AgreementStep { entry: Some(EntryRule::Waiting), again: true };
        assert_eq!(participant.apply_reply(&reply(Some(6), 5, 2), start, &heights), stop);
        // The store is emptied: this front end tells it of the block that may be shown by now.
        let fresh = HeadsReply { role: "fresh".into(), ..reply(Some(6), 5, 2) };
        assert_eq!(participant.apply_reply(&fresh, start, &heights).entry, Some(EntryRule::Waiting));
        let report = participant.report(&heights, "f", &[at(6)], B256::ZERO);
        assert_eq!((report[5].as_str(), &report[10], report[9].as_str()), ("2", &text(&at(6)), "1"));
        assert_eq!((&report[3], report[8].as_str()), (&text(&at(5)), "1"));
        assert!(matches!(
            participant.apply_reply(&reply(None, 6, 2), start, &heights).entry,
            Some(EntryRule::Until(_))
        ));
        assert_eq!((heights.newest_visible(), participant.covers()), (Some(at(6)), 2));
    }
}
