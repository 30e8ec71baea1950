//! As whom two servers are asked. Owns how nodes are named and read from bootstraps. Asks nobody.

use std::path::Path;

use super::Compare;
use crate::cli::{Misuse, bootstrap};
use crate::config::host_name;
use crate::proto::envoy::config::core::v3::Node;

/// Returns the nodes at both servers.
pub(super) fn of(flags: &Compare) -> anyhow::Result<Vec<[Node; 2]>> {
    let (from, relay_from) = (&flags.from, &flags.relay_from);
    if !relay_from.is_empty() && relay_from.len() != from.len() {
        let (here, there) = (relay_from.len(), from.len());
        return Err(Misuse(format!(
            "--relay-from: {here} files beside {there} of --from; give one for each"
        ))
        .into());
    }
    let read = |path: &std::path::PathBuf| bootstrap::node_in(Path::new(path));
    if !from.is_empty() {
        let others = if relay_from.is_empty() { from } else { relay_from };
        let pairs = from
            .iter()
            .zip(others)
            .map(|(one, other)| Ok([read(one)?, read(other)?]));
        return pairs.collect();
    }
    let host = [host_name()];
    let ids = if flags.node_id.is_empty() {
        &host[..]
    } else {
        &flags.node_id
    };
    let nodes = ids.iter().map(|id| Node {
        id: id.clone(),
        cluster: flags.node_cluster.clone(),
        ..Node::default()
    });
    Ok(nodes.map(|node| [node.clone(), node]).collect())
}
