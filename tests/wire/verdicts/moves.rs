//! Clients that move to another server of their list, and return: what they came from counts there, too.

use std::sync::Arc;
use std::time::Duration;

use distributary::cache::View;
use distributary::xds::{Dialect, ServerState, TypeUrl, Update};

use super::{Case, OLD, RDS, gets};
use crate::support::{Relay, resource, until};

fn case(dialect: Dialect) -> Case {
    Case {
        relay: Relay::with(|plan| {
            plan.verdict_after = 2;
            plan.servers = 2;
        }),
        dialect,
        type_url: RDS,
        names: &["a"],
    }
}

/// The first server fails, and the second one says this. Returns its view when so many clients read it.
async fn fail(case: &Case, content: &str, clients: usize) -> Arc<View> {
    case.relay.view().publish_server_state(ServerState::Failing);
    let second = || {
        let views = case.relay.shared.scopes.all();
        views.into_iter().find(|view| view.server() == 1)
    };
    until(|| second().is_some(), || "nobody asks the second server".to_owned()).await;
    let view = second().unwrap();
    let put = Update::Put(resource(&TypeUrl::new(RDS), "a", content.as_bytes()), None);
    Relay::publish_in(&view, &TypeUrl::new(RDS), vec![put]);
    view.publish_server_state(ServerState::Up);
    reads(&view, clients).await;
    view
}

async fn reads(view: &View, clients: usize) {
    let readers = || view.demand().readers_of(None).0;
    until(
        || readers() == clients,
        || format!("{} clients, not {clients}", readers()),
    )
    .await;
}

async fn condemns(view: &View, count: usize) {
    let condemned = || view.head().condemned();
    until(|| condemned().len() == count, || format!("{:?}", condemned())).await;
}

/// They were sent the content by the first server, and reject it when they read the second one, which never had any other.
#[tokio::test]
async fn what_they_held_before_stands_in() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = case(dialect);
        let mut clients = case.content_with(&["one", "two"]).await;
        case.acks_reach(2).await;
        case.put("bad");
        for client in &mut clients {
            assert_eq!(client.next().await.unwrap().bodies, ["bad"]);
        }
        let second = fail(&case, "bad", 2).await;
        for client in &mut clients {
            client.nack("a: no");
        }
        condemns(&second, 1).await;
        gets(&mut case.client("three", OLD).await, "good").await;
    }
}

/// What a person has released while clients read the second server is not condemned when they are back.
#[tokio::test]
async fn what_was_released_meanwhile() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = case(dialect);
        let (mut clients, new) = case.condemned("bad").await;
        let second = fail(&case, "bad", 3).await;
        condemns(&second, 1).await;
        second.release_condemned(second.head().condemned()[0].clone());
        condemns(&second, 0).await;
        case.holds(0).await;
        case.relay.view().publish_server_state(ServerState::Up);
        reads(case.relay.view(), 3).await;
        for id in ["four", "five"] {
            let mut client = case.client(id, OLD).await;
            assert_eq!(client.next().await.unwrap().bodies, ["bad"], "{dialect:?}");
            client.nack("a: no");
            clients.push(client);
        }
        case.rejects(4).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        case.holds(0).await;
        drop(new);
    }
}

/// What a client of the kind has accepted at the second server is not condemned when it is back.
#[tokio::test]
async fn what_was_accepted_meanwhile() {
    let case = case(Dialect::Delta);
    let mut clients = case.condemned_by_two().await;
    let second = fail(&case, "new", 3).await;
    condemns(&second, 1).await;
    clients[0].ack();
    condemns(&second, 0).await;
    case.holds(0).await;
    case.relay.view().publish_server_state(ServerState::Up);
    reads(case.relay.view(), 3).await;
    gets(&mut case.client("four", OLD).await, "new").await;
}
