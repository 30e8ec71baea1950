//! `/holds`: the removals that are not passed on, and orders for them.
//!
//! Owns the form, and the ids of holds, which are equal on all replicas. What is held is decided elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::forms::{self, Asked, Format, bad};
use super::{Clusters, Shown};
use crate::cache::View;
use crate::clock::{self, WallClock};
use crate::config;
use crate::xds::{
    Hasher, HeldRemoval, Hold, HoldAction, HoldOrder, HoldReason, HoldTarget, Name, Referrer, Target, TypeUrl,
    printable,
};

/// How many resources of a hold are listed.
const LISTED_MAX: usize = 1000;
/// How many of them as text.
const SHOWN_MAX: usize = 10;
/// How many characters of a view's hash are in an id.
const VIEW_CHARS: usize = 8;
/// How much longer an order can hold removals.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const USUAL: Duration = Duration::from_secs(30 * 60);
/// The longest reason.
const REASON_BYTES: usize = 500;

/// A hold, and where it is.
pub(super) struct Holding {
    pub(super) view: Arc<View>,
    server: String,
    pub(super) hold: Hold,
}

/// The query of an order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ordered {
    target: String,
    reason: String,
    #[serde(rename = "for")]
    time: Option<String>,
}

type Order = Result<Query<Ordered>, QueryRejection>;

/// Returns all holds, by view and type.
pub(super) fn all(shown: &Shown) -> Vec<Holding> {
    let views = shown.status.census().views();
    if views.iter().all(|view| view.holds().is_empty()) {
        return Vec::new();
    }
    let Clusters { names, .. } = shown.overview.look();
    let of_view = |view: Arc<View>| {
        let server = names.get(&view.server()).cloned().unwrap_or_default();
        let holds = Vec::clone(&view.holds()).into_iter();
        holds.map(move |hold| Holding {
            view: view.clone(),
            server: server.clone(),
            hold,
        })
    };
    views.into_iter().flat_map(of_view).collect()
}

pub(super) async fn answer(State(shown): State<Shown>, asked: Asked) -> Response {
    let holds = all(&shown);
    let clock = WallClock::read();
    match forms::format(asked, "/holds or /holds?format=json") {
        Ok(Format::Text) => text(&holds, clock).into_response(),
        Ok(Format::Json) => {
            let holds: Vec<Value> = holds.iter().map(|found| found.json(clock)).collect();
            forms::json(&json!({ "holds": holds }))
        }
        Err(wrong) => wrong.into_response(),
    }
}

pub(super) async fn extend(State(shown): State<Shown>, order: Order) -> Response {
    give(&shown, order, |time| match time.map_or(Ok(USUAL), duration)? {
        time if time > LONGEST => Err("removals can be held for 24h more at most\n".to_owned()),
        time => Ok(HoldAction::Extend(time)),
    })
}

pub(super) async fn release(State(shown): State<Shown>, order: Order) -> Response {
    give(&shown, order, |time| match time {
        Some(_) => Err("what is released needs no time\n".to_owned()),
        None => Ok(HoldAction::Release),
    })
}

/// Returns why a resource of a view is held, if it is.
pub(super) fn of_resource(view: &View, type_url: &TypeUrl, name: &Name, clock: WallClock) -> Option<Value> {
    let holds = view.holds();
    let holds = holds.iter().filter(|hold| hold.type_url == *type_url);
    let mut found = holds.filter_map(|hold| Some((hold, hold.removals.get(name)?)));
    let (hold, removal) = found.next()?;
    Some(json!({ "reason": hold.reason.word(), "removal": resource(name, removal, clock) }))
}

/// Sets the gauges.
pub(super) fn measure(shown: &Shown) {
    let views = shown.status.census().views();
    let holds: Vec<Arc<Vec<Hold>>> = views.iter().map(|view| view.holds()).collect();
    let holds = || holds.iter().flat_map(|holds| holds.iter());
    let counts: Vec<_> = holds()
        .map(|hold| (hold.reason, hold.type_url.clone(), hold.removals.len()))
        .collect();
    let oldest = holds().filter_map(Hold::since).min();
    let oldest = oldest.map(|since| clock::now().saturating_duration_since(since));
    shown.metrics.holds.show(&counts, oldest);
}

fn give(shown: &Shown, order: Order, action: impl FnOnce(Option<&str>) -> Result<HoldAction, String>) -> Response {
    let Ok(Query(Ordered { target, reason, time })) = order else {
        return bad("write ?target=ID or TYPE/NAME, reason=TEXT, and to extend for=TIME such as 30m\n");
    };
    let reason = printable(reason.trim()).into_owned();
    if reason.is_empty() || reason.len() > REASON_BYTES {
        return bad(format!("write a reason of 1 to {REASON_BYTES} bytes\n"));
    }
    let action = match action(time.as_deref()) {
        Ok(action) => action,
        Err(why) => return bad(why),
    };
    let mut concerned = 0;
    for (view, target) in concerned_views(shown, &target) {
        let order = HoldOrder {
            target,
            action,
            reason: Arc::from(&*reason),
        };
        concerned += view.order(order);
    }
    if concerned == 0 {
        let text = format!("nothing is held under `{target}`; /holds lists what is held\n");
        return (StatusCode::NOT_FOUND, text).into_response();
    }
    let (word, what) = match (action, concerned) {
        (HoldAction::Extend(_), 1) => ("extended", "is held longer"),
        (HoldAction::Extend(_), _) => ("extended", "are held longer"),
        (HoldAction::Release, 1) => ("released", "is passed on, with what only it refers to"),
        (HoldAction::Release, _) => ("released", "are passed on, with what only they refer to"),
    };
    tracing::warn!(
        target,
        reason,
        resources = concerned,
        "held removals are {word} by order"
    );
    format!("{} {what}\n", counted(concerned, "held removal")).into_response()
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns the views that an order is for, each with what it is for there.
fn concerned_views(shown: &Shown, target: &str) -> Vec<(Arc<View>, HoldTarget)> {
    let found = all(shown).into_iter();
    let found = found.filter_map(|found| {
        for judgement in [found.hold.judgement, None] {
            if found.id(judgement) == target {
                let target = HoldTarget::Hold(found.hold.type_url.clone(), found.hold.reason, judgement);
                return Some((found.view, target));
            }
        }
        let (word, name) = target.split_once('/')?;
        let type_url: TypeUrl = word.parse().ok()?;
        let name = Name::read(name, &type_url);
        let held = found.hold.type_url == type_url && found.hold.removals.contains_key(&name);
        held.then_some((found.view, HoldTarget::Resource(type_url, name)))
    });
    found.collect()
}

impl Holding {
    /// Returns the id: view, type, reason, and the number of a judgement. Without the number it is that of all judgements of the type,
    /// and equal on all relays that have the same servers and classes.
    fn id(&self, judgement: Option<u32>) -> String {
        let mut hasher = Hasher::new(0);
        hasher.field(self.server.as_bytes());
        hasher.field(self.view.class().to_string().as_bytes());
        let view: String = hasher.finish().to_string().chars().take(VIEW_CHARS).collect();
        let id = format!("{view}-{}-{}", self.hold.type_url.word(), self.hold.reason.word());
        judgement.map_or(id.clone(), |number| format!("{id}-{number}"))
    }

    /// Returns how many sessions want any of the resources.
    fn clients(&self) -> usize {
        let removals = self.hold.removals.iter();
        let wanted = removals.map(|(name, removal)| {
            let target = match removal.wildcard {
                true => Target::Wildcard,
                false => Target::Name(name.clone()),
            };
            (self.hold.type_url.clone(), target)
        });
        let mut wanted: Vec<_> = wanted.collect();
        wanted.dedup();
        self.view.sessions_of(&wanted)
    }

    fn json(&self, clock: WallClock) -> Value {
        let hold = &self.hold;
        let listed = hold.removals.iter().take(LISTED_MAX);
        let listed: Vec<Value> = listed.map(|(name, removal)| resource(name, removal, clock)).collect();
        json!({
            "id": self.id(hold.judgement),
            "server": self.server,
            "class": self.view.class().to_string(),
            "type": hold.type_url.full_name(),
            "reason": hold.reason.word(),
            "judgement": hold.judgement,
            "trouble": hold.is_trouble(clock::now()),
            "since": hold.since().map(|at| clock.time(at)),
            "until": hold.until().map(|at| clock.time(at)),
            "clients": self.clients(),
            "count": hold.removals.len(),
            "left_out": hold.removals.len().saturating_sub(LISTED_MAX),
            "resources": listed,
        })
    }
}

fn resource(name: &Name, removal: &HeldRemoval, clock: WallClock) -> Value {
    json!({
        "name": name.as_str(),
        "since": clock.time(removal.since),
        "until": removal.until.map(|at| clock.time(at)),
        "by": removal.by.as_ref().map(|Referrer { type_url, name, .. }| format!("{} {name}", type_url.word())),
        "said": removal.by.as_ref().map(|by| by.said),
        "emptied": removal.emptied,
        "extended": removal.extended.as_deref(),
    })
}

fn text(holds: &[Holding], clock: WallClock) -> Response {
    let mut text = String::new();
    if holds.is_empty() {
        text.push_str("nothing is held\n");
    }
    for found in holds {
        let hold = &found.hold;
        let time = |at: Option<Instant>, none: &str| at.map_or_else(|| none.to_owned(), |at| clock.short(at));
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "{}  {} {} of {} for {}: {}; since {}, until {}; {}",
            found.id(hold.judgement),
            hold.removals.len(),
            hold.type_url.word(),
            printable(&found.server),
            printable(&found.view.class().to_string()),
            why(hold.reason),
            time(hold.since(), "?"),
            time(hold.until(), "nothing refers to them"),
            counted(found.clients(), "client"),
        );
        for (name, removal) in hold.removals.iter().take(SHOWN_MAX) {
            let _ = write!(text, "  {}", printable(name.as_str()));
            if removal.emptied {
                text.push_str(", which has no endpoints any more");
            }
            if let Some(Referrer { type_url, name: by, .. }) = &removal.by {
                let _ = write!(text, ", to which {} {} refers", type_url.word(), printable(by.as_str()));
            }
            if let Some(reason) = &removal.extended {
                let _ = write!(text, "; extended: {}", printable(reason));
            }
            text.push('\n');
        }
        let more = hold.removals.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

const fn why(reason: HoldReason) -> &'static str {
    match reason {
        HoldReason::Mass => "much was lost at once",
        HoldReason::Referenced => "something served refers to them",
    }
}

/// Reads a time as the configuration writes it; none is no time.
fn duration(text: &str) -> Result<Duration, String> {
    let time = config::duration(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("`{text}` is not a time; write 90s, 30m or 24h\n"))
}

/// The holds by their ids, for `/events`.
pub(super) fn brief(shown: &Shown) -> BTreeMap<String, Value> {
    let clock = WallClock::read();
    let found = all(shown).into_iter();
    let brief = found.map(|found| {
        let json = json!({
            "server": found.server,
            "class": found.view.class().to_string(),
            "type": found.hold.type_url.word(),
            "reason": found.hold.reason.word(),
            "count": found.hold.removals.len(),
            "since": found.hold.since().map(|at| clock.time(at)),
            "until": found.hold.until().map(|at| clock.time(at)),
            "some": found.hold.removals.keys().take(SHOWN_MAX).map(Name::as_str).collect::<Vec<_>>(),
        });
        (found.id(found.hold.judgement), json)
    });
    brief.collect()
}
