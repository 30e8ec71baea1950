//! A run in one sentence and one plot, for readers who have a minute. It only picks what others make.

use super::plot::Plot;
use super::table;
use crate::measure::record::{Distribution, Phase, Quantity, Record, Unit, float};

/// Returns what the run found, in one sentence.
pub(super) fn sentence(record: &Record) -> String {
    let clients = record
        .phases
        .iter()
        .map(|phase| phase.clients)
        .max()
        .unwrap_or_default();
    let conclusion = table::conclusion(record);
    let changes = all(record, |phase| &phase.propagation);
    let joins = all(record, |phase| &phase.join);
    let spread = |times: &Distribution| {
        let [half, most] = [0.5, 0.99].map(|part| Quantity::new(float(times.at(part)), Unit::Micros));
        format!("half within {half}, 99 % within {most}")
    };
    match (changes, joins) {
        (Some(changes), _) => {
            let count = changes.count();
            format!(
                "Changes reached {clients} clients {count} times, {}; {conclusion}.",
                spread(&changes)
            )
        }
        (None, Some(joins)) => format!("{clients} clients joined, {}; {conclusion}.", spread(&joins)),
        (None, None) => format!("{clients} clients; {conclusion}."),
    }
}

/// Returns the times of all phases together; none if there are none.
fn all(record: &Record, of: fn(&Phase) -> &Distribution) -> Option<Distribution> {
    let mut phases = record.phases.iter().map(of);
    let mut all = phases.next()?.clone();
    for times in phases {
        all.add(times).ok()?;
    }
    (all.count() > 0).then_some(all)
}

/// Takes the one plot out that says most: how long changes took, or else the first that there is.
pub(super) fn take_plot(plots: &mut Vec<Plot>) -> Option<Plot> {
    let told = ["growth-propagation", "propagation", "joins"];
    let found = told.iter().find_map(|id| plots.iter().position(|plot| plot.id == *id));
    let at = found.unwrap_or_default();
    (at < plots.len()).then(|| plots.remove(at))
}
