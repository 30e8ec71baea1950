//! What is lost in several messages is lost as one.

use super::{EDS, Server, Watcher, endpoints, held, holding, nothing_held, put_assignments, relay};

/// A server returns without any endpoint assignment, and says so in one message, in two, and name by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_a_loss_is_split() {
    const NAMES: usize = 12;
    for split in [NAMES, NAMES / 2, 1] {
        let server = Server::start().await;
        let names = put_assignments(&server, 10..10 + NAMES);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = names.join(" ");
        server.split(split);
        let relay = relay(&format!("split-{split}"), &server, "60s", "");
        let watcher = Watcher::start(relay.address, &[(EDS, &names)]).await;
        watcher.has(EDS, &all).await;
        let whole = server.content();
        server.forget(EDS, &names);
        holding(&relay, "eds", "mass", &all).await;
        watcher.loses_only("").await;
        server.restart(|content| *content = whole);
        nothing_held(&relay).await;
        watcher.loses_only("").await;
    }
}

/// The same where the assignments become empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_emptiness_is_split() {
    const NAMES: usize = 12;
    for split in [NAMES, NAMES / 2, 1] {
        let server = Server::start().await;
        let names = put_assignments(&server, 10..10 + NAMES);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = names.join(" ");
        server.split(split);
        let relay = relay(&format!("empty-{split}"), &server, "60s", "");
        let watcher = Watcher::start(relay.address, &[(EDS, &names)]).await;
        watcher.has(EDS, &all).await;
        server.restart(|content| {
            let of_kind = content.get_mut(EDS).unwrap();
            of_kind.iter_mut().for_each(|(name, body)| *body = endpoints(name, 0));
        });
        holding(&relay, "eds", "mass", &all).await;
        watcher.loses_only("").await;
        names
            .iter()
            .for_each(|name| assert_eq!(watcher.sent(name), 1, "{name}"));
    }
}

/// Fewer than the threshold, one by one: they go, and do not wait for a judgement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_go() {
    let server = Server::start().await;
    let names = put_assignments(&server, 10..30);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    server.split(1);
    let relay = relay("few", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(EDS, &names)]).await;
    watcher.has(EDS, &names.join(" ")).await;
    server.forget(EDS, &names[..2]);
    watcher.has(EDS, &names[2..].join(" ")).await;
    assert_eq!(held(&relay, "eds", "mass"), "");
}
