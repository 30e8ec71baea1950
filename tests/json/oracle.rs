// SPDX-License-Identifier: Apache-2.0
//! Another implementation to compare with: the dynamic messages of `prost-reflect`, over the same descriptors.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let packed = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/proto/api/descriptors.bin")).unwrap();
    let mut encoded = Vec::new();
    ZlibDecoder::new(packed.as_slice()).read_to_end(&mut encoded).unwrap();
    DescriptorPool::decode(encoded.as_slice()).unwrap()
});

/// The message that it reads from JSON.
pub(crate) fn from_json(name: &str, json: &str) -> DynamicMessage {
    let descriptor = POOL.get_message_by_name(name).unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(descriptor, &mut deserializer).unwrap_or_else(|error| panic!("{name} {json}: {error}"))
}

/// The message that it reads from bytes.
pub(crate) fn from_bytes(name: &str, body: &[u8]) -> DynamicMessage {
    let descriptor = POOL.get_message_by_name(name).unwrap();
    DynamicMessage::decode(descriptor, body).unwrap()
}

/// The JSON that it writes.
pub(crate) fn to_json(message: &DynamicMessage) -> serde_json::Value {
    let options = SerializeOptions::new().use_proto_field_name(true);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .unwrap()
}

/// The bytes that it writes; the entries of maps are in no order.
pub(crate) fn to_bytes(message: &DynamicMessage) -> Vec<u8> {
    message.encode_to_vec()
}
