// SPDX-License-Identifier: Apache-2.0
//! Tests that the page of keys is true: it lists exactly what a scenario accepts, and its defaults and examples are those of the
//! program.

use std::collections::BTreeSet;

use crate::story::file::Scenario;
use crate::story::keys::{self, Key};

/// Where the keys of each place stand: `@` is the place with the keys that it needs, `%` one more key.
const PLACES: [(&str, &str, &str); 21] = [
    ("", "@", "description: d"),
    ("world", "description: d\nworld: @", ""),
    ("world.cds", "description: d\nworld: { cds: @ }", "count: 1"),
    ("control_plane", "description: d\ncontrol_plane: @", ""),
    ("relay", "description: d\nrelay: @", ""),
    ("tls", "description: d\ntls: @", ""),
    ("clients", "description: d\nclients: @", "count: 1"),
    (
        "clients.groups[]",
        "description: d\nclients: { count: 1, groups: [@] }",
        "kind: envoy",
    ),
    (
        "clients.groups[].names",
        "description: d\nclients: { count: 1, groups: [{ kind: envoy, names: @ }] }",
        "count: 1",
    ),
    ("phases[]", "description: d\nphases: [@]", "name: a, do: { join: {} }"),
    (
        "phases[].ask[]",
        "description: d\nphases: [{ name: a, do: { join: {} }, ask: [@] }]",
        "path: /, rate: 1",
    ),
    (
        "phases[].do.join",
        "description: d\nphases: [{ name: a, do: { join: @ } }]",
        "",
    ),
    (
        "phases[].do.change",
        "description: d\nphases: [{ name: a, do: { change: @ } }]",
        "kind: cds, pattern: one, times: 1",
    ),
    (
        "phases[].do.exec",
        "description: d\nphases: [{ name: a, do: { exec: @ } }]",
        "command: x",
    ),
    (
        "phases[].do.want",
        "description: d\nphases: [{ name: a, do: { want: @ } }]",
        "kind: cds, one_in: 1",
    ),
    (
        "phases[].do.remove",
        "description: d\nphases: [{ name: a, do: { remove: @ } }]",
        "kind: cds, count: 1",
    ),
    (
        "phases[].do.reconnect",
        "description: d\nphases: [{ name: a, do: { reconnect: @ } }]",
        "one_in: 1, pause: 1s",
    ),
    (
        "phases[].do.chaos",
        "description: d\nphases: [{ name: a, do: { chaos: @ } }]",
        "time: 1s",
    ),
    (
        "phases[].expect.memory_grows_at_most",
        "description: d\nphases: [{ name: a, do: { join: {} }, expect: { memory_grows_at_most: @ } }]",
        "since: a, per_client: 1",
    ),
    (
        "phases[].expect.each_stalled",
        "description: d\nphases: [{ name: a, do: { join: {} }, expect: { each_stalled: @ } }]",
        "since: a, process: 1, kernel: 1",
    ),
    (
        "phases[].expect.compared[]",
        "description: d\nphases: [{ name: a, do: { join: {} }, expect: { compared: [@] } }]",
        "what: p99, to: a",
    ),
];

/// Where one of several words stands.
const CHOICES: [(&str, &str); 4] = [
    (
        "clients.groups[].kind",
        "description: d\nclients: { count: 1, groups: [{ kind: @ }] }",
    ),
    ("phases[].do", "description: d\nphases: [{ name: a, do: @ }]"),
    (
        "phases[].do.change.pattern",
        "description: d\nphases: [{ name: a, do: { change: { kind: cds, times: 1, pattern: @ } } }]",
    ),
    (
        "phases[].expect.compared[].what",
        "description: d\nphases: [{ name: a, do: { join: {} }, expect: { compared: [{ to: a, what: @ }] } }]",
    ),
];

fn read(text: &str) -> Result<String, String> {
    let read: Result<Scenario, _> = serde_saphyr::from_str(text);
    read.map(|scenario| format!("{scenario:?}"))
        .map_err(|error| error.to_string())
}

/// The words that an error lists after `expected`.
fn expected(error: &str) -> BTreeSet<String> {
    let (_, list) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
    let list = list.lines().next().unwrap().trim_start_matches("one of ");
    let words = list.split([',', ' ']).filter(|word| !word.is_empty() && *word != "or");
    words.map(|word| word.trim_matches('`').to_owned()).collect()
}

fn listed(place: &str) -> Vec<Key> {
    Key::all().into_iter().filter(|key| key.place == place).collect()
}

fn names(place: &str) -> BTreeSet<String> {
    listed(place).iter().map(|key| key.name.to_owned()).collect()
}

/// The text of a scenario in which a place holds these keys; at the top they stand in lines.
fn with(frame: &str, keys: &[&str]) -> String {
    let keys: Vec<_> = keys.iter().copied().filter(|key| !key.is_empty()).collect();
    let whole = match frame {
        "@" => keys.join("\n"),
        _ => format!("{{ {} }}", keys.join(", ")),
    };
    frame.replace('@', &whole)
}

#[test]
fn every_place_is_listed() {
    let places: BTreeSet<_> = Key::all().iter().map(|key| key.place).collect();
    let known = PLACES
        .iter()
        .map(|(place, ..)| *place)
        .chain(CHOICES.map(|(place, _)| place));
    let expect = "phases[].expect";
    assert_eq!(places, known.chain([expect]).collect());
}

#[test]
fn the_page_lists_what_is_accepted() {
    let expect = (
        "phases[].expect",
        "description: d\nphases: [{ name: a, do: { join: {} }, expect: @ }]",
        "",
    );
    for (place, frame, needed) in PLACES.iter().chain([&expect]) {
        let wrong = read(&with(frame, &[needed, "zzz: 1"])).unwrap_err();
        assert_eq!(names(place), expected(&wrong), "{place}: {wrong}");
        let optional = with(frame, &[needed]);
        let whole = read(&optional).unwrap_or_else(|error| panic!("{place}: {error}"));
        for key in listed(place) {
            let is_needed = needed
                .split(", ")
                .any(|one| one.starts_with(&format!("{}: ", key.name)))
                || needed.contains(&format!(", {}: ", key.name));
            assert_eq!(is_needed, key.default == "needed", "{place}.{}", key.name);
            if is_needed {
                continue;
            }
            let written = |value: &str| read(&with(frame, &[needed, &format!("{}: {value}", key.name)]));
            let example = written(key.example).unwrap_or_else(|error| panic!("{place}.{}: {error}", key.name));
            // Other defaults are sentences.
            let literal = key.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            if let Some(default) = literal.filter(|text| !text.contains('`')) {
                let default = written(default).unwrap();
                assert_eq!(default, whole, "{place}.{}: the default is {}", key.name, key.default);
                assert_ne!(example, whole, "{place}.{}: the example is the default", key.name);
            }
        }
    }
}

#[test]
fn the_page_lists_what_can_be_chosen() {
    for (place, frame) in CHOICES {
        let wrong = read(&frame.replace('@', "zzz")).unwrap_err();
        assert_eq!(names(place), expected(&wrong), "{place}: {wrong}");
        for key in listed(place) {
            let value = if key.form.is_empty() {
                key.name.to_owned()
            } else {
                format!("{{ {}: {} }}", key.name, key.example)
            };
            read(&frame.replace('@', &value)).unwrap_or_else(|error| panic!("{place}.{}: {error}", key.name));
        }
    }
}

#[test]
fn a_key_is_explained_by_its_name_or_the_end_of_its_path() {
    let one = keys::explain("p99_below").unwrap();
    assert_eq!(
        one,
        "phases[].expect.p99_below\n  Their 99th percentile\n  form: time\n  example: p99_below: 200ms\n\n"
    );
    let several = keys::explain("count").unwrap();
    for path in [
        "world.cds.count",
        "clients.count",
        "clients.groups[].names.count",
        "phases[].do.remove.count",
    ] {
        assert!(several.contains(path), "{several}");
    }
    let end = keys::explain("groups.names.count").unwrap();
    assert!(
        end.starts_with("clients.groups[].names.count\n") && end.matches("form:").count() == 1,
        "{end}"
    );
    assert!(end.contains("default: needed") && keys::explain("per_connection").unwrap().contains("default: 1"));
    let like = keys::explain("p99").map(|text| text.contains("compared[].what.p99"));
    assert!(like.unwrap());
    let like = keys::explain("memory_").unwrap_err().to_string();
    assert!(
        like.contains("these are like it: phases[].expect.memory_below"),
        "{like}"
    );
    let meant = keys::explain("p99_belw").unwrap_err().to_string();
    assert_eq!(meant, "no key is called `p99_belw`; did you mean `p99_below`?");
    let path = keys::explain("world.cds.cuont").unwrap_err().to_string();
    assert_eq!(path, "no key is called `world.cds.cuont`; did you mean `count`?");
    let none = keys::explain("zzz").unwrap_err().to_string();
    assert_eq!(
        none,
        "no key is called `zzz`: `distributary-load explain` lists all keys"
    );
}
