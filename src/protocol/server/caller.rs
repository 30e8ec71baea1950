// SPDX-License-Identifier: Apache-2.0
//! Who a client is, and what it may have.
//!
//! Owns what the first request on a stream decides. Does not know what the client asks for.

use std::sync::Arc;

use crate::end::{Code, End};
use crate::node::{read_node, relays};
use crate::settings::StreamSettings;
use classes::{Marks, Node, loop_at};
use identity::Identity;
use proto::envoy::config::core::v3 as core;
use xds::Caller as Subject;
use xds::{Access, Answers, Dialect, Grant, Kind, Rights, TypeUrl, Types, Way};

/// How a stream begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The stream's dialect.
    pub dialect: Dialect,
    /// The type of a per-type service; `None` for the aggregated service.
    pub service: Option<TypeUrl>,
    /// The prefix that makes the nonces of this stream unlike those of any other (K-11).
    pub nonce_prefix: u32,
    /// What the relay has checked about the client.
    pub identity: Identity,
    /// Whether it is a poll or a unary call.
    pub polls: bool,
}

/// The client of one stream.
#[derive(Debug)]
pub(super) struct Caller {
    opening: Opening,
    node: Option<Arc<Node>>,
    /// The rules by which its rights were found out.
    access: Arc<Access>,
    /// S-01: what the client may have; `None`: everything.
    rights: Option<Arc<Rights>>,
}

impl Caller {
    pub(super) const fn new(opening: Opening, access: Arc<Access>) -> Self {
        Self {
            opening,
            node: None,
            access,
            rights: None,
        }
    }

    pub(super) const fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.opening.dialect
    }

    /// Whether the client is another relay.
    pub(super) fn is_relay(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_relay())
    }

    /// Returns a number below 16 for the client's software, which others may have in common with it; none for a relay, which accepts
    /// nothing by itself (K-37).
    pub(super) fn software(&self) -> Option<u8> {
        let node = self.node.as_ref().filter(|node| !node.is_relay())?;
        Some(node.user_agent.number())
    }

    /// B-31: whether the client is sent errors of a type's names. Another relay reads them, and others ignore them; but v2 has no such
    /// field, in JSON an unknown field is a fault, Envoy may reject a response of the other types in SotW that brings no resource, and
    /// it waits for a virtual host until an entry of its own says that there is none (C-21).
    pub(super) fn reads_errors(&self, type_url: &TypeUrl) -> bool {
        let kind = type_url.kind();
        let ignores = match self.opening.dialect {
            Dialect::Sotw => type_url.traits().full_state || matches!(kind, Kind::Rds | Kind::Eds),
            Dialect::Delta => !kind.is_void_without_body(),
        };
        self.is_relay() || ignores && !self.opening.polls && !type_url.is_v2()
    }

    /// Whether the client's rights come from these rules.
    pub(super) fn is_under(&self, access: &Arc<Access>) -> bool {
        Arc::ptr_eq(&self.access, access)
    }

    /// B-01: the node of the first request counts for the whole stream.
    pub(super) fn greet(
        &mut self,
        node: Option<&core::Node>,
        settings: &StreamSettings,
        answers: &impl Answers,
    ) -> Result<(), End> {
        // K-25: in a chain of relays that leads back to this one, the relays would keep each other's content alive.
        let through = node.map(relays).unwrap_or_default();
        if through.contains(&settings.relay_id) {
            let message = loop_at(&settings.relay_id, "its upstream leads back to it");
            return Err(End::new(Code::FailedPrecondition, message));
        }
        if let Some(known) = &self.node {
            let marks = Marks::of(&through);
            if marks.as_ref().is_some_and(|marks| marks.relays() != known.relays()) {
                self.mark(marks);
            }
            return Ok(());
        }
        let mut own = match node {
            Some(wire) => read_node(wire),
            None if settings.anonymous => Node::default(),
            None => {
                let message =
                    "the first request on a stream must carry a node (set `anonymous: true` to allow clients without)";
                return Err(End::invalid(message));
            }
        };
        let identity: Vec<&str> = self.opening.identity.texts().collect();
        // K-02: whom the client shares views with.
        own.class = answers.class(settings.classes.class(&own, &identity));
        own.passed = node.and_then(|wire| own.class.take(wire));
        let marks = own.marks.take().map(|marks| (*marks).clone());
        self.node = Some(Arc::new(own));
        self.admit(answers)?;
        self.mark(marks);
        Ok(())
    }

    /// K-25: the client brings these marks. They are passed on if a rule lets it be a relay.
    fn mark(&mut self, marks: Option<Marks>) {
        let Some((node, marks)) = self.node.as_mut().zip(marks) else {
            return;
        };
        let identity: Vec<&str> = self.opening.identity.texts().collect();
        let subject = subject(&identity, node, &self.opening);
        let sender = self.access.may_be_relay(&subject).then(|| self.opening.identity.name());
        Arc::make_mut(node).marks = Some(Arc::new(marks.from(sender)));
    }

    /// S-07: these are the rules from now on. Returns whether there is a client for which they count.
    pub(super) fn handle_access(&mut self, access: Arc<Access>, answers: &impl Answers) -> Result<bool, End> {
        self.access = access;
        let Some(node) = &self.node else { return Ok(false) };
        let marks = node.marks.as_ref().map(|marks| (**marks).clone());
        self.admit(answers)?;
        self.mark(marks);
        Ok(true)
    }

    /// S-02: finds out what the client may have. A client that may have nothing is refused.
    fn admit(&mut self, answers: &impl Answers) -> Result<(), End> {
        let Some(node) = &self.node else { return Ok(()) };
        let identity: Vec<&str> = self.opening.identity.texts().collect();
        let rights = self.access.rights(&subject(&identity, node, &self.opening));
        let rights = rights.map_err(|denied| End::new(Code::PermissionDenied, denied.to_string()))?;
        self.rights = rights.map(|rights| answers.rights(rights));
        Ok(())
    }

    /// S-03: returns what the client may have of a type; `None`: everything. A stream for a type of which it may have nothing ends;
    /// on an aggregated stream, where other types would end with it, no resource of the type exists.
    pub(super) fn rights_of(&self, type_url: &TypeUrl, answers: &impl Answers) -> Result<Option<Arc<Rights>>, End> {
        let Some(rights) = &self.rights else { return Ok(None) };
        match rights.grant(type_url) {
            Grant::Everything => Ok(None),
            Grant::Some => Ok(Some(answers.rights(rights.of_type(type_url)))),
            Grant::Nothing if self.opening.service.is_none() => Ok(Some(Rights::none())),
            Grant::Nothing => {
                let node = self.node.as_ref().map_or("", |node| &*node.id);
                Err(End::new(Code::PermissionDenied, rights.denial(node, type_url)))
            }
        }
    }

    /// Whether the client may have anything of the type.
    pub(super) fn may_have(&self, type_url: &TypeUrl) -> bool {
        let rights = self.rights.as_ref();
        rights.is_none_or(|rights| rights.grant(type_url) != Grant::Nothing)
    }

    /// returns the type of a request.
    pub(super) fn resolve(&self, text: &str, types: &Types) -> Result<TypeUrl, End> {
        match &self.opening.service {
            Some(service) if text.is_empty() => Ok(service.clone()),
            None if text.is_empty() => Err(End::invalid(
                "type_url is empty; a request on an aggregated stream must name its type",
            )),
            Some(service) => {
                let asked = types.resolve(text);
                if asked == *service {
                    return Ok(asked);
                }
                Err(End::invalid(format!(
                    "type_url `{text}` is not served on a stream of the {service} service"
                )))
            }
            None => Ok(types.resolve(text)),
        }
    }
}

/// Returns the client as the rules see it.
const fn subject<'a>(identity: &'a [&'a str], node: &'a Node, opening: &Opening) -> Subject<'a> {
    Subject {
        identity,
        node,
        way: match opening.dialect {
            _ if opening.polls => Way::Rest,
            Dialect::Sotw => Way::Sotw,
            Dialect::Delta => Way::Delta,
        },
    }
}
