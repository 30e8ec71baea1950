// SPDX-License-Identifier: Apache-2.0
//! A server of a list that is a file, or a directory of files.
//!
//! Owns the files of an imaginary disk, and a naive model of which of their content counts (I-05). Does not know who reads
//! the view.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use distributary::upstream::{Dictionary, FileContents as Stated, FileSet, FileWants, Stamp, StampedFile};
use json::{Schemas, Unknown};
use prost::Message as _;
use proto::envoy::service::discovery::v3::DiscoveryResponse;
use xds::{Cut, Known, Name, Reason, Resource, ServerState, Slot, State, Target, Types};

use super::Mood;
use super::account::{Counted, Line, Model, Said, Written};
use crate::body::Type;
use crate::book::revision;
use crate::course::{Alarm, Course};
use crate::event::Event;
use crate::names::{covers, is_collection};
use crate::origins::Origins;
use crate::rng::Rng;
use crate::served::entry;
use crate::tally::{Broken, Rule};
use crate::truth::{Key, Truth};
use crate::zone::Zone;

/// The files, and what the relay has read of them.
pub(crate) struct Folder {
    /// Whether it is one file.
    single: bool,
    disk: BTreeMap<PathBuf, Written>,
    readable: bool,
    /// Decides which resource is in which file.
    salt: usize,
    file_set: FileSet,
    asked: FileWants,
    /// The content that the view has.
    content: Arc<Stated>,
    model: Model,
    /// Whether resources may have a time to live.
    mortal: bool,
    /// The number of writes, over all files.
    writings: i64,
    /// When the files are read because a resource ends then.
    alarm: Alarm,
}

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(|| Dictionary {
    schemas: Schemas::standard(),
    unknown: Unknown::Deny,
    types: Types::default(),
});

fn file_set(single: bool) -> FileSet {
    let path = if single { FILE } else { FOLDER };
    FileSet::new(Path::new(path), usize::MAX >> 1, DICTIONARY.clone())
}

/// Separates the random numbers of files with times to live from all others.
const FILES_THAT_END: u64 = 0x5eed_0000_0011;
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
            file_set: file_set(single),
            asked: FileWants::default(),
            content: Arc::default(),
            model: Model::default(),
            mortal: false,
            writings: 0,
            alarm: Alarm::default(),
        }
    }

    /// The same, with resources that may have a time to live.
    pub(super) fn mortal(rng: &mut Rng) -> Self {
        Self {
            mortal: true,
            ..Self::new(rng)
        }
    }

    /// A view begins: it wants nothing yet.
    pub(crate) fn attach(&mut self) {
        self.asked = FileWants::default();
        self.content = Arc::default();
    }

    /// Forgets all that was read, because the relay restarts.
    pub(super) fn forget(&mut self) {
        self.file_set = file_set(self.single);
        self.model = Model::default();
        self.alarm = Alarm::default();
    }

    fn paths(&self) -> &'static [&'static str] {
        if self.single { &[FILE] } else { &FILES }
    }

    /// Writes the content into the files, as an operator would, with the faults of the server's mood.
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
            let (salt, mortal) = (self.salt, self.mortal);
            self.writings += 1;
            let nth = self.writings;
            let here = |key: &Key| {
                let sum: usize = key.1.bytes().map(usize::from).sum();
                (sum + salt + place(key.0)) % paths.len() == at
            };
            let says: Said = Type::EVERY
                .iter()
                .flat_map(|kind| {
                    truth.of(*kind).map(|content| {
                        let line = Line {
                            revision: content.revision,
                            ttl: content.ttl.filter(|_| mortal),
                        };
                        ((*kind, content.name.clone()), line)
                    })
                })
                .filter(|(key, _)| here(key))
                .collect();
            let good = bytes(truth, &says, mortal);
            let bad = |bytes| Written { bytes, says: None, nth };
            let written = match mood {
                _ if fine => Written {
                    bytes: good,
                    says: Some(says),
                    nth,
                },
                Mood::Refuses | Mood::Fine => {
                    self.disk.remove(&file);
                    continue;
                }
                // The file is cut off within a message.
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
        self.model.look(fault.is_none().then_some(&self.disk), now);
        // In worlds without times to live no stamp is known, so any file may have changed.
        let mortal = self.mortal;
        let stamp = |written: &Written| match mortal {
            true => Ok(Stamp::of_writing(written.nth)),
            false => Err("not known".to_owned()),
        };
        let listed = self.disk.iter().map(|(path, written)| -> StampedFile {
            let name = path.file_name().filter(|_| !self.single).map(OsString::from);
            (name.unwrap_or_default(), stamp(written))
        });
        let listed = fault.map_or_else(|| Ok(listed.collect()), Err);
        let disk = &self.disk;
        let read = |path: &Path, _: usize| {
            let written = disk.get(path).ok_or("no such file")?;
            Ok((stamp(written).unwrap_or_default(), written.bytes.clone()))
        };
        self.file_set.handle_look(listed, read, now);
    }

    /// Checks that the view has exactly the content that counts.
    fn check(&self, wanted: &BTreeSet<(Type, Target)>, cut: &Cut) -> Result<(), Broken> {
        let model = &self.model;
        for (kind, target) in wanted {
            let slot = cut.slot(kind.type_url());
            let wrong = |what: String| broken!(I05, "{kind:?} {target:?}: {what}");
            match target {
                Target::Wildcard => {
                    let state = slot.and_then(|slot| slot.wildcard.as_ref());
                    let has: Told = state
                        .into_iter()
                        .flat_map(|state| state.resources().map(|resource| called(resource, state)))
                        .collect();
                    let covered = model.merged.iter();
                    let covered = covered.filter(|((of, name), _)| of == kind && !name.starts_with("xdstp:"));
                    let says: Told = covered.map(|((_, key), counted)| told(key, counted)).collect();
                    let complete = state.is_some_and(|state| state.complete());
                    if has != says || complete != model.whole {
                        return wrong(format!(
                            "{has:?} ({complete}), and the files say {says:?} ({})",
                            model.whole
                        ));
                    }
                }
                Target::Name(name) if is_collection(name.as_str()) => {
                    let named = slot.into_iter().map(|slot| &slot.named);
                    let members = named.flat_map(|state| state.resources().map(move |member| (member, state)));
                    let has: Told = members
                        .filter(|(member, _)| covers(name.as_str(), member.name().as_str()))
                        .map(|(member, state)| called(member, state))
                        .collect();
                    let all = model.merged.iter().filter(|((of, _), _)| of == kind);
                    let says: Told = all
                        .filter(|((_, key), _)| covers(name.as_str(), key))
                        .map(|((_, key), counted)| told(key, counted))
                        .collect();
                    let whole = slot.is_some_and(|slot| slot.named.whole(name));
                    if has != says || whole != model.whole {
                        return wrong(format!(
                            "{has:?} ({whole}), and the files say {says:?} ({})",
                            model.whole
                        ));
                    }
                }
                Target::Name(name) => self.check_name(*kind, name, slot).or_else(wrong)?,
            }
        }
        Ok(())
    }

    /// Checks what the view knows of one name.
    fn check_name(&self, kind: Type, name: &Name, slot: Option<&Slot>) -> Result<(), String> {
        let model = &self.model;
        let says = model.find(kind, name.as_str());
        let known = slot.and_then(|slot| slot.named.known(name));
        let over = model.is_over(kind, name.as_str());
        let fits = match (known, says) {
            (Some(Known::Present(resource)), Some(says)) => {
                let until = slot.and_then(|slot| slot.named.expiry(resource.name()));
                (revision(resource), until.map(|until| until.at)) == (says.revision, says.until)
            }
            (Some(Known::Absent(Reason::Expired)), None) => model.whole && over,
            (Some(Known::Absent(Reason::Said)), None) => model.whole && !over,
            (None, None) => !model.whole,
            (_, _) => false,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{known:?}, and the files say {says:?}")),
        }
    }
}

/// A number for each type.
fn place(kind: Type) -> usize {
    let at = Type::ALL.iter().position(|other| *other == kind);
    at.unwrap_or(Type::ALL.len())
}

/// The revision of each name, and when it ends.
type Told = BTreeMap<String, (u64, Option<Instant>)>;

fn told(key: &str, counted: &Counted) -> (String, (u64, Option<Instant>)) {
    (key.to_owned(), (counted.revision, counted.until))
}

/// The name of a resource in the view, its revision, and when it ends (K-17).
fn called(resource: &Resource, state: &State) -> (String, (u64, Option<Instant>)) {
    let until = state.expiry(resource.name());
    let name = resource.name().as_str().to_owned();
    (name, (revision(resource), until.map(|until| until.at)))
}

fn bytes(truth: &Truth, says: &Said, mortal: bool) -> Vec<u8> {
    let contents = says
        .keys()
        .filter_map(|(kind, name)| Some((*kind, truth.get(*kind, name)?)));
    DiscoveryResponse {
        version_info: "any".to_owned(),
        resources: contents
            .map(|(kind, content)| match mortal {
                true => entry(kind, content, ""),
                false => entry(kind, &content.immortal(), ""),
            })
            .collect(),
        ..DiscoveryResponse::default()
    }
    .encode_to_vec()
}

impl Origins {
    /// Turns most servers into files with times to live.
    pub(super) fn with_files(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ FILES_THAT_END);
        for zone in &mut self.zones {
            if matches!(zone.source, Some(super::Source::Folder(_))) || rng.chance(60) {
                zone.source = Some(super::Source::Folder(Box::new(Folder::mortal(&mut rng))));
                zone.wire = None;
            }
        }
    }
}

impl Zone {
    /// Writes the files of a server.
    pub(crate) fn write_files(&mut self, course: &mut Course) {
        let server = self.id;
        let Some(folder) = self.source.as_mut().and_then(super::Source::folder) else {
            return;
        };
        folder.write(&self.truth, self.mood, course.calm, &mut course.rng);
        let disk = folder.disk.iter().map(|(path, it)| (path, it.says.is_some()));
        let disk: Vec<_> = disk.collect();
        course.log(|| format!("origin {server}: writes {disk:?} {}", folder.readable));
        course.soon(20, 1500, Event::Look(server));
    }

    /// The relay looks at the files.
    pub(crate) fn look(&mut self, course: &mut Course) -> Result<(), Broken> {
        let server = self.id;
        let now = course.clock.instant();
        let Some(folder) = self.source.as_mut().and_then(super::Source::folder) else {
            return Ok(());
        };
        folder.look(now);
        course.log(|| format!("upstream {server}: looked, {:?}", folder.file_set.faults()));
        // E-11: it looks again when a resource ends.
        let ends = folder.file_set.ends();
        folder.alarm.set(ends, Event::Look(server), course);
        self.read_files(course)
    }

    /// Rewrites, now and then, files whose resources have a time to live.
    pub(crate) fn renew_files(&mut self, course: &mut Course) {
        let folder = self.source.as_mut().and_then(super::Source::folder);
        if folder.is_some_and(|folder| folder.mortal) && course.rng.chance(60) {
            self.write_files(course);
        }
    }

    /// The writer's turn, as its shell would take it.
    pub(super) fn read_files(&mut self, course: &mut Course) -> Result<(), Broken> {
        let (server, now, writer) = (self.id, course.clock.instant(), &mut self.writer);
        if !writer.attached {
            return Ok(());
        }
        let wants = writer.view.take_wants(now);
        wants.iter().for_each(|want| writer.note_want(want));
        let Some(super::Source::Folder(folder)) = &mut self.source else {
            return Ok(());
        };
        let content = folder.file_set.content().clone();
        let first = folder.asked.handle_wants(&wants, &content, &writer.view.cut());
        writer.publish(&first);
        let mut second = Vec::new();
        if !Arc::ptr_eq(&folder.content, &content) {
            folder.content = content.clone();
            let cut = writer.view.cut();
            second = folder.asked.handle_content(&content, &cut);
            writer.hold_again(&mut second, now);
            writer.cross(&mut second, now);
        }
        writer.publish(&second);
        let gone = writer.release(now);
        writer.publish(&gone);
        writer.note_holds(&mut course.tally);
        let server_state = match content.whole() {
            true => ServerState::Up,
            false => ServerState::Failing,
        };
        writer.view.publish_server_state(server_state);
        course.log(|| {
            format!("upstream {server}: {server_state:?}, wants {wants:?}, heard {first:?} {second:?} {gone:?}")
        });
        let waits = writer.held_until();
        if let Some(due) = waits {
            course.at(course.clock.time(due), Event::Upstream(server));
        }
        course.tally.hit(Rule::I05);
        // What waits for routes is still there.
        let checked = match waits {
            None => folder.check(&writer.wanted, &writer.view.cut()),
            Some(_) => Ok(()),
        };
        self.set_lease(course);
        checked.map_err(|broken| broken.of("server", server))
    }
}
