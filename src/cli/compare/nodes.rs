// SPDX-License-Identifier: Apache-2.0
//! As whom two servers are asked. Owns how nodes are named and read from bootstraps. Asks nobody.

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
    if !from.is_empty() {
        let others = if relay_from.is_empty() { from } else { relay_from };
        let pairs = from.iter().zip(others);
        let pairs = pairs.map(|(one, other)| Ok([bootstrap::node_in(one, true)?, bootstrap::node_in(other, true)?]));
        return pairs.collect();
    }
    let mut ids = flags.node_id.clone();
    ids.extend(ids.is_empty().then(host_name));
    let nodes = ids.into_iter().map(|id| Node {
        id,
        cluster: flags.node_cluster.clone(),
        ..Node::default()
    });
    Ok(nodes.map(|node| [node.clone(), node]).collect())
}
