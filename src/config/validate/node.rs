//! The part of the check that is about the relay's own node.

use super::Check;
use crate::config::shape;
use crate::proto::envoy::config::core::v3::{Locality, Node};
use crate::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};

impl Check {
    pub(super) fn node(&mut self, node: shape::NodeShape) -> Node {
        let shape::Locality { region, zone, sub_zone } = node.locality;
        let given = self.read("node.id", node.id.as_ref(), |id| match id {
            "" => Err("the id is empty; leave `id` out to use the host's name".to_owned()),
            id => Ok(id.to_owned()),
        });
        Node {
            id: given.unwrap_or_else(host_name),
            cluster: node.cluster.unwrap_or_default(),
            metadata: (!node.metadata.is_empty()).then(|| structure(node.metadata)),
            locality: Some(Locality { region, zone, sub_zone }).filter(|place| *place != Locality::default()),
            ..Node::default()
        }
    }
}

fn host_name() -> String {
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
