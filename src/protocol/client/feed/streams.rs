//! The effects of the beginning and the end of a stream on one type.
//!
//! Owns what survives a stream. Knows nothing of connections.

use super::Feed;
use crate::client::awaited::Patience;
use xds::{Changes, Dialect, Name};

impl Feed {
    /// A stream begins: everything must be requested again. If `told`, in delta with the versions that this server gave (E-04). E-25:
    /// in SotW without one, because a server whose versions start anew would be silent about new content with an old version.
    pub(in crate::client) fn connected(&mut self, dialect: Dialect, told: bool, patience: Patience) {
        self.kept.connected(told);
        let mut names = self.kept.names();
        let declares = dialect == Dialect::Delta && names.any(|name| self.kept.declared(name.as_str()).is_some());
        self.exchange.connected(patience, declares);
        // E-19: a type of which nothing is wanted gets no request.
        let wildcard = self.wildcard.is_asked().then(|| Name::from(Name::WILDCARD));
        let listed = self.names.listed().cloned();
        self.outbound.connected(listed.chain(wildcard).collect());
        if self.wildcard.is_asked() && dialect == Dialect::Delta {
            // An incomplete wildcard is requested without versions: then the server sends everything, and the end of its answer
            // can be seen.
            let complete = self.completeness.complete();
            let declared = |name: &Name| complete && self.kept.declared(name.as_str()).is_some();
            let held = self.kept.names().map(|name| (name.clone(), declared(name)));
            self.completeness.connected(held.collect());
        }
        if dialect == Dialect::Delta {
            // Members that were also requested by name are declared and waited for on their own.
            let named = |name: &&Name| self.names.contains(name.as_str());
            let held = |collection: &Name| {
                let members = self.kept.within(collection).filter(|name| !named(name));
                members
                    .map(|name| (name.clone(), self.kept.declared(name.as_str()).is_some()))
                    .collect()
            };
            self.collections.connected(held);
        }
    }

    /// The stream ended. G-19: what is known stays known. If the server had answered for the type, returns that it has not any more.
    pub(in crate::client) fn disconnected(&mut self) -> Option<Changes> {
        let half = (self.type_url.clone(), self.wildcard.is_asked());
        let answered = (self.outbound.is_answered() && self.wanted()).then(|| Changes {
            answered: Some(false),
            ..Changes::of(half, Vec::new())
        });
        if self.wildcard.is_hidden() {
            self.drop_wildcard();
        }
        self.outbound.disconnected();
        self.exchange.disconnected();
        self.completeness.disconnected();
        self.collections.disconnected();
        self.names.disconnected();
        answered
    }

    /// D-10: the first whole state is over when the server has answered on this stream for all that it was asked for on it. In SotW, one
    /// response has all that a wildcard covers, and all of a type with full states.
    pub(super) fn conclude(&mut self, dialect: Dialect) {
        let at_once = dialect == Dialect::Sotw && (self.wildcard.is_asked() || self.type_url.traits().full_state);
        let whole = || self.completeness.rests() && self.collections.rests() && self.names.all_heard();
        if self.exchange.is_first() && self.outbound.is_answered() && (at_once || whole()) {
            self.exchange.conclude();
        }
    }

    pub(in crate::client) fn forget_versions(&mut self) {
        self.kept.forget_versions();
    }
}
