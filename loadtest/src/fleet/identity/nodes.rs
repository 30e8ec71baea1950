// SPDX-License-Identifier: Apache-2.0
//! A file with nodes: a list of them, a bootstrap, or what Envoy's `/config_dump` says. Owns its shapes and bounds. Knows nothing of
//! clients.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::proto::envoy::config::core::v3::Node;
use prost::Message as _;

/// The message of a node.
pub(super) const NODE: &str = "envoy.config.core.v3.Node";
/// As many as there can be clients.
const NODES_MAX: usize = 60_000;
/// A node of a real Envoy has some thousands of values.
const BOUNDS: Bounds = Bounds { values: 4_000_000 };
const USAGE: &str = "write a list of nodes (`- { id: edge-1, cluster: edge }`), a bootstrap (an object with `node`), or what Envoy's \
                     /config_dump says";

/// Returns the nodes, each once.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Node>> {
    let text = distributary::config::read(file)?;
    let name = file.display();
    let tree = Tree::yaml(&text, BOUNDS).map_err(|fault| anyhow::anyhow!("{name}:{fault}"))?;
    let mut found = Vec::new();
    collect(&tree, true, &mut found).with_context(|| name.to_string())?;
    ensure!(!found.is_empty(), "{name}: there is no node in it: {USAGE}");
    ensure!(
        found.len() <= NODES_MAX,
        "{name}: {} nodes are too many: use at most {NODES_MAX}",
        found.len()
    );
    let (mut seen, mut nodes) = (BTreeSet::new(), Vec::new());
    for tree in found {
        let node = node(tree).with_context(|| name.to_string())?;
        if seen.insert(node.encode_to_vec()) {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

/// Finds the nodes in a text of any of the shapes. Only the outermost may be a list.
fn collect<'a>(tree: &'a Tree, outermost: bool, found: &mut Vec<&'a Tree>) -> anyhow::Result<()> {
    if let Some(items) = tree.items().filter(|_| outermost) {
        return items.iter().try_for_each(|item| collect(item, false, found));
    }
    if let Some(nodes) = tree.get("nodes").and_then(Tree::items) {
        found.extend(nodes);
    } else if let Some(configs) = tree.get("configs").and_then(Tree::items) {
        let bootstraps = configs.iter().filter_map(|config| config.get("bootstrap"));
        found.extend(bootstraps.filter_map(|bootstrap| bootstrap.get("node")));
    } else if let Some(node) = tree.get("bootstrap").unwrap_or(tree).get("node") {
        found.push(node);
    } else if tree.get("id").is_some() || tree.get("cluster").is_some() {
        found.push(tree);
    } else {
        let place = tree.place();
        bail!(
            "line {}: found {}, which has no node: {USAGE}",
            place.line,
            tree.description()
        );
    }
    Ok(())
}

/// J-05: reads one node; what a newer client says besides is left out.
fn node(tree: &Tree) -> anyhow::Result<Node> {
    let schemas = Schemas::standard();
    let encoded = schemas.encode(NODE, tree, "", Unknown::Ignore)?;
    Ok(Node::decode(encoded.value)?)
}
