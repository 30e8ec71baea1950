//! Judges the order between types: make before break (D-01, D-03), and endpoints after clusters (K-13).
//!
//! Owns what a client's routes need. Knows nothing of single types.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds::{Dialect, Reason};

use super::{Scene, Seen, Sent, Watch, Witness};
use crate::body::{Type, read};
use crate::names::canonical;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Entry};

impl Witness {
    pub(super) fn check_order(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        match answer.kind {
            Type::Rds => self.check_routes(answer, scene, tally),
            Type::Cds => self.check_clusters(answer, scene, tally),
            Type::Eds | Type::Leds | Type::Lds | Type::Sds | Type::Odd => Ok(()),
        }
    }

    /// D-01, L-27: no route is sent before a cluster that it leads to, if the cluster exists and this client wants it.
    fn check_routes(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let Some(clusters) = self.watches.get(&Type::Cds) else {
            return Ok(());
        };
        let cds = scene.lens(Type::Cds);
        // Where clusters cannot be sent, routes do not wait for them.
        let open = |clusters: &Watch| {
            let unknown = |name: &String| matches!(clusters.seen(name, cds), Seen::Unknown);
            clusters.wildcard && !cds.is_complete() || clusters.reborn.iter().any(unknown)
        };
        if self.dialect == Dialect::Sotw && open(clusters) {
            return Ok(());
        }
        let routes = &self.watches[&answer.kind];
        // What only confirms content that the client holds may come at any time (K-17), also if it holds it from an earlier
        // stream (C-13).
        let held = |entry: &&Entry| {
            let Some(facts) = &entry.facts else { return true };
            let sent = routes.sent.get(&entry.name).filter(|sent| sent.sure);
            let version = scene.reading.version(facts.revision);
            let brought = routes.remembered.get(&entry.name);
            sent.is_some_and(|sent| sent.revision == facts.revision)
                || version.is_some_and(|version| brought == Some(&version.to_string()))
        };
        for entry in answer.entries.iter().filter(|entry| !held(entry)) {
            for cluster in entry.facts.iter().flat_map(|facts| facts.refers.iter()) {
                if !matches!(clusters.seen(cluster, cds), Seen::Present(_)) {
                    continue;
                }
                tally.hit(Rule::D01);
                let held = clusters.sent.contains_key(cluster) || clusters.remembered.contains_key(cluster);
                let refused = clusters.refused_set.is_some()
                    || clusters
                        .refused
                        .iter()
                        .any(|refused| refused.members.contains_key(cluster));
                if !held && !refused && !scene.expired {
                    let what = format!("route {} leads to cluster {cluster}, which was not sent", entry.name);
                    return Err(Broken::new(Rule::D01, what));
                }
            }
        }
        Ok(())
    }

    /// D-03: no cluster is removed while a route that the client holds leads to it, if the view has a new route that does not.
    fn check_clusters(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let (clusters, Some(routes)) = (&self.watches[&Type::Cds], self.watches.get(&Type::Rds)) else {
            return Ok(());
        };
        let full = self.dialect == Dialect::Sotw;
        let held = clusters.sent.keys();
        let going = held.filter(|name| match full {
            true => answer.revision(name).is_none(),
            false => answer.removed.contains(name),
        });
        for cluster in going {
            // F-09: also in another spelling.
            let asked = clusters.licence.contains(cluster) || clusters.licence.contains(&canonical(cluster));
            let unwanted = matches!(clusters.seen(cluster, scene.lens(Type::Cds)), Seen::Unwanted);
            // The client perhaps never had what it rejected.
            let unsure = clusters.sent.get(cluster).is_some_and(|sent| !sent.sure);
            if asked || unwanted || unsure {
                continue;
            }
            tally.hit(Rule::D03);
            let leads = |refers: &Arc<[String]>| refers.iter().any(|name| name == cluster);
            let named = clusters.explicit(cluster, clusters.sent.get(cluster).map_or(&[], |sent| &sent.aliases));
            let mut leading = routes.sent.iter().filter(|(_, sent)| leads(&sent.refers));
            if let Some((name, sent)) = leading.clone().next()
                && scene.reading.departs(cluster, named, scene.now)
            {
                let what = format!(
                    "cluster {cluster} goes at once, while route {name}@{} leads to it",
                    sent.revision
                );
                return Err(Broken::new(Rule::D03, what));
            }
            for (name, sent) in leading.by_ref() {
                let better = match routes.seen(name, scene.lens(Type::Rds)) {
                    Seen::Present(resource) => {
                        let any = proto::google::protobuf::Any {
                            type_url: Type::Rds.url().to_owned(),
                            value: resource.body(),
                        };
                        read(Type::Rds, &any).is_ok_and(|facts| !leads(&facts.refers))
                    }
                    Seen::Absent(Reason::TimedOut) => false,
                    Seen::Absent(_) => self.dialect == Dialect::Delta,
                    Seen::Unwanted | Seen::Uncovered | Seen::Unknown => false,
                };
                let refused = routes.refused.iter().any(|refused| refused.members.contains_key(name));
                if better && sent.sure && !refused && !scene.expired {
                    let what = format!(
                        "cluster {cluster} goes while route {name}@{} leads to it",
                        sent.revision
                    );
                    return Err(Broken::new(Rule::D03, what));
                }
            }
            for (kind, watch) in self.watches.iter().filter(|(kind, _)| kind.gated()) {
                if !watch.open.is_empty() && !scene.expired {
                    let what = format!("cluster {cluster} goes while {kind:?} is not settled");
                    return Err(Broken::new(Rule::D03, what));
                }
            }
        }
        Ok(())
    }

    /// The endpoint names of the clusters in a response: first of those that are new or changed, then of those that are sent
    /// again unchanged.
    pub(super) fn changed_clusters(&self, answer: &Answer) -> (BTreeSet<String>, BTreeSet<String>) {
        let watch = &self.watches[&answer.kind];
        let mut endpoints = (BTreeSet::new(), BTreeSet::new());
        for entry in answer.entries.iter().filter(|_| answer.kind == Type::Cds) {
            let Some(facts) = &entry.facts else { continue };
            let Some(name) = &facts.endpoints else { continue };
            let same = |sent: &Sent| sent.revision == facts.revision && sent.sure;
            if !watch.sent.get(&entry.name).is_some_and(same) {
                endpoints.0.insert(name.clone());
            } else if watch.chain || watch.licensed(&entry.name, &entry.aliases) {
                // A heartbeat in a recalled part is later sent as a whole resource.
                endpoints.1.insert(name.clone());
            }
        }
        endpoints
    }

    /// K-13: endpoints must follow a cluster that is new or has changed; they may follow one that was asked for again.
    pub(super) fn force_endpoints(&mut self, names: (BTreeSet<String>, BTreeSet<String>), scene: &Scene<'_>) {
        let Some(watch) = self.watches.get_mut(&Type::Eds) else {
            return;
        };
        let wanted = |watch: &Watch, name: &String| {
            let held = watch.sent.contains_key(name) || watch.remembered.contains_key(name);
            let spelled = || watch.names.iter().any(|asked| canonical(asked) == *name);
            watch.names.contains(name) || held && (watch.wildcard || watch.asks(name)) || spelled()
        };
        for name in names.0 {
            if !wanted(watch, &name) {
                // The client may hold what was on its way when the wildcard began.
                let perhaps = watch.wildcard && watch.memory.contains(&name);
                watch.licence.extend(perhaps.then_some(name));
                continue;
            }
            // In delta an absent name is reported as absent again: this ends the warming of its cluster.
            let must = match watch.seen(&name, scene.lens(Type::Eds)) {
                Seen::Present(_) => true,
                Seen::Absent(Reason::Said | Reason::Expired) => self.dialect == Dialect::Delta,
                Seen::Absent(Reason::TimedOut) | Seen::Unknown | Seen::Uncovered | Seen::Unwanted => false,
            };
            if must {
                watch.forced.insert(name);
            } else {
                watch.licence.insert(name);
            }
        }
        for name in names.1 {
            if wanted(watch, &name) {
                watch.licence.insert(name);
            }
        }
    }
}
