//! Times as text in UTC.

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Days of 400 years, after which the Gregorian calendar repeats.
const CYCLE: u64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const BEFORE_1970: u64 = 719_468;

/// A time in seconds since 1970, as `2026-11-27 08:40 UTC`.
pub(super) fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / DAY, seconds % DAY);
    let days = days.saturating_add(BEFORE_1970);
    let (cycle, day) = (days / CYCLE, days % CYCLE);
    // Years begin in March, so that the leap day is the last one. 4, 100 and 400 years have 1460, 36524 and 146096 days besides
    // their last leap day; five months from March or August on have 153 days.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = cycle.saturating_mul(400).saturating_add(year + later);
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02} UTC", rest / 3_600, rest % 3_600 / 60)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_795_768_859, "2026-11-27 08:40 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
        assert!(utc(u64::MAX).ends_with("UTC"));
    }
}
