// SPDX-License-Identifier: Apache-2.0
//! Worlds with rules about what clients may have (S-01): whatever a client is sent, and whatever is asked for on its behalf, the rules
//! allow it; and it lacks nothing that they allow.
//!
//! Owns the rules as plain conditions, tried one after the other, and how they are written for the relay. Draws from random numbers of
//! its own.

use std::sync::Arc;

use classes::Pattern;
use identity::Identity;
use xds::{Access, AccessRule};

use super::body::Type;
use super::event::Event;
use super::judge::Moment;
use super::names::canonical;
use super::rng::Rng;
use super::tally::{Broken, Rule};
use super::world::World;

/// The rules of a world.
pub(crate) struct Permits {
    rules: Arc<[Permit]>,
    /// Of the rules that follow.
    rng: Rng,
}

/// What one client may have.
#[derive(Clone, Debug)]
pub(crate) struct Permitted {
    rules: Arc<[Permit]>,
    client: usize,
}

#[derive(Debug)]
struct Permit {
    allow: bool,
    /// The clients that it is about.
    tenant: Option<usize>,
    kind: Option<Type>,
    names: Vec<Which>,
}

#[derive(Debug)]
enum Which {
    Is(String),
    Begins(String),
    Ends(String),
    Any,
}

/// Separates the random numbers of rules from all others.
const PERMITS: u64 = 0x5eed_0000_0019;
/// There are fewer changes of the rules than this.
const CHANGES_MAX: usize = 5;
/// Clients of the same tenant have the same rights.
const TENANTS: usize = 3;

impl Which {
    fn random(rng: &mut Rng) -> Self {
        let first = *rng.pick(&["c", "l", "r", "s", "o", "xdstp:"]).expect("there are some");
        let last = rng.below(7).to_string();
        match rng.below(3) {
            0 => Self::Is(format!("{first}{last}")),
            1 => Self::Begins(first.to_owned()),
            _ => Self::Ends(last),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::Is(text) => name == text,
            Self::Begins(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Any => true,
        }
    }

    fn pattern(&self) -> Pattern {
        let text = match self {
            Self::Is(text) => text.clone(),
            Self::Begins(text) => format!("{text}*"),
            Self::Ends(text) => format!("*{text}"),
            Self::Any => "*".to_owned(),
        };
        Pattern::read(&text).expect("a pattern")
    }
}

impl Permits {
    /// No rule denies all of a type, so no stream ends because of them.
    fn random(mut rng: Rng) -> Self {
        let rules = Self::rules(&mut rng);
        Self { rules, rng }
    }

    /// Makes other rules.
    pub(crate) fn amend(&mut self) {
        self.rules = Self::rules(&mut self.rng);
    }

    fn rules(rng: &mut Rng) -> Arc<[Permit]> {
        let mut rules: Vec<Permit> = Vec::new();
        for _ in 0..rng.range(1, 6) {
            rules.push(Permit {
                allow: rng.chance(50),
                tenant: Some(rng.below(TENANTS)).filter(|_| rng.chance(70)),
                kind: rng.pick(&Type::ALL).copied().filter(|_| rng.chance(40)),
                names: (0..rng.range(1, 3)).map(|_| Which::random(rng)).collect(),
            });
        }
        let rest = match rng.below(3) {
            0 => vec![Which::Ends("1".to_owned()), Which::Ends("2".to_owned())],
            _ => vec![Which::Any],
        };
        rules.push(Permit {
            allow: true,
            tenant: None,
            kind: None,
            names: rest,
        });
        rules.into()
    }

    /// The same for the relay.
    pub(crate) fn access(&self) -> Access {
        let rules = self.rules.iter().enumerate().map(|(at, rule)| AccessRule {
            name: at.to_string(),
            allow: rule.allow,
            identities: rule.tenant.map(tenant).into_iter().collect(),
            types: rule
                .kind
                .iter()
                .map(|kind| kind.type_url().full_name().into())
                .collect(),
            names: rule.names.iter().map(Which::pattern).collect(),
            ..AccessRule::default()
        });
        Access::new(rules.collect(), true)
    }

    pub(crate) fn of(&self, client: usize) -> Permitted {
        Permitted {
            rules: self.rules.clone(),
            client,
        }
    }
}

/// The identities of a tenant.
fn tenant(tenant: usize) -> Pattern {
    Pattern::read(&format!("spiffe://td/ns/t{tenant}/sa/*")).expect("a pattern")
}

impl Permitted {
    /// What the relay has checked about the client.
    pub(crate) fn identity(&self) -> Identity {
        let tenant = self.client % TENANTS;
        [format!("spiffe://td/ns/t{tenant}/sa/c{}", self.client)]
            .iter()
            .collect()
    }

    /// Whether the client may have this name, in any spelling.
    pub(crate) fn allows(&self, kind: Type, name: &str) -> bool {
        let name = canonical(kind, name);
        let about = |rule: &&Permit| {
            let him = rule.tenant.is_none_or(|tenant| tenant == self.client % TENANTS);
            him && rule.kind.is_none_or(|of| of == kind) && rule.names.iter().any(|which| which.has(&name))
        };
        self.rules.iter().find(about).is_some_and(|rule| rule.allow)
    }
}

impl World {
    /// Gives the world rules.
    pub(crate) fn with_rules(mut self, seed: u64) -> Self {
        let mut permits = Permits::random(Rng::new(seed ^ PERMITS));
        for _ in 0..permits.rng.below(CHANGES_MAX) {
            let at = permits.rng.millis(0, 40_000);
            self.course.at(at, Event::Decree);
        }
        self.relay.enact(permits);
        self
    }

    /// S-07: the rules change, also for the streams that are open.
    pub(crate) fn decree(&mut self) -> Result<(), Broken> {
        self.course.log(|| "other rules".to_owned());
        for stream in self.network.streams_mut() {
            self.relay.say_wants(stream, &self.origins, &mut self.course)?;
        }
        self.relay.amend();
        let (now, mut woken) = (self.course.clock.instant(), Vec::new());
        for stream in self.network.streams_mut() {
            let access = self.relay.settings.access.clone();
            let ended = stream.server.handle_access(access, &self.relay.answers, now);
            ended.map_err(|end| Broken::new(Rule::S07, end.to_string()))?;
            woken.push(stream.id);
            self.course.tally.hit(Rule::S07);
        }
        for client in &self.clients {
            self.judge.see(&Moment::Moved(client), &mut self.course.tally)?;
        }
        woken.into_iter().for_each(|id| self.network.ring(id));
        Ok(())
    }
}
