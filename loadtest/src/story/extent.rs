//! What a scenario takes: how many clients, how long at least, and what it cannot do without. Plays nothing.

use std::time::Duration;

use super::file::Scenario;
use super::phase::{Act, Part};
use crate::command::arguments::STORY_CLIENTS;
use crate::measure::record::{Quantity, Unit};

/// More descriptors than what most shells allow without asking.
const FEW_FILES: u64 = 1024;

/// Returns what `list` says about it: clients, length, needs.
pub(crate) fn extent(scenario: &Scenario) -> [String; 3] {
    let clients = match scenario.story {
        Some(_) => STORY_CLIENTS,
        None => scenario.clients.count,
    };
    let least = scenario.phases.iter().map(|phase| least(&phase.act)).sum();
    [clients.to_string(), length(least), needs(scenario).join(", ")]
}

/// Returns how many connections there are at one time.
pub(super) fn connections(scenario: &Scenario) -> u64 {
    let connections = u64::from(scenario.clients.count.div_ceil(scenario.clients.per_connection.max(1)));
    // A network has two ends of each connection.
    let ends = if scenario.makes_trouble() { 3 } else { 1 };
    connections * (ends + u64::from(scenario.floor) + u64::from(scenario.calm))
}

fn needs(scenario: &Scenario) -> Vec<String> {
    let changes = scenario.phases.iter().any(|phase| phase.act.needs_control_plane());
    let restarts = |act: &Act| matches!(act, Act::Restart(Part::Relay) | Act::Chaos(_));
    let relay = scenario.floor || scenario.calm || scenario.phases.iter().any(|phase| restarts(&phase.act));
    let files = connections(scenario);
    let needs = [
        (
            changes || scenario.story.is_some(),
            "control plane of the tool".to_owned(),
        ),
        (relay || scenario.story.is_some(), "relay of the tool".to_owned()),
        (files > FEW_FILES, format!("{files} open files")),
    ];
    let needs: Vec<_> = needs
        .into_iter()
        .filter_map(|(is_needed, what)| is_needed.then_some(what))
        .collect();
    match needs.is_empty() {
        true => vec!["any server".to_owned()],
        false => needs,
    }
}

/// Returns how long it takes at least. What waits for clients takes as long as these take.
fn least(act: &Act) -> Duration {
    let paced = |times: u32, rate: Option<f64>| {
        let seconds = rate.map(|rate| f64::from(times) / rate);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    let least = match act {
        Act::Rest(time) | Act::Idle(time) => Some(time.0),
        Act::Change(change) => paced(change.times, change.rate),
        Act::Exec(exec) => paced(exec.repeat.times, exec.repeat.rate),
        Act::Http(http) => paced(http.repeat.times, http.repeat.rate),
        Act::Join(join) => Some(join.over.0),
        Act::Reconnect(reconnect) => Some(reconnect.pause.0),
        Act::Chaos(chaos) => Some(chaos.time.0),
        Act::Grow(_) | Act::Remove(_) | Act::Restart(_) | Act::Stop(_) | Act::Start(_) => None,
    };
    least.unwrap_or_default()
}

/// Returns a least length in words.
fn length(least: Duration) -> String {
    if least.is_zero() {
        return "as it takes".to_owned();
    }
    let length = Quantity::new(least.as_secs_f64() * 1e3, Unit::Millis);
    format!("≥ {length}")
}
