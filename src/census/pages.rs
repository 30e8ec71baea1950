//! What the views have, some at a time.
//!
//! Owns the place between two pages: whoever reads slowly keeps no contents, and sees each as it is when it is read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use super::entries::{Entry, entry, lacking, parts, rest};
use crate::cache::View;
use crate::classes::Class;
use crate::xds::{Cut, Known, Name, State, Target, TypeUrl};

/// What the views have of some types.
pub struct Pages {
    /// Those that are not read to their end; the next one is the last.
    views: Vec<Weak<View>>,
    chosen: Box<dyn Fn(&TypeUrl) -> bool + Send>,
    extent: Extent,
    class: Class,
    place: Option<Reached>,
    /// What clients lacked when the view was begun, as far as it was not read.
    lacking: Option<BTreeMap<TypeUrl, VecDeque<Target>>>,
}

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Contents.
    Contents,
    /// All entries, also those without content.
    Entries,
}

/// Up to where a view is read.
struct Reached {
    type_url: TypeUrl,
    part: Part,
    /// The last name of the part; `None` is the wildcard.
    after: Option<Name>,
}

/// The parts of a type, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Wildcard,
    Named,
    /// The names that have only an error. They are few.
    Rest,
    /// What clients ask for, and nothing was said of.
    Lacking,
}

impl Pages {
    pub(super) fn new(views: &[Arc<View>], extent: Extent, chosen: impl Fn(&TypeUrl) -> bool + Send + 'static) -> Self {
        Self {
            views: views.iter().rev().map(Arc::downgrade).collect(),
            chosen: Box::new(chosen),
            extent,
            class: Class::default(),
            place: None,
            lacking: None,
        }
    }

    /// Returns the next entries, about as many as asked for; none at the end.
    pub fn next(&mut self, most: usize) -> Vec<Entry> {
        while let Some(view) = self.views.last() {
            let page = view.upgrade().map(|view| self.read(&view, most)).unwrap_or_default();
            if !page.is_empty() {
                return page;
            }
            self.views.pop();
            (self.place, self.lacking) = (None, None);
        }
        Vec::new()
    }

    /// The class whose view the last page is of.
    #[must_use]
    pub const fn class(&self) -> &Class {
        &self.class
    }

    fn read(&mut self, view: &View, most: usize) -> Vec<Entry> {
        self.class = view.class().clone();
        let cut = view.cut();
        let mut page = Vec::new();
        for type_url in self.types(view, &cut) {
            let behind = self.place.as_ref().is_some_and(|place| type_url < place.type_url);
            if behind || !(self.chosen)(&type_url) {
                continue;
            }
            for part in [Part::Wildcard, Part::Named, Part::Rest, Part::Lacking] {
                let room = most.saturating_sub(page.len());
                page.extend(self.of_part(&cut, &type_url, part, room));
                if page.len() >= most {
                    return page;
                }
            }
        }
        page
    }

    /// Returns the types of a view. What clients lack is looked up once, because they wait meanwhile.
    fn types(&mut self, view: &View, cut: &Cut) -> BTreeSet<TypeUrl> {
        let looked_up = self.extent == Extent::Entries;
        let lacking = self.lacking.get_or_insert_with(|| {
            let mut lacking = BTreeMap::<_, VecDeque<_>>::new();
            let all = looked_up.then(|| view.lacking()).into_iter().flatten();
            all.for_each(|(type_url, target)| lacking.entry(type_url).or_default().push_back(target));
            lacking
        });
        lacking
            .keys()
            .chain(cut.slots().map(|(type_url, _)| type_url))
            .cloned()
            .collect()
    }

    /// Returns the next entries of a part, and moves the place behind them.
    fn of_part(&mut self, cut: &Cut, type_url: &TypeUrl, part: Part, most: usize) -> Vec<Entry> {
        let place = self.place.as_ref().filter(|place| place.type_url == *type_url);
        let after = match place {
            Some(place) if part < place.part => return Vec::new(),
            Some(place) if part == place.part => Some(place.after.clone()),
            Some(_) | None => None,
        };
        let found = match (part, cut.slot(type_url)) {
            (Part::Lacking, _) => self.lacking(cut, type_url, most),
            (_, None) => Vec::new(),
            (Part::Rest, _) if after.is_some() => Vec::new(),
            (Part::Rest, Some(slot)) => {
                let mut found = Vec::new();
                parts(slot).for_each(|(state, covered)| rest(state, covered, |one| found.push(one)));
                found.retain(|entry| self.extent == Extent::Entries || entry.resource.is_some());
                found
            }
            (Part::Wildcard | Part::Named, Some(slot)) => {
                let covered = part == Part::Wildcard;
                let state = parts(slot).find(|(_, of_wildcard)| *of_wildcard == covered);
                let other = slot.wildcard.as_deref().filter(|_| !covered);
                let found = state.map(|(state, _)| self.entries(state, covered, other, after.flatten().as_ref(), most));
                found.unwrap_or_default()
            }
        };
        if let Some(after) = found.last().map(|entry| entry.name.clone()) {
            let type_url = type_url.clone();
            self.place = Some(Reached { type_url, part, after });
        }
        found
    }

    /// Returns the entries behind a name, but those that `other` has as well.
    fn entries(
        &self,
        state: &State,
        covered: bool,
        other: Option<&State>,
        after: Option<&Name>,
        most: usize,
    ) -> Vec<Entry> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = state
            .entries()
            .range::<(Bound<&Name>, Bound<&Name>), Name>((from, Bound::Unbounded));
        let is_new = |name: &Name, known: &Known| other.is_none_or(|other| other.entries().get(name) != Some(known));
        let is_asked = |known: &Known| self.extent == Extent::Entries || known.resource().is_some();
        let chosen = entries.filter(|(name, known)| is_asked(known) && is_new(name, known));
        let chosen = chosen.map(|(name, known)| entry(state, name, Some(known), covered));
        chosen.take(most).collect()
    }

    /// Returns what clients still lack of a type.
    fn lacking(&mut self, cut: &Cut, type_url: &TypeUrl, most: usize) -> Vec<Entry> {
        let left = self.lacking.as_mut().and_then(|lacking| lacking.get_mut(type_url));
        let left = left
            .into_iter()
            .flat_map(|left| std::iter::from_fn(|| left.pop_front()));
        lacking(cut, left.map(|target| (type_url.clone(), target)))
            .take(most)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cache::ViewSettings;
    use crate::clock;
    use crate::xds::{Changes, Phase, Reason, Resource, ResourceError, ResourceParts, Target, Update, Want};

    const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

    fn put(type_url: &str, name: &str, body: &[u8]) -> Update {
        let parts = ResourceParts {
            type_url: &TypeUrl::new(type_url),
            name: name.into(),
            aliases: Vec::new(),
            passed_on: &[],
            body,
            endpoints: None,
            received: clock::now(),
        };
        Update::Put(Arc::new(Resource::new(parts, 0)), None)
    }

    fn publish(view: &View, type_url: &str, wildcard: bool, updates: Vec<Update>) {
        let changes = Changes {
            type_url: TypeUrl::new(type_url),
            wildcard,
            updates,
            complete: None,
            answered: Some(true),
            phase: Phase::Steady,
        };
        drop(view.publish(&[changes]));
    }

    fn view() -> Arc<View> {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
        };
        let view = View::new(Class::default(), settings);
        publish(
            &view,
            CDS,
            true,
            vec![put(CDS, "a", b"1"), put(CDS, "b", b"1"), put(CDS, "c", b"1")],
        );
        publish(
            &view,
            CDS,
            false,
            vec![put(CDS, "b", b"1"), Update::Absent("d".into(), Reason::Said)],
        );
        publish(&view, EDS, false, vec![put(EDS, "e", b"1"), put(EDS, "f", b"1")]);
        view
    }

    fn names(page: &[Entry]) -> Vec<&str> {
        page.iter().map(|entry| entry.name.as_ref().unwrap().as_str()).collect()
    }

    /// However large the pages are, each content is in exactly one of them.
    #[test]
    fn pages_of_any_size_have_everything_once() {
        let views = [view(), view()];
        for most in 1..12 {
            let mut pages = Pages::new(&views, Extent::Contents, |_| true);
            let mut all = Vec::new();
            loop {
                let page = pages.next(most);
                assert!(page.len() <= most);
                if page.is_empty() {
                    break;
                }
                all.extend(names(&page).into_iter().map(str::to_owned).collect::<Vec<_>>());
            }
            let of_one = ["a", "b", "c", "e", "f"];
            assert_eq!(all, [of_one, of_one].concat(), "{most}");
        }
        let mut some = Pages::new(&views[..1], Extent::Contents, |type_url| {
            type_url.short() == Some("eds")
        });
        assert_eq!(names(&some.next(9)), ["e", "f"]);
        assert_eq!(some.next(9).len(), 0);
    }

    /// What changes between two pages is seen if it lies behind the place; nothing old is kept, not even the view.
    #[test]
    fn nothing_is_kept_between_pages() {
        let view = view();
        let mut pages = Pages::new(std::slice::from_ref(&view), Extent::Contents, |_| true);
        assert_eq!(names(&pages.next(2)), ["a", "b"]);
        publish(&view, CDS, true, vec![put(CDS, "aa", b"1"), put(CDS, "bb", b"1")]);
        assert_eq!(names(&pages.next(2)), ["bb", "c"]);
        drop(view);
        assert_eq!(pages.next(2).len(), 0);
    }

    /// What has no content is among the entries, wherever a page ends.
    #[test]
    fn entries_without_content() {
        let view = view();
        let gone = ResourceError::not_found();
        publish(&view, CDS, false, vec![Update::Error("x".into(), Some(Arc::new(gone)))]);
        let seat = view.enter();
        for name in ["y", "z"] {
            let want = Want {
                type_url: TypeUrl::new(CDS),
                target: Target::Name(name.into()),
                wanted: true,
                written: None,
            };
            assert_eq!(seat.want(&want), Ok(()));
        }
        for most in 1..12 {
            let mut pages = Pages::new(std::slice::from_ref(&view), Extent::Entries, |_| true);
            let mut all = Vec::new();
            loop {
                let page = pages.next(most);
                if page.is_empty() {
                    break;
                }
                all.extend(page.iter().map(|entry| {
                    let name = entry.name.as_ref().unwrap().as_str();
                    format!("{} {name} {}", entry.type_url.word(), entry.cached.word())
                }));
            }
            let expected = [
                "cds a acked",
                "cds b acked",
                "cds c acked",
                "cds d does_not_exist",
                "cds x received_error",
                "cds y requested",
                "cds z requested",
                "eds e acked",
                "eds f acked",
            ];
            assert_eq!(all, expected, "{most}");
        }
    }
}
