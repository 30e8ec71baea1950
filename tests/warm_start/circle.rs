// SPDX-License-Identifier: Apache-2.0
//! Two relays, each an upstream of the other; the second starts only when the first already serves clients.

use std::net::SocketAddr;
use std::path::Path;

use crate::fresh;
use crate::messages::wants;
use crate::stage::{CDS, Client, Delta, EDS, Relay, directory, eventually, place};

/// A relay that has clusters from files, and asks the other for all names of an authority.
fn relay(name: &str, files: &Path, listen: SocketAddr, other: SocketAddr) -> Relay {
    let files = files.display();
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: '{files}'}}], authorities: {{x: {{xds_servers: [{{server_uri: '{other}'}}]}}}}}}\nlisteners: [{{address: '{listen}'}}]\nadmin: {{address: '127.0.0.1:0'}}\n"
    );
    Relay::run(name, &text)
}

/// Writes the only cluster of the files, with this content.
fn write(files: &Path, connect_timeout: u32) {
    let text = format!("- '@type': {CDS}\n  name: a\n  connect_timeout: {connect_timeout}s\n");
    std::fs::write(files.join("new"), text).unwrap();
    std::fs::rename(files.join("new"), files.join("clusters.yaml")).unwrap();
}

/// A client that has the cluster.
async fn client(relay: &Relay) -> Delta {
    let mut stream: Delta = Client::connect(relay.address).await.open(&fresh()).await;
    let got = stream.next().await;
    assert_eq!(got.versions.keys().collect::<Vec<_>>(), ["a"]);
    stream
}

/// Asks for a name that only the other relay can know.
fn asks(stream: &mut Delta) {
    let name = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/1";
    stream.says(&wants(EDS, &[name]));
}

/// K-25, G-19: on either side, the relay that gets its own request back refuses it, and the relay that asked shows that, and says it
/// to who asked for the name. Clients keep what they have, and resources outside of the loop are still updated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_is_closed_late() {
    for asker in 0..2 {
        let files = [1, 2].map(|of| directory(&format!("circle-{asker}-{of}")));
        files.iter().for_each(|files| write(files, 1));
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let place = place();
        let first = relay(&format!("circle-{asker}-1"), &files[0], anywhere, place);
        let mut at_first = client(&first).await;
        if asker == 0 {
            asks(&mut at_first);
            first.line("control plane not reached");
        }
        let second = relay(&format!("circle-{asker}-2"), &files[1], place, first.address);
        let mut at_second = client(&second).await;
        if asker == 1 {
            asks(&mut at_second);
        }
        let refused = if asker == 0 { &second } else { &first };
        eventually("a refusal that names the loop", || {
            let text = refused.admin("/clusters");
            text.contains("loop: the request has already come through relay")
                .then_some(())
        })
        .await;
        for (at, (mut stream, files)) in [at_first, at_second].into_iter().zip(&files).enumerate() {
            if at == asker {
                let told = stream.whole().await;
                assert!(told.resources.is_empty() && told.removed_resources.is_empty());
                let error = told.resource_errors[0].error_detail.as_ref().unwrap();
                assert!(error.message.contains("loop"), "{}", error.message);
            }
            assert!(stream.is_silent().await, "nothing is taken away");
            write(files, 2);
            let got = stream.next().await;
            assert_eq!(got.versions.keys().collect::<Vec<_>>(), ["a"]);
            assert!(got.removed.is_empty());
        }
    }
}
