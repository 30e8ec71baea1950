// SPDX-License-Identifier: Apache-2.0
//! Tests of changes that a command makes at a control plane that is not this program's.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use distributary::json::{Bounds, Schemas, Tree, Unknown};

use super::foreign::another;
use super::now;
use super::scenarios::try_record;
use crate::measure::record::Record;
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::story::command;
use crate::story::file::Scenario;
use crate::wire::folder::Folder;
use crate::wire::kind::Kind;

fn scenario(act: &str) -> anyhow::Result<Scenario> {
    let read = Scenario::read(
        "here",
        &format!(
            "description: Changes.
world: {{ cds: {{ count: 3, bytes: 200 }} }}
clients: {{ count: 4, groups: [{{ kind: envoy }}, {{ kind: clusters, dialect: sotw }}] }}
phases:
  - {{ name: join, do: {{ join: {{}} }} }}
  - {{ name: changes, do: {act}, expect: {{ delivered_once: true, reaches_all_within: 10s }} }}
"
        ),
        None,
        &[],
    );
    Ok(read?)
}

/// Changes a cluster each time the file has another content.
fn follow(file: &Path, world: Arc<World>) -> (std::sync::mpsc::SyncSender<()>, std::thread::JoinHandle<()>) {
    let (file, mut before) = (file.to_owned(), String::new());
    let (stop, stopped) = std::sync::mpsc::sync_channel::<()>(1);
    let thread = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(5)).is_err() {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') && text != before {
                before = text;
                world.ledger(Kind::Cds).unwrap().change(1, 0, false, now());
            }
        }
    });
    (stop, thread)
}

fn run(act: impl Fn(&Path) -> String) -> Record {
    let (plane, world) = another();
    let folder = Folder::new().unwrap();
    let file = folder.0.join("change");
    let (stop, thread) = follow(&file, world);
    let record = try_record(&scenario(&act(&file)).unwrap(), &format!("--server {}", plane.address)).unwrap();
    stop.send(()).unwrap();
    thread.join().unwrap();
    record
}

#[test]
fn a_command_is_timed_until_all_clients_have_other_content() {
    for how in ["", ", rate: 5"] {
        let record = run(|file| {
            format!(
                "{{ exec: {{ command: 'echo {{n}} > {}', times: 3{how} }} }}",
                file.display()
            )
        });
        assert!(record.held(), "{how}: {:#?}", record.assertions);
        assert_eq!(record.phases[1].propagation.count(), 12, "{how}");
        let slowest = record
            .assertions
            .iter()
            .filter(|it| it.text == "slowest change at a client");
        assert_eq!(slowest.count(), 1, "{how}");
    }
    let short = run(|file| format!("{{ exec: {{ command: 'echo once > {}' }} }}", file.display()));
    assert!(short.held(), "{:#?}", short.assertions);
    assert_eq!(short.phases[1].propagation.count(), 4);
}

#[test]
fn a_command_that_fails_the_third_time_ends_the_phase() {
    let record = run(|file| {
        let command = format!("test {{n}} -lt 3 && echo {{n}} > {}", file.display());
        format!("{{ exec: {{ command: '{command}', times: 5 }} }}")
    });
    let failed = record.assertions.iter().find(|it| !it.held()).unwrap();
    let why = failed.why.as_deref().unwrap();
    assert!(
        why.contains("change 3 of 5") && why.contains("failed (exit status: 1)"),
        "{why}"
    );
    assert_eq!(record.phases[1].propagation.count(), 8);
    assert_eq!(record.breached, 0);
}

fn blocking<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

#[test]
fn a_command_has_bounds() {
    let run = |text: &str, millis| {
        blocking(command::run(text, Duration::from_millis(millis))).map_err(|it| format!("{it:#}"))
    };
    // On a busy machine it may be killed before it has said anything.
    let spoke = [300, 3000, 30_000].into_iter().find(|millis| {
        let hangs = run("echo waiting; sleep 1000", *millis).unwrap_err();
        let within = Duration::from_millis(*millis);
        let killed = format!("did not end within {within:?} and was killed; it said");
        assert!(hangs.contains(&killed), "{hangs}");
        hangs.ends_with(": waiting")
    });
    assert!(spoke.is_some());
    let floods = run("yes", 300).unwrap_err();
    assert!(floods.contains("did not end") && floods.len() < 10_000);
    run("head -c 100000000 /dev/zero", 60_000).unwrap();
    let fails = run("echo one; echo two >&2; exit 3", 10_000).unwrap_err();
    assert!(fails.contains("exit status: 3") && fails.contains("two"), "{fails}");
    // What it leaves running holds nobody up, and ends.
    let folder = Folder::new().unwrap();
    let file = folder.0.join("pid");
    run(&format!("sleep 1000 & echo $! > {}", file.display()), 60_000).unwrap();
    let left = std::fs::read_to_string(&file).unwrap();
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
        !(stat.is_empty() || stat.contains(") Z "))
    };
    let begin = now();
    while runs() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_change_from_outside_must_make_sense() {
    for (act, words) in [
        ("{ exec: { command: '' } }", "empty command"),
        ("{ exec: { command: x, times: 0 } }", "times: 0"),
        ("{ exec: { command: x, rate: 0 } }", "not positive"),
        ("{ exec: { command: x, within: 11m } }", "at most 600s"),
    ] {
        let error = format!("{:#}", scenario(act).unwrap_err());
        assert!(error.contains(words), "{act}: {error}");
    }
    let own = scenario("{ exec: { command: x } }")
        .unwrap()
        .missing(false)
        .pop()
        .unwrap()
        .what;
    assert!(own.contains("use `change`"), "{own}");
    let text = "description: d
changed_at: { cds: 'a..b' }
world: { cds: { count: 1 } }
clients: { count: 1, groups: [{ kind: clusters }] }
phases: [{ name: join, do: { join: {} } }]";
    assert!(format!("{:#}", Scenario::read("here", text, None, &[]).unwrap_err()).contains("empty field"));
}

fn cluster(at: &str) -> Vec<u8> {
    let json = format!(r#"{{"name": "a", "metadata": {{"filter_metadata": {{"load": {{"at": {at}}}}}}}}}"#);
    let tree = Tree::json(json.as_bytes(), Bounds::REQUEST).unwrap();
    let name = "envoy.config.cluster.v3.Cluster";
    Schemas::standard()
        .encode(name, &tree, "", Unknown::Deny)
        .unwrap()
        .value
        .to_vec()
}

/// A change is timed from the time that stands in it, also at the first client.
#[test]
fn a_mark_says_when_a_change_was_made() {
    let bell = Arc::<crate::origin::ledger::Bell>::default();
    let path = "metadata.filter_metadata.load.at".to_owned();
    bell.trials.set_marks(&[(Kind::Cds, path)].into());
    let ledger = Ledger::learning(Kind::Cds, bell);
    let index = ledger.index(b"a").unwrap();
    #[expect(clippy::disallowed_methods, reason = "a mark is a time of day")]
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let age = Duration::from_secs(5);
    let since = unix - age;
    let mut held = ledger.learn(index, None, Some(b"old"), now()).unwrap().content.serial;
    for at in [
        since.as_secs().to_string(),
        since.as_millis().to_string(),
        format!("\"{}\"", since.as_micros()),
        since.as_nanos().to_string(),
    ] {
        let at_client = now();
        let lesson = ledger.learn(index, Some(held), Some(&cluster(&at)), at_client).unwrap();
        held = lesson.content.serial;
        let taken = at_client - lesson.since.unwrap_or_else(|| panic!("{at}"));
        assert!(
            taken >= age - Duration::from_secs(1) && taken < age + Duration::from_secs(30),
            "{at}: {taken:?}"
        );
    }
    for none in ["\"no time\"", "[1]", "7", "\"2020-01-01T00:00:00Z\""] {
        let lesson = ledger.learn(index, Some(held), Some(&cluster(none)), now()).unwrap();
        held = lesson.content.serial;
        assert!(lesson.since.is_none(), "{none}");
    }
    // In RFC 3339, the future is now.
    let future = cluster("\"2999-01-01T00:00:00Z\"");
    let lesson = ledger.learn(index, Some(held), Some(&future), now()).unwrap();
    assert!(lesson.since.is_some());
}
