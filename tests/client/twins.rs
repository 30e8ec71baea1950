// SPDX-License-Identifier: Apache-2.0
//! What two servers say alike is in memory once.

use std::sync::Arc;

use proto::envoy::service::discovery::v3::Resource;
use xds::{Cut, Dialect, Name, Resource as Kept, Twins, TypeUrl};

use crate::{CDS, EDS, Upstream, VHDS, delta, ms, resource};

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
            second.hears_puts(kind, "1", "n", &["a=1", "b=2"]);
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
            second.hears_puts(kind, "2", "n", &["a=1", "b=1"]);
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
