//! Variants of a name (TP2): what a control plane has for some clients and not for others, and the parameters of the clients.
//!
//! Owns the one parameter that clients send, and how it is written in messages. Does not know which resources exist.

use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3 as discovery;
use xds::{Dialect, Resource};

use super::body::Type;
use super::client::Client;
use super::reading::Reading;
use super::relay::Stream;
use super::rng::Rng;
use super::tally::{Broken, Rule};
use super::wire::{Answer, Up};
use super::witness::Watch;
use super::world::World;

/// The values of constraints.
const WHOM: [&str; 2] = ["p", "q"];
/// The values of a client's parameter, among them one that no variant is for.
const SAID: [&str; 3] = ["p", "q", "r"];

/// The types that have variants. Routes have none: otherwise it would be unclear which clusters are still needed.
pub(crate) const VARY: [Type; 5] = [Type::Cds, Type::Eds, Type::Lds, Type::Sds, Type::Odd];

/// A random constraint of a variant.
pub(crate) fn somebody(rng: &mut Rng) -> &'static str {
    rng.pick(&WHOM).unwrap_or(&"p")
}

/// The parameter of a client, if it has one.
pub(crate) fn says(rng: &mut Rng) -> Option<&'static str> {
    let said = rng.pick(&SAID).copied();
    said.filter(|_| rng.chance(75))
}

/// The key of a variant; without a constraint, the key is the name.
pub(crate) fn key(name: &str, whom: Option<&str>) -> String {
    whom.map_or_else(|| name.to_owned(), |whom| format!("{name}[{whom}]"))
}

/// The keys of all variants of a name, and the name itself.
pub(crate) fn keys(name: &str) -> Vec<String> {
    let whom = WHOM.into_iter().map(Some).chain([None]);
    whom.map(|whom| key(name, whom)).collect()
}

/// The name and the constraint in a key.
pub(crate) fn parts(key: &str) -> (&str, Option<&'static str>) {
    let (name, whom) = key.split_once('[').unwrap_or((key, ""));
    (name, known(whom.trim_end_matches(']')))
}

pub(crate) fn known(whom: &str) -> Option<&'static str> {
    WHOM.into_iter().find(|known| *known == whom)
}

/// The constraint of a resource: the relay has none.
pub(crate) const fn whom(_: Type, _: &Resource) -> Option<&'static str> {
    None
}

/// The full name of a variant.
pub(crate) fn full_name(name: &str, whom: &str) -> discovery::ResourceName {
    discovery::ResourceName {
        name: name.to_owned(),
        dynamic_parameter_constraints: whom.to_owned().into(),
    }
}

/// Reads a full name.
pub(crate) fn of_full_name(full: &discovery::ResourceName) -> Result<(String, &'static str), String> {
    let whom = std::str::from_utf8(&full.dynamic_parameter_constraints)
        .ok()
        .and_then(known);
    whom.map(|whom| (full.name.clone(), whom))
        .ok_or_else(|| format!("{full:?}"))
}

/// Clients send no parameters.
pub(crate) const fn introduce(_: &mut Node, _: &str) {}

/// The parameter in a node.
pub(crate) const fn introduced(_: &Node) -> Option<&'static str> {
    None
}

impl Client {
    /// Gives the client another parameter from now on; returns the request that says so (B-01).
    pub(crate) fn say_otherwise(&mut self, rng: &mut Rng) -> Option<(u64, Up)> {
        let line = self.lines.iter().find(|(_, line)| line.service().is_none());
        let (stream, line) = line.filter(|(_, line)| line.is_greeted())?;
        let started = line.muxes.iter().find(|(_, mux)| mux.is_started());
        let (stream, kind) = (*stream, *started?.0);
        self.own = says(rng);
        let node = self.node_now();
        match self.dialect {
            Dialect::Delta => Some(Up::Delta(discovery::DeltaDiscoveryRequest {
                type_url: kind.url().to_owned(),
                node: Some(node),
                ..Default::default()
            })),
            Dialect::Sotw => self.request_sotw(stream, kind, false).map(|request| match request {
                Up::Sotw(request) => Up::Sotw(discovery::DiscoveryRequest {
                    node: Some(node),
                    ..request
                }),
                Up::Delta(_) => request,
            }),
        }
        .map(|request| (stream, request))
    }
}

impl World {
    /// Notes the parameter in the node of a request: it counts from now on.
    pub(crate) fn hear_own(&self, stream: &mut Stream, request: &Up) {
        let node = match request {
            Up::Sotw(request) => request.node.as_ref(),
            Up::Delta(request) => request.node.as_ref(),
        };
        let Some(own) = node.map(introduced).filter(|own| *own != stream.follower.own) else {
            return;
        };
        stream.follower.own = own;
        let reading = match self.lists.is_some() {
            true => self.reading(&stream.follower),
            false => Reading::alone(&self.zones, stream.zone, own, self.permitted(stream.client)),
        };
        stream.witness.moved(&reading);
    }
}

impl Watch {
    /// F-16: a client gets only what is for it. A variant is removed by its full name, together with what replaces
    /// it. C-25: so is one that the client rejected.
    pub(crate) fn check_variants(&self, answer: &Answer, own: Option<&'static str>, delta: bool) -> Result<(), Broken> {
        let kind = answer.kind;
        for entry in &answer.entries {
            let Some(whom) = entry.whom else { continue };
            // A removal may be missing from full states until everything that depends on it has gone, even if the content was
            // rejected: perhaps the client has applied it.
            let kept = !delta && self.was_for(&entry.name) == Some(whom);
            if own != Some(whom) && !kept {
                let what = format!("{kind:?} {}: what is for {whom} is sent to {own:?}", entry.name);
                return Err(Broken::new(Rule::B29, what));
            }
        }
        if !delta {
            return Ok(());
        }
        let stays = |name: &str, whom| answer.entries.iter().any(|it| it.name == name && it.whom == Some(whom));
        let goes = |name: &str, whom| answer.withdrawn.iter().any(|(of, other)| of == name && *other == whom);
        let come = answer.entries.iter().map(|entry| &entry.name);
        for name in come.chain(&answer.removed) {
            let Some(whom) = self.was_for(name) else { continue };
            if !stays(name, whom) && !goes(name, whom) {
                let what = format!("{kind:?} {name}: what is for {whom} does not go by its full name");
                return Err(Broken::new(Rule::B29, what));
            }
        }
        for (name, whom) in &answer.withdrawn {
            if stays(name, whom) || !self.may_be_for(name, whom) {
                let what = format!("{kind:?} {name}: what is for {whom} goes, and the client does not have it");
                return Err(Broken::new(Rule::B29, what));
            }
        }
        Ok(())
    }
}
