//! Checks tokens, and limits how many wrong ones are compared, so that the token cannot be guessed by trying.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rootlight_server::keys::{Gcra, Rate};

use super::token::AdminToken;

/// Wrong tokens that may come at once.
const AT_ONCE: u32 = 10;
/// Wrong tokens per second after that.
const PER_SECOND: u32 = 1;

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    Wrong,
    /// There were too many wrong tokens. This token was not compared, and may be right.
    TooMany,
}

/// The token, and the limit of wrong ones.
///
/// All senders share one limit, because on loopback a sender can have any address. So a program on this machine that sends
/// wrong tokens keeps the operator out of the page too, but not from the command `rootlight keys`.
#[derive(Debug)]
pub(super) struct TokenCheck {
    token: AdminToken,
    rate: Rate,
    /// The state of the limit.
    wrong: Mutex<Gcra>,
    /// The zero of the clock of `wrong`.
    start: Instant,
}

impl TokenCheck {
    pub(super) fn new(token: AdminToken) -> Self {
        Self { token, rate: Rate::new(PER_SECOND, AT_ONCE), wrong: Mutex::default(), start: Instant::now() }
    }

    /// Compares a token, if the limit admits another wrong one.
    pub(super) fn check(&self, token: &[u8]) -> Result<(), Denied> {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.check_at(token, now)
    }

    /// As [`Self::check`], at a time in nanoseconds since the start.
    fn check_at(&self, token: &[u8], now: u64) -> Result<(), Denied> {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.left(self.rate, now).requests == 0 {
            return Err(Denied::TooMany);
        }
        if self.token.is(token) {
            return Ok(());
        }
        // Taking from the limit succeeds: it was checked above under the same lock.
        let _ = wrong.take(self.rate, 1, now);
        Err(Denied::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_ten_wrong_tokens_none_is_looked_at_for_a_second() {
        let right = "0123456789abcdef0123456789abcdef";
        let attempts = TokenCheck::new(AdminToken::new(right).unwrap());
        for _ in 0..100 {
            assert_eq!(attempts.check_at(right.as_bytes(), 0), Ok(()), "right ones are not counted");
        }
        for _ in 0..AT_ONCE {
            assert_eq!(attempts.check_at(b"wrong", 0), Err(Denied::Wrong));
        }
        for token in [right, "wrong"] {
            assert_eq!(attempts.check_at(token.as_bytes(), 999_999_999), Err(Denied::TooMany));
        }
        assert_eq!(attempts.check_at(right.as_bytes(), 1_000_000_000), Ok(()));
        assert_eq!(attempts.check_at(b"wrong", 1_000_000_000), Err(Denied::Wrong));
        assert_eq!(attempts.check_at(right.as_bytes(), 1_000_000_000), Err(Denied::TooMany));
    }
}
