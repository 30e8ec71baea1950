//! Validates the relay's own node.

use super::Check;
use crate::config::bootstrap::NodeShape;
use crate::proto::envoy::config::core::v3::{Locality, Node};
use crate::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};

impl Check {
    /// Merges the node in the file over that of the bootstrap, field by field.
    pub(super) fn node(&mut self, own: NodeShape, theirs: NodeShape) -> Node {
        self.unknown_in_node("node", &own);
        let given = self.read("node.id", own.id.as_ref(), |id| match id {
            "" => Err("the id is empty; leave `id` out to use the host's name".to_owned()),
            id => Ok(id.to_owned()),
        });
        let id = given.or(theirs.id.map(|id| id.value)).filter(|id| !id.is_empty());
        let either = |own: Option<String>, theirs: Option<String>| own.or(theirs).unwrap_or_default();
        let place = Locality {
            region: either(own.locality.region, theirs.locality.region),
            zone: either(own.locality.zone, theirs.locality.zone),
            sub_zone: either(own.locality.sub_zone, theirs.locality.sub_zone),
        };
        let mut metadata = theirs.metadata;
        metadata.extend(own.metadata);
        Node {
            id: id.unwrap_or_else(host_name),
            cluster: either(own.cluster, theirs.cluster),
            metadata: (!metadata.is_empty()).then(|| structure(metadata)),
            locality: Some(place).filter(|place| *place != Locality::default()),
            ..Node::default()
        }
    }

    pub(super) fn unknown_in_node(&mut self, key: &str, node: &NodeShape) {
        self.unknown(key, &node.unknown);
        self.unknown(&format!("{key}.locality"), &node.locality.unknown);
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

fn structure(map: serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct {
        fields: map.into_iter().map(|(name, json)| (name, value(json))).collect(),
    }
}

fn value(json: serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(truth) => Kind::BoolValue(truth),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(value).collect(),
        }),
        serde_json::Value::Object(map) => Kind::StructValue(structure(map)),
    };
    Value { kind: Some(kind) }
}
