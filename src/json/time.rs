//! Durations and timestamps as text. Owns both formats. Reads no clock.

const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const TIMESTAMP_SECONDS_MIN: i64 = -62_135_596_800;
const TIMESTAMP_SECONDS_MAX: i64 = 253_402_300_799;
const DAY_SECONDS: i64 = 86_400;

/// Seconds and nanoseconds, as both messages have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: i32,
}

impl Instant {
    /// J-02: `1.5s`.
    pub(super) fn from_duration(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a duration; write seconds with a final s, such as 1.5s");
        let number = text.strip_suffix('s').ok_or_else(bad)?;
        let (negative, number) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let seconds = digits(whole).ok_or_else(bad)?;
        let nanos = nanos(fraction).ok_or_else(bad)?;
        if seconds > DURATION_SECONDS_MAX || (seconds == DURATION_SECONDS_MAX && nanos > 0) {
            return Err(format!(
                "`{text}` is out of range; durations end at {DURATION_SECONDS_MAX}s"
            ));
        }
        let sign = if negative { -1 } else { 1 };
        Ok(Self {
            seconds: sign * seconds,
            nanos: nanos * if negative { -1 } else { 1 },
        })
    }

    /// J-02: `1.500s`, with no, three, six or nine digits after the point.
    pub(super) fn to_duration(self) -> Result<String, String> {
        let Self { seconds, nanos } = self;
        let mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
        if seconds.unsigned_abs() > DURATION_SECONDS_MAX.unsigned_abs() || nanos.unsigned_abs() > 999_999_999 || mixed {
            return Err(format!("{seconds} s {nanos} ns is not a valid duration"));
        }
        let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
        Ok(format!(
            "{sign}{}{}s",
            seconds.unsigned_abs(),
            fraction(nanos.unsigned_abs())
        ))
    }

    /// J-02: a time in the format of RFC 3339, with any offset.
    pub(super) fn from_timestamp(text: &str) -> Result<Self, String> {
        parse_timestamp(text)
            .filter(|time| (TIMESTAMP_SECONDS_MIN..=TIMESTAMP_SECONDS_MAX).contains(&time.seconds))
            .ok_or_else(|| format!("`{text}` is not a time; write it as 2026-01-02T03:04:05.6Z"))
    }

    /// J-02: `2026-01-02T03:04:05.600Z`.
    pub(super) fn to_timestamp(self) -> Result<String, String> {
        let Self { seconds, nanos } = self;
        let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos <= 999_999_999);
        let (true, Some(nanos)) = (
            (TIMESTAMP_SECONDS_MIN..=TIMESTAMP_SECONDS_MAX).contains(&seconds),
            nanos,
        ) else {
            return Err(format!("{seconds} s {} ns is not a valid time", self.nanos));
        };
        let (year, month, day) = civil(seconds.div_euclid(DAY_SECONDS));
        let second = seconds.rem_euclid(DAY_SECONDS);
        Ok(format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{}Z",
            second / 3600,
            second / 60 % 60,
            second % 60,
            fraction(nanos)
        ))
    }
}

/// `YYYY-MM-DDThh:mm:ss[.fraction](Z|+hh:mm)`
fn parse_timestamp(text: &str) -> Option<Instant> {
    let (date, time) = text.split_once('T')?;
    let (year, month_day) = date.split_once('-')?;
    let (month, day) = month_day.split_once('-')?;
    let (clock, offset) = match time.strip_suffix('Z') {
        Some(clock) => (clock, 0),
        None => {
            let at = time.rfind(['+', '-'])?;
            let (clock, offset) = time.split_at_checked(at)?;
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let offset_seconds = fixed(hours, 2, 23)? * 3600 + fixed(minutes, 2, 59)? * 60;
            (
                clock,
                if offset.starts_with('-') {
                    -offset_seconds
                } else {
                    offset_seconds
                },
            )
        }
    };
    let (clock, nanos) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, nanos(fraction)?),
        None => (clock, 0),
    };
    let mut parts = clock.split(':');
    let hour = fixed(parts.next()?, 2, 23)?;
    let minute = fixed(parts.next()?, 2, 59)?;
    let second = fixed(parts.next()?, 2, 59)?;
    let (year, month, day) = (fixed(year, 4, 9999)?, fixed(month, 2, 12)?, fixed(day, 2, 31)?);
    let days = days(year, month, day);
    if parts.next().is_some() || civil(days) != (year, month, day) {
        return None;
    }
    Some(Instant {
        seconds: days * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset,
        nanos,
    })
}

fn digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// Parses a number of exactly `count` digits, up to `most`.
fn fixed(text: &str, count: usize, most: i64) -> Option<i64> {
    digits(text).filter(|number| text.len() == count && *number <= most)
}

fn nanos(fraction: &str) -> Option<i32> {
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let value = i32::try_from(digits(fraction)?).ok()?;
    let missing = u32::try_from(9 - fraction.len()).ok()?;
    Some(value * 10_i32.pow(missing))
}

fn fraction(nanos: u32) -> String {
    if nanos == 0 {
        String::new()
    } else if nanos.is_multiple_of(1_000_000) {
        format!(".{:03}", nanos / 1_000_000)
    } else if nanos.is_multiple_of(1000) {
        format!(".{:06}", nanos / 1000)
    } else {
        format!(".{nanos:09}")
    }
}

/// Returns the days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns year, month and day from the days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}
