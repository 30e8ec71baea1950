// SPDX-License-Identifier: Apache-2.0
//! The table of what clients reject: each reason once, however many contents, relays and clients there are.
//!
//! Owns the sum over the relays, and which content is named first. The relays say what their clients reject.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::fault::StatusFault;
use super::{Report, answers};
use crate::answers::{Nacks, RejectedContent};
use crate::cli::asking::Relays;
use crate::get::short;
use crate::xds::{TypeUrl, one_or_several};

const NARROW: &str = "TYPE NAME VERSION CLIENTS RELAYS REASON";
const WIDE: &str = "ACCEPTED WAITING REPORTED WHOLE-VERSION SOFTWARE NODES OLDER";
/// Of so many contents it is asked how many clients have accepted them: each question goes to all clients of the name.
const COUNTED_MAX: usize = 8;

/// Who rejects something, over all relays.
#[derive(Default)]
struct Who {
    clients: usize,
    relays: BTreeSet<String>,
    software: BTreeMap<String, usize>,
    /// Some of the clients.
    nodes: BTreeSet<String>,
    /// When a control plane was told last.
    reported: Option<String>,
    /// How many of the clients were sent older content in its place.
    older: usize,
    /// How many other clients of these relays have accepted it, and how many have done neither, if that was asked.
    others: Option<[usize; 2]>,
}

/// What clients reject for one reason. A client that rejects a response rejects all of it, and may not say which part is bad.
#[derive(Default)]
struct Together {
    contents: usize,
    /// The first content, and whether the words name it; those that they name come before all others.
    first: Option<(String, String, bool)>,
    /// As many as reject the content that most reject: mostly, they reject all of them.
    who: Who,
}

/// Type, name, version and words.
type RejectedKey = (String, String, String, String);

/// `counts`: whether the other clients are counted too.
pub(super) fn report(relays: &Relays<'_>, counts: bool) -> Report {
    let mut report = Report::new(NARROW, WIDE);
    let seen = report.answered(relays.each(|relay| relay.json::<Nacks>("/nacks")));
    let mut all: BTreeMap<RejectedKey, Who> = BTreeMap::new();
    for (relay, nacks) in &seen {
        let Some(nacks) = nacks else { continue };
        for rejection in &nacks.rejections {
            let version = rejection.version.clone().unwrap_or_default();
            let key = (
                rejection.type_url.clone(),
                rejection.name.clone(),
                version,
                rejection.rejection.clone(),
            );
            all.entry(key)
                .or_default()
                .take(&Who::of(relay, rejection), std::ops::Add::add);
        }
        if nacks.left_out > 0 {
            let words = format!(
                "{relay}: {} more rejections are not listed; mend these first",
                nacks.left_out
            );
            report.faults.push(StatusFault::new(format!("left out {relay}"), words));
        }
    }
    let contents = all.iter_mut().filter(|((.., version, _), _)| !version.is_empty());
    for (key, who) in contents.take(if counts { COUNTED_MAX } else { 0 }) {
        who.others = others(relays, key);
    }
    let mut listed = Vec::new();
    let mut rows: BTreeMap<(String, String), Together> = BTreeMap::new();
    for ((type_url, name, version, words), who) in all {
        let row = rows.entry((type_url.clone(), words.clone())).or_default();
        row.add(&name, &version, &words, &who);
        listed.push(json!({
            "type": type_url,
            "name": name,
            "version": version,
            "rejection": words,
            "clients": who.clients,
            "relays": who.relays,
            "software": who.software,
            "nodes": who.nodes,
            "reported": who.reported,
            "older": who.older,
            "accepted": who.others.map(|[accepted, _]| accepted),
            "waiting": who.others.map(|[_, waiting]| waiting),
        }));
    }
    for ((type_url, words), row) in rows {
        report.table.push(row.cells(TypeUrl::new(&type_url).word(), words));
    }
    if !listed.is_empty() {
        let contents = one_or_several(["content", "contents"], listed.len());
        let words = format!(
            "clients reject {} {contents}; mend them at the control plane, REASON says how",
            listed.len()
        );
        report.faults.push(StatusFault::new("nacks", words));
    }
    report.json.insert("rejections".to_owned(), listed.into());
    report
}

impl Together {
    fn add(&mut self, name: &str, version: &str, words: &str, who: &Who) {
        self.contents += 1;
        let named = is_named(name, words);
        if self.first.as_ref().is_none_or(|(.., before)| named && !before) {
            self.first = Some((name.to_owned(), version.to_owned(), named));
        }
        self.who.take(who, usize::max);
    }

    fn cells(self, word: &str, words: String) -> Vec<String> {
        let (name, version, named) = self.first.unwrap_or_default();
        let (name, version) = match (self.contents, named) {
            (..=1, _) => (name, version),
            (all, true) => (format!("{name} and {} more", all - 1), version),
            (all, false) => (
                format!("{all} contents rejected together; the client named none"),
                String::new(),
            ),
        };
        let who = self.who;
        let [accepted, waiting] = match who.others {
            Some(others) => others.map(|count| count.to_string()),
            None => ["-"; 2].map(str::to_owned),
        };
        let software = who.software.iter().map(|(name, count)| format!("{name}:{count}"));
        vec![
            word.to_owned(),
            name,
            short(&version),
            who.clients.to_string(),
            who.relays.into_iter().collect::<Vec<_>>().join(","),
            words,
            accepted,
            waiting,
            who.reported.unwrap_or_else(|| "no".to_owned()),
            version,
            software.collect::<Vec<_>>().join(","),
            who.nodes.into_iter().collect::<Vec<_>>().join(","),
            who.older.to_string(),
        ]
    }
}

/// Asks the relays how many clients have accepted a content, and how many have done neither. A relay of which no client rejects it does not
/// count them.
fn others(relays: &Relays<'_>, (type_url, name, version, words): &RejectedKey) -> Option<[usize; 2]> {
    let asked = relays.each(|relay| answers::nacks_of(relay, type_url, name, version).ok());
    let all = asked
        .iter()
        .filter_map(|(_, nacks)| nacks.as_ref())
        .flat_map(|nacks| &nacks.rejections);
    let mut sum = Who::default();
    for rejection in all.filter(|one| one.rejection == *words) {
        sum.take(&Who::of("", rejection), std::ops::Add::add);
    }
    sum.others
}

/// Whether the words of a client name a resource.
fn is_named(name: &str, words: &str) -> bool {
    let apart = |at: char| at.is_whitespace() || "'\"`,;()[]{}<>".contains(at);
    let mut texts = words.split(apart);
    !name.is_empty() && texts.any(|text| text == name || text.trim_end_matches([':', '.', '!', '?']) == name)
}

impl Who {
    fn of(relay: &str, rejection: &RejectedContent) -> Self {
        Self {
            clients: rejection.clients,
            relays: BTreeSet::from([relay.to_owned()]),
            software: rejection.software.clone(),
            nodes: rejection.some.iter().map(|one| one.node.clone()).collect(),
            reported: rejection.reported.clone(),
            older: rejection.older,
            others: rejection
                .accepted
                .as_ref()
                .zip(rejection.waiting.as_ref())
                .map(|(accepted, waiting)| [accepted, waiting].map(|of| of.values().sum())),
        }
    }

    /// Takes others to it. `count`: what is made of two numbers.
    fn take(&mut self, other: &Self, count: impl Fn(usize, usize) -> usize) {
        self.clients = count(self.clients, other.clients);
        self.relays.extend(other.relays.iter().cloned());
        for (name, number) in &other.software {
            let found = self.software.entry(name.clone()).or_default();
            *found = count(*found, *number);
        }
        self.nodes.extend(other.nodes.iter().cloned());
        self.reported = self.reported.take().max(other.reported.clone());
        self.older = count(self.older, other.older);
        let both = self.others.zip(other.others);
        let both = both.map(|([a, b], [c, d])| [count(a, c), count(b, d)]);
        self.others = both.or(self.others).or(other.others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other clients are counted over all relays that count them, and shown as many as have any of the contents.
    #[test]
    fn who_has_accepted_it() {
        let with = |others| Who {
            others,
            ..Who::default()
        };
        let mut who = with(None);
        for others in [Some([2, 1]), None, Some([3, 0])] {
            who.take(&with(others), std::ops::Add::add);
        }
        assert_eq!(who.others, Some([5, 1]));
        let titles = |names: &str| names.split(' ').count();
        let cells = |all: &[Who]| {
            let mut together = Together::default();
            all.iter().for_each(|who| together.add("a", "0", "bad", who));
            let cells = together.cells("cds", "bad".to_owned());
            [cells[titles(NARROW)].clone(), cells[titles(NARROW) + 1].clone()]
        };
        assert_eq!(cells(&[who, with(Some([4, 2])), with(None)]), ["5", "2"]);
        assert_eq!(cells(&[with(None)]), ["-", "-"]);
        assert_eq!(
            titles(NARROW) + titles(WIDE),
            Together::default().cells("cds", String::new()).len()
        );
    }

    fn row(contents: &[(&str, usize)], words: &str) -> [String; 4] {
        let mut together = Together::default();
        for (name, clients) in contents {
            let who = Who {
                clients: *clients,
                relays: BTreeSet::from(["a:1".to_owned()]),
                ..Who::default()
            };
            together.add(name, "0123456789abcdef", words, &who);
        }
        let mut cells = together.cells("cds", words.to_owned()).into_iter();
        [(); 4].map(|()| cells.next().unwrap_or_default())
    }

    /// A rejected response is one row, with what the client named first.
    #[test]
    fn what_is_rejected_together() {
        let all = [("a", 2), ("b", 2), ("c", 1)];
        let names = |words| row(&all, words)[1].clone();
        assert_eq!(names("cluster 'b': bad"), "b and 2 more");
        assert_eq!(
            names("a-1 is bad"),
            "3 contents rejected together; the client named none"
        );
        assert_eq!(row(&all, "no")[2..], [String::new(), "2".to_owned()]);
        assert_eq!(row(&all[2..], "no")[..2], ["cds".to_owned(), "c".to_owned()]);
    }
}
