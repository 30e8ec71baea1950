//! Validates the timers.

use std::time::Duration;

use super::Check;
use crate::config::reading::Scalar;
use crate::config::{Timers, quantity, shape};

/// E-14: the first pause between two attempts.
const RECONNECT_LEAST: Duration = Duration::from_secs(1);

pub(super) fn timers(check: &mut Check, timers: &shape::TimersShape) -> Timers {
    let usual = Timers::default();
    let unanswered = check.read(
        "timers.unanswered",
        timers.unanswered.as_ref(),
        |text| match quantity::duration(text)? {
            Duration::ZERO => Err("0 would make clients wait forever; write the longest wait, such as 8s".to_owned()),
            wait => Ok(wait),
        },
    );
    let unanswered = unanswered.unwrap_or(usual.unanswered);
    let interval = |text: &str| match quantity::duration(text)? {
        Duration::ZERO => Err("0 would poll without a pause; write the pause, such as 5s".to_owned()),
        pause => Ok(pause),
    };
    let rest_interval = check.read("timers.rest_interval", timers.rest_interval.as_ref(), interval);
    let rest_interval = rest_interval.unwrap_or(usual.rest_interval);
    let pause = |text: &str| match quantity::duration(text)? {
        pause if pause < RECONNECT_LEAST => {
            Err("the first pause is already 1s; write a longest pause of at least that, such as 30s".to_owned())
        }
        pause => Ok(pause),
    };
    let reconnect_max = check.read("timers.reconnect_max", timers.reconnect_max.as_ref(), pause);
    let reconnect_max = reconnect_max.unwrap_or(usual.reconnect_max);
    let jitter = timers.stream_age_jitter.as_ref();
    let jitter = check.read("timers.stream_age_jitter", jitter, quantity::percent);
    let mut read = |name: &str, scalar: &Option<Scalar>| {
        check.read(&format!("timers.{name}"), scalar.as_ref(), quantity::duration)
    };
    Timers {
        linger: read("linger", &timers.linger).unwrap_or(usual.linger),
        does_not_exist: read("does_not_exist", &timers.does_not_exist).unwrap_or(usual.does_not_exist),
        unanswered,
        move_after: read("move", &timers.move_after).unwrap_or(usual.move_after),
        wildcard_quiet: read("wildcard_quiet", &timers.wildcard_quiet).unwrap_or(usual.wildcard_quiet),
        order_gate: read("order_gate", &timers.order_gate).unwrap_or(usual.order_gate),
        removal_quiet: read("removal_quiet", &timers.removal_quiet).unwrap_or(usual.removal_quiet),
        write_stall: read("write_stall", &timers.write_stall).unwrap_or(usual.write_stall),
        keepalive: read("keepalive", &timers.keepalive).unwrap_or(usual.keepalive),
        stream_age: read("stream_age", &timers.stream_age).unwrap_or(usual.stream_age),
        stream_age_jitter: jitter.unwrap_or(usual.stream_age_jitter),
        rest_poll: read("rest_poll", &timers.rest_poll).unwrap_or(usual.rest_poll),
        rest_interval,
        reconnect_max,
        drain_announce: read("drain_announce", &timers.drain_announce).unwrap_or(usual.drain_announce),
        drain: read("drain", &timers.drain).unwrap_or(usual.drain),
    }
}
