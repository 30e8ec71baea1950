//! Tests that a record is true: times count from when things were due, and histograms are read back as they were written.

use std::time::Duration;

use super::now;
use crate::measure::loss::{Failure, Loss, Status};
use crate::measure::process::Process;
use crate::measure::record::{
    Claim, Distribution, Effort, Quantity, Ratio, Record, Recorder, Relation, Schedule, Unit, Verdict,
};
use crate::measure::tally::{Feed, Tally};

fn micros(values: impl IntoIterator<Item = u64>) -> Distribution {
    let mut distribution = Distribution::new().unwrap();
    for value in values {
        distribution.record(Duration::from_micros(value));
    }
    distribution
}

#[test]
fn a_histogram_comes_back_as_it_went() {
    let there = micros((1..=20_000).map(|value| value * 17));
    let text = serde_json::to_string(&there).unwrap();
    assert!(text.contains("\"hdr_v2\":\"HISTF"), "{text}");
    let back: Distribution = serde_json::from_str(&text).unwrap();
    assert_eq!(back, there);
    assert_eq!((back.count(), back.max()), (20_000, there.max()));

    // A histogram that another program wrote, with other bounds, can be added to our own.
    let mut sum = micros([5]);
    sum.add(&back).unwrap();
    assert_eq!(sum.count(), 20_001);
    assert!(serde_json::from_str::<Distribution>(&text.replace("HISTF", "HOSTF")).is_err());
}

#[test]
fn an_empty_histogram_has_no_percentiles() {
    let empty = micros([]);
    assert_eq!(empty.percentiles(), None);
    let text = serde_json::to_string(&empty).unwrap();
    assert_eq!(serde_json::from_str::<Distribution>(&text).unwrap(), empty);
}

#[test]
fn more_than_ten_minutes_count_as_ten() {
    let long = micros([3_600_000_000]);
    assert!(long.max() >= 599_000_000, "{}", long.max());
}

/// A publisher stalls for a second and publishes a hundred changes late; each arrives at once. Counted from publishing, each took
/// a millisecond; counted from when it was due, most took long, and that is what the record shows.
#[test]
fn a_stall_is_not_left_out() {
    let begin = now();
    let schedule = Schedule::new(begin, 100.0);
    let stalled_until = begin + Duration::from_secs(1);
    let feed = Feed::new().unwrap();
    for turn in 0..200 {
        let published = schedule.due(turn).max(stalled_until);
        let arrived = published + Duration::from_millis(1);
        feed.tally().deliver(arrived.duration_since(schedule.due(turn)));
    }
    let mut sum = Tally::new().unwrap();
    feed.take(&mut sum).unwrap();
    let late = sum.propagation;
    assert_eq!(late.count(), 200);
    assert!(late.at(0.5) < 20_000, "the second half was in time: {}", late.at(0.5));
    assert!(
        late.at(0.99) > 950_000,
        "the first was a second late: {}",
        late.at(0.99)
    );
    let three_quarters = late.at(0.75);
    assert!((495_000..505_000).contains(&three_quarters), "{three_quarters}");
}

#[test]
fn what_is_taken_stays_in_the_total() {
    let feed = Feed::new().unwrap();
    let mut sum = Tally::new().unwrap();
    feed.tally().bytes += 7;
    feed.take(&mut sum).unwrap();
    feed.tally().bytes += 4;
    let mut total = Tally::new().unwrap();
    feed.total(&mut total).unwrap();
    assert_eq!((sum.bytes, total.bytes), (7, 11));
}

fn at_most(bound: f64, measured: f64, timed: bool) -> Claim<'static> {
    Claim {
        text: "a figure",
        measured: Quantity::new(measured, Unit::Millis),
        relation: Relation::AtMost,
        bound,
        timed,
        effort: None,
        why: None,
    }
}

/// A time says nothing about the server if the tool took most of the processor time; a count does. A tool that took nearly nothing
/// was not in the way.
#[test]
fn a_busy_tool_voids_times_alone() {
    let recorder = Recorder::new("test", now()).unwrap();
    recorder.begin("first", now()).unwrap();
    let claim = |timed, share, load| Claim {
        effort: Some(Effort { share, load }),
        ..at_most(5.0, 4.0, timed)
    };
    assert_eq!(recorder.claim(&claim(true, 0.7, 0.5)), Verdict::Void);
    assert_eq!(recorder.claim(&claim(true, 0.5, 0.5)), Verdict::Held);
    assert_eq!(recorder.claim(&claim(false, 0.7, 0.5)), Verdict::Held);
    assert_eq!(recorder.claim(&claim(true, 0.97, 0.004)), Verdict::Held);
}

/// Of a phase, the tool's load is its processor time by the time that passed.
#[test]
fn a_tool_that_idles_beside_an_idle_server_voids_nothing() {
    let mut server = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let begin = now();
    let recorder = Recorder::new("test", begin).unwrap();
    recorder.watch(&Process::of(server.id())).unwrap();
    recorder.begin("first", begin).unwrap();
    // As if an hour had passed; the system may count processor time only from time to time.
    let share = || {
        recorder
            .look(begin + Duration::from_secs(3600))
            .unwrap()
            .unwrap()
            .figures
            .tool_share
    };
    while share().is_none() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "no processor time is counted"
        );
    }
    assert!(share().unwrap() > 0.6);
    assert_eq!(recorder.claim(&at_most(5.0, 4.0, true)), Verdict::Held);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_run_is_recorded_phase_by_phase() {
    let begin = now();
    let at = |millis| begin + Duration::from_millis(millis);
    let recorder = Recorder::new("test", begin).unwrap();
    let feed = Feed::new().unwrap();
    recorder.attach(vec![feed.clone()], || crate::measure::record::Fleets {
        clients: 3,
        with_stream: Some(2),
        owed: Some(2),
    });
    recorder.begin("first", at(0)).unwrap();
    feed.tally().deliver(Duration::from_millis(10));
    let live = recorder.tick(at(1000)).unwrap();
    assert_eq!((live.phase.as_deref(), live.second.deliveries), (Some("first"), 1));
    feed.tally().deliver(Duration::from_millis(30));
    let ended = Loss::Stream(Status::read("0"));
    feed.tally()
        .losses
        .extend([(ended, 2), (Loss::Connection(Failure::Refused), 1)]);
    recorder.begin("second", at(1500)).unwrap();
    assert_eq!(recorder.claim(&at_most(5.0, 5.0, false)), Verdict::Held);
    assert_eq!(recorder.claim(&at_most(5.0, f64::NAN, false)), Verdict::Failed);
    recorder.end(at(2500)).unwrap();
    recorder.claim(&at_most(5.0, 5.1, false));
    let record = recorder.finish(at(3000)).unwrap();

    let [first, second] = record.phases.as_slice() else {
        panic!("{:?}", record.phases)
    };
    assert_eq!(
        (first.series.len(), first.propagation.count(), first.clients),
        (2, 2, 3)
    );
    assert_eq!((second.series.len(), second.propagation.count()), (1, 0));
    assert!((first.length_ms - 1500.0).abs() < 1e-6 && (second.start_ms - 1500.0).abs() < 1e-6);
    assert_eq!(
        (second.series[0].owed, second.series[0].with_stream),
        (Some(2), Some(2))
    );
    assert_eq!(first.with_stream, Some(2));
    let lost = [("streams ended: OK", 2.0), ("connections failed: refused", 1.0)];
    for (name, count) in lost {
        assert_eq!((first.counters[name], record.counters[name]), (count, count), "{name}");
    }
    let phases: Vec<_> = record.assertions.iter().map(|it| it.phase.as_deref()).collect();
    assert_eq!(phases, [Some("second"), Some("second"), None]);
    assert!(!record.held());

    let text = serde_json::to_string_pretty(&record).unwrap();
    let back: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(back.phases[0].propagation, record.phases[0].propagation);
    assert_eq!((back.counters, back.assertions), (record.counters, record.assertions));
}

#[test]
fn the_middle_of_ratios_is_that_of_the_rounds() {
    let ratio = |rounds: &[f64]| Ratio {
        what: "cpu".to_owned(),
        rounds: rounds.to_vec(),
    };
    assert_eq!(ratio(&[9.0, 1.0, 1.5]).quantile(0.5), Some(1.5));
    assert_eq!(ratio(&[1.0, 2.0]).quantile(0.5), Some(1.5));
    assert_eq!(ratio(&[]).quantile(0.5), None);
}

#[test]
fn quantities_are_written_with_three_digits_and_a_unit() {
    for (value, unit, text) in [
        (12.0, Unit::Count, "12"),
        (1234.0, Unit::Bytes, "1.21 KiB"),
        (3.5e9, Unit::Bytes, "3.26 GiB"),
        (950.0, Unit::Micros, "950 µs"),
        (12_345.0, Unit::Micros, "12.3 ms"),
        (2_000_000.0, Unit::Micros, "2.00 s"),
        (61_000.0, Unit::Millis, "61.0 s"),
        (1.0, Unit::Times, "1.00 ×"),
        (0.5, Unit::Percent, "0.50 %"),
        (0.0, Unit::Percent, "0 %"),
        (5_242_880.0, Unit::Bytes, "5.00 MiB"),
    ] {
        assert_eq!(Quantity::new(value, unit).to_string(), text);
    }
}
