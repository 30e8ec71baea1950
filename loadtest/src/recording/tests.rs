//! Tests of the format of recordings: a good one comes back as it went, and a bad one is told from it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Parser as _;

use super::{Event, Head, Recording, Sink};
use crate::command::arguments::Arguments;
use crate::wire::folder::Folder;
use crate::wire::kind::Kind;

fn arguments(words: &str) -> Arguments {
    Arguments::try_parse_from(["distributary-load"].into_iter().chain(words.split_whitespace())).unwrap()
}

fn read(file: &Path) -> Recording {
    Recording::read(file, &mut |text| panic!("{text}")).unwrap()
}

/// A whole run may have a recorded control plane.
#[test]
fn a_recording_stands_in_for_a_control_plane() {
    let folder = Folder::new().unwrap();
    let file = written(&folder, &[event(0, 0, "a"), event(5, 0, "b"), event(6, 1, "b")]);
    let player = arguments("").player(&file, &mut |text| panic!("{text}")).unwrap();
    assert_eq!(player.place().unwrap().uri(), format!("http://{}", player.address()));
    let playing = arguments(&format!("--play {} --as nobody", file.display()));
    let error = playing.player(&file, &mut |_| {}).err().unwrap().to_string();
    assert_eq!(
        error,
        "--as nobody: the recording has no such client; it has edge-0, edge-1"
    );
    for (wrong, says) in [
        ("--play x --server 127.0.0.1:1", "cannot be used with"),
        ("--play x --upstream 127.0.0.1:1", "cannot be used with"),
        ("--pace 0", "how many times as fast"),
        ("--pace fast", "how many times as fast"),
    ] {
        let words = ["distributary-load"].into_iter().chain(wrong.split_whitespace());
        let error = Arguments::try_parse_from(words).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

fn event(at_ms: u64, client: usize, name: &str) -> Event {
    Event {
        at_ms,
        client,
        kind: Kind::Cds,
        name: name.to_owned(),
        body: Some(Bytes::from(format!("\n\u{1}{name}"))),
    }
}

fn written(folder: &Folder, events: &[Event]) -> PathBuf {
    let file = folder.0.join("written.jsonl");
    let clients = vec!["edge-0".to_owned(), "edge-1".to_owned()];
    let mut sink = Sink::create(&file, &Head::new("http://origin:1".to_owned(), 7, clients), false).unwrap();
    for event in events {
        assert!(sink.write(event).unwrap());
    }
    assert_eq!(sink.close(60_000).unwrap(), u64::try_from(events.len()).unwrap());
    file
}

#[test]
fn a_recording_comes_back_as_it_went() {
    let folder = Folder::new().unwrap();
    let mut removal = event(9, 1, "b");
    removal.body = None;
    let events = vec![event(0, 0, "a"), event(9, 0, "b"), removal];
    let back = read(&written(&folder, &events));
    assert_eq!((back.events, back.length_ms), (events, 60_000));
    let text = std::fs::read_to_string(folder.0.join("written.jsonl")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    assert_eq!(
        lines,
        [
            r#"{"distributary_recording":1,"server":"http://origin:1","begun_unix":7,"clients":["edge-0","edge-1"]}"#
                .to_owned(),
            format!(r#"{{"at_ms":0,"client":0,"type":"{url}","name":"a","body":"CgFh"}}"#),
            format!(r#"{{"at_ms":9,"client":0,"type":"{url}","name":"b","body":"CgFi"}}"#),
            format!(r#"{{"at_ms":9,"client":1,"type":"{url}","name":"b"}}"#),
            r#"{"end_ms":60000,"events":3}"#.to_owned(),
        ]
    );
}

/// A recorder that was killed leaves the last line out, or half of it.
#[test]
fn a_torn_recording_is_played_as_far_as_it_goes() {
    let folder = Folder::new().unwrap();
    let file = written(&folder, &[event(0, 0, "a"), event(5, 0, "b")]);
    let text = std::fs::read_to_string(&file).unwrap();
    for cut in [text.len() - 1, text.len() - 10, text.rfind("{\"end").unwrap()] {
        std::fs::write(&file, &text[..cut]).unwrap();
        let mut warned = Vec::new();
        let torn = Recording::read(&file, &mut |text| warned.push(text.to_owned())).unwrap();
        assert_eq!((torn.events.len(), torn.length_ms), (2, 5));
        assert!(
            warned[0].ends_with("is torn: it was not closed. What is there is played, up to 5 ms"),
            "{warned:?}"
        );
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new().unwrap();
    let file = written(&folder, &[event(3, 0, "a"), event(5, 1, "b")]);
    let good = std::fs::read_to_string(&file).unwrap();
    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        format!("{:#}", Recording::read(&file, &mut |_| {}).unwrap_err())
    };
    let cluster = "envoy.config.cluster.v3.Cluster";
    let secret = "envoy.extensions.transport_sockets.tls.v3.Secret";
    for (text, says) in [
        (String::new(), "is no recording: its first line is not whole"),
        (
            "{\"a\":1}\n".to_owned(),
            "jsonl:1: this is no recording; `distributary-load record` makes one",
        ),
        (
            good.replace("recording\":1", "recording\":2"),
            "the recording has format 2, but this program reads format 1",
        ),
        (
            good.replace(cluster, secret),
            "jsonl:2: recordings have no resources of type `type.googleapis.com/envoy.ext",
        ),
        (
            good.replace("\"client\":1", "\"client\":2"),
            "jsonl:3: there is no client 2",
        ),
        (
            good.replace("\"at_ms\":5", "\"at_ms\":2"),
            "jsonl:3: this happened before the line above it",
        ),
        (good.replace("CgFh", "C!"), "jsonl:2: the body is not base64"),
        (
            good.replace("\"events\":2", "\"events\":3"),
            "jsonl:4: the recording had 3 events, but 2 are here",
        ),
        (
            format!("{good}{good}"),
            "jsonl:5: there is more after the last line of the recording",
        ),
        (
            good.replace("\"edge-0\",\"edge-1\"", ""),
            "a recording has 1 to 8 clients, but this has 0",
        ),
        (good.replacen("{\"at_ms\":3", "{\"at\":3", 1), "jsonl:2: "),
    ] {
        let error = refused(&text);
        assert!(error.contains(says), "{says}: {error}");
    }
    let file = std::fs::File::create(&file).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let error = format!(
        "{:#}",
        Recording::read(&folder.0.join("written.jsonl"), &mut |_| {}).unwrap_err()
    );
    assert!(error.contains("a recording has at most 1073741824"), "{error}");
    let mut endless = std::fs::File::create(folder.0.join("written.jsonl")).unwrap();
    endless.write_all(b"no line").unwrap();
    let error = format!(
        "{:#}",
        Recording::read(&folder.0.join("written.jsonl"), &mut |_| {}).unwrap_err()
    );
    assert!(error.contains("is no recording"), "{error}");
}
