// SPDX-License-Identifier: Apache-2.0
//! What a run tells its recorder of fleets and control planes: counters, breaches, and rejections.

use std::sync::Arc;

use crate::fleet::Fleet;
use crate::fleet::client::saying::ON_PURPOSE;
use crate::fleet::progress::{Breach, Progress};
use crate::measure::record::{Fleets, Recorder};
use crate::origin::control_plane::ControlPlane;
use crate::origin::world::World;

/// Adds a fleet's counters to the record, and the deliveries owed to it.
pub(super) fn attach(recorder: &Recorder, fleet: &Fleet, world: &World) {
    let bell = (!world.is_foreign()).then(|| Arc::clone(&world.bell));
    let progress = Arc::clone(&fleet.progress);
    recorder.attach(fleet.feed.clone(), move || Fleets {
        clients: u64::from(progress.complete()),
        with_stream: progress.streaming(),
        owed: bell.as_ref().map(|bell| bell.owed()),
    });
}

/// Records the violations that clients saw, each with the messages before it.
pub(super) fn breaches(recorder: &Recorder, progress: &Progress) {
    for Breach {
        client,
        what,
        transcript,
    } in progress.violations()
    {
        recorder.breach(u64::from(client), what, transcript);
    }
}

/// Fails if anything was rejected upstream, except by clients on purpose. A relay tells several contents in one text.
pub(super) fn rejections(control_plane: &ControlPlane, recorder: &Recorder) {
    let rejections = control_plane.counts.rejections();
    for rejection in rejections.into_iter().filter(|it| !is_on_purpose(it)) {
        recorder.fail("nothing is rejected upstream", Some(rejection));
    }
}

/// Whether all that a text names was rejected on purpose.
fn is_on_purpose(text: &str) -> bool {
    let is_rest = |part: &str| part.starts_with("and ") && part.ends_with(" more");
    let mut parts = text.split("; ");
    text.contains(ON_PURPOSE) && parts.all(|part| part.ends_with(ON_PURPOSE) || is_rest(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rejected_on_purpose() {
        let told = format!("2 of 4 clients (envoy) reject clusters a, b: {ON_PURPOSE}; and 20 more");
        assert!(is_on_purpose(ON_PURPOSE) && is_on_purpose(&told));
        let other = format!("1 of 4 clients (envoy) rejects cluster c: no such filter; {told}");
        assert!(!is_on_purpose(&other) && !is_on_purpose("no") && !is_on_purpose(""));
    }
}
