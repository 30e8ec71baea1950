// SPDX-License-Identifier: Apache-2.0
//! The smallest records that still have every kind of content.

use std::time::Duration;

use crate::measure::record::{
    Assertion, Base, Breach, Distribution, FORM, Machine, Note, Percentiles, Phase, Quantity, Ratio, Record, Relation,
    Second, ServerCost, ToolCost, Unit, Verdict,
};

const MIB: u64 = 1024 * 1024;

fn millis(values: impl IntoIterator<Item = u64>) -> Distribution {
    let mut distribution = Distribution::new().unwrap();
    for value in values {
        distribution.record(Duration::from_millis(value));
    }
    distribution
}

fn phase(name: &str, start_ms: f64, length_ms: f64, clients: u64) -> Phase {
    Phase {
        length_ms,
        clients,
        ..Phase::blank(name, start_ms, &millis([]))
    }
}

fn second(at_ms: f64, clients: u64, resident_bytes: u64) -> Second {
    Second {
        at_ms,
        span_ms: 1000.0,
        server_cpu_percent: Some(10.0),
        tool_cpu_percent: 15.0,
        resident_bytes: Some(resident_bytes),
        clients,
        ..Second::default()
    }
}

fn counters(of: &[(&str, f64)]) -> std::collections::BTreeMap<String, f64> {
    of.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
}

/// Three phases; four assertions of which two did not hold; one breach.
pub(super) fn small() -> Record {
    let mut join = phase("join", 0.0, 2000.0, 100);
    join.join = millis(1..=100);
    join.series = vec![second(1000.0, 40, 3 * MIB), second(2000.0, 100, 5 * MIB)];
    join.counters = counters(&[("responses", 100.0), ("bytes", 1_024_000.0)]);
    let mut rest = phase("rest", 2000.0, 5000.0, 100);
    rest.series = (3..=7).map(|at| second(f64::from(at) * 1e3, 100, 5 * MIB)).collect();
    for phase in [&mut join, &mut rest] {
        phase.server = Some(ServerCost {
            cpu_ms: 200.0,
            idle_ms: 0.0,
            resident_bytes: 5 * MIB,
            peak_bytes: 9 * MIB,
        });
        phase.figures.bytes_per_client = Some(41_943.04);
    }
    Record {
        form: FORM,
        scenario: "churn".to_owned(),
        setup: "100 clients, 10 resources <1 KB>".to_owned(),
        command: ["distributary-load", "--clients", "100"].map(str::to_owned).to_vec(),
        commit: Some("0123abc".to_owned()),
        machine: Machine {
            cores: 2,
            memory_bytes: 4 * 1024 * MIB,
            processor: "Some \"Processor\"".to_owned(),
            kernel: "6.1".to_owned(),
        },
        start_unix: 1_795_189_616,
        length_ms: 9000.0,
        base: Some(Base {
            clients: 0,
            resident_bytes: MIB,
        }),
        phases: vec![join, rest, changes()],
        counters: counters(&[("bytes", 1_843_200.0), ("responses", 900.0), ("upstream streams", 1.0)]),
        notes: vec![Note {
            phase: Some("changes".to_owned()),
            what: "bodies, encoded".to_owned(),
            value: "8".to_owned(),
        }],
        assertions: assertions(),
        breaches: vec![Breach {
            phase: Some("changes".to_owned()),
            client: 17,
            what: "`a` came with older content than the client holds".to_owned(),
            transcript: ["-> cds *", "<- cds [a@1 & b@1] nonce \"3\"", "-> ack \"3\""]
                .map(str::to_owned)
                .to_vec(),
        }],
        breached: 3,
    }
}

/// A phase in whose second second nothing arrives.
fn changes() -> Phase {
    let mut phase = phase("changes", 7000.0, 2000.0, 100);
    phase.propagation = millis((0..800).map(|turn| 1 + turn % 9));
    phase.waits = millis((0..100).map(|turn| 1 + turn % 2));
    let mut first = second(8000.0, 100, 5 * MIB);
    first.deliveries = 400;
    first.messages = 400;
    first.bytes = 409_600;
    first.owed = Some(3);
    first.propagation_micros = Some(Percentiles {
        p50: 4000,
        p90: 8000,
        p99: 9000,
        max: 9000,
    });
    let mut last = second(9000.0, 100, 5 * MIB);
    last.owed = Some(0);
    phase.series = vec![first, last];
    phase.counters = counters(&[("responses", 800.0), ("bytes", 819_200.0), ("deliveries", 800.0)]);
    phase.server = Some(ServerCost {
        cpu_ms: 200.0,
        idle_ms: 20.0,
        resident_bytes: 5 * MIB,
        peak_bytes: 9 * MIB,
    });
    phase.tool = ToolCost {
        cpu_ms: 300.0,
        clients_ms: 250.0,
        control_plane_ms: 20.0,
    };
    phase.figures = phase.figures(Some(Base {
        clients: 0,
        resident_bytes: MIB,
    }));
    phase.ratios = vec![Ratio {
        what: "processor time".to_owned(),
        rounds: vec![1.5, 1.3, 1.4, 9.0],
    }];
    phase
}

fn assertions() -> Vec<Assertion> {
    let assertion = |phase: Option<&str>, text: &str, (bound, measured, unit), verdict| Assertion {
        phase: phase.map(str::to_owned),
        text: text.to_owned(),
        relation: Relation::AtMost,
        bound: Some(Quantity::new(bound, unit)),
        measured: Some(Quantity::new(measured, unit)),
        verdict,
        why: None,
    };
    let mut void = assertion(
        Some("changes"),
        "p99, times the floor's",
        (2.0, 1.7, Unit::Times),
        Verdict::Void,
    );
    void.why = Some("the tool took 71 % of all processor time".to_owned());
    vec![
        assertion(
            Some("join"),
            "all joined within",
            (60_000.0, 1930.0, Unit::Millis),
            Verdict::Held,
        ),
        assertion(
            Some("changes"),
            "p99 of propagation",
            (8000.0, 9000.0, Unit::Micros),
            Verdict::Failed,
        ),
        void,
        assertion(
            None,
            "memory at the most",
            (1e7, 9_437_184.0, Unit::Bytes),
            Verdict::Held,
        ),
    ]
}
