// SPDX-License-Identifier: Apache-2.0
//! Changes that are traced: which ones, who has them, and when they are over.

use std::time::Duration;

use super::*;
use crate::xds::Name;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn start() -> Instant {
    Instant::now()
}

fn on() -> Arc<Traces> {
    let traces = Traces::register(&mut Registry::default());
    traces.start(Sampler::named("parentbased_always_on", 0.0).unwrap());
    traces
}

fn arrival(received: Instant) -> TracedArrival {
    TracedArrival {
        server: Arc::from("cp:1"),
        type_url: TypeUrl::new(CDS),
        bytes: 100,
        received,
        decoded: received,
        parent: None,
        stream: None,
    }
}

fn news(replaced: Option<Instant>) -> Option<TracedNews> {
    let mut news = TracedNews::default();
    news.note(&Name::from("a"), replaced);
    Some(news)
}

#[test]
fn nothing_is_traced_before_the_start_and_without_news() {
    let (off, now) = (Traces::register(&mut Registry::default()), start());
    assert!(off.begin(&arrival(now), || panic!("nobody looks")).is_none());
    assert!(!off.is_on() && !off.is_any());
    let on = on();
    assert!(on.begin(&arrival(now), || None).is_none());
    assert!(on.is_on() && !on.is_any());
}

/// A trace is over when nobody owes an answer and the change has not been sent for a while, or after half a minute.
#[test]
fn over_when_all_have_answered_or_the_time_is() {
    let (traces, start) = (on(), start());
    let at = |seconds| start + Duration::from_secs(seconds);
    let change = traces.begin(&arrival(at(0)), || news(None)).unwrap();
    change.apply(at(0));
    assert!(traces.take_over(Some(at(1))).is_empty());
    let (accepts, rejects, leaves) = (change.send(at(1)), change.send(at(1)), change.send(at(2)));
    accepts.accept(at(2));
    rejects.reject(at(3));
    assert_eq!(change.course().unanswered(), 1);
    assert!(traces.take_over(Some(at(9))).is_empty());
    drop(leaves);
    let course = change.course();
    assert_eq!(
        (course.responses, course.accepted, course.rejected, course.gone),
        (3, 1, 1, 1)
    );
    assert_eq!((course.sent, course.answered), (Some((at(1), at(2))), Some(at(3))));
    assert_eq!(traces.take_over(Some(at(9))).len(), 1);
    assert!(!traces.is_any());
    // One that is never answered.
    let change = traces.begin(&arrival(at(10)), || news(None)).unwrap();
    let _owed = change.send(at(10));
    assert!(traces.take_over(Some(at(39))).is_empty());
    assert_eq!(traces.take_over(Some(at(40))).len(), 1);
    assert_eq!(change.course().unanswered(), 1);
}

/// A response has the changes whose content it brings, and not those that the client had before.
#[test]
fn responses_have_the_changes_that_are_new_to_the_client() {
    let (traces, start) = (on(), start());
    let at = |seconds| start + Duration::from_secs(seconds);
    let begin = |seconds| traces.begin(&arrival(at(seconds)), || news(None)).unwrap();
    // Messages of two streams may come in any order.
    let (late, early) = (begin(2), begin(1));
    let found = |since, has: &[u64]| {
        let brings = |time| has.iter().any(|seconds| at(*seconds) == time);
        let found = traces.in_response(&TypeUrl::new(CDS), at(since), brings);
        found.iter().map(|change| change.own.span_id()).collect::<Vec<_>>()
    };
    assert_eq!(found(1, &[]), [early.own.span_id()], "the oldest news");
    assert_eq!(found(1, &[1, 2]), [early.own.span_id(), late.own.span_id()]);
    assert_eq!(found(0, &[2]), [late.own.span_id()]);
    assert_eq!(
        found(2, &[1, 2]),
        [late.own.span_id()],
        "a full state repeats what the client has"
    );
    assert_eq!(found(3, &[1, 2]), []);
    let other = TypeUrl::new("type.googleapis.com/x.Y");
    assert!(traces.in_response(&other, at(1), |_| true).is_empty());
}

#[test]
fn links_lead_to_what_is_superseded_and_to_the_stream() {
    let (traces, start) = (on(), start());
    let stream = traceparent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    let first = traces.begin(&arrival(start), || news(None)).unwrap();
    let later = TracedArrival {
        stream: stream.clone(),
        parent: Some(first.context()),
        ..arrival(start + Duration::from_millis(1))
    };
    let second = traces.begin(&later, || news(Some(start))).unwrap();
    assert_eq!(second.links, [stream.unwrap(), first.own.clone()]);
    assert_eq!(
        second.own.trace_id(),
        first.own.trace_id(),
        "the parent's trace goes on"
    );
    let unrelated = Some(start - Duration::from_secs(1));
    let third = traces.begin(&arrival(start + Duration::from_millis(2)), || news(unrelated));
    assert_eq!(third.unwrap().links, []);
}

#[test]
fn only_so_many_are_traced_at_a_time() {
    let mut registry = Registry::default();
    let traces = Traces::register(&mut registry);
    traces.start(Sampler::named("always_on", 0.0).unwrap());
    let now = start();
    for _ in 0..OPEN_MAX {
        assert!(traces.begin(&arrival(now), || news(None)).is_some());
    }
    assert!(traces.begin(&arrival(now), || news(None)).is_none());
    assert_eq!(traces.results.of("dropped").get(), 1);
    assert_eq!(traces.take_over(None).len(), OPEN_MAX);
    assert!(traces.begin(&arrival(now), || news(None)).is_some());
}
