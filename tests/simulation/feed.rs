// SPDX-License-Identifier: Apache-2.0
//! The simplest way from a control plane to the view of it: changes are published after a delay, in order.
//!
//! Owns what the control plane is about to send. Knows nothing of protocols.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds::{Changes, Expiry, Name, Phase, Reason, Resource, ResourceParts, Target, TypeUrl, Update, Want};

use super::body::{Content, Type};
use super::course::Course;
use super::event::Event;
use super::rng::Rng;
use super::tally::Broken;
use super::truth::Truth;
use super::writer::Writer;
use super::zone::Zone;

/// What a control plane sends without a protocol.
pub(crate) struct Feed {
    news: VecDeque<News>,
    beats: u32,
    /// Whether it reports that a name does not exist, or stays silent (C-16).
    says_missing: bool,
}

/// One change that a control plane sends.
pub(crate) enum News {
    Is(Type, String, Option<Arc<Content>>),
    Begin(Type, Target),
    Complete(Type),
    /// It was silent for so long that the name counts as absent.
    Silent(Type, String),
}

const DOES_NOT_EXIST: Duration = Duration::from_secs(15);

impl Feed {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            news: VecDeque::new(),
            beats: 0,
            says_missing: rng.chance(60),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.news.clear();
    }

    pub(crate) fn push(&mut self, news: News) {
        self.news.push_back(news);
    }

    /// The changes of the view that one change at the control plane makes.
    fn changes(&mut self, news: News, truth: &Truth, writer: &Writer, now: Instant) -> Vec<Changes> {
        let mut all = Vec::new();
        match news {
            News::Is(kind, name, content) => {
                let content = content.as_ref();
                if writer.wanted.contains(&(kind, Target::Wildcard)) {
                    let update = match content.filter(|content| content.covered) {
                        Some(content) => self.put(kind, content, now),
                        None => Update::Forget(Name::from(name.as_str())),
                    };
                    all.push(changes(kind, true, vec![update]));
                }
                let target = (kind, Target::Name(Name::from(name.as_str())));
                match content {
                    Some(content) if writer.wanted.contains(&target) => {
                        let put = self.put(kind, content, now);
                        all.push(changes(kind, false, vec![put]));
                    }
                    Some(_) | None => {
                        let gone = writer.gone(kind, &name);
                        all.extend(gone.map(|gone| changes(kind, false, vec![gone])));
                    }
                }
            }
            News::Begin(kind, Target::Wildcard) => {
                let covered: Vec<Arc<Content>> = truth.of(kind).filter(|content| content.covered).cloned().collect();
                let updates = covered.iter().map(|content| self.put(kind, content, now)).collect();
                all.push(changes(kind, true, updates));
            }
            News::Begin(kind, Target::Name(name)) => match truth.get(kind, name.as_str()).cloned() {
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
                let cut = writer.view.cut();
                let known = cut
                    .slot(kind.type_url())
                    .is_some_and(|slot| slot.named.known(&Name::from(name.as_str())).is_some());
                if writer.wanted.contains(&target) && !known && truth.get(kind, &name).is_none() {
                    let absent = Update::Absent(Name::from(name.as_str()), Reason::TimedOut);
                    all.push(changes(kind, false, vec![absent]));
                }
            }
        }
        all
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
    pub(crate) fn want(&mut self, want: &Want, course: &mut Course) {
        let zone = self.id;
        let sign = if want.wanted { '+' } else { '-' };
        course.log(|| format!("upstream {zone}: {sign} {:?} {:?}", want.type_url, want.target));
        self.writer.note_want(want);
        if !want.wanted {
            return;
        }
        let kind = kind(&want.type_url);
        self.feed.push(News::Begin(kind, want.target.clone()));
        match &want.target {
            Target::Wildcard => self.feed.push(News::Complete(kind)),
            Target::Name(name) => {
                let name = name.as_str().to_owned();
                course.after(DOES_NOT_EXIST, Event::Silence(zone, kind, name));
            }
        }
        course.deliver(Event::Upstream(zone));
    }

    /// Publishes some of the control plane's pending changes.
    pub(crate) fn hear(&mut self, course: &mut Course) {
        let zone = self.id;
        let now = course.clock.instant();
        if !self.connected {
            return;
        }
        let all = course.calm || course.rng.chance(50);
        let count = if all {
            self.feed.news.len()
        } else {
            course.rng.range(1, 3)
        };
        let mut published = Vec::new();
        for _ in 0..count {
            let Some(news) = self.feed.news.pop_front() else { break };
            // Removals are computed from the view, so earlier changes must be in it.
            if matches!(news, News::Is(_, _, None)) {
                self.writer.publish(&std::mem::take(&mut published));
            }
            published.extend(self.feed.changes(news, &self.truth, &self.writer, now));
        }
        let more = !self.feed.news.is_empty();
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
        self.feed.push(News::Silent(kind, name));
        self.hear(course);
    }

    /// G-19: losing the upstream changes nothing but that it has not answered.
    pub(crate) fn lost(&mut self) -> Result<(), Broken> {
        self.connected = false;
        let before = self.writer.view.cut();
        let types = before.slots().map(|(type_url, _)| kind(type_url));
        let lost = types.map(|kind| Changes {
            answered: Some(false),
            ..changes(kind, false, Vec::new())
        });
        self.writer.view.publish(&lost.collect::<Vec<_>>());
        let after = self.writer.view.cut();
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
}

fn kind(type_url: &TypeUrl) -> Type {
    Type::of(type_url.url()).expect("a type of the world")
}
