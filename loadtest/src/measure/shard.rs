//! The share of one of several load machines: which connections of the fleet are its own, and when it begins. Knows nothing of the
//! other machines.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};

/// The heading of these flags in the help.
pub(crate) const MACHINES: &str = "Machines and threads";

/// One of several equal shares of a fleet. Invariant: `1 <= number <= of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Shard {
    number: u32,
    of: u32,
}

/// The flags of a machine that is one of several.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = MACHINES)]
pub(crate) struct Sharing {
    /// Run one of several equal shares of the clients, such as `2/5`: each machine runs another one with the same other flags, and
    /// `distributary-load merge` adds their records up.
    #[arg(
        long,
        global = true,
        value_name = "N/ALL",
        requires = "start_at",
        requires = "server"
    )]
    pub(crate) shard: Option<Shard>,
    /// With --shard: when the first phase begins on all machines, such as `2026-11-23T15:00:00Z` or in seconds since 1970.
    #[arg(long, global = true, value_name = "TIME", requires = "shard", value_parser = moment)]
    start_at: Option<SystemTime>,
}

/// The share of a run as its record tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) shard: Shard,
    /// When the first phase began.
    pub(crate) began_unix_ms: u64,
}

const SHARDS_MAX: u32 = 1000;
/// Nobody waits for longer; a later time is a mistake.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

impl Shard {
    /// The only share of a fleet.
    pub(crate) const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether this share has a connection. Shares are interleaved, so that each has clients of all groups.
    pub(crate) const fn has(self, connection: u32) -> bool {
        connection % self.of + 1 == self.number
    }

    pub(crate) const fn of(self) -> u32 {
        self.of
    }

    /// Returns all shares of which this is one.
    pub(crate) fn all(self) -> impl Iterator<Item = Self> {
        (1..=self.of).map(move |number| Self { number, of: self.of })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("`{text}` is no share: write one such as 2/5, from 1/5 to 5/5, of at most {SHARDS_MAX}");
        let (number, of) = text.split_once('/').ok_or_else(fault)?;
        let shard = Self {
            number: number.parse().map_err(|_| fault())?,
            of: of.parse().map_err(|_| fault())?,
        };
        let sound = (1..=shard.of).contains(&shard.number) && shard.of <= SHARDS_MAX;
        sound.then_some(shard).ok_or_else(fault)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl Sharing {
    /// Returns how long to wait until everybody begins. Fails if that time is over, or too far away.
    pub(crate) fn wait(&self, now: SystemTime) -> anyhow::Result<Duration> {
        let Some(start) = self.start_at else {
            return Ok(Duration::ZERO);
        };
        let wait = start.duration_since(now).map_err(|late| {
            let late = late.duration().as_secs_f64();
            anyhow::anyhow!(
                "--start-at was {late:.1} s ago when everything was ready here: choose a later time, on all machines"
            )
        })?;
        ensure!(
            wait <= WAIT_MAX,
            "--start-at is {} hours away: choose a time of the next 24 hours",
            wait.as_secs() / 3600
        );
        Ok(wait)
    }
}

/// Reads a point in time: `2026-11-23T15:00:00Z`, or seconds since 1970.
fn moment(text: &str) -> Result<SystemTime, String> {
    let seconds = text.parse().ok().or_else(|| unix(text));
    let moment = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    moment.ok_or_else(|| {
        format!(
            "`{text}` is no point in time: write one such as 2026-11-23T15:00:00Z, or seconds since 1970 (`date +%s`)"
        )
    })
}

/// Returns the seconds since 1970 of a date and time in UTC.
fn unix(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once(['T', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let fits = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin in March here, so that the leap day is the last of one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split(between).map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_as_fractions() {
        let shard: Shard = "2/5".parse().unwrap();
        assert_eq!(shard.to_string(), "2/5");
        let all: Vec<_> = shard.all().collect();
        assert_eq!((all.len(), all[1], shard.of()), (5, shard, 5));
        for wrong in ["", "2", "0/5", "6/5", "1/0", "1/1001", "-1/5", "a/b", "1/2/3"] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(
                error.ends_with("write one such as 2/5, from 1/5 to 5/5, of at most 1000"),
                "{error}"
            );
        }
    }

    #[test]
    fn every_connection_is_in_one_share() {
        for of in 1..=7 {
            let one = Shard { number: 1, of };
            for connection in 0..50 {
                assert_eq!(one.all().filter(|shard| shard.has(connection)).count(), 1);
            }
            let sizes = one
                .all()
                .map(|shard| (0..50).filter(|connection| shard.has(*connection)).count());
            let sizes: Vec<_> = sizes.collect();
            assert!(
                sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1,
                "{sizes:?}"
            );
        }
        assert!((0..50).all(|connection| Shard::WHOLE.has(connection)));
    }

    #[test]
    fn a_point_in_time_is_a_date_or_a_number() {
        let unix = |text: &str| moment(text).unwrap().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(unix("1970-01-01T00:00:00Z"), 0);
        assert_eq!(unix("2000-02-29T12:34:56Z"), 951_827_696);
        assert_eq!(unix("2026-11-20 15:46:56Z"), 1_795_189_616);
        assert_eq!(unix("1795189616"), 1_795_189_616);
        let wrong = [
            "",
            "soon",
            "2026-11-20",
            "2026-11-20T15:46:56",
            "2026-13-20T15:46:56Z",
            "2026-11-20T24:00:00Z",
            "99999999999999999999",
        ];
        for wrong in wrong {
            let error = moment(wrong).unwrap_err();
            assert!(error.contains("is no point in time: write one such as"), "{error}");
        }
    }

    #[test]
    fn who_is_late_does_not_begin() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let at = |start: u64| Sharing {
            shard: Some(Shard::WHOLE),
            start_at: Some(UNIX_EPOCH + Duration::from_secs(start)),
        };
        assert_eq!(at(1_000_030).wait(now).unwrap(), Duration::from_secs(30));
        assert_eq!(Sharing::default().wait(now).unwrap(), Duration::ZERO);
        let late = at(999_988).wait(now).unwrap_err().to_string();
        assert!(
            late.starts_with("--start-at was 12.0 s ago when everything was ready here"),
            "{late}"
        );
        let far = at(1_000_000 + 90 * 3600).wait(now).unwrap_err().to_string();
        assert!(far.starts_with("--start-at is 90 hours away"), "{far}");
    }
}
