//! Reads requests: what the client wants from now on, and what it is owed.
//!
//! Owns the naive meaning of both dialects' requests. Knows nothing of responses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::Dialect;

use super::{Asked, Open, Refused, Watch, Witness};
use crate::body::Type;
use crate::names::{canonical, covers, is_collection_of};
use crate::tally::Rule;
use crate::wire::Up;

impl Witness {
    pub(crate) fn request(&mut self, kind: Type, request: &Up, now: Instant) {
        let features = match request {
            Up::Sotw(request) => request.node.as_ref(),
            Up::Delta(request) => request.node.as_ref(),
        };
        if let Some(node) = features.filter(|_| self.watches.is_empty()) {
            let has = |feature: &str| node.client_features.iter().any(|other| other == feature);
            self.ttl = has("xds.config.supports-resource-ttl");
            self.wrapper = has("xds.config.resource-in-sotw");
            self.envoy = node.user_agent_name == "envoy";
            self.grpc = node.user_agent_name == "gRPC Go";
        }
        let full_state = self.dialect == Dialect::Sotw && kind.full_state();
        let first = !self.watches.contains_key(&kind);
        let watch = self.watches.entry(kind).or_default();
        match request {
            Up::Sotw(request) => {
                if !first {
                    watch.settle(&request.response_nonce, request.error_detail.is_some(), full_state);
                }
                watch.sotw(kind, request, first, now);
            }
            Up::Delta(request) => {
                if !first {
                    watch.settle(&request.response_nonce, request.error_detail.is_some(), full_state);
                }
                watch.delta(kind, request, first, now);
            }
        }
    }
}

impl Watch {
    /// B-05, C-02: the nonce says which response is settled.
    fn settle(&mut self, nonce: &str, refused: bool, full_state: bool) {
        // The `+` only says that more follows; it does not identify a response.
        let number = |nonce: &str| nonce.trim_end_matches('+').to_owned();
        let Some(at) = self.open.iter().position(|open| number(&open.nonce) == number(nonce)) else {
            return;
        };
        let mut open = self.open.remove(at);
        let renamed = match self.open.is_empty() {
            true => std::mem::take(&mut self.renamed),
            false => self.renamed.clone(),
        };
        if !refused {
            if full_state {
                self.refused_set = None;
            }
            self.absolve(&open.members);
            return;
        }
        self.doubted.append(&mut open.variants.drain(..).collect());
        for name in open.members.keys() {
            if let Some(sent) = self.sent.get_mut(name) {
                sent.sure = false;
            } else if renamed.contains(name) {
                self.memory.insert(name.clone());
            }
        }
        if full_state {
            let set = open
                .members
                .iter()
                .filter_map(|(name, revision)| Some((name.clone(), (*revision)?)));
            self.refused_set = Some(set.collect());
            return;
        }
        // K-17: whoever rejects a heartbeat gets the resource itself. C-20: also by an alias.
        for name in std::mem::take(&mut open.beats) {
            let Some(sent) = self.sent.get(&name) else { continue };
            let wanted = self.wildcard || self.explicit(&name, &sent.aliases);
            if wanted && open.members.get(&name) == Some(&Some(sent.revision)) {
                open.members.remove(&name);
                self.licence.insert(name);
            }
        }
        self.refuse(open);
    }

    /// B-22: what was rejected together is one group, and groups that share a member become one. A member that had changed or had
    /// been given up before the rejection may have been the bad one.
    fn refuse(&mut self, open: Open) {
        let mut refused = Refused {
            members: BTreeMap::new(),
            held: open.held,
            released: false,
            freed: false,
        };
        for (name, revision) in open.members {
            let again = self
                .refused
                .iter()
                .any(|other| other.members.get(&name) == Some(&revision));
            let sent = self.sent.get(&name).map(|sent| sent.revision);
            let wanted = self.asks(&name) || self.wildcard && !name.starts_with("xdstp:");
            let undone = open.undone.contains(&name);
            if sent.is_none() && !undone && revision.is_some() && wanted {
                // It was given up and asked for again. If something else of it was refused as well, the others may be sent again. It
                // itself may come by a wildcard, and stays a member until it is accepted.
                refused.released |= self.refused.iter().any(|other| other.members.contains_key(&name));
                self.licence.extend((!self.asks(&name)).then(|| name.clone()));
                refused.members.insert(name, revision);
            } else if (sent != revision || undone && revision.is_none() && wanted) && !again {
                refused.lose(&name);
            } else if revision.is_some() || wanted {
                refused.released |= is_left(&self.names, &self.collections, &name, revision);
                refused.members.insert(name, revision);
            }
        }
        let shares = |other: &mut Refused| refused.members.keys().any(|name| other.members.contains_key(name));
        for mut other in self.refused.extract_if(.., shares).collect::<Vec<_>>() {
            refused.released |= other.may_come();
            // Of a group that was sent again only removals are left, and none of them must come.
            refused.freed |= other.freed && other.members.values().any(Option::is_some);
            other.held.retain(|name| !refused.members.contains_key(name));
            refused.held.append(&mut other.held);
            other.members.append(&mut refused.members);
            refused.members = other.members;
        }
        if !refused.members.is_empty() {
            self.refused.push(refused);
        }
    }

    /// B-22: an accepted member was not the bad one of its group. If the group was already to be sent again, the member still may be.
    fn absolve(&mut self, members: &BTreeMap<String, Option<u64>>) {
        for refused in &mut self.refused {
            let may_come = refused.may_come();
            let licence = &mut self.licence;
            refused.members.retain(|name, revision| {
                let accepted = members.get(name) == Some(revision);
                licence.extend((accepted && may_come).then(|| name.clone()));
                !accepted
            });
        }
        self.refused.retain(|refused| !refused.members.is_empty());
    }

    fn sotw(&mut self, kind: Type, request: &DiscoveryRequest, first: bool, now: Instant) {
        self.listed = true;
        let listed = request.resource_names.iter().cloned();
        let (collections, mut names): (BTreeSet<String>, BTreeSet<String>) =
            listed.partition(|name| is_collection_of(kind, name));
        let all = names.remove("*");
        if first && !request.version_info.is_empty() {
            self.reborn.clone_from(&names);
        }
        self.reborn.retain(|name| names.contains(name));
        if request.resource_names.is_empty() && !self.named {
            if kind.full_state() && !self.wildcard {
                self.want_all();
            }
            return;
        }
        self.named = true;
        if all && !self.wildcard {
            self.want_all();
        }
        self.wildcard = all;
        let gone: Vec<String> = self.collections.difference(&collections).cloned().collect();
        gone.iter().for_each(|collection| self.drop_collection(collection));
        for collection in collections {
            if !self.collections.contains(&collection) {
                self.add_collection(collection, now);
            }
        }
        // The relay may count what the wildcard brought, and what the client gave up while it asked for the wildcard.
        let counted = self.brought.keys().chain(&self.perhaps);
        let counted: Vec<String> = counted.filter(|name| names.contains(*name)).cloned().collect();
        for name in counted {
            if self.own.insert(name.clone()) {
                self.perhaps.insert(name);
            }
        }
        // The wildcard may or may not have brought the names that the client no longer lists.
        let collections = &self.collections;
        let asks =
            |name: &String| names.contains(name) || collections.iter().any(|collection| covers(collection, name));
        let given_up = self.own.iter().filter(|name| !asks(name));
        self.perhaps.extend(given_up.cloned());
        self.own.retain(asks);
        self.perhaps.retain(|name| asks(name) || all);
        if !all {
            self.brought.clear();
            self.coming.clear();
        }
        for name in self.names.difference(&names) {
            self.dropped.insert(name.clone());
            self.asked.remove(name);
            self.licence.remove(name);
            // The client does not know whether the wildcard or a collection covers the name.
            if all || self.collections.iter().any(|collection| covers(collection, name)) {
                self.licence.insert(name.clone());
            }
        }
        let added: Vec<String> = names.difference(&self.names).cloned().collect();
        self.names = names;
        self.let_go();
        for name in added {
            let rule = if self.dropped.remove(&name) {
                Rule::B15
            } else {
                Rule::B14
            };
            self.ask(name, rule, now);
        }
    }

    fn delta(&mut self, kind: Type, request: &DeltaDiscoveryRequest, first: bool, now: Instant) {
        let (subscribe, unsubscribe) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
        if first && subscribe.is_empty() && unsubscribe.is_empty() && kind.full_state() {
            self.want_all();
        }
        for name in subscribe {
            if name == "*" {
                if self.wildcard {
                    self.again = true;
                    self.repeated = true;
                    self.all_again = self.sent.keys().cloned().collect();
                    self.licence.extend(self.all_again.iter().cloned());
                }
                if !self.wildcard {
                    self.want_all();
                }
            } else if is_collection_of(kind, name) {
                self.add_collection(name.clone(), now);
            } else {
                // B-16: what is on its way may reach the client after it asked.
                let coming = |open: &Open| open.members.get(name).is_some_and(Option::is_some);
                if !self.names.contains(name) && self.open.iter().any(coming) {
                    self.memory.insert(name.clone());
                }
                let rule = match self.names.insert(name.clone()) {
                    true if self.dropped.remove(name) => Rule::B15,
                    true => Rule::B14,
                    false => Rule::C11,
                };
                self.ask(name.clone(), rule, now);
                // A client that remembered the name and asks for it later begins anew with it.
                self.remembered.remove(name);
            }
        }
        for name in unsubscribe {
            if name == "*" {
                self.wildcard = false;
                self.first = false;
                let (names, collections) = (&self.names, &self.collections);
                let asks = |name: &String| {
                    names.contains(name)
                        || collections
                            .iter()
                            .any(|collection| collection == name || covers(collection, name))
                };
                self.asked.retain(|name, _| asks(name));
                self.again = false;
                self.repeated = false;
                self.all_again.clear();
                self.rest_again.clear();
                self.remembered.retain(|name, _| asks(name));
                self.let_go();
            } else if self.collections.contains(name) {
                self.drop_collection(name);
                self.let_go();
            } else if self.names.remove(name) {
                self.drop_name(name, now);
            }
        }
        if first {
            for (name, version) in &request.initial_resource_versions {
                self.remembered.insert(name.clone(), version.clone());
                self.memory.insert(name.clone());
                if let Some(asked) = self.asked.get_mut(name).filter(|_| kind != Type::Eds) {
                    asked.enough = Some(version.clone());
                }
            }
        }
    }

    /// Begins a wildcard: what the client holds by name may be sent again with it.
    fn want_all(&mut self) {
        self.wildcard = true;
        self.covered = true;
        self.first = true;
        self.again = true;
        self.licence.extend(self.sent.keys().cloned());
        // The client may apply what is on its way, because it now asks for everything.
        let coming = self.open.iter().flat_map(|open| open.members.keys());
        self.memory.extend(coming.cloned());
    }

    fn drop_name(&mut self, name: &str, now: Instant) {
        self.dropped.insert(name.to_owned());
        self.asked.remove(name);
        let licensed = self.licence.remove(name);
        let own = canonical(name);
        let otherwise = self.names.iter().any(|other| canonical(other) == own);
        // C-20: what is still asked for by an alias may be answered.
        let aliases = self.sent.get(&own).into_iter().flat_map(|sent| &sent.aliases);
        let aliases: Vec<String> = aliases.filter(|alias| self.names.contains(*alias)).cloned().collect();
        // F-09: its other spellings may still be answered.
        if otherwise && licensed || !aliases.is_empty() {
            self.licence.insert(own.clone());
        }
        self.licence.extend(aliases);
        // C-08: the client does not know whether a wildcard or a collection covers the name. F-09: a collection brings its members by
        // their own names, whether or not the client asks for them in other spellings.
        let member = name == own && self.collections.iter().any(|collection| covers(collection, name));
        let asked = member || !otherwise && (self.wildcard || self.asks(&own));
        if asked {
            self.ask(name.to_owned(), Rule::C08, now);
        }
        // F-09: the answer goes by the own name. By another spelling a resource is held only as long as it is asked for.
        if !asked || name != own {
            self.remembered.remove(name);
        }
        self.let_go();
    }

    fn add_collection(&mut self, collection: String, now: Instant) {
        let rule = match self.collections.insert(collection.clone()) {
            true if self.dropped.remove(&collection) => Rule::B15,
            true => Rule::B14,
            false => Rule::C11,
        };
        let members = self.sent.keys().filter(|name| covers(&collection, &canonical(name)));
        for member in members.cloned().collect::<Vec<_>>() {
            if rule == Rule::C11 {
                self.ask(member, rule, now);
            } else {
                self.licence.insert(member);
            }
        }
        // B-15: what is on its way may reach the client after it asked.
        let coming = self.open.iter().flat_map(|open| open.members.keys());
        let coming = coming.filter(|name| covers(&collection, &canonical(name)));
        self.memory.extend(coming.cloned());
        let remembered = self
            .remembered
            .keys()
            .filter(|name| covers(&collection, &canonical(name)));
        self.licence.extend(remembered.cloned());
        self.ask(collection, rule, now);
    }

    fn drop_collection(&mut self, collection: &str) {
        self.collections.remove(collection);
        self.dropped.insert(collection.to_owned());
        self.asked.remove(collection);
        let names = &self.names;
        let moot = |name: &String| covers(collection, name) && !names.contains(name);
        self.asked.retain(|name, _| !moot(name));
        self.licence.retain(|name| !moot(name));
        self.remembered.retain(|name, _| !moot(name));
    }

    fn ask(&mut self, name: String, rule: Rule, now: Instant) {
        // F-09: a name is sent in all its spellings when one of them is asked for.
        self.licence.insert(canonical(&name));
        self.licence.insert(name.clone());
        let mut arrives = self.open.iter().flat_map(|open| &open.members);
        let arriving = arrives.any(|(member, revision)| revision.is_some() && covers(&name, &canonical(member)));
        let asked = Asked {
            rule,
            at: now,
            enough: None,
            lost: false,
            arriving,
            renamed: false,
        };
        self.asked.insert(name, asked);
    }

    /// B-15, C-09: without a wildcard the client forgets what it no longer lists; no wildcard covers names of new style.
    fn let_go(&mut self) {
        let Self {
            names,
            collections,
            asked,
            wildcard,
            listed,
            ..
        } = self;
        let by_collection = |name: &String| {
            collections
                .iter()
                .any(|collection| covers(collection, name) && canonical(name) == *name)
        };
        let asks = |name: &String| names.contains(name) || by_collection(name);
        let covered = |name: &String| *wildcard && (*listed || !name.starts_with("xdstp:") || asked.contains_key(name));
        // C-20: what it held by an alias that it gave up under a wildcard, it holds until that is answered.
        let answers = |alias: &String| *wildcard && asked.contains_key(alias);
        let keeps = |name: &String, aliases: &[String]| {
            let by_alias = |alias: &String| names.contains(alias) || answers(alias);
            covered(name) || asks(name) || aliases.iter().any(by_alias)
        };
        self.sent.retain(|name, sent| keeps(name, &sent.aliases));
        for refused in &mut self.refused {
            let members = refused.members.keys();
            let lost = members.filter(|name| !keeps(name, &[]) && !self.sent.contains_key(*name));
            for name in lost.cloned().collect::<Vec<_>>() {
                refused.members.remove(&name);
                refused.lose(&name);
            }
            let mut members = refused.members.iter();
            refused.released |= members.any(|(name, revision)| is_left(names, collections, name, *revision));
        }
        self.refused.retain(|refused| !refused.members.is_empty());
        let spelled = |name: &String| names.iter().any(|asked| canonical(asked) == *name);
        self.forced.retain(|name| keeps(name, &[]) || spelled(name));
    }
}

/// Whether a removed member of a rejected response is left to its collection alone: it is given up as soon as that is known to be
/// without it.
fn is_left(names: &BTreeSet<String>, collections: &BTreeSet<String>, name: &str, revision: Option<u64>) -> bool {
    let holds = |collection: &String| covers(collection, name) && canonical(name) == name;
    revision.is_none() && !names.contains(name) && collections.iter().any(holds)
}
