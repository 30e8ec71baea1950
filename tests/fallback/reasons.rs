// SPDX-License-Identifier: Apache-2.0
//! What a client is told of servers that are lost.

use std::time::Duration;

use distributary::protocol::Code;
use distributary::xds::ServerState::Failing;

use crate::stage::{EDS, Stage};

/// G-18: the reason is that of the servers that were asked for the name: an authority's own ones, or those of names of old style, which are
/// also asked for an authority that is not configured (F-13).
#[test]
fn each_name_has_the_reason_of_its_servers() {
    let under = |authority| format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/y");
    for (name, reason) in [("y".to_owned(), "top"), (under("a"), "own"), (under("nobody"), "top")] {
        let mut stage = Stage::new(&[0], &[1], false);
        let mut session = stage.session(1);
        session.agent = "gRPC Go";
        session.asks(&stage, EDS, &[&name]);
        session.hears(&stage);
        for (server, reason) in [(0, "top"), (1, "own")] {
            if let Some(view) = stage.view(server) {
                view.head().publish_reason(Some(reason));
                stage.stands(server, Failing);
            }
        }
        session.wakes(&stage);
        for _ in 0..2 {
            stage.now += Duration::from_secs(1);
            session.hears(&stage);
        }
        let end = session.ended.expect("all servers are lost");
        assert_eq!(end.code, Code::Unavailable);
        assert!(
            end.message.ends_with(&format!("; control plane {reason}")),
            "{name}: {}",
            end.message
        );
    }
}
