// SPDX-License-Identifier: Apache-2.0
//! Resources with a time to live in a file.

use std::time::{Duration, Instant};

use distributary::upstream::{FileContents, FileWants};
use distributary::xds::{Changes, Cut, Expiry, Known, Reason, Target, Want};

use super::*;

/// A cluster in a wrapper; without seconds it lives as long as its file.
fn wrapped(name: &str, seconds: Option<u32>) -> String {
    let ttl = seconds.map_or(String::new(), |seconds| format!("  ttl: {seconds}s\n"));
    format!(
        "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  name: {name}\n{ttl}  resource: {{ '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {name} }}\n"
    )
}

fn after(begun: Instant, seconds: u64) -> Instant {
    begun + Duration::from_secs(seconds)
}

fn names(file_set: &FileSet) -> Vec<String> {
    let type_url = cds();
    let covered = file_set.content().covered(&type_url);
    covered.map(|resource| resource.name().to_string()).collect()
}

fn expiry(content: &FileContents, text: &str) -> Option<Expiry> {
    content.expiry(&cds(), &name(text))
}

/// E-11: a time to live runs from the moment in which its file was read. An expired resource is gone although the file still
/// has it; when the file is written again, with or without a change, it is back.
#[test]
fn from_each_receipt() {
    let (folder, begun) = (Folder::new(), now());
    let text = wrapped("a", Some(10)) + &wrapped("b", None);
    let path = folder.write("c.yaml", &text);
    let mut file_set = file_set(&path);
    assert!(file_set.look(begun).changed);
    assert_eq!(
        (names(&file_set), file_set.ends()),
        (vec!["a".to_owned(), "b".to_owned()], Some(after(begun, 10)))
    );
    assert!(
        !file_set.look(after(begun, 9)).changed,
        "nothing was written, and nothing is over"
    );
    // The same content moved into place again: a heartbeat.
    folder.place("c.yaml", &text);
    assert!(file_set.look(after(begun, 9)).changed);
    let beat = expiry(file_set.content(), "a").unwrap();
    assert_eq!((beat.at, beat.beat), (after(begun, 19), 1));
    assert!(!file_set.look(after(begun, 18)).changed);
    assert!(file_set.look(after(begun, 19)).changed);
    assert_eq!((names(&file_set), file_set.ends()), (vec!["b".to_owned()], None));
    assert!(file_set.content().is_over(&cds(), &name("a")) && file_set.faults().is_empty());
    assert!(!file_set.look(after(begun, 100)).changed);
    folder.place("c.yaml", &(wrapped("a", None) + &wrapped("b", Some(0))));
    file_set.look(after(begun, 101));
    assert_eq!(
        (names(&file_set), file_set.ends()),
        (vec!["a".to_owned()], None),
        "none, and zero: at once"
    );
}

/// E-11, E-12: a resource that two files define equally lives for the longer of both times; of two different definitions one
/// counts as soon as the other has expired.
#[test]
fn twice() {
    let (folder, begun) = (Folder::new(), now());
    folder.write("1.yaml", &wrapped("a", Some(10)));
    folder.write("2.yaml", &wrapped("a", Some(20)));
    let mut file_set = file_set(&folder.0);
    file_set.look(begun);
    assert_eq!(
        (expiry(file_set.content(), "a").unwrap().at, file_set.faults().len()),
        (after(begun, 20), 0)
    );
    folder.place("2.yaml", &wrapped("a", None));
    file_set.look(begun);
    assert_eq!(
        (expiry(file_set.content(), "a"), names(&file_set)),
        (None, vec!["a".to_owned()])
    );
    folder.place("2.yaml", &clusters(&["a/other"]));
    file_set.look(begun);
    assert_eq!((file_set.faults().len(), file_set.ends()), (1, Some(after(begun, 10))));
    assert!(file_set.look(after(begun, 10)).changed);
    assert_eq!((file_set.faults().len(), names(&file_set)), (0, vec!["a".to_owned()]));
}

/// K-17: a view gets the time of expiry, each heartbeat, and in the end the expiry.
#[test]
fn what_views_are_told() {
    let (folder, begun) = (Folder::new(), now());
    let path = folder.write("c.yaml", &wrapped("a", Some(10)));
    let mut file_set = file_set(&path);
    file_set.look(begun);
    let (mut asked, mut cut) = (FileWants::default(), Cut::default());
    let mut all = Vec::new();
    for target in [Target::Wildcard, Target::Name(name("a"))] {
        let want = Want {
            type_url: cds(),
            target,
            wanted: true,
            written: None,
        };
        all.extend(asked.handle_wants(&[want], file_set.content(), &cut));
    }
    let told = |cut: &mut Cut, changes: &[Changes]| {
        let mut count = 0;
        for change in changes {
            let (next, changed) = cut.with(change);
            *cut = next;
            count += changed.len();
        }
        count
    };
    told(&mut cut, &all);
    let at = |cut: &Cut| cut.slot(&cds()).unwrap().expiry(&name("a")).map(|expiry| expiry.at);
    assert_eq!(at(&cut), Some(after(begun, 10)));
    let changes = asked.handle_content(file_set.content(), &cut);
    assert_eq!(told(&mut cut, &changes), 0);
    folder.place("c.yaml", &wrapped("a", Some(10)));
    file_set.look(after(begun, 5));
    let changes = asked.handle_content(file_set.content(), &cut);
    assert_eq!(told(&mut cut, &changes), 2, "by name and by the wildcard");
    assert_eq!(at(&cut), Some(after(begun, 15)));
    file_set.look(after(begun, 15));
    let changes = asked.handle_content(file_set.content(), &cut);
    told(&mut cut, &changes);
    let slot = cut.slot(&cds()).unwrap();
    assert_eq!(slot.named.known(&name("a")), Some(&Known::Absent(Reason::Expired)));
    assert_eq!(slot.wildcard.as_ref().unwrap().present(), 0);
}
