// SPDX-License-Identifier: Apache-2.0
//! What is held from before the present stream and was not sent on it: that it has not changed, or is gone (E-04).
//!
//! Owns what the server was told of it, and what the server's silence means. Knows nothing of content.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xds::Name;

/// The names of which the server has not sent anything on this stream.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    names: BTreeMap<Name, Declared>,
    first: FirstAnswer,
    /// The server resent content although it was sent the same version: it does not read versions, and will not report removals.
    ignores: bool,
    /// The relay rejected a response on this stream, so a later resend has no meaning.
    refused: bool,
}

/// Whether the server was sent the version of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    No,
    Yes,
    /// The name is requested by itself, or the server has spoken of it: that it is sent or not sent shows nothing.
    Apart,
}

#[derive(Clone, Copy, Debug, Default)]
enum FirstAnswer {
    /// Silence shows nothing.
    #[default]
    Over,
    /// The server's first answer is not over. If it has begun: when it last had a name that was new, or not sent before on the stream.
    Open(Option<Instant>),
    /// It is over, and has left names out. These have not changed, or are gone and the server does not read versions.
    Unsure,
}

/// After a reconnect, the server must be quiet this long before names that it did not mention count as gone.
const CALM: Duration = Duration::from_secs(5);

impl Declared {
    const fn of(sent: bool) -> Self {
        if sent { Self::Yes } else { Self::No }
    }
}

impl Unsaid {
    /// A stream begins, before which these were held, each with whether the server is sent its version, if its silence shows anything.
    pub(super) fn of(names: impl Iterator<Item = (Name, Option<bool>)>) -> Self {
        let declared = |sent: Option<bool>| sent.map_or(Declared::Apart, Declared::of);
        let names: BTreeMap<_, _> = names.map(|(name, sent)| (name, declared(sent))).collect();
        let judges = names.values().any(|declared| *declared != Declared::Apart);
        Self {
            names,
            first: if judges {
                FirstAnswer::Open(None)
            } else {
                FirstAnswer::Over
            },
            ..Self::default()
        }
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.names.contains_key(name)
    }

    /// This is held and was not sent.
    pub(super) fn add(&mut self, name: &Name) {
        self.names.insert(name.clone(), Declared::Apart);
    }

    /// It was sent, or is not held any more.
    pub(super) fn remove(&mut self, name: &Name) {
        self.names.remove(name);
    }

    /// What the server's first answer says of this name shows whether it is gone; `sent`: the server was sent its version.
    pub(super) fn judge(&mut self, name: &Name, sent: bool) {
        self.open();
        self.names.insert(name.clone(), Declared::of(sent));
    }

    /// The name is requested by itself: if the server resends it, that means nothing.
    pub(super) fn ask(&mut self, name: &Name) {
        if let Some(declared) = self.names.get_mut(name).filter(|of| **of == Declared::Yes) {
            *declared = Declared::Apart;
        }
    }

    /// Whether the server was not sent the version of this name.
    pub(super) fn is_undeclared(&self, name: &Name) -> bool {
        self.names.get(name) == Some(&Declared::No)
    }

    /// The present response speaks of a name. `new`: nothing was held of it; `resent`: it has the same version. Returns whether that is news.
    pub(super) fn mention(&mut self, name: &Name, new: bool, resent: bool) -> bool {
        let declared = self.names.get_mut(name);
        let before = declared.map(|declared| std::mem::replace(declared, Declared::Apart));
        let (news, is_open) = (new || before.is_some(), matches!(self.first, FirstAnswer::Open(_)));
        self.ignores |= before == Some(Declared::Yes) && resent && !self.refused && is_open;
        if let FirstAnswer::Open(calm) = &mut self.first {
            *calm = calm.filter(|_| !news);
        }
        news
    }

    /// The present response is read to its end.
    pub(super) fn heard(&mut self, now: Instant) {
        if let FirstAnswer::Open(calm) = &mut self.first {
            calm.get_or_insert(now);
        }
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        if let FirstAnswer::Open(Some(calm)) = &mut self.first {
            *calm = at.max(*calm);
        }
    }

    /// The relay rejects a response. E-22: some servers then resend everything.
    pub(super) const fn refuse(&mut self) {
        self.refused = true;
    }

    /// An answer has ended for which the server was sent no versions. If the first answer counted as over, it was not.
    pub(super) fn ended(&mut self, now: Instant) {
        if self.names.values().any(|declared| *declared == Declared::No) {
            self.open();
            self.heard(now);
        }
    }

    fn open(&mut self) {
        if !matches!(self.first, FirstAnswer::Open(_)) {
            self.first = FirstAnswer::Open(None);
            let silent = self.names.values_mut().filter(|of| **of == Declared::Yes);
            silent.for_each(|declared| *declared = Declared::Apart);
        }
    }

    /// Returns when the first answer is over, if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.first {
            FirstAnswer::Open(Some(calm)) if !self.names.is_empty() => Some(calm + CALM),
            FirstAnswer::Open(_) | FirstAnswer::Over | FirstAnswer::Unsure => None,
        }
    }

    /// The first answer is over. Returns the names that are gone: `is_settled` says of which ones nothing is expected any more.
    pub(super) fn end(&mut self, is_settled: impl Fn(&Name) -> bool) -> Vec<Name> {
        let is_gone = |declared: Declared| declared == Declared::No || self.ignores;
        let gone = self.names.iter();
        let gone = gone.filter(|(name, declared)| is_gone(**declared) && is_settled(name));
        let gone = gone.map(|(name, _)| name.clone()).collect();
        self.first = if self.ignores {
            FirstAnswer::Over
        } else {
            FirstAnswer::Unsure
        };
        gone
    }

    /// Whether the first answer has left names out, and it is not known what that means.
    pub(super) fn is_unsure(&self) -> bool {
        matches!(self.first, FirstAnswer::Unsure) && self.silent().next().is_some()
    }

    /// It is known now whether the server ignores the versions that it is sent. Returns the names that are gone, if it does.
    pub(super) fn decide(&mut self, ignores: bool) -> Vec<Name> {
        let was_unsure = matches!(self.first, FirstAnswer::Unsure);
        if was_unsure {
            self.first = FirstAnswer::Over;
        }
        self.silent().filter(|_| was_unsure && ignores).cloned().collect()
    }

    fn silent(&self) -> impl Iterator<Item = &Name> {
        let silent = self.names.iter().filter(|(_, declared)| **declared == Declared::Yes);
        silent.map(|(name, _)| name)
    }
}
