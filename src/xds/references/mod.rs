// SPDX-License-Identifier: Apache-2.0
//! What the body of a resource refers to.
//!
//! Owns how it is read, once: the value is kept with the resource. What cannot be decoded refers to nothing.

mod fields;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::{Kind, Name, Resource, Spot, TypeUrl};
use fields::{Extensions, Fields, Leads};

const ROUTES: &str = "envoy.config.route.v3.RouteConfiguration";
const CLUSTERS: &str = "envoy.config.cluster.v3.Cluster";
/// Messages are in each other at most so deep: what a peer nests deeper is not decoded.
const DEPTH: usize = 100;

/// The names that a resource refers to, and what only one resource can have at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Route configurations.
    pub routes: Box<[Name]>,
    /// Clusters.
    pub clusters: Box<[Name]>,
    /// Addresses of a listener, or domains of a virtual host.
    pub spots: Box<[Spot]>,
}

impl References {
    /// Reads a body of this kind.
    pub(super) fn read(kind: Kind, body: &[u8]) -> Self {
        let fields = match kind {
            Kind::Lds => fields::LISTENER,
            Kind::Rds => fields::ROUTES,
            Kind::Srds => fields::SCOPE,
            Kind::Vhds => fields::HOST,
            Kind::Cds => fields::CLUSTER,
            Kind::Eds | Kind::Leds | Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Other => return Self::default(),
        };
        let mut found = FoundNames::default();
        found.attempt(|found| found.message(fields, body, DEPTH));
        // The hosts in a route configuration are no resources.
        let domains = found.domains.into_iter().filter(|_| kind == Kind::Vhds);
        let spots = match kind.listens() {
            true => Spot::of_listener(body),
            false => domains.map(Spot::domain).collect(),
        };
        Self {
            routes: names(found.routes, ROUTES),
            clusters: names(found.clusters, CLUSTERS),
            spots: spots.into(),
        }
    }

    /// Whether it refers to nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.clusters.is_empty() && self.spots.is_empty()
    }
}

/// Whether an endpoint assignment has no endpoint in any locality, and none that come by themselves (LEDS). One that cannot be
/// decoded is not empty.
#[must_use]
pub fn is_empty_assignment(resource: &Resource) -> bool {
    let (mut found, body) = (FoundNames::default(), resource.body());
    let read = found.message(fields::ASSIGNMENT, &body, DEPTH);
    read.is_some() && !found.endpoints
}

/// Returns each of these names once. A name that is not set is the empty text.
fn names(mut texts: Vec<&str>, of: &str) -> Box<[Name]> {
    let of = TypeUrl::new(of);
    texts.sort_unstable();
    texts.dedup();
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    let mut names: Vec<Name> = texts.map(|text| Name::read(text, &of)).collect();
    names.sort_unstable();
    names.into_boxed_slice()
}

/// What was found so far.
#[derive(Default)]
struct FoundNames<'a> {
    routes: Vec<&'a str>,
    clusters: Vec<&'a str>,
    domains: Vec<&'a str>,
    /// Whether there is any.
    endpoints: bool,
}

impl<'a> FoundNames<'a> {
    /// Reads something that names nothing if it cannot be read to its end.
    fn attempt(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) {
        let before = (self.routes.len(), self.clusters.len(), self.domains.len());
        if read(self).is_none() {
            self.routes.truncate(before.0);
            self.clusters.truncate(before.1);
            self.domains.truncate(before.2);
        }
    }

    /// Reads the fields of a message that lead somewhere. `None`: it cannot be decoded.
    fn message(&mut self, fields: &Fields, body: &'a [u8], depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        each(body, |number, content| {
            for (way, leads) in fields {
                match way.split_first() {
                    Some((first, [])) if *first == number => self.field(leads, content, depth)?,
                    Some((first, rest)) if *first == number => self.message(&[(rest, *leads)], content, depth)?,
                    Some(_) | None => {}
                }
            }
            Some(())
        })
    }

    fn field(&mut self, leads: &Leads, content: &'a [u8], depth: usize) -> Option<()> {
        let text = || str::from_utf8(content).ok();
        match leads {
            Leads::Cluster => self.clusters.push(text()?),
            Leads::Route => self.routes.push(text()?),
            Leads::Domain => self.domains.push(text()?),
            Leads::Endpoint => self.endpoints = true,
            Leads::Message(fields) => self.message(fields, content, depth)?,
            Leads::Extension(all) => self.extension(all, content, depth)?,
        }
        Some(())
    }

    /// Reads a typed configuration, if it is one of Envoy's own that is known in this place.
    fn extension(&mut self, known: &Extensions, config: &'a [u8], depth: usize) -> Option<()> {
        let (mut name, mut value) = ("", [].as_slice());
        each(config, |number, content| {
            match number {
                1 => name = str::from_utf8(content).ok()?,
                2 => value = content,
                _ => {}
            }
            Some(())
        })?;
        let name = name.rsplit('/').next().filter(|name| name.starts_with("envoy."));
        let is = |last: &str| {
            name.and_then(|name| name.strip_suffix(last))
                .is_some_and(|of| of.ends_with('.'))
        };
        if let Some((_, fields)) = known.iter().find(|(last, _)| is(last)) {
            self.attempt(|found| found.message(fields, value, depth));
        }
        Some(())
    }
}

/// Passes the fields of a message that are texts or messages to `see`. `None`: it is no message.
fn each<'a>(mut body: &'a [u8], mut see: impl FnMut(u32, &'a [u8]) -> Option<()>) -> Option<()> {
    while !body.is_empty() {
        let (number, wire_type) = decode_key(&mut body).ok()?;
        if wire_type == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut body).ok()?).ok()?;
            let (content, rest) = body.split_at_checked(length)?;
            body = rest;
            see(number, content)?;
        } else {
            skip_field(wire_type, number, &mut body, DecodeContext::default()).ok()?;
        }
    }
    Some(())
}
