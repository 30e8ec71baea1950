// SPDX-License-Identifier: Apache-2.0
//! What the views have, some at a time.
//!
//! Owns the place between two pages: whoever reads slowly keeps no contents, and sees each as it is when it is read.

use std::collections::{BTreeMap, VecDeque};
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
    chosen: ChosenTypes,
    extent: PageExtent,
    class: Class,
    is_read: bool,
    place: Option<PagePlace>,
    /// What clients lacked when the view was begun, as far as it was not read.
    lacking: Option<BTreeMap<TypeUrl, VecDeque<Target>>>,
}

/// Which types are read.
pub(super) enum ChosenTypes {
    /// A view is not looked through for other ones.
    One(TypeUrl),
    Those(Box<dyn Fn(&TypeUrl) -> bool + Send>),
}

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PageExtent {
    /// Contents.
    Contents,
    /// All entries, also those without content.
    Entries,
}

/// Up to where a view is read.
struct PagePlace {
    type_url: TypeUrl,
    part: TypePart,
    /// The last name of the part; `None` is the wildcard.
    after: Option<Name>,
}

/// The parts of a type, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TypePart {
    Wildcard,
    Named,
    /// The names that have only an error. They are few.
    Rest,
    /// What clients ask for, and nothing was said of.
    Lacking,
}

impl Pages {
    pub(super) fn new(views: &[Arc<View>], extent: PageExtent, chosen: ChosenTypes) -> Self {
        Self {
            views: views.iter().rev().map(Arc::downgrade).collect(),
            chosen,
            extent,
            class: Class::default(),
            is_read: false,
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

    /// Does the same after others who ask had their turn; `None` at the end.
    pub async fn in_turn(&mut self, most: usize) -> Option<Vec<Entry>> {
        tokio::task::yield_now().await;
        let entries = self.next(most);
        (!entries.is_empty()).then_some(entries)
    }

    /// The class whose view the last page is of.
    pub const fn class(&self) -> &Class {
        &self.class
    }

    /// Whether any client reads the view that the last page is of.
    pub const fn is_read(&self) -> bool {
        self.is_read
    }

    fn read(&mut self, view: &View, most: usize) -> Vec<Entry> {
        self.class = view.class().clone();
        self.is_read = view.demand().readers().0 > 0;
        let cut = view.cut();
        let mut page = Vec::new();
        self.look_up(view);
        let mut from = match &self.place {
            Some(place) => Bound::Included(place.type_url.clone()),
            None => Bound::Unbounded,
        };
        while let Some(type_url) = self.next_type(&cut, &from) {
            for part in [TypePart::Wildcard, TypePart::Named, TypePart::Rest, TypePart::Lacking] {
                let room = most.saturating_sub(page.len());
                page.extend(self.of_part(&cut, &type_url, part, room));
                if page.len() >= most {
                    return page;
                }
            }
            from = Bound::Excluded(type_url);
        }
        page
    }

    /// Looks up what clients lack when a view is begun, because they wait meanwhile.
    fn look_up(&mut self, view: &View) {
        let looked_up = self.extent == PageExtent::Entries;
        let chosen = &self.chosen;
        self.lacking.get_or_insert_with(|| match chosen {
            _ if !looked_up => BTreeMap::new(),
            ChosenTypes::One(one) => BTreeMap::from([(one.clone(), view.lacking_in(one).into())]),
            ChosenTypes::Those(chosen) => {
                let mut lacking = BTreeMap::<_, VecDeque<_>>::new();
                let all = view.lacking().into_iter().filter(|(type_url, _)| chosen(type_url));
                all.for_each(|(type_url, target)| lacking.entry(type_url).or_default().push_back(target));
                lacking
            }
        });
    }

    /// Returns the next type of a view that is chosen.
    fn next_type(&self, cut: &Cut, from: &Bound<TypeUrl>) -> Option<TypeUrl> {
        let chosen = match &self.chosen {
            ChosenTypes::One(one) => return (*from != Bound::Excluded(one.clone())).then(|| one.clone()),
            ChosenTypes::Those(chosen) => chosen,
        };
        let mut from = from.as_ref();
        loop {
            let lacking = self
                .lacking
                .as_ref()
                .and_then(|lacking| lacking.range((from, Bound::Unbounded)).next());
            let lacking = lacking.map(|(type_url, _)| type_url);
            let next = [cut.type_from(from), lacking].into_iter().flatten().min()?;
            if chosen(next) {
                return Some(next.clone());
            }
            from = Bound::Excluded(next);
        }
    }

    /// Returns the next entries of a part, and moves the place behind them.
    fn of_part(&mut self, cut: &Cut, type_url: &TypeUrl, part: TypePart, most: usize) -> Vec<Entry> {
        let place = self.place.as_ref().filter(|place| place.type_url == *type_url);
        let after = match place {
            Some(place) if part < place.part => return Vec::new(),
            Some(place) if part == place.part => Some(place.after.clone()),
            Some(_) | None => None,
        };
        let found = match (part, cut.slot(type_url)) {
            (TypePart::Lacking, _) => self.lacking(cut, type_url, most),
            (_, None) => Vec::new(),
            (TypePart::Rest, _) if after.is_some() => Vec::new(),
            (TypePart::Rest, Some(slot)) => {
                let mut found = Vec::new();
                parts(slot).for_each(|(state, covered)| rest(state, covered, |one| found.push(one)));
                found.retain(|entry| self.extent == PageExtent::Entries || entry.resource.is_some());
                found
            }
            (TypePart::Wildcard | TypePart::Named, Some(slot)) => {
                let covered = part == TypePart::Wildcard;
                let state = parts(slot).find(|(_, of_wildcard)| *of_wildcard == covered);
                let other = slot.wildcard.as_deref().filter(|_| !covered);
                let found = state.map(|(state, _)| self.entries(state, covered, other, after.flatten().as_ref(), most));
                found.unwrap_or_default()
            }
        };
        if let Some(after) = found.last().map(|entry| entry.name.clone()) {
            let type_url = type_url.clone();
            self.place = Some(PagePlace { type_url, part, after });
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
        let is_asked = |known: &Known| self.extent == PageExtent::Entries || known.resource().is_some();
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
            history_bytes: 16 << 20,
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

    fn all() -> ChosenTypes {
        ChosenTypes::Those(Box::new(|_| true))
    }

    fn names(page: &[Entry]) -> Vec<&str> {
        page.iter().map(|entry| entry.name.as_ref().unwrap().as_str()).collect()
    }

    /// However large the pages are, each content is in exactly one of them.
    #[test]
    fn pages_of_any_size_have_everything_once() {
        let views = [view(), view()];
        for most in 1..12 {
            let mut pages = Pages::new(&views, PageExtent::Contents, all());
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
        let eds = ChosenTypes::Those(Box::new(|type_url| type_url.short() == Some("eds")));
        for chosen in [eds, ChosenTypes::One(TypeUrl::new(EDS))] {
            let mut some = Pages::new(&views[..1], PageExtent::Contents, chosen);
            assert_eq!(names(&some.next(1)), ["e"]);
            assert_eq!(names(&some.next(9)), ["f"]);
            assert_eq!(some.next(9).len(), 0);
        }
    }

    /// What changes between two pages is seen if it lies behind the place; nothing old is kept, not even the view.
    #[test]
    fn nothing_is_kept_between_pages() {
        let view = view();
        let mut pages = Pages::new(std::slice::from_ref(&view), PageExtent::Contents, all());
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
            let mut pages = Pages::new(std::slice::from_ref(&view), PageExtent::Entries, all());
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
        let mut one = Pages::new(
            std::slice::from_ref(&view),
            PageExtent::Entries,
            ChosenTypes::One(TypeUrl::new(CDS)),
        );
        assert_eq!(one.next(6).len(), 6);
        assert_eq!(names(&one.next(6)), ["z"]);
        assert_eq!(one.next(6).len(), 0);
    }
}
