// SPDX-License-Identifier: Apache-2.0
//! What operators ask the client streams.
//!
//! Owns the questions and the answers, and the way back. Nothing is kept for a question that nobody asks: each stream answers in
//! its own turn, from what it has anyway. Does not know how streams are reached, and in which form the answers are shown.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use classes::{Node, Pattern};
use identity::Identity;
pub use xds::{ClientResource, ClientType, Depth};
use xds::{Dialect, Expression, TypeUrl};

/// A question to all client streams.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which streams answer.
    pub whom: Whom,
    /// What they say.
    pub depth: Depth,
}

/// Which streams answer. A stream must fit all that is given.
#[derive(Clone, Debug, Default)]
pub struct Whom {
    /// These.
    pub streams: Option<Arc<BTreeSet<StreamNumber>>>,
    /// Those of nodes that match one of these; empty: of all nodes.
    pub nodes: Vec<NodeMatcher>,
    /// Those of classes whose text is of this pattern.
    pub class: Option<Pattern>,
    /// Those of clients whose software and its version, in one text, are of this pattern.
    pub software: Option<Pattern>,
    /// Those that are subscribed to this type.
    pub type_url: Option<TypeUrl>,
}

/// Which nodes: those of which all is true that is given.
#[derive(Clone, Debug, Default)]
pub struct NodeMatcher {
    /// The id matches this.
    pub id: Option<TextMatcher>,
    /// The member of the metadata at each path matches this.
    pub metadata: Vec<(String, TextMatcher)>,
}

/// Which texts.
#[derive(Clone, Debug)]
pub enum TextMatcher {
    /// Any text.
    Present,
    /// Texts of this pattern.
    Pattern(Pattern),
    /// Texts that fit this expression.
    Expression(Expression),
    /// Texts that, in lower case if `fold`, are as this one.
    Like {
        /// How they are like it.
        how: Likeness,
        /// The text; in lower case if `fold`.
        text: String,
        /// Whether case does not matter.
        fold: bool,
    },
}

/// How one text is like another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// Equal.
    Equal,
    /// It begins so.
    Prefix,
    /// It ends so.
    Suffix,
    /// It contains it.
    Contains,
}

/// The number of a stream: that of its connection among all since the start, and its own on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamNumber {
    /// That of its connection.
    pub connection: u64,
    /// As HTTP/2 counts them.
    pub stream: u32,
}

/// What one stream answers.
#[derive(Clone, Debug)]
pub struct ClientStream {
    /// Its number.
    pub number: StreamNumber,
    /// Who the client says it is.
    pub node: Arc<Node>,
    /// What the relay has checked of it.
    pub identity: Identity,
    /// Where it comes from; `None`: over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Its dialect.
    pub dialect: Dialect,
    /// The type of its service; `None`: it is aggregated.
    pub service: Option<TypeUrl>,
    /// When it began.
    pub since: Instant,
    /// How many requests the client has sent since then.
    pub requests: u64,
    /// How many bytes these had.
    pub request_bytes: u64,
    /// What it has asked for.
    pub types: Vec<ClientType>,
}

/// A question on its way to some streams. Once each of them has answered, or has let go of it, the answers go to whoever asks.
#[derive(Debug)]
pub struct Inquiry {
    question: Arc<Question>,
    answers: Mutex<Vec<ClientStream>>,
    /// Taken when it is dropped.
    back: Option<oneshot::Sender<Vec<ClientStream>>>,
    /// While it lasts, nobody else asks.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Inquiry {
    /// Creates one, with room for so many answers. Also returns what becomes ready when nobody has it any more.
    #[must_use]
    pub fn new(
        question: Arc<Question>,
        room: usize,
        turn: Option<OwnedSemaphorePermit>,
    ) -> (Arc<Self>, oneshot::Receiver<Vec<ClientStream>>) {
        let (back, answered) = oneshot::channel();
        let inquiry = Self {
            question,
            answers: Mutex::new(Vec::with_capacity(room)),
            back: Some(back),
            _turn: turn,
        };
        (Arc::new(inquiry), answered)
    }

    /// The question.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// A stream answers. It is not told whether anybody still wants to know.
    pub fn answer(&self, stream: ClientStream) {
        self.answers.lock().push(stream);
    }

    /// Takes the answers so far.
    pub fn take(&self) -> Vec<ClientStream> {
        std::mem::take(&mut *self.answers.lock())
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        let answers = self.take();
        self.back.take().map(|back| back.send(answers));
    }
}

impl Question {
    /// Whether it is about one resource: then only streams are asked that ask for its name.
    pub const fn is_about_one(&self) -> bool {
        matches!(self.depth, Depth::Resource(..))
    }
}

impl Whom {
    /// Only the stream with this number.
    #[must_use]
    pub fn stream(number: StreamNumber) -> Self {
        Self {
            streams: Some(Arc::new(BTreeSet::from([number]))),
            ..Self::default()
        }
    }

    /// Whether a stream of this connection may be asked.
    pub fn is_about_connection(&self, connection: u64) -> bool {
        let of = |stream| StreamNumber { connection, stream };
        let asked = |streams: &BTreeSet<StreamNumber>| streams.range(of(0)..=of(u32::MAX)).next().is_some();
        self.streams.as_deref().is_none_or(asked)
    }

    /// Whether a stream is asked, as far as its number and its node say.
    pub fn is_about(&self, number: StreamNumber, node: &Node) -> bool {
        (self.streams.as_ref()).is_none_or(|asked| asked.contains(&number))
            && (self.nodes.is_empty() || self.nodes.iter().any(|matcher| matcher.matches(node)))
            && (self.class.as_ref()).is_none_or(|class| class.matches(&node.class.to_string()))
            && (self.software.as_ref()).is_none_or(|software| software.matches(&node.user_agent.to_string()))
    }
}

impl NodeMatcher {
    /// Matches nodes whose id is of this pattern: `*` stands for any text.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn id_like(pattern: &str) -> Result<Self, String> {
        Ok(Self::id_of(Pattern::read(pattern)?))
    }

    /// Matches nodes whose id is this.
    #[must_use]
    pub fn id_is(id: &str) -> Self {
        Self::id_of(Pattern::of(id))
    }

    const fn id_of(pattern: Pattern) -> Self {
        Self {
            id: Some(TextMatcher::Pattern(pattern)),
            metadata: Vec::new(),
        }
    }

    fn matches(&self, node: &Node) -> bool {
        let member = |(path, matcher): &(String, TextMatcher)| {
            let value = node.metadata.get(path);
            value.is_some_and(|value| matcher.matches(value))
        };
        self.id.as_ref().is_none_or(|matcher| matcher.matches(&node.id)) && self.metadata.iter().all(member)
    }
}

impl TextMatcher {
    fn matches(&self, found: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Pattern(pattern) => pattern.matches(found),
            Self::Expression(expression) => expression.fits(found),
            Self::Like { how, text, fold: true } => how.holds(&found.to_lowercase(), text),
            Self::Like { how, text, fold: false } => how.holds(found, text),
        }
    }
}

impl Likeness {
    fn holds(self, found: &str, text: &str) -> bool {
        match self {
            Self::Equal => found == text,
            Self::Prefix => found.starts_with(text),
            Self::Suffix => found.ends_with(text),
            Self::Contains => found.contains(text),
        }
    }
}

impl fmt::Display for StreamNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.connection, self.stream)
    }
}

impl FromStr for StreamNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (connection, stream) = text.split_once('.').ok_or(())?;
        Ok(Self {
            connection: connection.parse().map_err(drop)?,
            stream: stream.parse().map_err(drop)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_of_the_streams_are_asked() {
        let number = |connection, stream| StreamNumber { connection, stream };
        let one = Whom::stream(number(7, 3));
        let asked = [6, 7, 8].map(|connection| one.is_about_connection(connection));
        assert_eq!(asked, [false, true, false]);
        assert!(one.is_about(number(7, 3), &Node::default()) && !one.is_about(number(7, 5), &Node::default()));
        assert!(Whom::default().is_about_connection(6));
    }

    #[test]
    fn a_number_is_read_as_it_is_written() {
        let number = StreamNumber {
            connection: 12,
            stream: 3,
        };
        assert_eq!(number.to_string().parse(), Ok(number));
        for wrong in ["", "12", "12.", "a.b", "1.2.3", "-1.2"] {
            assert_eq!(wrong.parse::<StreamNumber>(), Err(()), "{wrong}");
        }
    }
}
