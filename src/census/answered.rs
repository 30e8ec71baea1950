// SPDX-License-Identifier: Apache-2.0
//! The answer to a question of CSDS.
//!
//! Owns what is asked of whom. Knows nothing of the transport, and does not decide who may ask.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use serde_json::Value;
use tonic::Status;

use super::Census;
use super::configs::{ConfigPiece, Configs};
use super::csds::{Contents, client_types};
use super::document::Document;
use super::questions::Questions;
use super::whole_answer::WholeAnswer;
use crate::classes::Path;
use crate::inquiry::{Depth, Likeness, NodeMatcher, Question, TextMatcher, Whom};
use crate::json::{Bounds, Fault, Schemas, Secrets, Tree, Unknown};
use crate::proto::envoy::config::core::v3 as core;
use crate::proto::envoy::service::status::v3::{ClientConfig, ClientStatusRequest};
use crate::proto::envoy::r#type::matcher::v3 as matcher;
use crate::xds::{Expression, Resource, TypeUrl};

/// How many matchers a question may have, of ids and of metadata. Each client is compared with all of them.
const MATCHERS_MAX: usize = 1_000;
/// How many of them may be expressions, which are compiled before the question has a turn.
const EXPRESSIONS_MAX: usize = 16;

/// Answers questions of CSDS.
#[derive(Clone)]
pub struct ClientStatus {
    census: Census,
    /// The relay's own node.
    node: Arc<core::Node>,
    schemas: Schemas,
    questions: Questions,
}

impl ClientStatus {
    /// Answers for the relay with this node.
    #[must_use]
    pub fn new(census: Census, node: core::Node, schemas: Schemas) -> Self {
        Self {
            census,
            node: Arc::new(node),
            schemas,
            questions: Questions::default(),
        }
    }

    /// Answers one question: the parts of a ClientStatusResponse. Without matchers it is about the relay itself: what it has of its
    /// control planes. With matchers it is about the clients whose nodes match one of them.
    ///
    /// # Errors
    /// A matcher is not understood, the answer would be too large, or others have asked too much.
    pub async fn answer(&self, request: &ClientStatusRequest) -> Result<Vec<Bytes>, Status> {
        const CONFIG: u32 = 1;
        let mut configs = self.configs(request)?;
        let mut answer = WholeAnswer::new(self.questions.whole_turn().await?);
        let mut begun = false;
        while let Some(piece) = configs.next().await {
            match piece {
                ConfigPiece::Begin(config) => {
                    if std::mem::replace(&mut begun, true) {
                        answer.end(CONFIG).await?;
                    }
                    answer.extend(&*config).await?;
                }
                ConfigPiece::Resources(generic_xds_configs) => {
                    let resources = ClientConfig {
                        generic_xds_configs,
                        ..ClientConfig::default()
                    };
                    answer.extend(&resources).await?;
                }
            }
        }
        if begun {
            answer.end(CONFIG).await?;
        }
        answer.finish(&()).await
    }

    /// Answers a question that is written as JSON, in JSON.
    ///
    /// # Errors
    /// It is no question, or a matcher is not understood.
    pub fn document(&self, body: &[u8]) -> Result<Document, Status> {
        let invalid =
            |fault: Fault| Status::invalid_argument(format!("the body is not a ClientStatusRequest: {fault}"));
        let body = if body.is_empty() { b"{}" } else { body };
        let tree = Tree::json(body, Bounds::REQUEST).map_err(invalid)?;
        let name = "envoy.service.status.v3.ClientStatusRequest";
        let encoded = self.schemas.encode(name, &tree, "", Unknown::Deny).map_err(invalid)?;
        let request =
            ClientStatusRequest::decode(encoded.value).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Document::new(self.schemas.clone(), self.configs(&request)?))
    }

    /// Returns what a question is answered with.
    fn configs(&self, request: &ClientStatusRequest) -> Result<Configs, Status> {
        let contents = Contents::new(self.schemas.clone(), !request.exclude_resource_contents);
        bounded(&request.node_matchers)?;
        let nodes = request.node_matchers.iter().map(read);
        let nodes = nodes.collect::<Result<Vec<_>, Status>>()?;
        if nodes.is_empty() {
            let node = (*self.node).clone();
            return Ok(Configs::of_relay(contents, node, self.census.entries(|_| true)));
        }
        let whom = Whom {
            nodes,
            ..Whom::default()
        };
        let depth = Depth::Resources;
        Ok(Configs::of_clients(contents, self.census.ask(Question { whom, depth })))
    }

    /// Returns a content as JSON without its secrets; null if its type is not known.
    pub fn content(&self, type_url: &TypeUrl, resource: &Resource) -> Value {
        let json = self
            .schemas
            .resource_json(type_url.url(), &resource.body(), Secrets::Redact);
        let json = json.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
        json.unwrap_or_default()
    }

    /// The schemas of what it shows.
    pub const fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Returns the relay's own node as JSON.
    pub fn node(&self) -> Value {
        let name = "envoy.config.core.v3.Node";
        let json = self.schemas.decode(name, &self.node.encode_to_vec(), Secrets::Redact);
        let json = json.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
        json.unwrap_or_default()
    }

    /// All client streams.
    pub const fn census(&self) -> &Census {
        &self.census
    }

    /// The places of questions.
    pub const fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Returns all client streams, with the status of each of their types: the parts of a message that has each of them, as `shown`
    /// makes it, in this repeated field, and then these fields.
    ///
    /// # Errors
    /// The answer would be too large, or others have asked too much.
    pub async fn fleet<M: Message>(
        &self,
        field: u32,
        shown: impl Fn(&ClientConfig) -> M,
        fields: &impl Message,
    ) -> Result<Vec<Bytes>, Status> {
        let mut answer = WholeAnswer::new(self.questions.whole_turn().await?);
        let mut round = self.census.ask(Question {
            whom: Whom::default(),
            depth: Depth::Types,
        });
        while let Some(stream) = round.next().await {
            answer.extend(&shown(&client_types(&stream))).await?;
            answer.end(field).await?;
        }
        answer.finish(fields).await
    }
}

/// Whether a question has no more matchers than it may.
fn bounded(asked: &[matcher::NodeMatcher]) -> Result<(), Status> {
    use matcher::string_matcher::MatchPattern::SafeRegex;
    use matcher::value_matcher::MatchPattern::StringMatch;
    let members = || asked.iter().flat_map(|node| &node.node_metadatas);
    if asked.len() + members().count() > MATCHERS_MAX {
        return Err(Status::invalid_argument(format!(
            "node_matchers: more than {MATCHERS_MAX} matchers"
        )));
    }
    let values = members().filter_map(|member| member.value.as_ref()?.match_pattern.as_ref());
    let values = values.filter_map(|value| {
        if let StringMatch(text) = value {
            Some(text)
        } else {
            None
        }
    });
    let texts = asked.iter().filter_map(|node| node.node_id.as_ref()).chain(values);
    let expressions = texts.filter(|text| matches!(text.match_pattern, Some(SafeRegex(_))));
    if expressions.count() > EXPRESSIONS_MAX {
        return Err(Status::invalid_argument(format!(
            "node_matchers: more than {EXPRESSIONS_MAX} expressions"
        )));
    }
    Ok(())
}

fn read(asked: &matcher::NodeMatcher) -> Result<NodeMatcher, Status> {
    let metadata = asked.node_metadatas.iter().map(read_member);
    Ok(NodeMatcher {
        id: asked.node_id.as_ref().map(read_text).transpose()?,
        metadata: metadata.collect::<Result<_, _>>()?,
    })
}

fn read_member(asked: &matcher::StructMatcher) -> Result<(String, TextMatcher), Status> {
    use matcher::struct_matcher::path_segment::Segment;
    use matcher::value_matcher::MatchPattern;
    let keys = asked.path.iter().filter_map(|part| part.segment.as_ref());
    let path = Path::new(keys.map(|Segment::Key(key)| key.as_str()));
    let value = asked.value.as_ref().and_then(|value| value.match_pattern.as_ref());
    let matcher = match value {
        Some(MatchPattern::StringMatch(text)) => read_text(text)?,
        Some(MatchPattern::PresentMatch(true)) => TextMatcher::Present,
        Some(MatchPattern::PresentMatch(false)) | None => {
            let why = "node_matchers: a metadata matcher has no `string_match` and no `present_match: true`";
            return Err(Status::invalid_argument(why));
        }
    };
    Ok((path.as_str().to_owned(), matcher))
}

fn read_text(asked: &matcher::StringMatcher) -> Result<TextMatcher, Status> {
    use matcher::string_matcher::MatchPattern;
    let (how, text) = match &asked.match_pattern {
        Some(MatchPattern::Exact(text)) => (Likeness::Equal, text),
        Some(MatchPattern::Prefix(text)) => (Likeness::Prefix, text),
        Some(MatchPattern::Suffix(text)) => (Likeness::Suffix, text),
        Some(MatchPattern::Contains(text)) => (Likeness::Contains, text),
        Some(MatchPattern::SafeRegex(expression)) if !expression.regex.is_empty() => {
            let expression = Expression::whole(&expression.regex);
            let expression = expression.map_err(|fault| Status::invalid_argument(format!("node_matchers: {fault}")))?;
            return Ok(TextMatcher::Expression(expression));
        }
        Some(MatchPattern::SafeRegex(_)) | None => {
            return Err(Status::invalid_argument("node_matchers: a string matcher is empty"));
        }
    };
    let fold = asked.ignore_case;
    let text = if fold { text.to_lowercase() } else { text.clone() };
    Ok(TextMatcher::Like { how, text, fold })
}
