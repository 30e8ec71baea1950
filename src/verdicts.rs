//! Content that clients of one kind reject is condemned for that kind, in all views.
//!
//! Owns the machines of the views in which clients have rejected something, and their questions under way. A view without rejections
//! has nothing here. Decides nothing itself.

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
}

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
            let judged = judged.or_insert_with(|| Judged::new(&view, now));
            judged.verdicts.set(self.docket.settings().after);
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
        self.views.retain(|at, judged| {
            let Some(view) = judged.view.upgrade().filter(|view| !view.mailbox().is_closed()) else {
                return false;
            };
            let verdicts = &mut judged.verdicts;
            verdicts.set(after);
            with_contents(&view, |contents| verdicts.handle_contents(contents, now));
            if let Some(sentence) = verdicts.take_condemned() {
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
    }

    fn deadline(&self) -> Option<Instant> {
        let look = (!self.views.is_empty()).then(|| clock::now() + LOOK);
        let asks = self.views.values().filter_map(|judged| judged.verdicts.poll_timeout());
        asks.chain(look).min()
    }
}

impl Judged {
    /// Begins with what an earlier run of the relay has condemned.
    fn new(view: &Arc<View>, now: Instant) -> Self {
        let mut verdicts = Verdicts::default();
        if let Some(restored) = view.head().restored() {
            let condemned = restored.condemned().iter().map(|one| Condemned::clone(one));
            verdicts.restore(condemned.collect(), now);
        }
        Self {
            view: Arc::downgrade(view),
            verdicts,
        }
    }
}

fn address(view: &Arc<View>) -> usize {
    Arc::as_ptr(view).addr()
}

fn with_contents(view: &View, act: impl FnOnce(&Contents<'_>)) {
    let (cut, restored) = (view.cut(), view.head().restored());
    act(&Contents {
        is_current: &|type_url: &TypeUrl, name: &Name, version| {
            let mut cuts = std::iter::once(&cut).chain(&restored);
            cuts.any(|cut| is_current(cut, type_url, name, version))
        },
        earlier: &|type_url: &TypeUrl, name: &Name, version| {
            let (resource, until) = view.head().before(type_url, name, version)?;
            Some(Earlier { resource, until })
        },
    });
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
            ?class, r#type = %one.type_url, name = %one.name(), kind = one.kind(), clients = one.clients, of = one.of,
            reason = one.objection.words(),
            "clients reject this content: newcomers of their kind are served what the kind accepted before"
        ),
        Some(end) => tracing::info!(
            ?class, r#type = %one.type_url, name = %one.name(), kind = one.kind(), because = end.words(),
            "this content is not condemned any more"
        ),
    }
}
