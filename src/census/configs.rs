// SPDX-License-Identifier: Apache-2.0
//! What a question of CSDS is answered with, some resources at a time.
//!
//! Owns the place between two pieces. Whoever takes them slowly keeps no more than one stream or one page. Does not know the form.

use super::Round;
use super::csds::Contents;
use super::pages::Pages;
use crate::inquiry::{ClientResource, ClientStream, ClientType};
use crate::proto::envoy::config::core::v3 as core;
use crate::proto::envoy::service::status::v3::ClientConfig;
use crate::proto::envoy::service::status::v3::client_config::GenericXdsConfig;

/// An answer on its way.
pub(super) struct Configs {
    contents: Contents,
    source: ConfigSource,
}

/// The next piece of an answer.
pub(super) enum ConfigPiece {
    /// A configuration begins. Its resources follow.
    Begin(Box<ClientConfig>),
    /// Some resources of it.
    Resources(Vec<GenericXdsConfig>),
}

enum ConfigSource {
    /// What the relay has of its control planes; the node of the only configuration comes first.
    Relay(Option<Box<core::Node>>, Pages),
    /// What clients have; the resources of one of them are taken.
    Clients(Box<Round>, StreamResources),
}

/// The resources of one stream that are left.
#[derive(Default)]
struct StreamResources {
    types: std::vec::IntoIter<ClientType>,
    one: Option<(ClientType, std::vec::IntoIter<ClientResource>)>,
}

/// How many resources are taken at a time.
const PAGE: usize = 16;

impl Configs {
    /// Says what the relay has.
    pub(super) fn of_relay(contents: Contents, node: core::Node, entries: Pages) -> Self {
        Self {
            contents,
            source: ConfigSource::Relay(Some(Box::new(node)), entries),
        }
    }

    /// Says what the streams have that answer.
    pub(super) fn of_clients(contents: Contents, round: Round) -> Self {
        Self {
            contents,
            source: ConfigSource::Clients(Box::new(round), StreamResources::default()),
        }
    }

    /// Returns the next piece.
    pub(super) async fn next(&mut self) -> Option<ConfigPiece> {
        // Others on the same thread get their turn.
        tokio::task::yield_now().await;
        let Self { contents, source } = self;
        match source {
            ConfigSource::Relay(node, pages) => {
                if let Some(node) = node.take() {
                    let begun = ClientConfig {
                        node: Some(*node),
                        ..ClientConfig::default()
                    };
                    return Some(ConfigPiece::Begin(Box::new(begun)));
                }
                let entries = pages.next(PAGE);
                let resources = entries.iter().map(|entry| contents.at_relay(entry)).collect();
                (!entries.is_empty()).then_some(ConfigPiece::Resources(resources))
            }
            ConfigSource::Clients(round, left) => {
                let resources = left.some(contents);
                if !resources.is_empty() {
                    return Some(ConfigPiece::Resources(resources));
                }
                let stream = round.next().await?;
                let begun = contents.client(&stream);
                *left = StreamResources::of(stream);
                Some(ConfigPiece::Begin(Box::new(begun)))
            }
        }
    }
}

impl StreamResources {
    fn of(stream: ClientStream) -> Self {
        Self {
            types: stream.types.into_iter(),
            one: None,
        }
    }

    /// Returns the next resources; none at the end.
    fn some(&mut self, contents: &Contents) -> Vec<GenericXdsConfig> {
        let mut some = Vec::new();
        while some.len() < PAGE {
            let next = self.one.as_mut().and_then(|(one, left)| Some((&*one, left.next()?)));
            match next {
                Some((one, resource)) => some.push(contents.at_client(one, &resource)),
                None => {
                    let Some(mut one) = self.types.next() else { break };
                    let left = std::mem::take(&mut one.resources).into_iter();
                    self.one = Some((one, left));
                }
            }
        }
        some
    }
}
