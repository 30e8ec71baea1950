// SPDX-License-Identifier: Apache-2.0
//! Clients that move to another server of their list take along what they use.

use std::sync::Arc;

use distributary::cache::View;
use distributary::xds::{Dialect, ServerState, TypeUrl, Update};

use super::{Case, OLD, RDS, gets, rejects};
use crate::support::{Relay, resource, until};

fn case(dialect: Dialect) -> Case {
    Case {
        relay: Relay::with(|plan| plan.servers = 2),
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
    until(|| second().is_some(), || "nobody asks the second server").await;
    let view = second().unwrap();
    let put = Update::Put(resource(&TypeUrl::new(RDS), "a", content.as_bytes()), None);
    Relay::publish_in(&view, &TypeUrl::new(RDS), vec![put]);
    view.publish_server_state(ServerState::Up);
    let readers = || view.demand().readers_of(None).0;
    until(|| readers() == clients, readers).await;
    view
}

/// They rejected the content at the first server; the second one says the same, and never had anything else.
#[tokio::test]
async fn what_they_use_comes_along() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = case(dialect);
        let mut clients = case.clients_with("good", &[OLD, OLD]).await;
        case.put("bad");
        for client in &mut clients {
            rejects(client, "bad").await;
        }
        case.are_used(case.relay.view(), &[2]).await;
        let second = fail(&case, "bad", 2).await;
        case.are_used(&second, &[2]).await;
        let mut new = case.newcomer("newcomer", OLD, "bad", "good").await;
        case.relay.view().publish_server_state(ServerState::Up);
        case.put("better");
        for client in clients.iter_mut().chain([&mut new]) {
            gets(client, "better").await;
        }
    }
}
