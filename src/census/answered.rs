//! The answer to a question of CSDS.
//!
//! Owns what is asked of whom, and how large an answer may be. Knows nothing of the transport, and does not decide who may ask.

use std::sync::Arc;

use prost::Message as _;
use serde_json::Value;
use tokio::sync::Semaphore;
use tonic::Status;

use super::Census;
use super::csds::{Contents, client_types};
use super::entries::Entry;
use crate::inquiry::{ClientStream, Depth, Likeness, NodeMatcher, Question, TextMatcher, Whom};
use crate::json::{Bounds, Fault, Schemas, Secrets, Tree, Unknown};
use crate::proto::envoy::config::core::v3 as core;
use crate::proto::envoy::service::status::v3::{ClientConfig, ClientStatusRequest, ClientStatusResponse};
use crate::proto::envoy::r#type::matcher::v3 as matcher;
use crate::xds::{Expression, Path, Resource, TypeUrl};

/// Answers questions of CSDS.
#[derive(Clone, Debug)]
pub struct ClientStatus {
    census: Census,
    /// The relay's own node.
    node: Arc<core::Node>,
    schemas: Schemas,
    answering: Arc<Semaphore>,
}

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How many answers are collected at the same time; the others wait.
const ANSWERS_AT_ONCE: usize = 2;

impl ClientStatus {
    /// Answers for the relay with this node.
    #[must_use]
    pub fn new(census: Census, node: core::Node, schemas: Schemas) -> Self {
        Self {
            census,
            node: Arc::new(node),
            schemas,
            answering: Arc::new(Semaphore::new(ANSWERS_AT_ONCE)),
        }
    }

    /// Answers one question. Without matchers it is about the relay itself: what it has of its control planes. With matchers it is
    /// about the clients whose nodes match one of them.
    ///
    /// # Errors
    /// A matcher is not understood, or the answer would be too large.
    pub async fn answer(&self, request: ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
        let contents = Contents::new(self.schemas.clone(), !request.exclude_resource_contents);
        let nodes = request
            .node_matchers
            .iter()
            .map(read)
            .collect::<Result<Vec<_>, Status>>()?;
        let answering = self.answering.acquire().await;
        let config = match nodes.is_empty() {
            true => vec![self.relay(&contents)],
            false => self.clients(nodes, &contents).await?,
        };
        drop(answering);
        let response = ClientStatusResponse { config };
        fits(response.encoded_len())?;
        Ok(response)
    }

    /// Answers a question that is written as JSON, in JSON.
    ///
    /// # Errors
    /// It is no question, or as above.
    pub async fn answer_json(&self, body: &[u8]) -> Result<Vec<u8>, Status> {
        let invalid =
            |fault: Fault| Status::invalid_argument(format!("the body is not a ClientStatusRequest: {fault}"));
        let body = if body.is_empty() { b"{}" } else { body };
        let tree = Tree::json(body, Bounds::REQUEST).map_err(invalid)?;
        let name = "envoy.service.status.v3.ClientStatusRequest";
        let encoded = self.schemas.encode(name, &tree, "", Unknown::Deny).map_err(invalid)?;
        let request =
            ClientStatusRequest::decode(encoded.value).map_err(|error| Status::internal(error.to_string()))?;
        let response = self.answer(request).await?.encode_to_vec();
        let name = "envoy.service.status.v3.ClientStatusResponse";
        let json = self.schemas.decode(name, &response, Secrets::Redact);
        json.map(|json| json.text)
            .map_err(|fault| Status::internal(fault.to_string()))
    }

    /// Returns a content as JSON without its secrets; null if its type is not known.
    #[must_use]
    pub fn content(&self, type_url: &TypeUrl, resource: &Resource) -> Value {
        self.body(type_url, &resource.body())
    }

    /// Returns the value of an `Any` in the same way.
    #[must_use]
    pub fn body(&self, type_url: &TypeUrl, body: &[u8]) -> Value {
        let json = self.schemas.resource_json(type_url.url(), body, Secrets::Redact);
        let json = json.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
        json.unwrap_or_default()
    }

    /// The schemas of what it shows.
    #[must_use]
    pub const fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Returns the relay's own node as JSON.
    #[must_use]
    pub fn node(&self) -> Value {
        let name = "envoy.config.core.v3.Node";
        let json = self.schemas.decode(name, &self.node.encode_to_vec(), Secrets::Redact);
        let json = json.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
        json.unwrap_or_default()
    }

    /// All client streams.
    #[must_use]
    pub const fn census(&self) -> &Census {
        &self.census
    }

    /// Returns all client streams, with the status of each of their types.
    ///
    /// # Errors
    /// The answer would be too large.
    pub async fn fleet(&self) -> Result<Vec<ClientConfig>, Status> {
        let question = Question {
            whom: Whom::default(),
            depth: Depth::Types,
        };
        self.collect(question, client_types).await
    }

    fn relay(&self, contents: &Contents) -> ClientConfig {
        let mut entries: Vec<Entry> = Vec::new();
        self.census.visit(|entry| entries.push(entry));
        contents.relay((*self.node).clone(), &entries)
    }

    async fn clients(&self, nodes: Vec<NodeMatcher>, contents: &Contents) -> Result<Vec<ClientConfig>, Status> {
        let whom = Whom {
            nodes,
            ..Whom::default()
        };
        let depth = Depth::Resources;
        self.collect(Question { whom, depth }, |stream| contents.client(stream))
            .await
    }

    async fn collect(
        &self,
        question: Question,
        show: impl Fn(&ClientStream) -> ClientConfig,
    ) -> Result<Vec<ClientConfig>, Status> {
        let mut round = self.census.ask(question);
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(stream) = round.next().await {
            let config = show(&stream);
            bytes += config.encoded_len();
            fits(bytes)?;
            found.push(config);
        }
        Ok(found)
    }
}

fn fits(bytes: usize) -> Result<(), Status> {
    if bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!(
        "the answer has more than {ANSWER_BYTES_MAX} bytes; ask about fewer nodes, or set `exclude_resource_contents`"
    )))
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
