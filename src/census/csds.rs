// SPDX-License-Identifier: Apache-2.0
//! What is known of clients and of the relay itself as messages of CSDS.
//!
//! Owns the form, and that no secret is in it. Does not decide who may ask.

use std::time::Instant;

use super::entries::Entry;
use crate::clock::WallClock;
use crate::inquiry::{ClientResource, ClientStream, ClientType};
use crate::json::Schemas;
use crate::proto::envoy::admin::v3::UpdateFailureState;
use crate::proto::envoy::service::status::v3::client_config::GenericXdsConfig;
use crate::proto::envoy::service::status::v3::{ClientConfig, ConfigStatus};
use crate::proto::google::protobuf::{Any, Timestamp};
use crate::xds::{Resource, Standing, Status, TypeUrl};

/// How contents are shown.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    /// The schemas by which secrets are found. A content of a type that is not among them is left out.
    schemas: Schemas,
    /// Whether contents are shown at all.
    shown: bool,
    clock: WallClock,
}

impl Contents {
    /// Shows contents as of now, or leaves them out.
    pub(super) fn new(schemas: Schemas, shown: bool) -> Self {
        Self {
            schemas,
            shown,
            clock: WallClock::read(),
        }
    }

    fn content(&self, type_url: &TypeUrl, resource: &Resource) -> Option<Any> {
        if !self.shown || resource.is_hollow() {
            return None;
        }
        let value = self.schemas.redacted(type_url.url(), &resource.body())?;
        let type_url = type_url.url().to_owned();
        Some(Any { type_url, value })
    }

    fn time(&self, at: Instant) -> Option<Timestamp> {
        let since = self.clock.unix(at);
        Some(Timestamp {
            seconds: since.as_secs().try_into().ok()?,
            nanos: since.subsec_nanos().try_into().ok()?,
        })
    }

    /// Returns a client, without its resources.
    pub(super) fn client(&self, stream: &ClientStream) -> ClientConfig {
        ClientConfig {
            node: Some(stream.node.wire()),
            generic_xds_configs: Vec::new(),
            client_scope: format!("stream {} ({})", stream.number, stream.dialect.word()),
        }
    }

    /// Returns what a client was sent of a resource, and what it made of that: the server's view of it.
    pub(super) fn at_client(&self, one: &ClientType, resource: &ClientResource) -> GenericXdsConfig {
        let content = resource.resource.as_ref();
        let version = content.map(|content| content.version().to_string()).unwrap_or_default();
        let any = content.and_then(|content| self.content(&one.type_url, content));
        let rejected = resource.objection.as_ref().map(|why| UpdateFailureState {
            failed_configuration: any.clone(),
            last_update_attempt: one.sent.and_then(|at| self.time(at)),
            details: why.words().to_owned(),
            version_info: version.clone(),
        });
        GenericXdsConfig {
            type_url: one.type_url.url().to_owned(),
            name: resource.name.as_str().to_owned(),
            version_info: version,
            xds_config: any.filter(|_| rejected.is_none()),
            last_updated: content.and_then(|content| self.time(content.received())),
            config_status: config_status(resource.standing).into(),
            error_state: rejected,
            ..GenericXdsConfig::default()
        }
    }

    /// Returns what the relay has of a name: the client's view of it.
    pub(super) fn at_relay(&self, entry: &Entry) -> GenericXdsConfig {
        let content = entry.resource.as_ref();
        let name = entry.name.as_ref();
        GenericXdsConfig {
            type_url: entry.type_url.url().to_owned(),
            name: name.map_or_else(String::new, |name| name.as_str().to_owned()),
            version_info: content.map(|content| content.version().to_string()).unwrap_or_default(),
            xds_config: content.and_then(|content| self.content(&entry.type_url, content)),
            last_updated: content.and_then(|content| self.time(content.received())),
            client_status: entry.cached.status().into(),
            error_state: entry.error.as_ref().map(|details| UpdateFailureState {
                details: details.message.to_string(),
                ..UpdateFailureState::default()
            }),
            ..GenericXdsConfig::default()
        }
    }
}

/// Returns a client with the status of each of its types, without resources.
pub(super) fn client_types(stream: &ClientStream) -> ClientConfig {
    let configs = stream.types.iter().map(|one| GenericXdsConfig {
        type_url: one.type_url.url().to_owned(),
        config_status: type_status(one.status).into(),
        ..GenericXdsConfig::default()
    });
    ClientConfig {
        node: Some(stream.node.wire()),
        generic_xds_configs: configs.collect(),
        client_scope: String::new(),
    }
}

const fn type_status(status: Status) -> ConfigStatus {
    match status {
        Status::NotSent => ConfigStatus::NotSent,
        Status::Synced => ConfigStatus::Synced,
        Status::Stale => ConfigStatus::Stale,
        Status::Error => ConfigStatus::Error,
    }
}

const fn config_status(standing: Standing) -> ConfigStatus {
    match standing {
        Standing::Accepted => ConfigStatus::Synced,
        Standing::Sent | Standing::Outdated | Standing::Leaving => ConfigStatus::Stale,
        Standing::NotSent | Standing::Unknown | Standing::TimedOut | Standing::Missing => ConfigStatus::NotSent,
        Standing::Rejected | Standing::Older => ConfigStatus::Error,
    }
}
