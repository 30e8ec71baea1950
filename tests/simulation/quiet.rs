//! The end of a world: all participants behave, everything heals, and then clients and views must hold the right content.
//!
//! Owns the comparison with the naive model. Tolerates no difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use xds::{Cut, Dialect, Known, Name, Reason, Resource, State, Target};

use super::access::Permitted;
use super::body::{Content, Type};
use super::client::{Mux, Persona};
use super::feed::Zone;
use super::lists::Source;
use super::names::{covers, is_collection};
use super::reading::Reading;
use super::tally::{Broken, Rule, Tally};
use super::truth::{Key, Step};
use super::upstream::Wire;
use super::variants;
use super::world::{Event, World};

impl World {
    /// Everything heals, and all participants behave.
    pub(crate) fn calm_down(&mut self) -> Result<(), Broken> {
        self.log(|| "calm".to_owned());
        self.calm = true;
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.heal(stream));
        self.end_blurred()?;
        for zone in 0..self.zones.len() {
            self.after(Duration::ZERO, Event::Reach(zone));
            let keys: Vec<Key> = self.zones[zone].truth.keys().cloned().collect();
            for (kind, name) in keys {
                self.after(Duration::ZERO, Event::Step(zone, Step::Mend(kind, name)));
            }
        }
        for id in 0..self.clients.len() {
            self.clients[id].behave();
        }
        self.rest()?;
        // Clients that rejected or ignored responses answer them now.
        for id in 0..self.clients.len() {
            let todo = self.clients[id].atone();
            self.carry_out(id, todo);
        }
        self.rest()
    }

    /// Checks that all content is right.
    pub(crate) fn judge(&mut self) -> Result<(), Broken> {
        self.see_origins();
        let mut tally = std::mem::take(&mut self.tally);
        let checked = self.zones.iter().enumerate().try_for_each(|(at, zone)| {
            let above = zone.upper.is_some().then(|| &self.zones[self.origin(at)]);
            zone.check(above, &mut tally)
        });
        self.tally = tally;
        checked?;
        self.compare_chains()?;
        let mut tally = std::mem::take(&mut self.tally);
        let judged = self.streams.iter().try_for_each(|(id, stream)| {
            let reading = match self.lists.is_some() {
                true => self.reading(&stream.follower),
                false => Reading::alone(
                    &self.zones,
                    stream.zone,
                    stream.follower.own,
                    self.permitted(stream.client),
                ),
            };
            let judged = stream.witness.verdict(&reading, &mut tally);
            judged.map_err(|broken| Broken::new(broken.rule, format!("stream {id}: {}", broken.what)))
        });
        self.tally = tally;
        judged?;
        for id in 0..self.clients.len() {
            let client = &self.clients[id];
            if self.lists.is_some() {
                self.compare_lists(id)?;
            } else if client.persona != Persona::Hostile {
                self.compare(id)?;
            }
        }
        Ok(())
    }

    /// A client holds exactly what its control plane has of what it wants.
    fn compare(&mut self, id: usize) -> Result<(), Broken> {
        let client = &self.clients[id];
        let zone = &self.zones[client.zone];
        for (stream, line) in &client.lines {
            let Some(witness) = self.streams.get(stream).map(|stream| &stream.witness) else {
                return Err(Broken::new(
                    Rule::Held,
                    format!("client {id} is on stream {stream}, which is gone"),
                ));
            };
            for (kind, mux) in line.muxes.iter().filter(|(_, mux)| mux.is_started()) {
                let silent = zone.withholds(*kind, true);
                if silent || !mux.names.is_empty() && zone.withholds(*kind, false) {
                    continue;
                }
                self.tally.hit(Rule::Held);
                let wrong = |name: &str, what: String| {
                    let refused = witness.refuses(*kind, name);
                    let what = format!("client {id} on stream {stream}: {kind:?} {name} {what}");
                    if refused {
                        Ok(())
                    } else {
                        Err(Broken::new(Rule::Held, what))
                    }
                };
                let permitted = self.permits.as_ref().map(|permits| permits.of(id));
                let expected = expected(*kind, mux, zone, client.own, permitted);
                let none = BTreeMap::new();
                let holds = client.holds.get(kind).unwrap_or(&none);
                for (name, revision) in expected.iter().filter(|(name, _)| !zone.hides(*kind, name)) {
                    let held = holds.get(name).map(|holding| holding.revision);
                    if held != Some(*revision) {
                        wrong(name, format!("is @{revision}, and it holds @{held:?}"))?;
                    }
                }
                // A client that gives up a name keeps the resource for an alias that it may not have: it does not know that.
                let by_alias = |name: &String| {
                    let mut aliases = holds[name].aliases.iter().filter(|alias| mux.names.contains(*alias));
                    let denied = |alias| permitted.is_some_and(|permitted| !permitted.allows(*kind, alias));
                    !mux.names.contains(name) && aliases.any(|alias| denied(alias))
                };
                let others = holds
                    .keys()
                    .filter(|name| !expected.contains_key(*name) && !by_alias(name));
                for name in others {
                    let expressible = client.dialect == Dialect::Delta || kind.full_state();
                    if expressible
                        && zone.says_gone(*kind)
                        && zone.is_sure()
                        && !lingers(*kind, name, holds[name].aliases.as_slice(), mux, zone)
                    {
                        wrong(name, "is still held".to_owned())?;
                    }
                }
            }
        }
        self.check_warming(id)
    }

    /// M-01: no cluster warms for endpoints that exist.
    fn check_warming(&mut self, id: usize) -> Result<(), Broken> {
        let client = &self.clients[id];
        self.tally.hit(Rule::M01);
        for name in &client.warming {
            let wanted = client
                .muxes()
                .any(|(kind, mux)| kind == Type::Eds && mux.names.contains(name));
            let silent = self.zones[client.zone].withholds(Type::Eds, false);
            if wanted
                && !silent
                && client.persona != Persona::Grpc
                && self
                    .permitted(id)
                    .is_none_or(|permitted| permitted.allows(Type::Eds, name))
                && self.zones[client.zone]
                    .truth
                    .find_for(Type::Eds, name, client.own)
                    .is_some()
            {
                return Err(Broken::new(
                    Rule::M01,
                    format!("client {id} still waits for endpoints {name}"),
                ));
            }
        }
        Ok(())
    }

    /// All clients leave, and nothing may be left of them.
    pub(crate) fn leave(&mut self) -> Result<(), Broken> {
        for id in 0..self.clients.len() {
            self.clients[id].retired = true;
        }
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        for stream in streams {
            self.after(Duration::ZERO, Event::EndAtClient(stream));
        }
        self.rest()?;
        self.tally.hit(Rule::Empty);
        if let Some(stream) = self.streams.keys().next() {
            return Err(Broken::new(Rule::Empty, format!("stream {stream} is still there")));
        }
        for (at, zone) in self.zones.iter().enumerate() {
            let cut = zone.view.cut();
            let known = cut.slots().count();
            if !zone.view.is_idle() || known > 0 {
                let what = format!("zone {at}: {} sessions, {known} types: {cut:?}", zone.view.seats());
                return Err(Broken::new(Rule::Empty, what));
            }
        }
        self.close_views()
    }
}

impl Zone {
    /// Whether a control plane of this zone can report that a resource of this type is gone.
    pub(crate) fn says_gone(&self, kind: Type) -> bool {
        let sotw = self.wire.as_ref().is_some_and(Wire::sotw);
        let polled = matches!(self.source, Some(Source::Polled(_)));
        let above = self.upper.as_ref().is_none_or(|upper| upper.says_gone(kind));
        !(sotw || polled) && above || kind.full_state()
    }

    /// H-03: whether its control plane cannot serve a type.
    pub(crate) fn cannot_say(&self, kind: Type) -> bool {
        matches!(self.source, Some(Source::Polled(_))) && kind.type_url().path().is_none()
    }

    /// Whether a wildcard covers a content; all that a file has it does (I-06).
    pub(crate) fn covers(&self, content: &Content) -> bool {
        let files = matches!(self.source, Some(Source::Folder(_)));
        content.covered || files && !content.name.starts_with("xdstp:")
    }

    /// Whether a stale entry in the wildcard hides the resource of this name: the control plane cannot report that its wildcard
    /// no longer covers it.
    pub(crate) fn hides(&self, kind: Type, name: &str) -> bool {
        let cut = self.view.cut();
        let state = cut.slot(kind.type_url()).and_then(|slot| slot.wildcard.clone());
        let found = self.truth.find(kind, name);
        let covered = found.is_some_and(|content| self.covers(content));
        // C-20: while the wildcard has other content of a resource, it is unknown what the aliases of that resource mean.
        let name = Name::from(found.map_or(name, |content| content.name.as_str()));
        let stale = |state: &State| state.resource(&name).is_some();
        (!self.says_gone(kind) || !self.is_sure()) && !covered && state.is_some_and(|state| stale(&state))
    }

    /// Whether its control plane does not answer for a type, for everything or for names (E-18).
    fn withholds(&self, kind: Type, wildcard: bool) -> bool {
        let legs = self.wire.iter().flat_map(|wire| &wire.legs);
        let mut sessions = legs.filter_map(|leg| leg.link.as_ref()).map(|link| &link.session);
        sessions.any(|session| {
            let all = session.types.get(&kind).is_some_and(|served| served.wildcard);
            all == wildcard && session.withholds(kind, &self.truth)
        })
    }

    /// Whether its control plane reports what has gone of what the relay declared. If it ignores declarations it cannot (C-13),
    /// and such leftovers are not judged.
    fn is_sure(&self) -> bool {
        self.wire
            .as_ref()
            .is_none_or(|wire| wire.habits.believes || wire.habits.dialect == Dialect::Sotw)
    }

    /// The view has exactly what the control plane has of the wanted names.
    fn check(&self, above: Option<&Self>, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::K23);
        let cut = self.view.cut();
        let wanted = self.wire.as_ref().map_or(&self.wanted, |wire| &wire.wanted);
        for (kind, target) in wanted {
            let mut views = std::iter::once(self).chain(above);
            let hidden = matches!(target, Target::Name(name) if views.any(|zone| zone.hides(*kind, name.as_str())));
            // A name that the wildcard has brought is not asked for by name, even if the server no longer answers for the
            // wildcard.
            let named = *target != Target::Wildcard;
            let silent = self.withholds(*kind, true) || named && self.withholds(*kind, false);
            if silent || hidden || self.cannot_say(*kind) {
                continue;
            }
            let slot = cut.slot(kind.type_url());
            let entry = |resource: &Arc<Resource>| {
                let key = variants::key(resource.name().as_str(), variants::whom(*kind, resource));
                (key, self.book.revision(resource))
            };
            let truth = |content: &Arc<Content>| (content.key(), content.revision);
            let mut known: BTreeMap<String, u64> = BTreeMap::new();
            let expected: BTreeMap<String, u64> = match target {
                Target::Wildcard => {
                    let state = slot.and_then(|slot| slot.wildcard.as_ref());
                    known.extend(state.into_iter().flat_map(|state| everything(state)).map(entry));
                    if !state.is_some_and(|state| state.complete()) {
                        return Err(Broken::new(
                            Rule::K23,
                            format!("the wildcard of {kind:?} is not complete"),
                        ));
                    }
                    self.truth
                        .of(*kind)
                        .filter(|content| self.covers(content))
                        .map(truth)
                        .collect()
                }
                Target::Name(name) if is_collection(name.as_str()) => {
                    let all = slot.into_iter().flat_map(|slot| everything(&slot.named));
                    known.extend(all.filter(|it| covers(name.as_str(), it.name().as_str())).map(entry));
                    self.truth.members(*kind, name.as_str()).map(truth).collect()
                }
                Target::Name(name) => {
                    known.extend(slot.and_then(|slot| slot.resource(name)).map(entry));
                    let others = self
                        .truth
                        .of(*kind)
                        .filter(|it| it.whom.is_some() && it.name == name.as_str());
                    let found = self.truth.find(*kind, name.as_str());
                    found.into_iter().chain(others).map(truth).collect()
                }
            };
            if !self.says_gone(*kind) || !self.is_sure() {
                known.retain(|name, _| expected.contains_key(name));
            }
            Self::forgive_silence(*kind, target, above, &expected, &mut known);
            if known != expected {
                return Err(Broken::new(
                    Rule::K23,
                    format!("{kind:?} {target:?}: {known:?}, not {expected:?}"),
                ));
            }
        }
        self.check_asked(&cut)
    }

    /// K-16: a relay above does not report a resource as gone, or an alias, if it only got no answer in time.
    fn forgive_silence(
        kind: Type,
        target: &Target,
        above: Option<&Self>,
        expected: &BTreeMap<String, u64>,
        known: &mut BTreeMap<String, u64>,
    ) {
        let Some(above) = above else { return };
        let cut = above.view.cut();
        let asked = match target {
            Target::Name(name) => Some(name.as_str()),
            Target::Wildcard => None,
        };
        // The relay above does not know a collection as a whole any more when it forgets members that nobody confirmed in time.
        let forgotten = asked.is_some_and(|name| is_collection(name) && !is_whole(&cut, kind, name));
        let silent = |key: &str| {
            let mut names = std::iter::once(variants::parts(key).0).chain(asked);
            forgotten || names.any(|name| timed_out(&cut, kind, name))
        };
        known.retain(|key, _| expected.contains_key(key) || !silent(key));
    }

    /// K-23: what is asked of the control plane is what is wanted and not covered, once.
    fn check_asked(&self, cut: &Cut) -> Result<(), Broken> {
        let Some(wire) = self.wire.as_ref().filter(|_| self.upper.is_none()) else {
            return Ok(());
        };
        let mut asked: BTreeSet<(Type, Target)> = BTreeSet::new();
        for (kind, served) in wire
            .legs
            .iter()
            .filter_map(|leg| leg.link.as_ref())
            .flat_map(|link| &link.session.types)
        {
            let names = served.names.iter().map(|name| Target::Name(Name::from(name.as_str())));
            for target in names.chain(served.wildcard.then_some(Target::Wildcard)) {
                // E-17: a wildcard cannot be ended and begun again on one stream, so it goes on unseen.
                let unseen = target == Target::Wildcard;
                let wanted = wire.wanted.contains(&(*kind, target.clone())) || unseen;
                if !wanted || !asked.insert((*kind, target.clone())) {
                    return Err(Broken::new(
                        Rule::K23,
                        format!("{kind:?} {target:?} is asked for, and not wanted"),
                    ));
                }
            }
        }
        for (kind, target) in &wire.wanted {
            let covered = match (cut.slot(kind.type_url()), target) {
                (Some(slot), Target::Name(name)) => slot
                    .wildcard
                    .as_ref()
                    .is_some_and(|state| state.resource(name).is_some()),
                (None, _) | (_, Target::Wildcard) => false,
            };
            if !covered && !asked.contains(&(*kind, target.clone())) {
                return Err(Broken::new(
                    Rule::K23,
                    format!("{kind:?} {target:?} is wanted, and not asked for"),
                ));
            }
        }
        Ok(())
    }
}

/// All resources of a state, variants included.
pub(crate) fn everything(state: &State) -> impl Iterator<Item = &Arc<Resource>> {
    state.resources()
}

/// What a client should hold of a type.
fn expected(
    kind: Type,
    mux: &Mux,
    zone: &Zone,
    own: Option<&str>,
    permitted: Option<Permitted<'_>>,
) -> BTreeMap<String, u64> {
    let allowed = |name: &str| permitted.is_none_or(|permitted| permitted.allows(kind, name));
    let covered = zone.truth.of_for(kind, own);
    let covered = covered.filter(|content| mux.wildcard && content.covered);
    let asked = mux.names.iter().filter(|name| allowed(name));
    let named = asked.filter_map(|name| zone.truth.find_for(kind, name, own));
    let all = covered.chain(named).filter(|content| allowed(&content.name));
    all.map(|content: &Arc<Content>| (content.name.clone(), content.revision))
        .collect()
}

/// K-16: what was never reported as gone may stay, as the resource of an alias that it has lost meanwhile.
fn lingers(kind: Type, name: &str, aliases: &[String], mux: &Mux, zone: &Zone) -> bool {
    let cut = zone.view.cut();
    let names = std::iter::once(name).chain(aliases.iter().map(String::as_str));
    names
        .filter(|name| mux.names.contains(*name))
        .any(|name| timed_out(&cut, kind, name) || unknown(&cut, kind, name))
}

fn unknown(cut: &Cut, kind: Type, name: &str) -> bool {
    let slot = cut.slot(kind.type_url());
    slot.is_none_or(|slot| slot.known(&Name::from(name)).is_none())
}

/// Whether every member of a collection is known (C-22).
pub(crate) fn is_whole(cut: &Cut, kind: Type, collection: &str) -> bool {
    let slot = cut.slot(kind.type_url());
    slot.is_some_and(|slot| slot.named.whole(&Name::from(collection)))
}

/// Whether a name, or its collection, counts as absent only because nobody answered for it in time.
pub(crate) fn timed_out(cut: &Cut, kind: Type, name: &str) -> bool {
    let name = Name::from(name);
    let slot = cut.slot(kind.type_url());
    let silent = |name: &Name| {
        let known = slot.and_then(|slot| slot.known(name));
        matches!(known, Some(Known::Absent(Reason::TimedOut)))
    };
    silent(&name) || name.collection().is_some_and(|all| silent(&all))
}
