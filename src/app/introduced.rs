// SPDX-License-Identifier: Apache-2.0
//! The node with which each view introduces itself to a control plane, and the warning about views that the control plane cannot
//! tell apart (K-28).
//!
//! Owns that the log has this warning once for each pair of rules and server. Knows nothing of streams.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fleet::Member;
use super::plan;
use crate::cache::{Scopes, View};
use crate::classes::Rule;
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::Metrics;

/// Gives each new view its node.
pub(super) struct Introduced<'a> {
    scopes: &'a Scopes,
    metrics: &'a Metrics,
    relay: &'a Node,
    /// The warnings already logged: the server, and the rules of two views with one node id.
    said: BTreeSet<(usize, [Option<Arc<Rule>>; 2])>,
}

impl<'a> Introduced<'a> {
    pub(super) const fn new(scopes: &'a Scopes, metrics: &'a Metrics, relay: &'a Node) -> Self {
        Self {
            scopes,
            metrics,
            relay,
            said: BTreeSet::new(),
        }
    }

    /// Returns the node for a new view of this server.
    pub(super) fn node(&mut self, view: &Arc<View>, server: &Member) -> Node {
        let (node, twin) = self.scopes.introduce(view, &server.node(self.relay));
        if let Some(twin) = twin {
            self.metrics.shared_node_ids.inc();
            let mut rules = [view.class().rule.clone(), twin.rule.clone()];
            rules.sort();
            if self.said.insert((view.server(), rules)) {
                let class = |class| match plan::class(self.scopes, class) {
                    class if class == "-" => "no rule".to_owned(),
                    class => class,
                };
                tracing::warn!(
                    server = server.name,
                    node = ?node.id,
                    class = class(view.class()),
                    other = class(&twin),
                    "two views have one node id; if the control plane keeps one snapshot for each node id, the clients of one view get \
                     the resources of the other; give each a `node.id` of its own in `classes`"
                );
            }
        }
        node
    }
}
