//! Condemned contents among the rejections: who has rejected one before the verdict may be served older content since, or have gone.
//!
//! Owns that they still count, each client once. Condemns nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Key, Rejection, Wanted, software};
use crate::cache::View;
use crate::inquiry::Whom;
use crate::xds::{Condemned, Known, Resource, Slot};

/// The clients of one software that have rejected a content before the verdict.
struct Verdict {
    clients: usize,
    condemned: Arc<Condemned>,
    /// Where it is condemned, one of several.
    view: Arc<View>,
}

/// Adds what is condemned to what clients reject now.
pub(super) fn add(found: &mut BTreeMap<Key, Rejection>, views: &[Arc<View>], wanted: &Wanted, whom: &Whom) {
    let mut verdicts: BTreeMap<(Key, String), Verdict> = BTreeMap::new();
    for view in views {
        for one in &*view.head().condemned() {
            let key = key(one);
            if !wanted.has(&key, whom) {
                continue;
            }
            let by = one.kind.as_ref().map(|kind| software(kind.user_agent()));
            let verdict = Verdict {
                clients: 0,
                condemned: one.clone(),
                view: view.clone(),
            };
            let verdicts = verdicts.entry((key, by.unwrap_or_else(|| one.kind())));
            verdicts.or_insert(verdict).clients += one.clients;
        }
    }
    for ((key, software), verdict) in verdicts {
        let (type_url, name, version, _) = &key;
        let first = (type_url.clone(), name.clone(), version.clone(), String::new());
        let same = found.range(first..);
        let same =
            same.take_while(|((of_type, of_name, at, _), _)| (of_type, of_name, at) == (type_url, name, version));
        let present: usize = same
            .filter_map(|(_, rejection)| rejection.software.get(&software))
            .sum();
        let gone = verdict.clients.saturating_sub(present);
        found.entry(key).or_default().condemn(verdict, software, gone);
    }
}

fn key(one: &Condemned) -> Key {
    (
        one.type_url.full_name().to_owned(),
        one.name().as_str().to_owned(),
        Some(one.version.to_string()),
        one.objection.words().to_owned(),
    )
}

impl Rejection {
    /// The content is condemned for this software. So many of its clients have rejected it and do not count yet.
    fn condemn(&mut self, verdict: Verdict, software: String, gone: usize) {
        let Verdict { condemned, view, .. } = verdict;
        self.condemned.push(software.clone());
        self.clients += gone;
        if gone > 0 {
            *self.software.entry(software).or_default() += gone;
        }
        self.since = self.since.into_iter().chain([condemned.objection.since()]).min();
        if self.about.is_none()
            && let Some(content) = content(&view, &condemned)
        {
            self.about = Some((condemned.type_url.clone(), content, Arc::new(view.class().clone())));
        }
    }
}

fn content(view: &View, one: &Condemned) -> Option<Arc<Resource>> {
    let cut = view.cut();
    let halves = cut.slot(&one.type_url).into_iter().flat_map(Slot::halves);
    let mut known = halves.filter_map(|state| state.entries().get(one.name()).and_then(Known::resource));
    known.find(|found| found.version() == one.version).cloned()
}
