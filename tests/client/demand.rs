// SPDX-License-Identifier: Apache-2.0
//! Which stream each subscription goes to.

use std::sync::Arc;

use protocol::{Demand, LegKind};
use xds::{Changes, Cut, Name, Resource, ResourceParts, Target, TypeUrl, Update, Want};

use crate::{CDS, EDS};

struct View {
    demand: Demand,
    cut: Cut,
    now: std::time::Instant,
}

impl View {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "resources carry an instant")]
        let now = std::time::Instant::now();
        Self {
            demand: Demand::default(),
            cut: Cut::default(),
            now,
        }
    }

    fn tell(&mut self, type_url: &str, target: &str, wanted: bool) -> Vec<String> {
        let type_url = TypeUrl::new(type_url);
        let name = Name::read(target, &type_url);
        let written = name.written(target).filter(|_| wanted);
        let want = Want {
            type_url,
            target: match target {
                "*" => Target::Wildcard,
                _ => Target::Name(name),
            },
            wanted,
            written,
        };
        lines(&self.demand.handle_want(&want, &self.cut))
    }

    fn want(&mut self, type_url: &str, target: &str) -> Vec<String> {
        self.tell(type_url, target, true)
    }

    fn unwant(&mut self, type_url: &str, target: &str) -> Vec<String> {
        self.tell(type_url, target, false)
    }

    /// The wildcard of clusters gets these, loses those, and is complete or not.
    fn wildcard(&mut self, puts: &[(&str, &str)], gone: &[&str], complete: bool) -> Vec<String> {
        let type_url = TypeUrl::new(CDS);
        let put = |(name, alias): &(&str, &str)| self.put(name, alias, name);
        let gone = gone.iter().map(|name| Update::Forget(Name::from(*name)));
        let mut changes = Changes::of((type_url, true), puts.iter().map(put).chain(gone).collect());
        changes.complete = Some(complete);
        self.hear(&changes)
    }

    fn put(&self, name: &str, alias: &str, body: &str) -> Update {
        let parts = ResourceParts {
            type_url: &TypeUrl::new(CDS),
            name: Name::from(name),
            aliases: vec![Name::from(alias)],
            passed_on: &[],
            body: body.as_bytes(),
            endpoints: None,
            received: self.now,
        };
        Update::Put(Arc::new(Resource::new(parts, 0)), None)
    }

    fn hear(&mut self, changes: &Changes) -> Vec<String> {
        self.cut = self.cut.with(changes).0;
        lines(&self.demand.handle_cut(&self.cut))
    }
}

fn news(update: Update) -> Changes {
    Changes::of((TypeUrl::new(CDS), false), vec![update])
}

fn lines(wants: &[(LegKind, Want)]) -> Vec<String> {
    let line = |(leg, want): &(LegKind, Want)| {
        let sign = if want.wanted { '+' } else { '-' };
        match &want.target {
            Target::Wildcard => format!("{leg:?} {sign}*"),
            Target::Name(name) => format!("{leg:?} {sign}{name}"),
        }
    };
    wants.iter().map(line).collect()
}

const NOTHING: [&str; 0] = [];

/// K-23: names without a wildcard are on the main stream.
#[test]
fn names_alone() {
    let mut view = View::new();
    assert_eq!(view.want(EDS, "a"), ["Main +a"]);
    assert_eq!(view.want(EDS, "b"), ["Main +b"]);
    assert_eq!(view.want(EDS, "a"), NOTHING);
    assert_eq!(view.unwant(EDS, "a"), ["Main -a"]);
    assert_eq!(view.unwant(EDS, "a"), NOTHING);
}

/// K-05: beside a wildcard, a name waits until the wildcard is complete; only if the wildcard lacks the name, it is asked for on
/// the other stream.
#[test]
fn a_name_beside_a_wildcard() {
    let mut view = View::new();
    assert_eq!(view.want(CDS, "*"), ["Main +*"]);
    assert_eq!(view.want(CDS, "in"), NOTHING);
    assert_eq!(view.want(CDS, "out"), NOTHING);
    assert_eq!(view.wildcard(&[("in", "x")], &[], false), NOTHING);
    assert_eq!(view.wildcard(&[], &[], true), ["Aside +out"]);
    assert_eq!(view.want(CDS, "late"), ["Aside +late"]);
    // The wildcard comes to cover one name, also by an alias, and loses it again.
    assert_eq!(
        view.wildcard(&[("out", "late")], &[], true),
        ["Aside -late", "Aside -out"]
    );
    assert_eq!(view.wildcard(&[], &["out"], true), ["Aside +late", "Aside +out"]);
    assert_eq!(view.wildcard(&[("other", "y")], &[], true), NOTHING);
    assert_eq!(view.unwant(CDS, "in"), NOTHING);
    assert_eq!(view.unwant(CDS, "out"), ["Aside -out"]);
}

/// K-05: what is wanted first gets the main stream. Names that were asked for stay until a wildcard covers them.
#[test]
fn a_wildcard_beside_names() {
    let mut view = View::new();
    assert_eq!(view.want(CDS, "a"), ["Main +a"]);
    assert_eq!(view.want(CDS, "b"), ["Main +b"]);
    assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
    assert_eq!(view.want(CDS, "c"), NOTHING);
    assert_eq!(view.wildcard(&[("a", "x")], &[], true), ["Main -a", "Main +c"]);
    // Without the wildcard nothing is covered.
    assert_eq!(view.unwant(CDS, "*"), ["Aside -*", "Main +a"]);
}

/// A stream that has the wildcard of a type never named that type, even if one ends before the other begins.
#[test]
fn a_type_keeps_its_stream() {
    let mut view = View::new();
    assert_eq!(view.want(CDS, "a"), ["Main +a"]);
    assert_eq!(view.unwant(CDS, "a"), ["Main -a"]);
    assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
    assert_eq!(view.want(EDS, "*"), ["Main +*"], "types are apart");
}

/// C-20: if an alias found other content than the wildcard has, and the wildcard's resource does not have that alias, the alias
/// is asked for once more: a server that speaks SotW does not report that the alias no longer means anything.
#[test]
fn an_alias_of_what_the_wildcard_has_otherwise() {
    for complete in [false, true] {
        let mut view = View::new();
        let (nick, a) = (Name::from("nick"), Name::from("a"));
        assert_eq!(view.want(CDS, "nick"), ["Main +nick"]);
        assert_eq!(view.want(CDS, "other"), ["Main +other"]);
        assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
        if complete {
            assert_eq!(view.wildcard(&[], &[], true), NOTHING);
        }
        assert_eq!(view.hear(&news(view.put("a", "nick", "old"))), NOTHING);
        assert_eq!(view.wildcard(&[("a", "no")], &[], true), ["Main -nick", "Main +nick"]);
        let known = |view: &View, name| view.cut.slot(&TypeUrl::new(CDS)).unwrap().known(name).is_some();
        assert!(!known(&view, &nick) && known(&view, &a));
        let mut gone = news(Update::Forget(nick.clone()));
        gone.updates.push(Update::Forget(a.clone()));
        assert_eq!(view.hear(&gone), NOTHING);
        assert_eq!(view.wildcard(&[("b", "no")], &[], true), NOTHING);
        // The same content under the alias alone is not different content.
        assert_eq!(view.hear(&news(view.put("a", "nick", "a"))), NOTHING);
        assert!(known(&view, &nick));
    }
}
