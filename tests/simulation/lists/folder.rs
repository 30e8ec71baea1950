//! A server of a list that is a file, or a directory of files.
//!
//! Owns what is written on an imaginary disk, and a naive account of what of it counts (I-05). Refuses to know who reads the view.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use distributary::json::{Schemas, Unknown};
use distributary::proto::envoy::service::discovery::v3::DiscoveryResponse;
use distributary::upstream::{Asked, Content as Stated, Dictionary, Listed, Shelf, Stamp};
use distributary::xds::{Cut, Known, Reason, Resource, Standing, Target, Types};
use prost::Message as _;

use super::Mood;
use crate::body::Type;
use crate::feed::Zone;
use crate::names::{covers, is_glob};
use crate::quiet::everything;
use crate::rng::Rng;
use crate::served::entry;
use crate::tally::{Broken, Rule};
use crate::truth::{Key, Truth};
use crate::variants;
use crate::world::{Event, World};

/// Revisions, and other names.
type Said = BTreeMap<Key, (u64, Vec<String>)>;

/// The files, and what the relay has read of them.
pub(crate) struct Folder {
    /// Whether it is one file.
    single: bool,
    disk: BTreeMap<PathBuf, Written>,
    readable: bool,
    /// Which resources stand in which file.
    salt: usize,
    shelf: Shelf,
    asked: Asked,
    /// What the view was brought to.
    content: Arc<Stated>,
    model: Model,
}

/// One file as it is now.
struct Written {
    bytes: Vec<u8>,
    /// What it says, if it is good.
    says: Option<Said>,
}

/// What counts, by the simplest of accounts.
#[derive(Default)]
struct Model {
    good: BTreeMap<PathBuf, Said>,
    merged: Said,
    whole: bool,
}

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(|| Dictionary {
    schemas: Schemas::standard(),
    unknown: Unknown::Deny,
    types: Types::default(),
});

fn shelf(single: bool) -> Shelf {
    let path = if single { FILE } else { FOLDER };
    Shelf::new(Path::new(path), usize::MAX >> 1, DICTIONARY.clone())
}

const FOLDER: &str = "/xds";
const FILE: &str = "/xds.pb";
const FILES: [&str; 3] = ["/xds/a.pb", "/xds/b.pb", "/xds/c.pb"];

impl Folder {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let single = rng.chance(40);
        Self {
            single,
            disk: BTreeMap::new(),
            readable: true,
            salt: 0,
            shelf: shelf(single),
            asked: Asked::default(),
            content: Arc::default(),
            model: Model::default(),
        }
    }

    /// A view begins: it wants nothing yet.
    pub(crate) fn attach(&mut self) {
        self.asked = Asked::default();
        self.content = Arc::default();
    }

    /// The relay begins anew.
    pub(super) fn forget(&mut self) {
        self.shelf = shelf(self.single);
        self.model = Model::default();
    }

    fn paths(&self) -> &'static [&'static str] {
        if self.single { &[FILE] } else { &FILES }
    }

    /// The operator writes what there is to say, or what the mood makes of it.
    fn write(&mut self, truth: &Truth, mood: Mood, calm: bool, rng: &mut Rng) {
        let (paths, single) = (self.paths(), self.single);
        if rng.chance(5) {
            self.salt += 1;
        }
        self.readable = mood != Mood::Refuses || rng.chance(70);
        for (at, path) in paths.iter().enumerate() {
            let file = PathBuf::from(*path);
            let fine = mood == Mood::Fine || !single && rng.chance(40);
            if !calm && rng.chance(20) {
                continue;
            }
            let salt = self.salt;
            let here = |key: &Key| {
                let sum: usize = key.1.bytes().map(usize::from).sum();
                (sum + salt + key.0 as usize) % paths.len() == at
            };
            let says: Said = Type::ALL
                .iter()
                .flat_map(|kind| {
                    truth.of(*kind).map(|content| {
                        let said = (content.revision, content.aliases.clone());
                        ((*kind, content.key()), said)
                    })
                })
                .filter(|(key, _)| here(key))
                .collect();
            let good = bytes(truth, &says);
            let bad = |bytes| Written { bytes, says: None };
            let written = match mood {
                _ if fine => Written {
                    bytes: good,
                    says: Some(says),
                },
                Mood::Refuses | Mood::Fine => {
                    self.disk.remove(&file);
                    continue;
                }
                // It is torn in the middle of something.
                Mood::Hangs => bad(good[..good.len() - 1].to_vec()),
                Mood::Closes => bad(b" \n".to_vec()),
                Mood::AnswersOnce => bad(b"\xff\xff no protobuf".to_vec()),
            };
            self.disk.insert(file, written);
        }
    }

    /// The relay looks at the files, as its shell does.
    fn look(&mut self, now: Instant) {
        let fault = match (self.readable && !self.disk.is_empty(), self.single) {
            (true, _) => None,
            (false, true) => Some("no such file".to_owned()),
            (false, false) => Some("not readable, or empty".to_owned()),
        };
        self.model.look(fault.is_none().then_some(&self.disk));
        // By its stamp every file may be another one.
        let stamp = || Err("not known".to_owned());
        let listed = self.disk.keys().map(|path| -> Listed {
            let name = path.file_name().filter(|_| !self.single).map(OsString::from);
            (name.unwrap_or_default(), stamp())
        });
        let listed = fault.map_or_else(|| Ok(listed.collect()), Err);
        let disk = &self.disk;
        let read = |path: &Path, _: usize| {
            let written = disk.get(path).ok_or("no such file")?;
            Ok((Stamp::default(), written.bytes.clone()))
        };
        self.shelf.handle_look(listed, read, now);
    }

    /// The view has exactly what counts.
    fn check(&self, wanted: &BTreeSet<(Type, Target)>, cut: &Cut, zone: &Zone) -> Result<(), Broken> {
        let model = &self.model;
        for (kind, target) in wanted {
            let slot = cut.slot(kind.type_url());
            let wrong = |what: String| Err(Broken::new(Rule::I05, format!("{kind:?} {target:?}: {what}")));
            match target {
                Target::Wildcard => {
                    let state = slot.and_then(|slot| slot.wildcard.as_ref());
                    let has: BTreeMap<String, u64> = state
                        .into_iter()
                        .flat_map(|state| everything(state))
                        .map(|resource| called(*kind, resource, zone))
                        .collect();
                    let covered = model.merged.iter();
                    let covered = covered.filter(|((of, name), _)| of == kind && !name.starts_with("xdstp:"));
                    let says: BTreeMap<String, u64> = covered
                        .map(|((_, key), (revision, _))| (key.clone(), *revision))
                        .collect();
                    let complete = state.is_some_and(|state| state.complete());
                    if has != says || complete != model.whole {
                        return wrong(format!(
                            "{has:?} ({complete}), and the files say {says:?} ({})",
                            model.whole
                        ));
                    }
                }
                Target::Name(name) if is_glob(name.as_str()) => {
                    let members = slot.into_iter().flat_map(|slot| everything(&slot.named));
                    let has: BTreeMap<String, u64> = members
                        .filter(|member| covers(name.as_str(), member.name().as_str()))
                        .map(|member| called(*kind, member, zone))
                        .collect();
                    let all = model.merged.iter().filter(|((of, _), _)| of == kind);
                    let says: BTreeMap<String, u64> = all
                        .filter(|((_, key), _)| covers(name.as_str(), variants::parts(key).0))
                        .map(|((_, key), (revision, _))| (key.clone(), *revision))
                        .collect();
                    let whole = slot.is_some_and(|slot| slot.named.whole(name));
                    if has != says || whole != model.whole {
                        return wrong(format!(
                            "{has:?} ({whole}), and the files say {says:?} ({})",
                            model.whole
                        ));
                    }
                }
                Target::Name(name) => {
                    let says = model.find(*kind, name.as_str());
                    let known = slot.and_then(|slot| slot.named.known(name));
                    let fits = match (known, says) {
                        (Some(Known::Present(resource)), Some(says)) => zone.book.revision(resource) == says,
                        (Some(Known::Absent(Reason::Said)), None) => model.whole,
                        (None, None) => !model.whole,
                        (_, _) => false,
                    };
                    if !fits {
                        return wrong(format!("{known:?}, and the files say {says:?}"));
                    }
                    let of_it = slot.into_iter().flat_map(|slot| slot.named.variants_of(name));
                    let has: BTreeMap<String, u64> = of_it.map(|(it, _)| called(*kind, it, zone)).collect();
                    let all = model.merged.iter().filter(|((of, _), _)| of == kind);
                    let says: BTreeMap<String, u64> = all
                        .filter(|((_, key), _)| key != name.as_str() && variants::parts(key).0 == name.as_str())
                        .map(|((_, key), (revision, _))| (key.clone(), *revision))
                        .collect();
                    if has != says {
                        return wrong(format!("{has:?}, and the files say {says:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Model {
    fn find(&self, kind: Type, name: &str) -> Option<u64> {
        let own = self.merged.get(&(kind, name.to_owned()));
        let mut all = self.merged.iter().filter(|((of, _), _)| *of == kind);
        let mut alias = || all.find(|(_, (_, aliases))| aliases.iter().any(|alias| alias == name));
        own.or_else(|| alias().map(|(_, said)| said))
            .map(|(revision, _)| *revision)
    }

    /// I-05: what is bad replaces nothing; a file that is gone from a directory takes along what it said.
    fn look(&mut self, disk: Option<&BTreeMap<PathBuf, Written>>) {
        let Some(disk) = disk else { return };
        self.good.retain(|path, _| disk.contains_key(path));
        for (path, written) in disk {
            if let Some(says) = &written.says {
                self.good.insert(path.clone(), says.clone());
            }
        }
        let all_good = disk.values().all(|written| written.says.is_some());
        let mut merged = Said::new();
        let mut known = true;
        for (key, revision) in self.good.values().flatten() {
            let others = self.good.values().filter_map(|says| says.get(key));
            // E-12: for what is there twice nothing changes.
            if others.clone().all(|other| other == revision) {
                merged.insert(key.clone(), revision.clone());
            } else if let Some(before) = self.merged.get(key) {
                merged.insert(key.clone(), before.clone());
            } else {
                known = false;
            }
        }
        self.merged = merged;
        self.whole |= all_good && known;
    }
}

/// What a resource that is read is called, and which it is.
fn called(kind: Type, resource: &Resource, zone: &Zone) -> (String, u64) {
    let key = variants::key(resource.name().as_str(), variants::whom(kind, resource));
    (key, zone.book.revision(resource))
}

fn bytes(truth: &Truth, says: &Said) -> Vec<u8> {
    let contents = says
        .keys()
        .filter_map(|(kind, name)| Some((*kind, truth.get(*kind, name)?)));
    DiscoveryResponse {
        version_info: "any".to_owned(),
        resources: contents
            .map(|(kind, content)| entry(kind, &content.immortal(), ""))
            .collect(),
        ..DiscoveryResponse::default()
    }
    .encode_to_vec()
}

impl World {
    /// The files of a server are written.
    pub(super) fn write_files(&mut self, server: usize, mood: Mood) {
        let (calm, here) = (self.calm, &mut self.zones[server]);
        let Some(folder) = here.source.as_mut().and_then(super::Source::folder) else {
            return;
        };
        folder.write(&here.truth, mood, calm, &mut self.rng);
        let says = |written: &Written| written.says.is_some();
        let disk: Vec<(&Path, bool)> = folder
            .disk
            .iter()
            .map(|(path, it)| (path.as_path(), says(it)))
            .collect();
        let line = format!("origin {server}: writes {disk:?} {}", folder.readable);
        self.log(|| line);
        let delay = self.rng.millis(20, 1500);
        self.after(delay, Event::Look(server));
    }

    /// The relay looks at the files.
    pub(crate) fn look(&mut self, server: usize) -> Result<(), Broken> {
        let now = self.instant();
        let Some(folder) = self.zones[server].source.as_mut().and_then(super::Source::folder) else {
            return Ok(());
        };
        folder.look(now);
        let line = format!("upstream {server}: looked, {:?}", folder.shelf.faults());
        self.log(|| line);
        self.read_files(server)
    }

    /// The writer's turn, as that of its shell.
    pub(super) fn read_files(&mut self, server: usize) -> Result<(), Broken> {
        let now = self.instant();
        let here = &mut self.zones[server];
        if !here.attached {
            return Ok(());
        }
        let (wants, cut) = (here.view.take_wants(now), here.view.cut());
        for want in &wants {
            if let Some(kind) = Type::of(want.type_url.url()) {
                let target = (kind, want.target.clone());
                let _ = if want.wanted {
                    here.wanted.insert(target)
                } else {
                    here.wanted.remove(&target)
                };
            }
        }
        let Some(folder) = here.source.as_mut().and_then(super::Source::folder) else {
            return Ok(());
        };
        let content = folder.shelf.content().clone();
        let first = folder.asked.handle_wants(&wants, &content, &cut);
        here.publish(&first);
        let cut = here.view.cut();
        let Some(folder) = here.source.as_mut().and_then(super::Source::folder) else {
            return Ok(());
        };
        let mut second = Vec::new();
        if !Arc::ptr_eq(&folder.content, &content) {
            folder.content = content.clone();
            second = folder.asked.handle_content(&content, &cut);
        }
        here.publish(&second);
        let standing = if content.whole() {
            Standing::Up
        } else {
            Standing::Failing
        };
        here.view.publish_standing(standing);
        self.log(|| format!("upstream {server}: {standing:?}, wants {wants:?}, heard {first:?} {second:?}"));
        self.tally.hit(Rule::I05);
        let here = &mut self.zones[server];
        let checked = match here.source.as_ref() {
            Some(super::Source::Folder(folder)) => folder.check(&here.wanted, &here.view.cut(), here),
            Some(super::Source::Polled(_)) | None => Ok(()),
        };
        self.set_lease(server);
        checked.map_err(|broken| Broken::new(broken.rule, format!("server {server}: {}", broken.what)))
    }
}
