// SPDX-License-Identifier: Apache-2.0
//! Large answers whose parts many clients share.

use cache::Library;
use classes::Pattern;
use xds::{Access, AccessRule, Batch, Sight};

use super::*;

fn client(prefix: u32, library: &Library, now: Instant) -> Server {
    let mut server = opened(stream(StreamLimits::default()), Dialect::Delta, prefix);
    let first = request(Dialect::Delta, None, &cds(), Vec::new(), "");
    assert!(server.handle(first, library, now).is_ok());
    server
}

/// A-11, L-29: every part of a large answer is encoded once for all clients at the same point, and so is what follows when
/// something changes between two parts. A relay is told if more follows.
#[test]
fn every_part_is_encoded_once() {
    let (library, now, view) = (Library::new(1 << 20, 1), start(), view());
    let publish = |names: std::ops::Range<usize>, body: &str| {
        let puts = names.map(|n| put(&cds(), &format!("c{n:02}"), body));
        let changes = whole(&cds(), puts.collect());
        drop(view.publish(&[changes]));
        Sight::from(view.cut())
    };
    let old = publish(0..20, "old");
    let mut clients: Vec<Server> = (0..5).map(|prefix| client(prefix, &library, now)).collect();
    let mut made = 0;
    let mut read = |clients: &mut Vec<Server>, sight: &Sight, count: usize| {
        for client in clients {
            for nth in 1..=count {
                let response = client.poll_response(sight, &library, now).expect("a part");
                let is_last = count == 11 && nth == count;
                assert_eq!(response.nonce.as_bytes().ends_with(b"+"), !is_last, "part {nth}");
                assert_eq!(response.batch.items().len(), 1);
                made += usize::from(response.batch.encoded(response.dialect).1);
                drop(client.handle_acknowledgement(cds().url().as_bytes(), response.nonce.as_bytes()));
            }
        }
        made
    };
    assert_eq!(read(&mut clients, &old, 12), 12);
    let new = publish(0..3, "new");
    clients
        .iter_mut()
        .for_each(|client| client.handle_dirty(&cds(), Dirty::All));
    // An answer that has begun is finished, and then what is new is sent: again the same for all clients.
    assert_eq!(read(&mut clients, &new, 11), 23);
    assert!(
        clients
            .iter_mut()
            .all(|client| client.poll_response(&new, &library, now).is_none())
    );
}

/// K-18: while nothing of a type has a time to live, a client that reads it, as every Envoy does, is sent what all others are.
#[test]
fn who_reads_a_time_to_live_shares_answers() {
    for (dialect, number) in [(Dialect::Sotw, 1), (Dialect::Delta, 0)] {
        let (library, now, view) = (Library::new(1 << 20, 1 << 20), start(), view());
        let changes = whole(&cds(), vec![put(&cds(), "c", "body")]);
        drop(view.publish(&[changes]));
        let sight = Sight::from(view.cut());
        let batches = ["envoy", "gRPC", "envoy"].map(|program| {
            let mut server = asking(program, dialect, &library, now);
            server.poll_response(&sight, &library, now).expect("a response").batch
        });
        assert!(
            batches.iter().all(|batch| Arc::ptr_eq(batch, &batches[0])),
            "{dialect:?}"
        );
        assert_eq!(library.uses()[number].computed, 1, "{dialect:?}");
    }
}

/// A client that has asked for all clusters.
fn asking(program: &str, dialect: Dialect, library: &Library, now: Instant) -> Server {
    let mut server = opened(stream(StreamLimits::default()), dialect, 1);
    let node = Some(Node {
        user_agent_name: program.to_owned(),
        ..Node::default()
    });
    let first = request(dialect, node, &cds(), Vec::new(), "");
    assert!(server.handle(first, library, now).is_ok());
    server
}

/// A tenant may have what begins with its name.
#[expect(clippy::expect_used, reason = "a test: what cannot happen must fail it")]
fn rule(tenant: &str) -> AccessRule {
    AccessRule {
        name: tenant.to_owned(),
        clusters: vec![Pattern::read(tenant).expect("a pattern")],
        names: [Pattern::read(&format!("{tenant}-*")).expect("a pattern")].into(),
        ..AccessRule::default()
    }
}

/// S-01, S-06: tenants with rights share one library. Clients with the same rights share each response; nobody is sent what is another
/// tenant's, and a change of that is nothing to them.
#[test]
fn tenants_share_a_library() {
    let (library, now, view) = (Library::new(1 << 20, 1 << 20), start(), view());
    let publish = |names: &[&str], body: &str| {
        let changes = whole(&cds(), names.iter().map(|name| put(&cds(), name, body)).collect());
        drop(view.publish(&[changes]));
        Sight::from(view.cut())
    };
    let access = Arc::new(Access::new(vec![rule("red"), rule("blue")], true));
    let settings = Arc::new(StreamSettings {
        access,
        ..stream(StreamLimits::default())
    });
    let tenants = ["red", "blue", "red", "blue"];
    let mut clients = tenants.map(|tenant| {
        let mut server = opened(settings.clone(), Dialect::Delta, 1);
        let node = Node {
            cluster: tenant.to_owned(),
            ..Node::default()
        };
        let first = request(Dialect::Delta, Some(node), &cds(), Vec::new(), "");
        assert!(server.handle(first, &library, now).is_ok());
        server
    });
    let mut told = |sight: &Sight| {
        clients.each_mut().map(|client| {
            client.handle_dirty(&cds(), Dirty::All);
            let response = client.poll_response(sight, &library, now)?;
            drop(client.handle_acknowledgement(cds().url().as_bytes(), response.nonce.as_bytes()));
            assert!(client.poll_response(sight, &library, now).is_none());
            Some(response.batch)
        })
    };
    let names = |batch: &Option<Arc<Batch>>| {
        let items = batch.iter().flat_map(|batch| batch.items());
        items.map(|item| item.name().to_string()).collect::<Vec<_>>()
    };
    let first = told(&publish(&["red-1", "red-2", "blue-1", "green-1"], "old"));
    assert_eq!(
        first.each_ref().map(names)[..2],
        [vec!["red-1", "red-2"], vec!["blue-1"]]
    );
    let second = told(&publish(&["blue-1", "green-1"], "new"));
    assert_eq!(second.each_ref().map(names)[..2], [vec![], vec!["blue-1"]]);
    for told in [first, second] {
        let [red, blue, other_red, other_blue] = told.map(|batch| batch.as_ref().map(Arc::as_ptr));
        assert_eq!((red, blue), (other_red, other_blue));
        assert_ne!(red, blue);
    }
}
