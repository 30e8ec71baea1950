// SPDX-License-Identifier: Apache-2.0
//! What two servers say alike is in memory once.

use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use proto::google::protobuf::Any;
use xds::{Cut, Dialect, Name, Resource as Kept, Twins, TypeUrl};

use crate::{CDS, EDS, Upstream, VHDS, body, delta, ms, resource, sotw};

fn found(upstream: &Upstream, type_url: &str, name: &str) -> Arc<Kept> {
    let slot = upstream.cut.slot(&TypeUrl::new(type_url)).unwrap();
    slot.resource(&Name::from(name)).unwrap().clone()
}

/// Another server of the same clients, after what this one has said.
fn another(first: &Upstream, dialect: Dialect, type_url: &str, targets: &[&str]) -> Upstream {
    let mut second = Upstream::streaming(dialect, type_url, targets);
    let cut = Arc::new(first.cut.clone());
    second
        .client
        .share(Twins::new(move || vec![Arc::new(Cut::default()), cut.clone()]));
    second.now = first.now + ms(1000);
    second
}

/// Whether two resources have the same bytes in the same place, and what is known of them: what is noted of one is noted of the other.
fn share(one: &Kept, other: &Kept) -> bool {
    let noted = one.accepted() | other.accepted();
    let bit = !noted & (noted + 1);
    one.note_accepted(bit);
    one.delta_record().as_ptr() == other.delta_record().as_ptr() && other.accepted() & bit == bit
}

#[test]
fn equal_bytes_are_kept_once() {
    for (kind, targets) in [(CDS, &["*"][..]), (EDS, &["a", "b", "c"])] {
        let mut first = Upstream::streaming(Dialect::Delta, kind, targets);
        first.hears(delta(kind, "n", &["a=1", "b=1", "c=1"], &[]));
        for dialect in [Dialect::Delta, Dialect::Sotw] {
            let mut second = another(&first, dialect, kind, targets);
            match dialect {
                Dialect::Delta => second.hears(delta(kind, "n", &["a=1", "b=2"], &[])),
                Dialect::Sotw => second.hears_sotw(sotw(kind, "1", "n", &["a=1", "b=2"])),
            }
            let both = |second: &Upstream, name| [found(&first, kind, name), found(second, kind, name)];
            let [here, there] = both(&second, "a");
            assert!(
                share(&here, &there) && !Arc::ptr_eq(&here, &there),
                "{kind} {dialect:?}"
            );
            // Each was received when its own server said it.
            assert_eq!((here.received(), there.received()), (first.now, second.now));
            let [here, there] = both(&second, "b");
            assert!(!share(&here, &there), "{kind} {dialect:?}");
            // What changes to the same content is shared as well.
            match dialect {
                Dialect::Delta => second.hears(delta(kind, "n", &["b=1"], &[])),
                Dialect::Sotw => second.hears_sotw(sotw(kind, "2", "n", &["a=1", "b=1"])),
            }
            let [here, there] = both(&second, "b");
            assert!(share(&here, &there), "{kind} {dialect:?}");
        }
    }
}

/// As with the content of any message: the hash decides nothing, the bytes do, and a name in another spelling is another resource.
#[test]
fn another_type_or_alias_shares_nothing() {
    let mut first = Upstream::streaming(Dialect::Delta, VHDS, &["r/a"]);
    let with = |alias: &str, content| {
        let mut message = delta(VHDS, "n", &[], &[]);
        let aliases = vec![alias.to_owned()];
        message.resources.push(Resource {
            aliases,
            ..resource(VHDS, "r/a", content)
        });
        message
    };
    first.hears(with("r/x", "1"));
    let mut second = another(&first, Dialect::Delta, VHDS, &["r/a"]);
    second.hears(with("r/y", "1"));
    let [here, there] = [&first, &second].map(|one| found(one, VHDS, "r/a"));
    assert!(!share(&here, &there) && here.body() == there.body());
    second.hears(with("r/x", "1"));
    assert!(share(&here, &found(&second, VHDS, "r/a")));
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// How many clusters the views have whose bytes are counted.
const CLUSTERS: usize = 30_000;
/// The most bytes that a further view of the same clusters takes for each: if all of a response have one version, and if each has its
/// own. Most of it are two maps, of what the server has sent and of what clients see.
const OF_ONE_VERSION: usize = 215;
const OF_ITS_OWN: usize = 300;

#[test]
fn what_a_further_view_takes() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["twins::in_a_process_of_its_own", "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    println!("{said}");
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{errors}");
}

/// Clusters of a quarter of a kilobyte from this number on, each with this version.
fn message(from: usize, version: &dyn Fn(usize) -> String) -> DeltaDiscoveryResponse {
    let resources = (from..from + 100).map(|number| {
        let name = format!("outbound|80||service-{number}.namespace.svc.cluster.local");
        // Its type is EDS, and the rest is as much as it usually has.
        let rest = [&[0x10, 3, 0x7a, 200, 1][..], &[b'x'; 200]].concat();
        let value = Bytes::from([body(CDS, &name, "").value.to_vec(), rest].concat());
        let resource = Some(Any {
            type_url: CDS.to_owned(),
            value,
        });
        Resource {
            name,
            version: version(number),
            resource,
            ..Resource::default()
        }
    });
    DeltaDiscoveryResponse {
        resources: resources.collect(),
        ..delta(CDS, "n", &[], &[])
    }
}

/// Fills a view; returns how many bytes it takes for each cluster.
fn fill(upstream: &mut Upstream, version: &dyn Fn(usize) -> String) -> usize {
    let before = resident();
    for from in (0..CLUSTERS).step_by(100) {
        upstream.hears(message(from, version));
        upstream.news();
        upstream.sent();
    }
    upstream.pass(ms(1000));
    upstream.news();
    (resident() - before) / CLUSTERS
}

#[test]
#[ignore = "is run by `what_a_further_view_takes`, in a process of its own"]
fn in_a_process_of_its_own() {
    let one_version = |_| "1".to_owned();
    let its_own = |number| format!("{number:064x}");
    let mut first = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    println!(
        "{} bytes for each cluster of the first view",
        fill(&mut first, &one_version)
    );
    let mut second = another(&first, Dialect::Delta, CDS, &["*"]);
    let of_second = fill(&mut second, &one_version);
    let mut third = another(&first, Dialect::Delta, CDS, &["*"]);
    let of_third = fill(&mut third, &its_own);
    println!("{of_second} and {of_third} of further views");
    let mut alone = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    println!("{} of one that shares nothing", fill(&mut alone, &one_version));
    assert!(of_second <= OF_ONE_VERSION && of_third <= OF_ITS_OWN);
}
