//! Which stream each subscription goes to.

use std::sync::Arc;

use proto::envoy::service::discovery::v3::{
    DynamicParameterConstraints,
    dynamic_parameter_constraints::{SingleConstraint, Type, single_constraint::ConstraintType},
};
use protocol::{Demand, Leg};
use xds::{
    Changes, Choice, Constraints, Cut, Known, Name, Phase, Resource, ResourceParts, Target, TypeUrl, Update, Want,
};

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
        let changes = Changes {
            type_url,
            wildcard: true,
            updates: puts.iter().map(put).chain(gone).collect(),
            complete: Some(complete),
            answered: None,
            phase: Phase::Steady,
        };
        self.hear(&changes)
    }

    fn put(&self, name: &str, alias: &str, body: &str) -> Update {
        let parts = ResourceParts {
            constraints: None,
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
        self.hear_all(std::slice::from_ref(changes))
    }

    fn hear_all(&mut self, changes: &[Changes]) -> Vec<String> {
        for changes in changes {
            self.cut = self.cut.with(changes).0;
        }
        lines(&self.demand.handle_cut(&self.cut))
    }

    /// A variant of the cluster `a`, for clients with this parameter.
    fn variant(&self, body: &str) -> Arc<Resource> {
        let single = SingleConstraint {
            key: "env".to_owned(),
            constraint_type: Some(ConstraintType::Value("prod".to_owned())),
        };
        let parts = ResourceParts {
            constraints: Constraints::new(DynamicParameterConstraints {
                r#type: Some(Type::Constraint(single)),
            }),
            type_url: &TypeUrl::new(CDS),
            name: Name::from("a"),
            aliases: Vec::new(),
            passed_on: &[],
            body: body.as_bytes(),
            endpoints: None,
            received: self.now,
        };
        Arc::new(Resource::new(parts, 0))
    }

    /// What a client finds that the variant is for.
    fn found(&self) -> Option<Vec<u8>> {
        let own = Choice::One([("env".to_owned(), "prod".to_owned())].into());
        match self
            .cut
            .slot(&TypeUrl::new(CDS))?
            .choose(&Name::from("a"), Some(&own))?
        {
            Known::Present(resource) => Some(resource.body().to_vec()),
            Known::Absent(_) => None,
        }
    }
}

fn news(wildcard: bool, update: Update) -> Changes {
    Changes {
        type_url: TypeUrl::new(CDS),
        wildcard,
        updates: vec![update],
        complete: wildcard.then_some(true),
        answered: None,
        phase: Phase::Steady,
    }
}

fn lines(wants: &[(Leg, Want)]) -> Vec<String> {
    let line = |(leg, want): &(Leg, Want)| {
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

/// K-05: the wildcard and a name have a variant with different content: a client that loses one is not sent the other, which may
/// be older. The relay asks for the name anew.
#[test]
fn a_variant_in_both_halves() {
    for ends in [true, false] {
        let mut view = View::new();
        assert_eq!(view.want(CDS, "a"), ["Main +a"]);
        assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
        let (old, new) = (view.variant("old"), view.variant("new"));
        assert_eq!(view.hear(&news(false, Update::Put(old, None))), NOTHING);
        assert_eq!(view.hear(&news(true, Update::Put(new.clone(), None))), NOTHING);
        assert_eq!(view.found().as_deref(), Some(&b"new"[..]));
        if ends {
            view.cut = view.cut.without_wildcard(&TypeUrl::new(CDS));
            assert_eq!(view.unwant(CDS, "*"), ["Aside -*", "Main +a"]);
        } else {
            assert_eq!(view.hear(&news(true, Update::Withdraw(new))), ["Main +a"]);
        }
        assert_eq!(view.found(), None);
    }
}

/// If both have the same content, the relay does not ask.
#[test]
fn a_variant_that_is_the_same_in_both_halves() {
    let mut view = View::new();
    assert_eq!(view.want(CDS, "a"), ["Main +a"]);
    assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
    let same = view.variant("same");
    assert_eq!(view.hear(&news(false, Update::Put(same.clone(), None))), NOTHING);
    assert_eq!(view.hear(&news(true, Update::Put(same.clone(), None))), NOTHING);
    assert_eq!(view.hear(&news(true, Update::Withdraw(same))), NOTHING);
    assert_eq!(view.found().as_deref(), Some(&b"same"[..]));
}

/// K-05: the same if one batch brings a variant by the wildcard and removes it, and until something is known of the name.
#[test]
fn a_variant_that_comes_and_goes_at_once() {
    let mut view = View::new();
    assert_eq!(view.want(CDS, "a"), ["Main +a"]);
    assert_eq!(view.want(CDS, "*"), ["Aside +*"]);
    let (old, new) = (view.variant("old"), view.variant("new"));
    let brings = news(true, Update::Put(new.clone(), None));
    let takes = news(true, Update::Withdraw(new));
    let named = news(false, Update::Put(old.clone(), None));
    assert_eq!(view.hear_all(&[named, brings, takes]), ["Main +a"]);
    assert_eq!(view.found(), None);
    assert_eq!(view.hear(&news(false, Update::Put(old, None))), NOTHING);
    assert_eq!(view.found().as_deref(), Some(&b"old"[..]));
    assert_eq!(view.wildcard(&[], &[], true), NOTHING);
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
        assert_eq!(view.hear(&news(false, view.put("a", "nick", "old"))), NOTHING);
        assert_eq!(view.wildcard(&[("a", "no")], &[], true), ["Main -nick", "Main +nick"]);
        let known = |view: &View, name| view.cut.slot(&TypeUrl::new(CDS)).unwrap().known(name).is_some();
        assert!(!known(&view, &nick) && known(&view, &a));
        let mut gone = news(false, Update::Forget(nick.clone()));
        gone.updates.push(Update::Forget(a.clone()));
        assert_eq!(view.hear(&gone), NOTHING);
        assert_eq!(view.wildcard(&[("b", "no")], &[], true), NOTHING);
        // The same content under the alias alone is not different content.
        assert_eq!(view.hear(&news(false, view.put("a", "nick", "a"))), NOTHING);
        assert!(known(&view, &nick));
    }
}
