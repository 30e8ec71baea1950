//! Judges the order between types where there are lists of servers: make before break, whoever's word it is (D-01, D-03).
//!
//! Owns what the routes of a client need. Refuses to know single types and moves.

use distributary::proto::google::protobuf::Any;
use distributary::xds::{Dialect, Reason};

use super::follower::{Follower, Reading, Seen};
use crate::body::{Type, read};
use crate::tally::{Broken, Rule, Tally};
use crate::wire::Answer;

impl Follower {
    pub(super) fn check_order(&self, answer: &Answer, reading: &Reading<'_>, tally: &mut Tally) -> Result<(), Broken> {
        match answer.kind {
            _ if self.hostile => Ok(()),
            Type::Rds => self.check_routes(answer, reading, tally),
            Type::Cds => self.check_clusters(answer, reading, tally),
            Type::Eds | Type::Lds | Type::Sds | Type::Odd => Ok(()),
        }
    }

    /// D-01: no route before a cluster that it leads to, that exists, and that this client wants.
    fn check_routes(&self, answer: &Answer, reading: &Reading<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let (Some(clusters), Some(routes)) = (self.tracks.get(&Type::Cds), self.tracks.get(&Type::Rds)) else {
            return Ok(());
        };
        // Where clusters cannot be sent, routes do not wait for them.
        let unknown = |name: &String| reading.seen(Type::Cds, name, clusters) == Seen::Unknown;
        let incomplete = clusters.wildcard && !reading.is_complete(Type::Cds);
        let kept = || clusters.names.iter().chain(clusters.sent.keys()).any(unknown);
        if self.dialect == Dialect::Sotw && (clusters.reborn || incomplete || kept()) {
            return Ok(());
        }
        for entry in &answer.entries {
            let Some(facts) = &entry.facts else { continue };
            if routes.sent.get(&entry.name).map(|sent| sent.revision) == Some(facts.revision) {
                continue;
            }
            for cluster in facts.refers.iter() {
                if !matches!(reading.seen(Type::Cds, cluster, clusters), Seen::Present(_)) {
                    continue;
                }
                tally.hit(Rule::D01);
                if !clusters.sent.contains_key(cluster) && !clusters.remembered.contains(cluster) {
                    let what = format!("route {} leads to cluster {cluster}, which was not sent", entry.name);
                    return Err(Broken::new(Rule::D01, what));
                }
            }
        }
        Ok(())
    }

    /// D-03: no cluster goes while a route that the client holds leads to it, and a better route is at hand.
    fn check_clusters(&self, answer: &Answer, reading: &Reading<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let (Some(clusters), Some(routes)) = (self.tracks.get(&Type::Cds), self.tracks.get(&Type::Rds)) else {
            return Ok(());
        };
        // A later part of an answer says what was decided with its first.
        if clusters.chain {
            return Ok(());
        }
        let full = self.dialect == Dialect::Sotw;
        let goes = |name: &&String| match full {
            true => answer.revision(name).is_none(),
            false => answer.removed.contains(name),
        };
        for cluster in clusters.sent.keys().filter(goes) {
            let unwanted = reading.seen(Type::Cds, cluster, clusters) == Seen::Unwanted;
            if unwanted || clusters.licence.contains(cluster) {
                continue;
            }
            tally.hit(Rule::D03);
            let leads = |refers: &[String]| refers.iter().any(|name| name == cluster);
            for (name, _) in routes.sent.iter().filter(|(_, sent)| leads(&sent.refers)) {
                let better = match reading.seen(Type::Rds, name, routes) {
                    Seen::Present(_) => reading.refers(name).is_some_and(|refers| !leads(&refers)),
                    Seen::Absent(Reason::Said | Reason::Expired) => !full,
                    Seen::Absent(Reason::TimedOut) | Seen::Unwanted | Seen::Uncovered | Seen::Unknown => false,
                };
                if better {
                    return Err(Broken::new(
                        Rule::D03,
                        format!("cluster {cluster} goes while route {name} leads to it"),
                    ));
                }
            }
            for (kind, track) in self.tracks.iter().filter(|(kind, _)| kind.gated()) {
                if track.open.is_some() {
                    let what = format!("cluster {cluster} goes while {kind:?} is not settled");
                    return Err(Broken::new(Rule::D03, what));
                }
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// The clusters that a route leads to, as it is now.
    fn refers(&self, route: &str) -> Option<Vec<String>> {
        let covered = || {
            let (_, cut) = self.reads.get(&super::follower::authority(route))?;
            cut.slot(Type::Rds.type_url())?.resource(&route.into())
        };
        let resource = self.resource(Type::Rds, route).or_else(covered)?;
        let any = Any {
            type_url: Type::Rds.url().to_owned(),
            value: resource.body(),
        };
        read(Type::Rds, &any).ok().map(|facts| facts.refers.to_vec())
    }
}
