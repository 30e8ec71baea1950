// SPDX-License-Identifier: Apache-2.0
//! What a view gets from files: by name, by wildcard, by collection.

use distributary::upstream::{FileContents, FileWants};
use distributary::xds::{Changes, Cut, Known, Reason, Target, Want};

use super::*;

/// A view without a cache: what it wants, and what it got.
pub(crate) struct Told {
    asked: FileWants,
    file_set: FileSet,
    folder: Folder,
    pub(crate) cut: Cut,
}

impl Told {
    pub(crate) fn new(text: &str) -> Self {
        let folder = Folder::new();
        let mut file_set = file_set(&folder.write("x.yaml", text));
        look(&mut file_set);
        Self {
            asked: FileWants::default(),
            file_set,
            folder,
            cut: Cut::default(),
        }
    }

    fn apply(&mut self, changes: &[Changes]) -> usize {
        changes
            .iter()
            .map(|change| {
                let (cut, changed) = self.cut.with(change);
                self.cut = cut;
                changed.len()
            })
            .sum()
    }

    fn content(&self) -> Arc<FileContents> {
        self.file_set.content().clone()
    }

    pub(crate) fn want(&mut self, type_url: &TypeUrl, target: &str, wanted: bool) -> usize {
        let target = if target == "*" {
            Target::Wildcard
        } else {
            Target::Name(Name::read(target, type_url))
        };
        let want = Want {
            type_url: type_url.clone(),
            target,
            wanted,
            written: None,
        };
        let changes = self.asked.handle_wants(&[want], &self.content(), &self.cut);
        self.apply(&changes)
    }

    /// Replaces the file's content; returns how many names changed in the view.
    pub(crate) fn write(&mut self, text: &str) -> usize {
        self.folder.place("x.yaml", text);
        look(&mut self.file_set);
        let changes = self.asked.handle_content(&self.content(), &self.cut);
        self.apply(&changes)
    }

    fn known(&self, type_url: &TypeUrl, text: &str) -> Option<bool> {
        match self.cut.slot(type_url)?.known(&Name::read(text, type_url))? {
            Known::Present(_) => Some(true),
            Known::Absent(reason) => {
                assert_eq!(*reason, Reason::Said);
                Some(false)
            }
            Known::Held(_) => panic!("a file is no table of a client"),
        }
    }
}

/// I-06: a file is a full state: a wildcard is complete at once, and a name that is not in the file does not exist.
#[test]
fn a_full_state() {
    let mut told = Told::new(&clusters(&["a", "b"]));
    told.want(&cds(), "*", true);
    let complete = |told: &Told| told.cut.slot(&cds()).unwrap().wildcard.as_ref().unwrap().complete();
    assert!(complete(&told) && told.cut.slot(&cds()).unwrap().answered);
    assert_eq!((told.known(&cds(), "a"), told.known(&cds(), "c")), (Some(true), None));
    told.want(&cds(), "c", true);
    assert_eq!(told.known(&cds(), "c"), Some(false));
    told.want(&eds(), "*", true);
    assert!(
        told.cut.slot(&eds()).unwrap().wildcard.as_ref().unwrap().complete(),
        "a type without resources has none"
    );
    let changed = told.write(&clusters(&["a", "c"]));
    assert_eq!(
        changed, 3,
        "b goes, c comes by name and by the wildcard; a stays what it is"
    );
    assert_eq!((told.known(&cds(), "b"), told.known(&cds(), "c")), (None, Some(true)));
    told.want(&cds(), "b", true);
    assert_eq!(told.known(&cds(), "b"), Some(false));
    told.want(&cds(), "b", false);
    assert_eq!(told.write(&clusters(&["a", "b", "c"])), 1);
    assert_eq!(told.write(&clusters(&["c", "b", "a"])), 0);
}

/// G-20: until all files were good once, a missing name is unknown.
#[test]
fn unknown_until_whole() {
    let mut told = Told::new("broken: [");
    told.want(&cds(), "a", true);
    told.want(&cds(), "*", true);
    assert_eq!(told.known(&cds(), "a"), None);
    assert!(
        !told
            .cut
            .slot(&cds())
            .unwrap()
            .wildcard
            .as_ref()
            .is_some_and(|state| state.complete())
    );
    told.write(&clusters(&["b"]));
    assert_eq!(
        (told.known(&cds(), "a"), told.known(&cds(), "b")),
        (Some(false), Some(true))
    );
}

/// Clients may want very many names that lead nowhere: a change of the content costs nothing for these.
#[test]
fn names_that_lead_nowhere() {
    let mut told = Told::new(&clusters(&["a", "b"]));
    assert_eq!(told.write(&clusters(&["a", "b"])), 0);
    for n in 0..1000 {
        assert_eq!(told.want(&cds(), &format!("nowhere-{n}"), true), 1);
    }
    told.want(&cds(), "a", true);
    told.want(&cds(), "c", true);
    told.folder.place("x.yaml", &clusters(&["b", "c", "nowhere-7"]));
    look(&mut told.file_set);
    let changes = told.asked.handle_content(&told.content(), &told.cut);
    let said: usize = changes.iter().map(|change| change.updates.len()).sum();
    assert_eq!(said, 3, "a is gone, c and nowhere-7 have come: {changes:?}");
    assert_eq!(told.apply(&changes), 3);
    let known = ["a", "b", "c", "nowhere-7", "nowhere-8"].map(|name| told.known(&cds(), name));
    assert_eq!(known, [Some(false), None, Some(true), Some(true), Some(false)]);
}

/// C-22, F-10: a collection in files is complete at once; `xdstp:` names are no part of a wildcard.
#[test]
fn collections_of_new_style() {
    let member = |id: &str| {
        format!(
            "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  name: xdstp://a/envoy.config.cluster.v3.Cluster/d/{id}\n  resource: {{ '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {id} }}\n"
        )
    };
    let all = "xdstp://a/envoy.config.cluster.v3.Cluster/d/*";
    let named = |id: &str| format!("xdstp://a/envoy.config.cluster.v3.Cluster/d/{id}");
    let mut told = Told::new(&(member("x") + &member("y") + &member("e/z")));
    told.want(&cds(), all, true);
    told.want(&cds(), "*", true);
    let slot = |told: &Told| told.cut.slot(&cds()).unwrap().clone();
    assert_eq!(slot(&told).wildcard.unwrap().present(), 0);
    assert_eq!(slot(&told).named.members(&name(all)).count(), 2);
    assert!(slot(&told).named.whole(&name(all)));
    assert_eq!(told.known(&cds(), &named("x")), Some(true));
    assert_eq!(told.known(&cds(), &named("w")), Some(false));
    told.write(&member("y"));
    assert_eq!(told.known(&cds(), &named("x")), Some(false));
    told.want(&cds(), &named("y"), true);
    told.want(&cds(), all, false);
    assert_eq!(
        told.known(&cds(), &named("y")),
        Some(true),
        "somebody asks for it by its own name"
    );
    told.write("[]");
    assert_eq!(told.known(&cds(), &named("y")), Some(false));
}

/// C-20: a resource is found by its aliases, and all of them disappear with it.
#[test]
fn aliases() {
    let text = "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  name: a\n  aliases: [b]\n  resource: { '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a }\n";
    let mut told = Told::new(text);
    told.want(&cds(), "b", true);
    assert_eq!(told.known(&cds(), "b"), Some(true));
    told.write("[]");
    assert_eq!(told.known(&cds(), "b"), Some(false));
    assert_eq!(told.cut.slot(&cds()).unwrap().named.present(), 0);
}
