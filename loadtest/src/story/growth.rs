//! A fleet that doubles: expands one written phase into two for each size, one to join and one for changes; and finds the knee,
//! the size from which every client waits longer because of the others.

use super::file::Scenario;
use super::past::{Past, Rounds};
use super::phase::{Act, Expect, Grow, Join, PhaseShape};
use crate::measure::record::float;

/// How long a change takes for each client, size by size.
#[derive(Debug, Default)]
pub(super) struct Knee {
    /// The least p99 per client so far, in microseconds.
    least: Option<f64>,
    /// The size at which p99 per client passed the limit; a single one may be the machine's fault.
    above: Option<u64>,
    /// Whether the next size passed the limit too.
    is_sure: bool,
}

impl Scenario {
    /// Expands `grow` into phases, up to the number of clients.
    pub(super) fn write_out(&mut self) {
        let clients = self.clients.count;
        let phases = std::mem::take(&mut self.phases);
        for phase in phases {
            let Act::Grow(grow) = phase.act else {
                self.phases.push(phase);
                continue;
            };
            let sizes = sizes(grow, clients);
            self.phases.extend(sizes.flat_map(|size| at_size(&phase, grow, size)));
        }
    }
}

/// Returns the sizes: each is twice the one before, and the last is the number of clients.
fn sizes(grow: Grow, clients: u32) -> impl Iterator<Item = u32> {
    let first = grow.from.clamp(1, clients.max(1));
    std::iter::successors(Some(first), move |size| {
        (*size < clients).then(|| size.saturating_mul(2).min(clients))
    })
}

fn at_size(phase: &PhaseShape, grow: Grow, size: u32) -> [PhaseShape; 2] {
    let shape = |name: String, act, knee| PhaseShape {
        name,
        act,
        ask: Vec::new(),
        limit: phase.limit,
        expect: Expect::default(),
        knee,
    };
    let changes = PhaseShape {
        ask: phase.ask.clone(),
        expect: phase.expect.clone(),
        ..shape(format!("{size} clients"), Act::Change(grow.change), Some(grow.knee))
    };
    let join = Act::Join(Join {
        clients: Some(size),
        ..Join::default()
    });
    [shape(format!("{size} clients join"), join, Some(grow.knee)), changes]
}

impl Knee {
    /// Whether there is no point in a larger fleet.
    pub(super) const fn is_passed(&self) -> bool {
        self.is_sure
    }

    /// Returns where the knee is, as text.
    pub(super) fn text(&self) -> String {
        let at = |clients| format!("at {clients} clients");
        self.above.map_or_else(|| "none".to_owned(), at)
    }

    /// Looks at one size more.
    pub(super) fn look(&mut self, past: &Past, times: f64) {
        let clients = past.phase.clients;
        let Some(p99) = median_p99(&past.rounds).filter(|_| clients > 0) else {
            return;
        };
        let each = p99 / float(clients);
        if self.least.is_some_and(|least| each > least * times) {
            self.is_sure |= self.above.is_some();
            self.above = self.above.or(Some(clients));
        } else if !self.is_sure {
            self.above = None;
        }
        self.least = Some(self.least.map_or(each, |least| least.min(each)));
    }
}

/// In microseconds. The median, because some rounds are slow for reasons of the machine.
fn median_p99(rounds: &Rounds) -> Option<f64> {
    let mut all: Vec<_> = rounds.main.iter().map(|round| round.propagation.at(0.99)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).map(|micros| float(*micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_doubled_up_to_its_size() {
        let text = include_str!("../../scenarios/growth.yaml");
        let mut scenario = Scenario::parse("growth", text).unwrap();
        scenario.clients.count = 1000;
        scenario.write_out();
        let names: Vec<_> = scenario.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(
            names[..4],
            ["100 clients join", "100 clients", "200 clients join", "200 clients"]
        );
        assert_eq!(names[8..], ["1000 clients join", "1000 clients"]);
        assert_eq!(
            sizes(
                Grow {
                    from: 100,
                    ..grow(&scenario)
                },
                60
            )
            .collect::<Vec<_>>(),
            [60]
        );
    }

    fn grow(scenario: &Scenario) -> Grow {
        let change = scenario.phases.iter().find_map(|phase| {
            let Act::Change(change) = phase.act else { return None };
            Some(change)
        });
        Grow {
            from: 1,
            change: change.unwrap(),
            knee: 2.0,
        }
    }
}
