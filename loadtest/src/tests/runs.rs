//! That a whole run holds: control plane and fleet over real sockets.

use clap::Parser as _;

use super::now;
use crate::arguments::Arguments;
use crate::record::Recorder;

fn run(words: &str) {
    let arguments =
        format!("distributary-load --direct --clients 20 --resources 50 --changes 10 --rate 200 --idle 0 {words}");
    let arguments = Arguments::parse_from(arguments.split(' '));
    let recorder = Recorder::new("churn", now()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime
        .block_on(crate::scenario::run(&arguments, &recorder, &mut |_: &str| {}))
        .unwrap();
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.deliveries > 0);
    assert_eq!(report.deliveries, report.deliveries_expected);
    assert_eq!(report.upstream_streams, 20);
}

#[test]
fn a_whole_run_holds_in_delta() {
    run("--dialect delta --threads 2");
}

#[test]
fn a_whole_run_holds_in_sotw() {
    run("--dialect sotw");
}

#[test]
fn a_whole_run_holds_by_name() {
    run("--kind eds --names 10");
    run("--kind eds --names 10 --dialect sotw");
}
