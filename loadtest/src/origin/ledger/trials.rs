// SPDX-License-Identifier: Apache-2.0
//! What is known of the changes of another control plane besides their contents: which ones this program caused and still waits for,
//! and where a resource says when it changed. Knows nothing of commands and clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use distributary::json::{Schemas, Secrets};
use serde_json::Value;

use crate::measure::tally::Tally;
use crate::wire::kind::Kind;

/// The changes that are waited for.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    open: Mutex<Vec<Arc<Trial>>>,
    newest: AtomicU64,
    /// Whether changes are timed only from their cause.
    active: AtomicBool,
    marks: OnceLock<BTreeMap<Kind, Vec<String>>>,
}

/// A change that this program caused, until every client has content that differs.
#[derive(Debug)]
pub(crate) struct Trial {
    number: u64,
    /// From when it is timed.
    base: Instant,
    /// How many clients still have what they had before.
    missing: AtomicU32,
}

/// An older mark says nothing about how the change came here.
const MARK_AGE_MAX: Duration = Duration::from_secs(3600);

impl Trials {
    /// Sets where resources say when they changed: a path of fields for each type.
    pub(crate) fn set_marks(&self, marks: &BTreeMap<Kind, String>) {
        let path = |path: &String| path.split('.').map(str::to_owned).collect();
        let _ = self
            .marks
            .set(marks.iter().map(|(kind, text)| (*kind, path(text))).collect());
    }

    /// Switches between changes that are timed from their cause, and changes that come by themselves.
    pub(crate) fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Release);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Begins to wait for a change at so many clients; `base` is from when it is timed.
    pub(crate) fn begin(&self, clients: u32, base: Instant) -> Arc<Trial> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let trial = Arc::new(Trial {
            number: self.newest.load(Ordering::Acquire) + 1,
            base,
            missing: AtomicU32::new(clients),
        });
        open.retain(|trial| !trial.is_over());
        open.push(Arc::clone(&trial));
        self.newest.store(trial.number, Ordering::Release);
        trial
    }

    /// Forgets all that are open.
    pub(crate) fn clear(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Notes that a client has content that differs. `seen` is the newest change that counted for it before. Returns whether a client
    /// was the last one.
    pub(crate) fn arrive(&self, seen: &mut u64, now: Instant, tally: &mut Tally) -> bool {
        let newest = self.newest.load(Ordering::Acquire);
        if *seen == newest {
            return false;
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fresh = open
            .iter()
            .filter(|trial| trial.number > *seen && trial.number <= newest);
        let over = fresh.filter(|trial| trial.arrive(now, tally)).count() > 0;
        *seen = newest;
        over
    }

    /// Returns the time that stands in a resource.
    pub(super) fn mark_in(&self, kind: Kind, body: &[u8], now: Instant) -> Option<Instant> {
        let path = self.marks.get()?.get(&kind)?;
        let name = kind.type_url().rsplit('/').next()?;
        let json = Schemas::standard().decode(name, body, Secrets::Show).ok()?;
        let json: Value = serde_json::from_slice(&json.text).ok()?;
        let value = path.iter().try_fold(&json, |value, key| match value.as_array() {
            Some(items) => items.get(key.parse::<usize>().ok()?),
            None => value.get(key),
        })?;
        #[expect(clippy::disallowed_methods, reason = "a mark is a time of day")]
        let age = SystemTime::now().duration_since(time_of(value)?).unwrap_or_default();
        now.checked_sub(age).filter(|_| age <= MARK_AGE_MAX)
    }
}

impl Trial {
    /// How many clients still have what they had before.
    pub(crate) fn missing(&self) -> u32 {
        self.missing.load(Ordering::Acquire)
    }

    fn is_over(&self) -> bool {
        self.missing() == 0
    }

    fn arrive(&self, now: Instant, tally: &mut Tally) -> bool {
        tally.deliver(now.saturating_duration_since(self.base));
        let less = |missing: u32| missing.checked_sub(1);
        self.missing.fetch_update(Ordering::AcqRel, Ordering::Acquire, less) == Ok(1)
    }
}

/// Reads a time of day: seconds, milliseconds, microseconds or nanoseconds since 1970, or RFC 3339.
fn time_of(value: &Value) -> Option<SystemTime> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    if let Some(number) = number {
        let scale = [1e11, 1e14, 1e17].iter().filter(|limit| number >= **limit).count();
        let seconds = number / [1.0, 1e3, 1e6, 1e9].get(scale)?;
        return SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?);
    }
    let json = serde_json::to_vec(value).ok()?;
    let tree = distributary::json::Tree::json(&json, distributary::json::Bounds::REQUEST).ok()?;
    let unknown = distributary::json::Unknown::Deny;
    let encoded = Schemas::standard()
        .encode("google.protobuf.Timestamp", &tree, "", unknown)
        .ok()?;
    let stamp: distributary::proto::google::protobuf::Timestamp = prost::Message::decode(encoded.value).ok()?;
    let since = Duration::new(u64::try_from(stamp.seconds).ok()?, u32::try_from(stamp.nanos).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}
