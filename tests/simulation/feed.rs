//! A zone: a control plane, and the relay's view of it.
//!
//! Owns the simplest way from one to the other: changes are published after a delay, in order. Knows nothing of the protocol
//! between them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::View;
use proto::envoy::config::core::v3::Node;
use xds::{
    Changes, Cut, Expiry, Name, Phase, Reason, Resource, ResourceParts, ServerState, Target, TypeUrl, Update, Want,
};

use super::body::{Content, Type};
use super::classes::{Profile, nobody};
use super::course::Course;
use super::event::Event;
use super::lists::{Eyes, Mood, Source, Upper};
use super::rng::Rng;
use super::tally::Broken;
use super::truth::{Step, Truth};
use super::upstream::{Wire, way};
use super::writer::Writer;

/// A control plane and the view of it.
pub(crate) struct Zone {
    /// Its place among the zones.
    pub(crate) id: usize,
    /// What the clients that begin here have in common.
    pub(crate) profile: Profile,
    /// How the server behaves towards new streams, where there are lists.
    pub(crate) mood: Mood,
    /// Where there are lists and several classes of clients: who reads this server.
    pub(crate) eyes: Option<Eyes>,
    pub(crate) truth: Truth,
    pub(crate) writer: Writer,
    /// The way through the protocol; without one, changes are published directly.
    pub(crate) wire: Option<Wire>,
    /// The way that is no stream: files or polls.
    pub(crate) source: Option<Source>,
    /// If the server is itself a relay: that relay.
    pub(crate) upper: Option<Box<Upper>>,
    /// If this is the control plane of such a relay: the relay's zone.
    pub(crate) below: Option<usize>,
    /// What the relay has on disk of the view.
    pub(crate) saved: Option<Cut>,
    /// What the control plane is about to send.
    news: VecDeque<News>,
    pub(crate) connected: bool,
    beats: u32,
    /// Whether it reports that a name does not exist, or stays silent (C-16).
    says_missing: bool,
}

/// One change that a control plane sends.
enum News {
    Is(Type, String, Option<Arc<Content>>),
    Begin(Type, Target),
    Complete(Type),
    /// It was silent for so long that the name counts as absent.
    Silent(Type, String),
}

const DOES_NOT_EXIST: Duration = Duration::from_secs(15);

impl Zone {
    pub(crate) fn new(id: usize, profile: Profile, rng: &mut Rng) -> Self {
        let first = 1_000_000 * (id as u64 + 1);
        Self {
            id,
            profile,
            mood: Mood::Fine,
            eyes: None,
            truth: Truth::new(first, rng),
            writer: Writer::none(),
            wire: way(rng).map(|habits| Wire::new(habits, Node::default())),
            source: None,
            upper: None,
            below: None,
            saved: None,
            news: VecDeque::new(),
            connected: true,
            beats: 0,
            says_missing: rng.chance(60),
        }
    }

    /// Begins a view in which nothing is known; returns whether there was none.
    pub(crate) fn attach(&mut self, view: Arc<View>, node: Node) -> bool {
        let saved = self.saved.as_ref().filter(|_| self.wire.is_some());
        let files = matches!(self.source, Some(Source::Folder(_)));
        let before = std::mem::replace(&mut self.writer, Writer::new(view, files, saved));
        self.wire = self.wire.take().map(|wire| wire.anew(node.clone()));
        if let Some(source) = &mut self.source {
            source.attach(node);
        }
        self.news.clear();
        !before.attached
    }

    /// The view has ended.
    pub(crate) fn detach(&mut self) {
        self.attach(nobody(), Node::default());
        self.writer.attached = false;
    }

    fn hears(&self, kind: Type, content: &Content) -> bool {
        let wants = |name: &str| self.writer.wanted.contains(&(kind, Target::Name(Name::from(name))));
        wants(&content.name)
    }

    /// The changes of the view that one change at the control plane makes.
    fn changes(&mut self, news: News, now: Instant) -> Vec<Changes> {
        let mut all = Vec::new();
        match news {
            News::Is(kind, name, content) => {
                let content = content.as_ref();
                if self.writer.wanted.contains(&(kind, Target::Wildcard)) {
                    let update = match content.filter(|content| content.covered) {
                        Some(content) => self.put(kind, content, now),
                        None => Update::Forget(Name::from(name.as_str())),
                    };
                    all.push(changes(kind, true, vec![update]));
                }
                match content {
                    Some(content) if self.hears(kind, content) => {
                        let put = self.put(kind, content, now);
                        all.push(changes(kind, false, vec![put]));
                    }
                    Some(_) | None => {
                        let gone = self.gone(kind, &name);
                        all.extend(gone.map(|gone| changes(kind, false, vec![gone])));
                    }
                }
            }
            News::Begin(kind, Target::Wildcard) => {
                let covered: Vec<Arc<Content>> =
                    self.truth.of(kind).filter(|content| content.covered).cloned().collect();
                let updates = covered.iter().map(|content| self.put(kind, content, now)).collect();
                all.push(changes(kind, true, updates));
            }
            News::Begin(kind, Target::Name(name)) => match self.truth.get(kind, name.as_str()).cloned() {
                Some(content) => {
                    let put = self.put(kind, &content, now);
                    all.push(changes(kind, false, vec![put]));
                }
                None if self.says_missing => {
                    all.push(changes(kind, false, vec![Update::Absent(name, Reason::Said)]));
                }
                None => {}
            },
            News::Complete(kind) => {
                let complete = Changes {
                    complete: Some(true),
                    ..changes(kind, true, Vec::new())
                };
                all.push(complete);
            }
            News::Silent(kind, name) => {
                let target = (kind, Target::Name(Name::from(name.as_str())));
                let cut = self.writer.view.cut();
                let known = cut
                    .slot(kind.type_url())
                    .is_some_and(|slot| slot.named.known(&Name::from(name.as_str())).is_some());
                if self.writer.wanted.contains(&target) && !known && self.truth.get(kind, &name).is_none() {
                    let absent = Update::Absent(Name::from(name.as_str()), Reason::TimedOut);
                    all.push(changes(kind, false, vec![absent]));
                }
            }
        }
        all
    }

    /// A resource ceased to be.
    fn gone(&self, kind: Type, name: &str) -> Option<Update> {
        let (cut, name) = (self.writer.view.cut(), Name::from(name));
        cut.slot(kind.type_url())?.named.resource(&name)?;
        let wanted = self.writer.wanted.contains(&(kind, Target::Name(name.clone())));
        Some(match wanted {
            true => Update::Absent(name, Reason::Said),
            false => Update::Forget(name),
        })
    }

    fn put(&mut self, kind: Type, content: &Content, now: Instant) -> Update {
        let resource = Arc::new(resource(kind, content, now));
        let expiry = content.ttl.map(|ttl| {
            self.beats += 1;
            Expiry {
                at: now + ttl,
                beat: self.beats,
            }
        });
        Update::Put(resource, expiry)
    }
}

fn changes(kind: Type, wildcard: bool, updates: Vec<Update>) -> Changes {
    Changes {
        type_url: kind.type_url().clone(),
        wildcard,
        updates,
        complete: None,
        answered: Some(true),
        phase: Phase::Steady,
    }
}

/// A content as the relay would read it.
pub(crate) fn resource(kind: Type, content: &Content, received: Instant) -> Resource {
    let parts = ResourceParts {
        type_url: kind.type_url(),
        name: Name::from(content.name.as_str()),
        aliases: Vec::new(),
        passed_on: &[],
        body: &content.body(kind),
        endpoints: content.endpoints.as_deref().map(Name::from),
        received,
    };
    Resource::new(parts, 0)
}

impl Zone {
    /// An operator begins a change.
    pub(crate) fn plan(&mut self, course: &mut Course) {
        if course.calm {
            return;
        }
        let mut time = course.clock.now();
        for (pause, step) in self.truth.plan(&mut course.rng) {
            time += pause;
            course.at(time, Event::Step(self.id, step));
        }
        course.soon(50, 4000, Event::Plan(self.id));
    }

    pub(crate) fn change(&mut self, step: &Step, course: &mut Course) {
        let zone = self.id;
        if course.calm && !matches!(step, Step::Mend(..)) {
            return;
        }
        let changed = self.truth.apply(step, &mut course.rng);
        if changed.is_empty() {
            return;
        }
        if self.wire.is_some() || self.source.is_some() {
            course.log(|| format!("origin {zone}: {step:?}"));
            course.deliver(Event::Utter(zone, false));
            return;
        }
        for (kind, name) in &changed {
            let content = self.truth.get(*kind, name).cloned();
            self.news.push_back(News::Is(*kind, name.clone(), content));
        }
        course.log(|| format!("origin {zone}: {step:?}"));
        course.deliver(Event::Upstream(zone));
    }

    /// The relay's upstream task runs.
    pub(crate) fn upstream(&mut self, course: &mut Course) -> Result<(), Broken> {
        if self.source.is_some() {
            return self.read_source(course);
        }
        if self.wire.is_some() {
            self.write(Vec::new(), course);
            return Ok(());
        }
        let now = course.clock.instant();
        let server_state = if self.connected {
            ServerState::Up
        } else {
            ServerState::Failing
        };
        self.writer.view.publish_server_state(server_state);
        let wants = self.writer.view.take_wants(now);
        for want in wants {
            self.want(&want, course);
        }
        self.hear(course);
        self.set_lease(course);
        Ok(())
    }

    /// The writer runs again when unwanted names have lingered long enough.
    pub(crate) fn set_lease(&mut self, course: &mut Course) {
        let due = self.writer.view.poll_timeout();
        self.writer.lease.set(due, Event::Upstream(self.id), course);
    }

    fn want(&mut self, want: &Want, course: &mut Course) {
        let zone = self.id;
        course.log(|| {
            format!(
                "upstream {zone}: {} {:?} {:?}",
                if want.wanted { '+' } else { '-' },
                want.type_url,
                want.target
            )
        });
        self.writer.note_want(want);
        if !want.wanted {
            return;
        }
        let kind = kind(&want.type_url);
        self.news.push_back(News::Begin(kind, want.target.clone()));
        match &want.target {
            Target::Wildcard => self.news.push_back(News::Complete(kind)),
            Target::Name(name) => {
                let name = name.as_str().to_owned();
                course.after(DOES_NOT_EXIST, Event::Silence(zone, kind, name));
            }
        }
        course.deliver(Event::Upstream(zone));
    }

    /// Publishes some of the control plane's pending changes.
    fn hear(&mut self, course: &mut Course) {
        let zone = self.id;
        let now = course.clock.instant();
        if !self.connected {
            return;
        }
        let all = course.calm || course.rng.chance(50);
        let count = if all { self.news.len() } else { course.rng.range(1, 3) };
        let mut published = Vec::new();
        for _ in 0..count {
            let Some(news) = self.news.pop_front() else { break };
            // Removals are computed from the view, so earlier changes must be in it.
            if matches!(news, News::Is(_, _, None)) {
                self.writer.publish(&std::mem::take(&mut published));
            }
            published.extend(self.changes(news, now));
        }
        let more = !self.news.is_empty();
        self.writer.publish(&published);
        if !published.is_empty() {
            course.log(|| format!("upstream {zone}: heard {published:?}"));
        }
        if more {
            course.deliver(Event::Upstream(zone));
        }
    }

    /// The control plane has not answered for a name in time.
    pub(crate) fn silence(&mut self, kind: Type, name: String, course: &mut Course) {
        self.news.push_back(News::Silent(kind, name));
        self.hear(course);
    }

    /// The control plane of a zone can be reached again.
    pub(crate) fn reach(&mut self, course: &mut Course) {
        let zone = self.id;
        course.log(|| format!("upstream {zone}: connected"));
        self.connected = true;
        course.at_once(Event::Upstream(zone));
    }
}

fn kind(type_url: &TypeUrl) -> Type {
    Type::of(type_url.url()).expect("a type of the world")
}

/// G-19: losing the upstream changes nothing but that it has not answered.
pub(crate) fn lost(zone: &mut Zone) -> Result<(), Broken> {
    zone.connected = false;
    let before = zone.writer.view.cut();
    let changes: BTreeMap<&TypeUrl, Changes> = before
        .slots()
        .map(|(type_url, _)| {
            let lost = Changes {
                type_url: type_url.clone(),
                wildcard: false,
                updates: Vec::new(),
                complete: None,
                answered: Some(false),
                phase: Phase::Steady,
            };
            (type_url, lost)
        })
        .collect();
    zone.writer.view.publish(&changes.into_values().collect::<Vec<_>>());
    let after = zone.writer.view.cut();
    for (type_url, slot) in after.slots() {
        let old = before.slot(type_url);
        let same = old.is_some_and(|old| {
            old.named.id() == slot.named.id()
                && old.wildcard.as_ref().map(|state| state.id()) == slot.wildcard.as_ref().map(|state| state.id())
        });
        if !same {
            return broken!(G19, "{type_url} changed when the upstream was lost");
        }
    }
    Ok(())
}
