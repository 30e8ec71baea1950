// SPDX-License-Identifier: Apache-2.0
//! Tests that what a client is given is dumped, and no secret without being asked for.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use distributary::json::Schemas;

use super::now;
use crate::command::arguments::{Command, Program};
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Spec;
use crate::origin::world::World;
use crate::wire::folder::Folder;
use crate::wire::kind::Kind;

/// A control plane with these resources.
fn serve(world: &Arc<World>) -> ControlPlane {
    ControlPlane::start("127.0.0.1:0".parse().unwrap(), Arc::clone(world), None).unwrap()
}

async fn dump(control_plane: &ControlPlane, output: &Path, more: &str) -> anyhow::Result<String> {
    let words = format!(
        "dump --server {} --output {} --node-id edge-1 {more}",
        control_plane.address,
        output.display()
    );
    let words = ["distributary-load"].into_iter().chain(words.split_whitespace());
    let Some(Command::Dump(dump)) = Program::try_parse_from(words).unwrap().command else {
        panic!("not the command")
    };
    dump.run().await
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_dump_has_everything_in_its_place() {
    let spec = |kind| Spec {
        kind,
        resources: 5,
        extras: 0,
        bytes: 300,
        authority: None,
    };
    let world = World::new(&[Kind::Cds, Kind::Eds, Kind::Lds, Kind::Rds].map(spec), now());
    let control_plane = serve(&world);
    let folder = Folder::new().unwrap();
    let output = folder.0.join("dumped");
    for (more, dialect) in [("", "delta"), ("--force --dialect sotw", "sotw")] {
        let told = dump(&control_plane, &output, more).await.unwrap();
        let (what, refused) = told.split_once('\n').unwrap();
        let wanted = "dumped: 5 clusters, 5 endpoints, 5 listeners, 5 routes";
        assert!(what.ends_with(wanted), "{dialect}: {told}");
        // All listeners of this control plane have one address.
        let wanted = "entry `listener-0000004`: it has the address of `listener-0000000`\n";
        assert!(refused.ends_with(wanted) && refused.lines().count() == 4, "{told}");
        let bootstrap = json(&output.join("bootstrap.json"));
        assert_eq!(bootstrap["node"]["id"], "edge-1");
        let clusters = bootstrap["static_resources"]["clusters"].as_array().unwrap();
        let listeners = bootstrap["static_resources"]["listeners"].as_array().unwrap();
        assert_eq!((clusters.len(), listeners.len()), (5, 5));
        assert!(
            clusters
                .iter()
                .all(|cluster| cluster["load_assignment"]["endpoints"].is_array()),
            "{clusters:#?}"
        );
        let text = bootstrap.to_string();
        assert_eq!(
            (
                text.matches("\"route_config\"").count(),
                text.matches("\"ads\"").count()
            ),
            (5, 0)
        );
        // What a relay reads is what the client was given.
        let tree = std::fs::read_to_string(output.join("resources/cds.json")).unwrap();
        assert!(tree.contains("type.googleapis.com/envoy.config.cluster.v3.Cluster") && tree.contains("\"ads\""));
        let relay = std::fs::read_to_string(output.join("relay.yaml")).unwrap();
        assert!(relay.contains("server_uri: ./resources"));
    }
    let refused = dump(&control_plane, &output, "").await.unwrap_err().to_string();
    assert!(refused.contains("or replace what is there with --force"), "{refused}");
}

#[tokio::test]
async fn a_secret_is_dumped_only_if_it_is_asked_for() {
    let world = world_with_a_secret();
    let control_plane = serve(&world);
    let folder = Folder::new().unwrap();
    let output = folder.0.join("dumped");
    let refused = dump(&control_plane, &output, "--deadline 2s")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.starts_with("the lds entry `l` has a secret"), "{refused}");
    assert!(!output.exists(), "nothing is written");
    dump(&control_plane, &output, "--deadline 2s --with-secrets")
        .await
        .unwrap();
    for file in ["bootstrap.json", "resources/lds.json"] {
        let path = output.join(file);
        assert!(std::fs::read_to_string(&path).unwrap().contains("very private"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// A world with one listener, in which is a private key.
fn world_with_a_secret() -> Arc<World> {
    let world = World::keeping();
    let listener = Schemas::standard()
        .encode_text(
            "envoy.config.listener.v3.Listener",
            br#"name: "l"
                filter_chains {
                  transport_socket {
                    name: "tls"
                    typed_config {
                      [type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext] {
                        common_tls_context {
                          tls_certificates {
                            certificate_chain { inline_string: "public" }
                            private_key { inline_string: "very private" }
                          }
                        }
                      }
                    }
                  }
                }"#,
        )
        .unwrap();
    assert!(listener.windows(12).any(|part| part == b"very private"));
    let ledger = world.ledger(Kind::Lds).unwrap();
    let index = ledger.index(b"l").unwrap();
    ledger.learn(index, None, Some(&listener), now()).unwrap();
    ledger.announce(&[index]);
    world
}
