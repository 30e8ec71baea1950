//! Whom control planes take each view for, and that the operator hears of views that they cannot tell apart (K-28).
//!
//! Owns that this is said once for each two rules of a server. Refuses to know streams.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::plan;
use crate::cache::{Scopes, View};
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::Metrics;

/// The views that control planes were told of.
pub(super) struct Introduced<'a> {
    scopes: &'a Scopes,
    metrics: &'a Metrics,
    relay: &'a Node,
    /// By server, the rules of two views with one node id.
    said: BTreeSet<(usize, [Option<usize>; 2])>,
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

    /// The node for a new view of the server that is called `name`.
    pub(super) fn node(&mut self, view: &Arc<View>, name: &str) -> Node {
        let (node, twin) = self.scopes.introduce(view, self.relay);
        if let Some(twin) = twin {
            self.metrics.shared_node_ids.inc();
            let mut rules = [view.class().rule, twin.rule];
            rules.sort_unstable();
            if self.said.insert((view.server(), rules)) {
                let class = |class| match plan::class(self.scopes, class) {
                    class if class.is_empty() => "no rule".to_owned(),
                    class => class,
                };
                tracing::warn!(
                    server = name,
                    node = ?node.id,
                    class = class(view.class()),
                    other = class(&twin),
                    "two views have one node id; if the control plane keeps one snapshot for each node id, the clients of one get what \
                     is meant for the other's; give each a `node.id` of its own in `classes`"
                );
            }
        }
        node
    }
}
