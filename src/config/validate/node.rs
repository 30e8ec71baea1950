// SPDX-License-Identifier: Apache-2.0
//! Validates the relay's own node.

use super::Check;
use super::check::text;
use crate::config::bootstrap::NodeShape;
use crate::config::class;
use crate::proto::envoy::config::core::v3::{Locality, Node};
use crate::proto::google::protobuf::Struct;

/// Returns the parts of a node that are written, for one server. It is one node for all clients.
pub(super) fn part(check: &mut Check, key: &str, own: NodeShape) -> Node {
    let id = id(check, key, &own);
    if let (Some(id), Some(written)) = (&id, &own.id)
        && let Some(field) = class::field_in(id)
    {
        let message = format!(
            "`{{{field}}}` is not filled in here, because a source sees one node for all clients; write a fixed id, or leave it out and \
             write this in `classes[].node.id`"
        );
        check.at(written.place, format!("{key}.id"), message);
    }
    Node {
        id: id.unwrap_or_default(),
        ..merged(own, NodeShape::default())
    }
}

/// Merges the node in the file over that of the bootstrap, field by field.
pub(super) fn node(check: &mut Check, own: NodeShape, theirs: NodeShape) -> Node {
    let given = id(check, "node", &own);
    let theirs_id = theirs.id.as_ref().map(|id| id.value.clone());
    let id = given.or(theirs_id).filter(|id| !id.is_empty());
    Node {
        id: id.unwrap_or_else(host_name),
        ..merged(own, theirs)
    }
}

fn id(check: &mut Check, key: &str, own: &NodeShape) -> Option<String> {
    let empty = "the id is empty; leave `id` out to use the host's name";
    check.read(&format!("{key}.id"), own.id.as_ref(), text(empty))
}

/// Returns the node without its id.
fn merged(own: NodeShape, theirs: NodeShape) -> Node {
    let either = |own: Option<String>, theirs: Option<String>| own.or(theirs).unwrap_or_default();
    let place = Locality {
        region: either(own.locality.region, theirs.locality.region),
        zone: either(own.locality.zone, theirs.locality.zone),
        sub_zone: either(own.locality.sub_zone, theirs.locality.sub_zone),
    };
    let mut metadata = theirs.metadata;
    metadata.extend(own.metadata);
    Node {
        cluster: either(own.cluster, theirs.cluster),
        metadata: (!metadata.is_empty()).then_some(Struct { fields: metadata }),
        locality: Some(place).filter(|place| *place != Locality::default()),
        ..Node::default()
    }
}

/// Returns the host's name.
#[must_use]
pub fn host_name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "distributary".to_owned()
    } else {
        name.to_owned()
    }
}
