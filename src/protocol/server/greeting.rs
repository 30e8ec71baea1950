//! Who a client is, and what it may have.
//!
//! Owns what the first request on a stream decides. Does not know what the client asks for.

use std::sync::Arc;
use std::time::Instant;

use super::stream::Server;
use crate::end::{Code, End};
use crate::node::{read_node, relays};
use identity::Identity;
use proto::envoy::config::core::v3 as core;
use xds::{Access, Answers, Caller, Dialect, Grant, Node, Rights, TypeUrl, Way};

impl Server {
    /// B-01: the node of the first request counts for the whole stream.
    pub(super) fn greet(&mut self, node: Option<&core::Node>, answers: &impl Answers) -> Result<(), End> {
        // K-25: in a chain of relays that leads back to this one, the relays would keep each other's content alive.
        let through = node.map(relays).unwrap_or_default();
        if through.contains(&self.settings.relay_id) {
            let id = &self.settings.relay_id;
            let message =
                format!("loop: the request has already come through relay `{id}`; its upstream leads back to it");
            return Err(End::new(Code::FailedPrecondition, message));
        }
        if let Some(known) = &mut self.node {
            if !through.iter().all(|relay| known.relays.contains(relay)) {
                Arc::make_mut(known).relays = through.into();
            }
            return Ok(());
        }
        let mut own = match node {
            Some(wire) => read_node(wire),
            None if self.settings.anonymous => Node::default(),
            None => {
                let message =
                    "the first request on a stream must carry a node (set `anonymous: true` to allow clients without)";
                return Err(End::invalid(message));
            }
        };
        let identity = self.stranger.take().unwrap_or_default();
        let identity: Vec<&str> = identity.texts().collect();
        // K-02: whom the client shares views with.
        own.class = answers.class(self.settings.classes.class(&own, &identity));
        own.passed = node.and_then(|wire| own.class.take(wire));
        let node = self.node.insert(Arc::new(own)).clone();
        self.admit_caller(&node, &identity, answers)
    }

    /// Whether the client's rights come from these rules.
    #[must_use]
    pub fn is_under(&self, access: &Arc<Access>) -> bool {
        Arc::ptr_eq(&self.access, access)
    }

    /// S-07: these are the rules from now on. Returns the end of the stream, if they do not admit it.
    pub fn handle_access(
        &mut self,
        access: Arc<Access>,
        identity: &Identity,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<(), End> {
        self.access = access;
        let Some(node) = self.node.clone() else { return Ok(()) };
        self.done = false;
        let identity: Vec<&str> = identity.texts().collect();
        self.admit_caller(&node, &identity, answers)?;
        for at in 0..self.types.len() {
            let Some(type_url) = self.types.get(at).map(|one| one.type_url.clone()) else {
                continue;
            };
            let rights = self.rights_of(&type_url, answers)?;
            if let Some(subscription) = self.types.get_mut(at) {
                subscription.handle_rights(rights, now);
            }
        }
        Ok(())
    }

    /// S-02: finds out what the client may have. A client that may have nothing is refused.
    fn admit_caller(&mut self, node: &Node, identity: &[&str], answers: &impl Answers) -> Result<(), End> {
        let caller = Caller {
            identity,
            node,
            way: match self.dialect {
                _ if self.polls => Way::Rest,
                Dialect::Sotw => Way::Sotw,
                Dialect::Delta => Way::Delta,
            },
        };
        let rights = self.access.rights(&caller);
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
            Grant::Nothing if self.service.is_none() => Ok(Some(Rights::none())),
            Grant::Nothing => {
                let node = self.node.as_ref().map_or("", |node| &*node.id);
                Err(End::new(Code::PermissionDenied, rights.denial(node, type_url)))
            }
        }
    }
}
