// SPDX-License-Identifier: Apache-2.0
//! A resource in a file, outside of any response.
//!
//! Owns nothing of its own: names and faults are those of responses. Does not know which file it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;

use super::entry::{Entry, build};
use proto::envoy::service::discovery::v3::Resource as Wrapper;
use proto::google::protobuf::Any;
use xds::{Resource, TypeUrl, Types, WRAPPER_URL};

/// Reads the resource in an `Any`, with or without the wrapper. Returns its type, the resource, and its time to live (E-11).
///
/// # Errors
/// If it has no type, no name or no body, is for some clients only, or is not readable.
pub fn stated(any: Any, types: &Types, now: Instant) -> Result<(TypeUrl, Arc<Resource>, Option<Duration>), String> {
    let mut url = any.type_url.clone();
    if any.type_url == WRAPPER_URL {
        let wrapper = Wrapper::decode(any.value.clone()).map_err(|error| format!("is not readable: {error}"))?;
        url = wrapper.resource.map(|any| any.type_url).unwrap_or_default();
    }
    let type_url = types.resolve(&url);
    if type_url.message().is_empty() {
        return Err("has no type".to_owned());
    }
    let entry = Entry::of_any(any, &type_url).map_err(|fault| fault.what)?;
    if entry.constrained {
        return Err("has dynamic_parameter_constraints: the relay has no resources for some clients only".to_owned());
    }
    let Some(body) = &entry.body else {
        return Err("has no body".to_owned());
    };
    let resource = build(&type_url, &entry, body, 0, now);
    Ok((type_url, resource, entry.ttl))
}
