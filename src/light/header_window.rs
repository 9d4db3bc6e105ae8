//! A header window: consecutive headers that are being fetched from one upstream, with the form in which each is requested, and
//! those that arrived. It is not the window from which a client starts without a trusted block (`sync/window.rs`).

use alloc::{format, string::ToString, vec::Vec};

use super::{
    fault::SyncCause,
    header_batch::decode_headers,
    prove,
    upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    upstream_fetch::Cause,
};
use crate::{
    consensus::{HeaderCandidate, Network},
    types::{Header, SealedHeader, json::JsonError},
};

/// Number of forms in which a header is requested by itself before it counts as unavailable: as block object without transactions
/// (form 0) and with transactions (form 1), and raw together with the block object, which has the merged-mining proof (form 2).
const FORMS: usize = 3;

/// A header, with its uncles if they came with it. Neither is verified.
#[derive(Debug)]
pub(super) struct FetchedHeader {
    pub(super) header: HeaderCandidate,
    pub(super) uncles: Option<Vec<Header>>,
}

/// Headers `first..=last` of one upstream, which it shows in the binary form of `rootlight_getHeaders` (`header_batch`) or as JSON.
#[derive(Debug)]
pub(super) struct HeaderWindow {
    /// Number of the first header.
    first: u64,
    /// The height that the upstream has announced. Headers above it may be missing.
    announced: u64,
    slots: Vec<HeaderSlot>,
    /// Whether the next request asks for all headers in one binary response.
    binary: bool,
    /// Whether a valid binary response arrived.
    was_binary: bool,
}

/// One header of a window.
#[derive(Debug)]
struct HeaderSlot {
    number: u64,
    /// The form of the next request; [`FORMS`] once all forms have failed.
    form: usize,
    state: SlotState,
}

/// Whether a header has arrived.
#[derive(Debug)]
enum SlotState {
    /// The header is still to be requested; the cause is that of the most informative failure so far.
    Wanted(Option<SyncCause>),
    Received(FetchedHeader),
    /// The upstream has no such block, or no usable one, for this reason.
    Unavailable(SyncCause),
}

impl HeaderWindow {
    /// A window of headers that are requested as JSON, from an upstream that has announced the height `announced`.
    pub(super) fn new(first: u64, last: u64, announced: u64) -> Self {
        let slots = (first..=last)
            .map(|number| HeaderSlot { number, form: 0, state: SlotState::Wanted(None) })
            .collect();
        Self { first, announced, slots, binary: false, was_binary: false }
    }

    /// A window of one header, which must exist.
    pub(super) fn single(number: u64) -> Self {
        Self::new(number, number, number)
    }

    /// Sets whether all headers are first requested in one binary response.
    pub(super) fn in_binary(mut self, binary: bool) -> Self {
        self.binary = binary;
        self
    }

    /// Whether the headers are requested in one binary response.
    pub(super) fn is_binary(&self) -> bool {
        self.binary
    }

    /// Whether a valid binary response arrived, complete or not.
    pub(super) fn was_binary(&self) -> bool {
        self.was_binary
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The requests for the headers that are still needed.
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        if self.binary {
            let params = format!(r#"["{:#x}","{:#x}"]"#, self.first, self.len());
            return alloc::vec![UpstreamRequest::new("rootlight_getHeaders", params)];
        }
        self.slots.iter().filter(|slot| slot.is_wanted()).flat_map(HeaderSlot::requests).collect()
    }

    /// Takes the responses to [`Self::requests`], in order. Returns whether every header has arrived or is unavailable;
    /// otherwise some must be requested in another form.
    #[must_use]
    pub(super) fn take(&mut self, responses: Vec<UpstreamResponse>, network: &Network) -> bool {
        if core::mem::take(&mut self.binary) {
            self.take_binary(responses.first(), network);
        } else {
            let mut responses = responses.into_iter();
            let announced = self.announced;
            for slot in self.slots.iter_mut().filter(|slot| slot.is_wanted()) {
                let count = slot.requests().len();
                let of_slot: Vec<UpstreamResponse> = responses.by_ref().take(count).collect();
                slot.take(&of_slot, announced, network);
            }
        }
        !self.slots.iter().any(HeaderSlot::is_wanted)
    }

    /// Takes a binary response. Headers up to the announced height that the response lacks are requested again as JSON.
    fn take_binary(&mut self, response: Option<&UpstreamResponse>, network: &Network) {
        let Some(Ok(raw)) = response else { return };
        let Some(text) = prove::string(raw) else { return };
        let Ok(headers) = decode_headers(&text, self.slots.len(), network) else { return };
        self.was_binary = true;
        let (announced, mut headers) = (self.announced, headers.into_iter());
        for slot in &mut self.slots {
            match headers.next() {
                Some((header, uncles)) if header.header().number == slot.number => {
                    slot.state = SlotState::Received(FetchedHeader { header, uncles });
                }
                None if slot.number > announced => slot.state = SlotState::Unavailable(SyncCause::Missing),
                // The response ends too early, or has a header of another block: the rest is requested as JSON.
                _ => return,
            }
        }
    }

    /// Returns the headers up to the end of the upstream's chain, or up to the first header that must exist but is
    /// unavailable or invalid, with the number of that header and the cause.
    pub(super) fn into_headers(self) -> (Vec<FetchedHeader>, Option<(u64, SyncCause)>) {
        let announced = self.announced;
        let mut headers = Vec::with_capacity(self.slots.len());
        for slot in self.slots {
            let cause = match slot.state {
                SlotState::Received(header) => {
                    headers.push(header);
                    continue;
                }
                SlotState::Unavailable(cause) if slot.number > announced && is_usual_above_head(&cause) => {
                    break;
                }
                SlotState::Unavailable(cause) => cause,
                SlotState::Wanted(cause) => cause.unwrap_or(SyncCause::Missing),
            };
            return (headers, Some((slot.number, cause)));
        }
        (headers, None)
    }
}

/// Whether a cause is more informative than the first one: raw bytes that do not decode as a header are a fault, while an object
/// may only hide a part of the header.
fn says_more(cause: &SyncCause, first: &SyncCause) -> bool {
    matches!((cause, first), (SyncCause::Decode(_), SyncCause::Hidden(_)))
}

/// Whether an honest upstream fails with this cause when it is asked for a block above its head.
fn is_usual_above_head(cause: &SyncCause) -> bool {
    matches!(
        cause,
        SyncCause::Missing | SyncCause::Call(RequestFailure::NotRecorded | RequestFailure::Rpc { .. })
    )
}

impl HeaderSlot {
    fn is_wanted(&self) -> bool {
        matches!(self.state, SlotState::Wanted(_))
    }

    fn requests(&self) -> Vec<UpstreamRequest> {
        let number = self.number;
        let block =
            |full: bool| UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",{full}]"#));
        match self.form {
            0 => alloc::vec![block(false)],
            1 => alloc::vec![block(true)],
            _ => alloc::vec![
                UpstreamRequest::new("rsk_getRawBlockHeaderByNumber", format!(r#"["{number:#x}"]"#)),
                block(true),
            ],
        }
    }

    /// Takes the responses to [`Self::requests`]. After a failure the header is requested in the next form, if there is one.
    fn take(&mut self, responses: &[UpstreamResponse], announced: u64, network: &Network) {
        match self.parse(responses, network) {
            Ok(header) => {
                let header = HeaderCandidate::from(header);
                self.state = SlotState::Received(FetchedHeader { header, uncles: None });
            }
            Err(cause) => {
                let is_above_head = self.number > announced && matches!(cause, SyncCause::Missing);
                self.form = self.form.saturating_add(1);
                // The first cause is the most informative: later forms often fail only because the upstream does not
                // serve them.
                let best = match core::mem::replace(&mut self.state, SlotState::Wanted(None)) {
                    SlotState::Wanted(Some(first))
                        if !says_more(&cause, &first)
                            && (!is_usual_above_head(&first) || is_usual_above_head(&cause)) =>
                    {
                        first
                    }
                    _ => cause,
                };
                self.state = if is_above_head || self.form >= FORMS {
                    SlotState::Unavailable(best)
                } else {
                    SlotState::Wanted(Some(best))
                };
            }
        }
    }

    /// Reads the header from the responses in the present form.
    fn parse(&self, responses: &[UpstreamResponse], network: &Network) -> Result<SealedHeader, SyncCause> {
        let text = |index: usize| match responses.get(index) {
            Some(Ok(raw)) if raw.get() == "null" => Err(SyncCause::Missing),
            Some(Ok(raw)) => Ok(raw.get()),
            Some(Err(failure)) => Err(SyncCause::Call(failure.clone())),
            None => Err(SyncCause::Missing),
        };
        // In the raw form, the block object is the second response.
        let object = usize::from(self.form >= 2);
        let header = if self.form < 2 {
            prove::header(text(0)?, None, network).map_err(|error| match error {
                JsonError::Hash { .. } => SyncCause::Hidden(error.to_string()),
                error => SyncCause::Decode(error.to_string()),
            })?
        } else {
            prove::raw_header(text(0)?, text(1)?, network)
                .map_err(|error| SyncCause::Decode(error.to_string()))?
        };
        if header.number != self.number {
            return Err(SyncCause::OtherBlock { asked: self.number, got: header.number });
        }
        // A light client shows `null` for a proof of work that it has not checked, which is not a lie: the header counts as
        // hidden, and the next form is tried.
        if header.coinbase_tx.is_empty()
            && header.number > 0
            && let Err(Cause::Hidden(rule)) = prove::work(&header, text(object)?, network)
        {
            return Err(SyncCause::Hidden(rule));
        }
        Ok(header)
    }
}
