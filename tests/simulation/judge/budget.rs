// SPDX-License-Identifier: Apache-2.0
//! Nothing is sent again for nothing: what a client holds already, or has rejected as it is, may come again for each change, question,
//! reconnect, move and rejection so often as the formula of the protocol says, and at rest for none of them (B-21, B-22).
//!
//! Owns a purse for each type of each client. What is a repetition, the client is asked.

use std::collections::{BTreeMap, BTreeSet};

use super::{Came, Moment};
use crate::body::Type;
use crate::client::{Client, Persona};
use crate::names::{covers, is_collection};
use crate::tally::{Broken, Rule, Tally};
use crate::wire::Up;

/// What may come again without a reason that is counted here.
const SPARE: u64 = 4;

#[derive(Default)]
pub(super) struct Budget {
    purses: BTreeMap<(usize, Type), Purse>,
}

/// What may come again of one type for one client.
#[derive(Default)]
struct Purse {
    earned: u64,
    spent: u64,
    /// The contents that were rejected.
    rejected: BTreeSet<(String, u64)>,
    /// How much had been published when that was last counted, by zone.
    news: BTreeMap<usize, u64>,
    /// SotW: the nonce of the last request.
    nonce: String,
}

impl Budget {
    pub(super) fn see(&mut self, moment: &Moment<'_>, tally: &mut Tally) -> Result<(), Broken> {
        match moment {
            Moment::Asked(client, stream, kind, request) => self.ask(client, *stream, *kind, request),
            Moment::Came(came) if !came.is_hostile() => return self.come(came, tally),
            Moment::Moved(client) => {
                for kind in Type::EVERY {
                    self.purse(client, kind).earned += 2 * client.held(kind).len() as u64 + 1;
                }
            }
            Moment::Rest => {
                for purse in self.purses.values_mut() {
                    purse.earned = purse.earned.min(purse.spent);
                }
            }
            Moment::Came(_) | Moment::Heard(..) | Moment::Sent(..) | Moment::Over(_) => {}
        }
        Ok(())
    }

    fn purse(&mut self, client: &Client, kind: Type) -> &mut Purse {
        self.purses.entry((client.id, kind)).or_default()
    }

    /// Each name of a question may be answered, all that is held where everything is asked for.
    fn ask(&mut self, client: &Client, stream: u64, kind: Type, request: &Up) {
        if client.persona == Persona::Hostile {
            return;
        }
        let held = client.held(kind);
        let first = client.memory(stream, kind).is_none_or(|memory| memory.want.serial <= 1);
        let all = held.len() as u64 + 1;
        let purse = self.purse(client, kind);
        let one = |name: &String| match name.as_str() {
            "*" => all,
            name if is_collection(name) => 1 + held.keys().filter(|held| covers(name, held)).count() as u64,
            _ => 1,
        };
        purse.earned += match request {
            Up::Delta(request) => {
                let (more, less) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                let names: u64 = more.iter().chain(less).map(one).sum();
                names + if first { all } else { 0 }
            }
            // M-01: who sends the same nonce once more asks for its names again.
            Up::Sotw(request) if first || request.response_nonce == purse.nonce => {
                all + request.resource_names.len() as u64
            }
            Up::Sotw(_) => 0,
        };
        if let Up::Sotw(request) = request {
            purse.nonce.clone_from(&request.response_nonce);
        }
    }

    fn come(&mut self, came: &Came<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let (kind, client) = (came.kind(), came.client);
        tally.hit(Rule::B21);
        let held = client.held(kind);
        let purse = self.purses.entry((client.id, kind)).or_default();
        for (zone, _) in came.scene.reading.reads.values() {
            let news = came.zones.get(*zone).map_or(0, |zone| zone.writer.book.news(kind));
            let before = purse.news.insert(*zone, news).unwrap_or_default();
            purse.earned += news.saturating_sub(before);
        }
        let entries = came.answer.entries.iter().filter(|entry| entry.ttl.is_none());
        let again = entries.filter(|entry| {
            let revision = entry.facts.as_ref().map_or(0, |facts| facts.revision);
            let same = held.get(&entry.name).is_some_and(|held| held.revision == revision);
            same || purse.rejected.contains(&(entry.name.clone(), revision))
        });
        let again = again.count();
        let removed = came
            .answer
            .removed
            .iter()
            .filter(|name| !held.contains_key(*name))
            .count();
        let whole = client.is_full(kind) || client.is_listed(kind);
        let spends = match whole {
            // What is new in it is a reason to list the rest as well.
            true => usize::from(again == came.answer.entries.len() && came.omitted().next().is_none()),
            false => again + removed,
        };
        purse.spent += spends as u64;
        if client.rejects(came.answer) {
            tally.hit(Rule::B22);
            let size = came.answer.entries.len() as u64;
            let entries = came.answer.entries.iter();
            let contents = entries.map(|entry| {
                (
                    entry.name.clone(),
                    entry.facts.as_ref().map_or(0, |facts| facts.revision),
                )
            });
            let tries = u64::from(size.max(1).ilog2()) + 2;
            for content in contents.collect::<Vec<_>>() {
                purse.earned += if purse.rejected.insert(content) { tries } else { 0 };
            }
        }
        if purse.spent > purse.earned + SPARE {
            return broken!(
                B21,
                "client {}: {kind:?} {} times again, and there were reasons for {}: {}",
                client.id,
                purse.spent,
                purse.earned,
                came.answer.brief()
            );
        }
        self.follow(came);
        Ok(())
    }

    /// K-13: endpoints follow a cluster.
    fn follow(&mut self, came: &Came<'_>) {
        let entries = came.answer.entries.iter().filter(|_| came.kind() == Type::Cds);
        let leading = entries.filter_map(|entry| entry.facts.as_ref()?.endpoints.as_ref());
        let followers = leading.count() as u64;
        if followers > 0 {
            self.purse(came.client, Type::Eds).earned += followers;
        }
    }
}
