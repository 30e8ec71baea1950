// SPDX-License-Identifier: Apache-2.0
//! What must hold in a world, at any time:
//!
//! - Of what a view has taken over from that of another server, and of what this leads to, a client that starts now is served what those
//!   before it are.
//! - No client loses a cluster to which its route leads, nor the endpoints of one that is held. Where two sources are read together, a
//!   route newly leads only to what is there, or has waited for it for as long as it may (D-11, D-12).
//!
//! And when nothing happens any more: clients are served what the control planes say, and a cluster that its control plane does not have only
//! where a route leads to it that is said, and read together with it. So two views never hold each other's remnants.

use std::collections::BTreeSet;
use std::time::Duration;

use xds::{Dialect, Hold, HoldReason, ServerState, TypeUrl};

use super::super::stage::Stage;
use super::client::Client;
use super::server::KINDS;
use super::{NAMES, World};
use crate::{CDS, EDS, LDS, RDS};

impl World {
    pub(super) fn check(&mut self) {
        let now = self.pair.main.upstream.now;
        let is_away = |stage: &mut Stage| {
            stage.state != ServerState::Up || stage.holds.iter().any(|hold| hold.reason == HoldReason::Mass)
        };
        let away = self.pair.stages().any(is_away);
        if std::mem::replace(&mut self.away, away) || away {
            self.there = now;
        }
        let mut waited = false;
        for at in 0..self.ledgers.len() {
            let (number, is_above) = (at / 2, at % 2 == 1);
            let stage = self.pair.stages().nth(number).unwrap();
            if is_above && stage.above.is_none() {
                continue;
            }
            let stage = if is_above { stage.top() } else { stage };
            let heard = stage.heard();
            let wrong = self.ledgers[at].look(stage, &heard, self.there);
            waited |= !is_above && heard.contains(" unready clock");
            let who = if is_above { "above server" } else { "server" };
            if !heard.is_empty() {
                self.note(format!("{who} {number}: {heard}"));
            }
            self.expect(wrong.map(|wrong| format!("{who} {number}: {wrong}")));
        }
        let published = self.pair.stages().map(|stage| stage.cuts).sum();
        if std::mem::replace(&mut self.read, published) == published {
            return;
        }
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            let before = client.clone();
            for kind in KINDS {
                client.read(kind, &self.stage(client.at(), kind).upstream.cut);
            }
            let wrong = self.loss(&before, client, waited);
            self.expect(wrong.or_else(|| self.difference(client)));
        }
        self.clients = clients;
    }

    fn expect(&self, wrong: Option<String>) {
        let time = self.pair.main.upstream.now - self.began;
        assert!(wrong.is_none(), "after {time:?}, {wrong:?}: {:#?}", self.log);
    }

    /// The clusters to which a client's route leads.
    fn leads(&self, client: &Client) -> Option<&BTreeSet<&'static str>> {
        self.routes.get(client.get(RDS, "r")?)
    }

    /// Whether a client at this place reads the route from another source than something of a cluster.
    fn crosses(&self, at: usize) -> bool {
        self.crosses_to(at, CDS) || self.crosses_to(at, EDS)
    }

    fn crosses_to(&self, at: usize, kind: &str) -> bool {
        self.number(at, kind) != self.number(at, RDS)
    }

    /// Whether the view of a server has just begun, so that all that it holds was taken over from the view of the other one.
    fn has_taken_over(&self, at: usize, kind: &str) -> bool {
        let number = self.number(at, kind);
        number == 2 && self.servers[number].is_new() && self.pair.stage(number).above.is_none()
    }

    /// Whether the route that another relay serves leads to this cluster, which it does not have itself.
    fn leads_nowhere_above(&self, client: &Client, name: &str) -> bool {
        let stage = self.stage(client.at(), CDS);
        let above = stage.above.as_ref().filter(|_| !self.crosses_to(client.at(), CDS));
        above.is_some_and(|above| {
            let route = above.stage.body(RDS, "r");
            let leads = route.and_then(|route| self.routes.get(&route));
            leads.is_some_and(|leads| leads.contains(name)) && above.stage.body(CDS, name).is_none()
        })
    }

    /// Returns what of (b) is wrong for a client.
    fn loss(&self, before: &Client, client: &Client, waited: bool) -> Option<String> {
        let (led, leads) = (self.leads(before)?, self.leads(client)?);
        let has_lost = |kind, name| before.has(kind, name) && !client.has(kind, name);
        let has_moved = before.has_moved() && !self.has_taken_over(client.at(), CDS);
        let stays = client.has_read(RDS, "r") && !has_moved;
        // What another relay says is not compared with what clients had elsewhere.
        let is_relayed = self.stage(client.at(), CDS).above.is_some();
        let counts = |name: &str| !is_relayed || before.has_read(CDS, name) && !self.leads_nowhere_above(client, name);
        for name in leads.intersection(led).filter(|name| stays && counts(name)) {
            if has_lost(CDS, name) {
                return Some(format!("the route of {client:?} still leads to {name}, which has gone"));
            }
            let is_held = !self.stage(client.at(), CDS).why(CDS, name).is_empty();
            if is_held && has_lost(EDS, name) {
                return Some(format!("{client:?} has no endpoints of {name} any more, which is held"));
            }
        }
        // What a server says first is new. One that has never answered for clusters is not waited for.
        let cut = &self.stage(client.at(), CDS).upstream.cut;
        let answered = cut.half(&TypeUrl::new(CDS), true).is_some();
        let orders = self.crosses(client.at()) && !waited && before.has_read(RDS, "r") && answered;
        let mut newly = leads.difference(led).filter(|_| orders);
        let lacks = |kind, name| !client.has(kind, name) && !before.has(kind, name);
        let missing = newly.find(|name| lacks(CDS, name) || lacks(EDS, name));
        missing.map(|name| {
            let kind = if client.has(CDS, name) { "the endpoints of " } else { "" };
            format!("the route of {client:?} leads to {kind}{name}, which is not there")
        })
    }

    /// Returns what of (a) is wrong: what a client that starts now would not be served.
    fn difference(&self, client: &Client) -> Option<String> {
        let leads = self.leads(client).into_iter().flatten().copied();
        let leads: Vec<&str> = leads.collect();
        let all = [(LDS, RDS), (RDS, CDS), (CDS, EDS)].into_iter();
        for (kind, next) in all.filter(|(kind, next)| self.number(1, kind) == self.number(1, next)) {
            let stage = self.stage(client.at(), kind);
            let of_kind = |hold: &&Hold| hold.type_url.url() == kind && hold.reason != HoldReason::Unready;
            let held = stage.holds.iter().filter(of_kind);
            for name in held.flat_map(|hold| hold.removals.keys()) {
                let all = match kind {
                    LDS => vec!["r"],
                    RDS => leads.clone(),
                    _ => vec![name.as_str()],
                };
                let next_at = self.stage(client.at(), next);
                let lacks = |of: &&&str| client.has(next, of) && next_at.body(next, of).is_none();
                // What a wildcard covers comes once that is answered.
                let comes = next == CDS && next_at.upstream.cut.half(&TypeUrl::new(CDS), true).is_none();
                let had = self.servers[self.number(client.at(), kind)].had(kind, name.as_str());
                let brings = self.has_taken_over(client.at(), kind) && !had && !comes;
                if client.has(kind, name.as_str())
                    && let Some(lacking) = all.iter().filter(|_| brings).find(lacks)
                {
                    let of = TypeUrl::new(next);
                    return Some(format!(
                        "only {client:?} has {of:?} {lacking}, to which {name} leads, which is held"
                    ));
                }
            }
        }
        None
    }

    /// Nothing happens any more: clients are served what the control planes say, and what that leads to.
    pub(super) fn rest(&mut self) {
        self.note("all comes to rest".to_owned());
        for (number, server) in self.servers.iter_mut().enumerate() {
            let stage = self.pair.stages().nth(number).unwrap();
            server.heal(stage);
        }
        self.pair.exchange();
        self.check();
        self.pass(Duration::from_secs(200));
        for client in &self.clients {
            let at = |kind| self.number(client.at(), kind);
            let intends = |kind, name: &str| self.servers[at(kind)].intends(kind, name);
            assert_eq!(client.get(RDS, "r"), intends(RDS, "r"), "{:#?}", self.log);
            let read_too = self
                .clients
                .iter()
                .filter(|other| self.number(other.at(), CDS) == at(CDS));
            let leads: BTreeSet<_> = read_too.filter_map(|other| self.leads(other)).flatten().collect();
            for name in NAMES {
                let (held, said) = (client.has(CDS, name), intends(CDS, name).is_some());
                let wrong = held != (said || held && leads.contains(&name));
                self.expect(wrong.then(|| format!("{client:?} has cluster {name}: {held}")));
                let stage = self.stage(client.at(), EDS);
                let lonely = stage.body(EDS, name).is_some() && intends(EDS, name).is_none() && (said || !held);
                let wrong = lonely && stage.dialect == Dialect::Delta;
                self.expect(wrong.then(|| format!("{client:?} is served endpoints of {name}")));
            }
        }
        for number in 0..self.servers.len() {
            let stage = self.pair.stage(number);
            let above = stage.above.iter().flat_map(|above| above.stage.holds.iter());
            let held = stage.holds.iter().chain(above);
            let wrong = held
                .map(|hold| hold.reason)
                .find(|reason| *reason != HoldReason::Referenced);
            self.expect(wrong.map(|reason| format!("server {number}: {reason} still holds")));
        }
    }
}
