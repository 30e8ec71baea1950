//! Validates `snapshot`: where what is known is written, and how often.

use std::time::Duration;

use super::{Check, paths};
use crate::config::{Snapshot, defaults, quantity, shape};

pub(super) fn snapshot(check: &mut Check, given: Option<shape::Snapshot>) -> Option<Snapshot> {
    let given = given?;
    let dir = paths::read(check, "snapshot.dir", given.dir.as_ref(), |text| match text {
        "" => Err("it is empty; write a directory such as /var/lib/distributary".to_owned()),
        dir => Ok(dir.into()),
    });
    let interval = check.read(
        "snapshot.interval",
        given.interval.as_ref(),
        |text| match quantity::duration(text)? {
            Duration::ZERO => Err("0 would write without end; leave `snapshot` out to write nothing".to_owned()),
            interval => Ok(interval),
        },
    );
    Some(Snapshot {
        dir: dir?,
        interval: interval.unwrap_or(defaults::SNAPSHOT_INTERVAL),
        include_secrets: given.include_secrets.unwrap_or(false),
    })
}
