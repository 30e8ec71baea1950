//! Content that clients of one kind reject is condemned for that kind, in all views.
//!
//! Owns the machines of the views in which clients have rejected something, and their questions under way. A view without rejections
//! has nothing here. Decides nothing itself.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::cache::{Docket, Scopes, View};
use crate::census::Census;
use crate::clock;
use crate::protocol::{Contents, Earlier, Hearing, Sentence, Verdicts};
use crate::telemetry::VerdictMetrics;
use crate::xds::{Condemned, Cut, Known, Name, TypeUrl, VerdictEnd, Version};

/// Whoever judges.
pub struct Bench {
    docket: Arc<Docket>,
    census: Census,
    metrics: Arc<VerdictMetrics>,
    /// By the address of the view.
    views: BTreeMap<usize, Judged>,
    asked: FuturesUnordered<BoxFuture<'static, (usize, Hearing)>>,
}

/// One view.
struct Judged {
    view: Weak<View>,
    verdicts: Verdicts,
    /// Whether it has what an earlier run of the relay has condemned.
    restored: bool,
    /// What was condemned where its clients come from, when it was last taken over.
    inherited: Arc<Vec<Arc<Condemned>>>,
}

/// What is not condemned in a view any more, and why.
type Ended = (Arc<View>, Arc<Condemned>, VerdictEnd);

/// So often it is looked whether what is condemned is still there. What clients read does not wait for that.
const LOOK: Duration = Duration::from_secs(1);

impl Bench {
    /// Creates one for all views.
    #[must_use]
    pub fn new(scopes: &Scopes, census: Census, metrics: Arc<VerdictMetrics>) -> Self {
        Self {
            docket: scopes.docket().clone(),
            census,
            metrics,
            views: BTreeMap::new(),
            asked: FuturesUnordered::new(),
        }
    }

    /// Judges as long as the relay runs.
    pub async fn run(mut self) {
        let docket = self.docket.clone();
        loop {
            let deadline = self.deadline();
            let timer = async {
                match deadline {
                    Some(at) => clock::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = docket.changed() => self.take_news(),
                Some((at, hearing)) = self.asked.next(), if !self.asked.is_empty() => self.take(at, &hearing),
                () = timer => {}
            }
            self.turn();
            tokio::task::yield_now().await;
        }
    }

    fn take_news(&mut self) {
        let now = clock::now();
        for view in self.docket.take() {
            let judged = self.views.entry(address(&view));
            let judged = judged.or_insert_with(|| Judged::new(&view));
            judged.verdicts.set(self.docket.settings().after);
            judged.inherit(&view, now);
            for type_url in view.verdicts().rejected().take_unjudged() {
                judged.verdicts.handle_rejection(&type_url, now);
            }
            if view.verdicts().take_trial() {
                judged.verdicts.handle_trial(now);
            }
            for released in view.verdicts().take_released() {
                let same = |one: &Condemned| {
                    one.kind == released.kind && one.is(&released.type_url, released.name(), released.version)
                };
                judged.verdicts.release(same);
            }
        }
    }

    fn take(&mut self, at: usize, hearing: &Hearing) {
        if let Some(judged) = self.views.get_mut(&at)
            && let Some(view) = judged.view.upgrade()
        {
            let verdicts = &mut judged.verdicts;
            with_contents(&view, |contents| {
                verdicts.handle_hearing(hearing, contents, clock::now())
            });
        }
    }

    fn turn(&mut self) {
        let (now, after) = (clock::now(), self.docket.settings().after);
        let (census, asked, metrics) = (&self.census, &mut self.asked, &self.metrics);
        let mut condemns = false;
        let mut ended = Vec::new();
        self.views.retain(|at, judged| {
            let Some(view) = judged.view.upgrade().filter(|view| !view.mailbox().is_closed()) else {
                return false;
            };
            let verdicts = &mut judged.verdicts;
            verdicts.set(after);
            with_contents(&view, |contents| verdicts.handle_contents(contents, now));
            if let Some(sentence) = verdicts.take_condemned() {
                condemns |= sentence.events.iter().any(|(_, end)| end.is_none());
                ended.extend(followed(&view, &sentence));
                publish(&view, sentence, now);
            }
            while let Some(hearing) = verdicts.poll_question(now) {
                let (at, census, view) = (*at, census.clone(), view.clone());
                asked.push(Box::pin(async move { (at, census.hear(view, hearing).await) }));
            }
            !verdicts.is_idle()
        });
        let all: Vec<_> = self
            .views
            .values()
            .flat_map(|judged| judged.verdicts.condemned())
            .collect();
        metrics.show(all.iter().map(|one| &one.type_url));
        if condemns {
            self.tell_others();
        }
        if !ended.is_empty() {
            self.end_elsewhere(&ended, now);
        }
    }

    /// What is not condemned in these views any more is not condemned in those to which their clients return.
    fn end_elsewhere(&mut self, ended: &[Ended], now: Instant) {
        for other in self.census.views() {
            let Some(read) = other.neighbours().elsewhere() else {
                continue;
            };
            let class = LazyCell::new(|| Arc::new(other.class().clone()));
            for (_, one, end) in ended.iter().filter(|(view, ..)| Arc::ptr_eq(view, &read)) {
                let judged = self.views.entry(address(&other));
                let judged = judged.or_insert_with(|| Judged::new(&other));
                judged.verdicts.follow(&one.in_class(&class), *end, now);
                self.docket.add(&other);
            }
        }
    }

    /// Clients may come to the view of another server next: it takes over what is condemned here.
    fn tell_others(&self) {
        let all = self.census.views();
        let read = all.iter().filter(|view| {
            view.neighbours()
                .elsewhere()
                .is_some_and(|other| !other.head().condemned().is_empty())
        });
        read.for_each(|view| self.docket.add(view));
    }

    fn deadline(&self) -> Option<Instant> {
        let look = (!self.views.is_empty()).then(|| clock::now() + LOOK);
        let asks = self.views.values().filter_map(|judged| judged.verdicts.poll_timeout());
        asks.chain(look).min()
    }
}

impl Judged {
    fn new(view: &Arc<View>) -> Self {
        Self {
            view: Arc::downgrade(view),
            verdicts: Verdicts::default(),
            restored: false,
            inherited: Arc::default(),
        }
    }

    /// Takes over what an earlier run of the relay has condemned, and what is condemned since the last call in the view of another server
    /// whose clients read this one.
    fn inherit(&mut self, view: &Arc<View>, now: Instant) {
        let restored = (!self.restored).then(|| view.head().restored()).flatten();
        let elsewhere = view
            .neighbours()
            .elsewhere()
            .map(|other| other.head().condemned())
            .unwrap_or_default();
        let before = std::mem::replace(&mut self.inherited, elsewhere.clone());
        let is_known = |one: &Condemned| {
            before.iter().any(|known| {
                known.since == one.since && known.kind == one.kind && known.is(&one.type_url, one.name(), one.version)
            })
        };
        let class = LazyCell::new(|| Arc::new(view.class().clone()));
        let new = elsewhere.iter().filter(|one| one.kind.is_some() && !is_known(one));
        let new = new.map(|one| one.in_class(&class));
        // The view has put it in its class.
        let restored = restored.iter().flat_map(|cut| cut.condemned().iter());
        let all: Vec<Condemned> = restored.map(|one| Condemned::clone(one)).chain(new).collect();
        self.restored = true;
        self.verdicts.restore(all, now);
    }
}

fn address(view: &Arc<View>) -> usize {
    Arc::as_ptr(view).addr()
}

/// Returns what has ended so that other views follow. Other content may be what their servers still say.
fn followed(view: &Arc<View>, sentence: &Sentence) -> impl Iterator<Item = Ended> {
    let told_apart = sentence.events.iter().filter(|(one, _)| one.kind.is_some());
    told_apart.filter_map(|(one, end)| match (*end)? {
        VerdictEnd::Changed | VerdictEnd::Off => None,
        end @ (VerdictEnd::Accepted | VerdictEnd::Released | VerdictEnd::StandInRejected) => {
            Some((view.clone(), one.clone(), end))
        }
    })
}

fn with_contents(view: &View, act: impl FnOnce(&Contents<'_>)) {
    let (cut, restored) = (view.cut(), view.head().restored());
    // Its clients may have come from there.
    let other = view.neighbours().elsewhere();
    let elsewhere = other.as_ref().map(|other| other.cut());
    // What nobody reads may be out of date.
    let unread = LazyCell::new(|| !view.demand().is_read());
    act(&Contents {
        is_current: &|type_url: &TypeUrl, name: &Name, version| {
            let mut cuts = std::iter::once(&cut).chain(&restored);
            let before = |before: &Arc<Cut>| {
                is_current(before, type_url, name, version) && (!knows(&cut, type_url, name) || *unread)
            };
            cuts.any(|cut| is_current(cut, type_url, name, version)) || elsewhere.as_ref().is_some_and(before)
        },
        earlier: &|type_url: &TypeUrl, name: &Name, version| {
            let before = |view: &View| view.head().before(type_url, name, version);
            let (resource, until) = before(view).or_else(|| before(other.as_ref()?))?;
            Some(Earlier { resource, until })
        },
    });
}

/// Whether the server has said anything of this name.
fn knows(cut: &Cut, type_url: &TypeUrl, name: &Name) -> bool {
    let mut halves = cut.slot(type_url).into_iter().flat_map(|slot| slot.halves());
    halves.any(|state| state.complete() || state.entries().get(name).is_some())
}

fn is_current(cut: &Cut, type_url: &TypeUrl, name: &Name, version: Version) -> bool {
    let halves = cut.slot(type_url).into_iter().flat_map(|slot| slot.halves());
    let mut known = halves.filter_map(|state| state.entries().get(name));
    known.any(|known| matches!(known, Known::Present(found) if found.version() == version))
}

fn publish(view: &Arc<View>, sentence: Sentence, now: Instant) {
    for (one, end) in &sentence.events {
        note(view, one, *end);
    }
    drop(view.publish_condemned(sentence.condemned, sentence.kinds, now));
}

fn note(view: &View, one: &Condemned, end: Option<VerdictEnd>) {
    let class = view.class();
    match end {
        None => tracing::warn!(
            %class, r#type = %one.type_url, name = %one.name(), kind = one.kind(), clients = one.clients, of = one.of,
            reason = one.objection.words(),
            "clients reject this content: newcomers of their kind are served what the kind accepted before"
        ),
        Some(end) => tracing::info!(
            %class, r#type = %one.type_url, name = %one.name(), kind = one.kind(), because = end.words(),
            "this content is not condemned any more"
        ),
    }
}
