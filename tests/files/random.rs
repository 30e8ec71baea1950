// SPDX-License-Identifier: Apache-2.0
//! Random changes of a directory, and a naive model of its content: every view holds exactly that content, and gets only the
//! differences.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use distributary::upstream::FileWants;
use distributary::xds::{Changes, Cut, Expiry, Known, State, Target, Want};

use super::*;

const SEEDS: u64 = 60;
const STEPS: usize = 60;
const FILES: [&str; 4] = ["1.yaml", "2.yaml", "3.yaml", "4.yaml"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A small generator: equal seeds give equal runs.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// One resource: its content, and when it ends.
type One = (usize, Option<Instant>);

/// The entries of one file, in their order: name, content, and time to live.
type Page = Vec<(&'static str, usize, Option<u64>)>;

#[derive(Clone, Debug, Default)]
struct Kept {
    bad: bool,
    good: Option<Vec<(&'static str, One)>>,
}

/// The naive model of a directory.
#[derive(Default)]
struct Model {
    files: BTreeMap<&'static str, Kept>,
    says: BTreeMap<&'static str, One>,
    whole: bool,
}

impl Model {
    /// Applies I-05, I-06, E-11 and E-12 to the files.
    fn look(&mut self, there: bool, now: Instant) {
        let alive = |until: Option<Instant>| until.is_none_or(|until| until > now);
        let mut said: BTreeMap<&'static str, Vec<One>> = BTreeMap::new();
        for kept in self.files.values() {
            for (name, one) in kept.good.iter().flatten().filter(|(_, one)| alive(one.1)) {
                said.entry(name).or_default().push(*one);
            }
        }
        let mut unknown = false;
        let mut says = BTreeMap::new();
        for (name, all) in said {
            let same = all.iter().all(|one| one.0 == all[0].0);
            let until = all
                .iter()
                .map(|one| one.1)
                .reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b)));
            match self.says.get(name) {
                _ if same => drop(says.insert(name, (all[0].0, until.unwrap()))),
                Some(old) if alive(old.1) => drop(says.insert(name, *old)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        let sound = there && self.files.values().all(|kept| !kept.bad);
        self.whole |= sound && !unknown;
        self.says = says;
    }
}

/// A view, and what it wants.
#[derive(Default)]
struct View {
    asked: FileWants,
    cut: Cut,
    wanted: BTreeSet<&'static str>,
}

impl View {
    fn want(&mut self, name: &'static str, file_set: &FileSet) {
        let wanted = self.wanted.insert(name);
        if !wanted {
            self.wanted.remove(name);
        }
        let target = match name {
            "*" => Target::Wildcard,
            name => Target::Name(super::name(name)),
        };
        let want = Want {
            type_url: cds(),
            target,
            wanted,
            written: None,
        };
        let changes = self.asked.handle_wants(&[want], file_set.content(), &self.cut);
        self.apply(&changes);
    }

    fn apply(&mut self, changes: &[Changes]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for change in changes {
            let (cut, changed) = self.cut.with(change);
            self.cut = cut;
            names.extend(changed.iter().map(|name| name.to_string()));
        }
        names
    }

    /// Returns what it knows of the wanted names, and of the wildcard if that is wanted.
    fn check(&self, model: &Model) {
        let Some(slot) = self.cut.slot(&cds()) else {
            assert!(self.wanted.is_empty() || !model.whole);
            return;
        };
        let end = |expiry: Option<Expiry>| expiry.map(|expiry| expiry.at);
        if self.wanted.contains("*") {
            let state = slot.wildcard.clone().unwrap_or_else(|| Arc::new(State::new(cds())));
            assert_eq!(state.complete(), model.whole);
            let there: Vec<_> = state
                .resources()
                .map(|one| {
                    (
                        one.name().to_string(),
                        content(&one.body()),
                        end(state.expiry(one.name())),
                    )
                })
                .collect();
            let says = model.says.iter();
            let says: Vec<_> = says.map(|(name, one)| ((*name).to_owned(), one.0, one.1)).collect();
            assert_eq!(there, says);
        }
        for name in self.wanted.iter().filter(|name| **name != "*") {
            let key = super::name(name);
            match (slot.named.known(&key), model.says.get(name)) {
                (Some(Known::Present(one)), Some(said)) => {
                    assert_eq!((content(&one.body()), end(slot.named.expiry(&key))), *said, "{name}");
                }
                (Some(Known::Absent(_)), None) => {}
                (None, None) => assert!(!model.whole, "{name} does not exist, and nobody knows"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

fn content(body: &[u8]) -> usize {
    let text = String::from_utf8_lossy(body);
    let at = text.rfind("content").expect("a content");
    text[at + 7..].parse().expect("a number")
}

fn page(rng: &mut Rng) -> Page {
    let mut page = Page::new();
    for _ in 0..rng.below(4) {
        let ttl = (rng.below(4) == 0).then(|| rng.below(30) as u64);
        page.push((rng.one(&NAMES), rng.below(3), ttl));
    }
    page
}

fn text(page: &Page) -> String {
    let mut text = "resources:\n".to_owned();
    if page.is_empty() {
        text = "resources: []\n".to_owned();
    }
    for (name, content, ttl) in page {
        let ttl = ttl.map_or(String::new(), |ttl| format!("ttl: {ttl}s, "));
        text += &format!(
            "- {{ '@type': type.googleapis.com/envoy.service.discovery.v3.Resource, {ttl}resource: {{ '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {name}, alt_stat_name: content{content} }} }}\n"
        );
    }
    text
}

/// One change of the directory, and of the model.
fn change(rng: &mut Rng, folder: &Folder, model: &mut Model, now: Instant) {
    let file = rng.one(&FILES);
    let exists = folder.path(file).exists();
    match rng.below(8) {
        0..4 => {
            let page = page(rng);
            folder.place(file, &text(&page));
            let lives = |ttl: Option<u64>| ttl.map(|ttl| now + Duration::from_secs(ttl));
            let good = page
                .into_iter()
                .map(|(name, content, ttl)| (name, (content, lives(ttl))));
            let good = Some(good.collect());
            model.files.insert(file, Kept { bad: false, good });
        }
        4 => {
            folder.place(file, rng.one(&["", "resources: [", "{}", "- name: x", "\u{0}"]));
            model.files.entry(file).or_default().bad = true;
        }
        5 | 6 if exists => {
            folder.remove(file);
            // Removing the last file removes no resources.
            if FILES.iter().any(|file| folder.path(file).exists()) {
                model.files.remove(file);
            }
        }
        _ => {}
    }
    // The resources of such a last file go when another file is there.
    if FILES.iter().any(|file| folder.path(file).exists()) {
        model.files.retain(|file, _| folder.path(file).exists());
    }
}

/// I-05, I-06, E-11, E-12, G-20, K-17.
#[test]
fn views_hold_what_files_say() {
    for seed in 1..=SEEDS {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let folder = Folder::new();
        let mut file_set = file_set(&folder.0);
        let mut model = Model::default();
        let mut views = [View::default(), View::default(), View::default()];
        let mut time = now();
        for step in 0..STEPS {
            time += Duration::from_secs(rng.below(10) as u64);
            change(&mut rng, &folder, &mut model, time);
            let before = model.says.clone();
            let there = FILES.iter().any(|file| folder.path(file).exists());
            model.look(there, time);
            let found = file_set.look(time);
            let differ: BTreeSet<String> = NAMES
                .iter()
                .filter(|name| before.get(*name) != model.says.get(*name))
                .map(|name| (*name).to_owned())
                .collect();
            assert!(found.changed || differ.is_empty(), "seed {seed}, step {step}");
            assert_eq!(file_set.content().whole(), model.whole, "seed {seed}, step {step}");
            let whole = model.whole;
            for view in &mut views {
                let changes = view.asked.handle_content(file_set.content(), &view.cut);
                let changed = view.apply(&changes);
                // When the state becomes whole, missing names become known; and a time to live may begin anew.
                if whole && step > 0 && view.wanted == BTreeSet::from(["*"]) {
                    let more: Vec<_> = changed.difference(&differ).collect();
                    assert!(more.is_empty(), "seed {seed}, step {step}: {more:?} did not change");
                }
                let wanted = rng.one(&["*", "a", "b", "c", "d", "e"]);
                if rng.below(3) == 0 {
                    view.want(wanted, &file_set);
                }
                let seen = std::panic::AssertUnwindSafe(|| view.check(&model));
                if let Err(fault) = std::panic::catch_unwind(seen) {
                    println!("seed {seed}, step {step}: {:?}", model.files);
                    std::panic::resume_unwind(fault);
                }
            }
        }
    }
}
