//! Tests of the gate between two runs: what it judges, and what it warns of.

use std::path::PathBuf;

use super::super::compare::Comparison;
use super::super::gate::{Gate, unlike};
use super::super::{Outputs, Voice};
use super::sample::small;
use crate::measure::record::{FORM, Record, Verdict};

/// A record in which everything held.
fn good() -> Record {
    let mut record = small();
    record.assertions.retain(|assertion| assertion.verdict == Verdict::Held);
    record.breaches.clear();
    record.breached = 0;
    record
}

fn judged(metric: &str, above: f64, a: &Record, b: &Record) -> (bool, String) {
    let judged = Gate::new(metric, above).unwrap().judge(&Comparison::of(a, b)).unwrap();
    (judged.held, judged.grid.to_string())
}

#[test]
fn a_figure_may_not_grow_by_more_than_its_limit() {
    let (a, mut b) = (good(), good());
    assert!(judged("p99", 1.0, &a, &b).0, "equal runs pass");
    b.phases[2].propagation = b.phases[0].join.clone();
    let (held, text) = judged("p99", 1.2, &a, &b);
    assert!(!held, "{text}");
    let row = text.lines().nth(1).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "FAILED changes p99 9.01 ms 99.0 ms 11.0 × ≤ 1.20 ×"
    );
    assert!(judged("p99", 12.0, &a, &b).0);
    assert!(judged("join-p99", 1.2, &a, &b).0, "another figure");
    assert!(!judged("p50", 1.2, &a, &b).0, "another one");
    assert!(judged("p99", 1.2, &b, &a).0, "it became faster");
}

#[test]
fn a_cost_after_none_is_more_than_any_multiple() {
    let (mut a, b) = (good(), good());
    for phase in &mut a.phases {
        phase.tool.cpu_ms = 0.0;
    }
    assert!(!judged("tool-cpu", 100.0, &a, &b).0);
    assert!(judged("tool-cpu", 1.0, &a, &a).0, "none after none is as much");
}

#[test]
fn a_gate_without_figures_is_an_error() {
    let error = Gate::new("p42", 1.2).err().unwrap().to_string();
    assert!(
        error.starts_with("--metric p42: there is no figure `p42`; use one of length, "),
        "{error}"
    );
    assert!(
        error.contains(", join-p99, ") && error.contains(", tools-share"),
        "{error}"
    );
    let (a, mut b) = (good(), good());
    b.phases.remove(2);
    let gate = Gate::new("p99", 1.2).unwrap();
    let error = gate.judge(&Comparison::of(&a, &b)).err().unwrap().to_string();
    assert!(error.contains("no phase has this figure in both runs"), "{error}");
}

#[test]
fn runs_that_are_not_alike_are_told() {
    let (a, mut b) = (good(), good());
    assert_eq!(unlike(&Comparison::of(&a, &b)), Vec::<String>::new());
    b.scenario = "steady".to_owned();
    b.setup = "200 clients".to_owned();
    b.machine.cores = 8;
    b.machine.processor = "Another".to_owned();
    b.machine.kernel = "6.9".to_owned();
    b.phases[0].clients = 50;
    b.phases.remove(1);
    b.breached = 1;
    let told = unlike(&Comparison::of(&a, &b)).join("\n");
    for (what, difference) in [
        ("scenario", "A has `churn`, B has `steady`"),
        ("setup", "B has `200 clients`"),
        ("number of processors", "A has `2`, B has `8`"),
        ("processor", "B has `Another`"),
        ("kernel", "A has `6.1`, B has `6.9`"),
        ("list of phases", "A has `join, rest, changes`, B has `join, changes`"),
    ] {
        let line = told
            .lines()
            .find(|line| line.starts_with(&format!("the {what} differs: ")));
        assert!(line.is_some_and(|line| line.ends_with(difference)), "{told}");
    }
    assert!(told.contains("phase `join` has 100 clients in A and 50 in B"), "{told}");
    assert!(told.ends_with("not everything held in B"), "{told}");
}

/// The gate as it is used: on the files that `--json` writes.
#[test]
fn the_gate_reads_files() {
    let folder = crate::wire::folder::Folder::new().unwrap();
    let file = |name: &str, record: &Record| -> PathBuf {
        let file = folder.0.join(name);
        std::fs::write(&file, serde_json::to_string(record).unwrap()).unwrap();
        file
    };
    let (a, mut b) = (good(), good());
    b.phases[2].propagation = b.phases[0].join.clone();
    let files = vec![file("a.json", &a), file("b.json", &b)];
    let compared = |above, quiet| {
        let outputs = Outputs {
            compare: files.clone(),
            fail_above: above,
            metric: "p99".to_owned(),
            quiet,
            ..Outputs::default()
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let held = outputs.compare(&mut out, &mut err).unwrap();
        let [out, err] = [out, err].map(|text| String::from_utf8(text).unwrap());
        (held, out, err)
    };
    let (held, out, err) = compared(None, false);
    assert!(held && out.contains("p99") && !out.contains("gate"), "{out}");
    assert_eq!(err, "", "the runs are alike");
    let (held, out, _) = compared(Some(1.2), false);
    assert!(!held && out.contains("\ngate\n") && out.contains("FAILED"), "{out}");
    let (held, out, err) = compared(Some(1.2), true);
    assert!(!held && out.is_empty() && err.contains("FAILED"), "{out} {err}");
    assert_eq!(compared(Some(20.0), true), (true, String::new(), String::new()));
    b.setup = "200 clients".to_owned();
    file("b.json", &b);
    assert!(compared(None, true).2.starts_with("warning: the setup differs"));
}

#[test]
fn a_record_of_another_version_is_refused() {
    let folder = crate::wire::folder::Folder::new().unwrap();
    let file = folder.0.join("old.json");
    let mut record = good();
    record.form = FORM + 1;
    std::fs::write(&file, serde_json::to_string(&record).unwrap()).unwrap();
    let error = super::super::read(&file).unwrap_err().to_string();
    assert!(
        error.contains("has format 5, but this program reads format 4: "),
        "{error}"
    );
}

#[test]
fn a_record_on_the_output_has_it_for_itself() {
    let voice = |json: Option<&str>, quiet| {
        let json = json.map(PathBuf::from);
        let outputs = Outputs {
            json,
            quiet,
            ..Outputs::default()
        };
        outputs.check().unwrap();
        outputs.voice()
    };
    assert_eq!(voice(None, false), Voice::Output);
    assert_eq!(voice(Some("record.json"), false), Voice::Output);
    assert_eq!(voice(Some("-"), false), Voice::Error);
    assert_eq!(voice(Some("-"), true), Voice::Silent);
    let failures = super::super::table::failures(&small());
    assert!(failures.contains("FAILED") && failures.contains("VOID") && failures.contains("client 17"));
    assert!(!failures.contains("all joined within"), "{failures}");
    assert!(
        failures.ends_with("2 of 4 assertions did not hold; breaches of the protocol: 3\n"),
        "{failures}"
    );
    let nothing = super::super::table::failures(&good());
    assert_eq!(
        nothing,
        "2 of 2 assertions held; no client saw a breach of the protocol\n"
    );
}
