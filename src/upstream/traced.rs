// SPDX-License-Identifier: Apache-2.0
//! Which responses of a control plane are traced.
//!
//! Owns the comparison of a response with what is known, for those that may be. Knows nothing of who is sent what.

use std::sync::Arc;

use crate::telemetry::{TracedArrival, TracedChange, TracedNews, Traces};
use crate::xds::{Changes, Cut, Update};

/// Begins the traces of the responses that bring something new. To be called before `changes` are published in the view that has
/// this cut. Content is recognised by the time at which it arrived; removals have none.
pub(super) fn begin(
    traces: &Traces,
    arrivals: &[TracedArrival],
    changes: &[Changes],
    cut: &Cut,
) -> Vec<Arc<TracedChange>> {
    let begun = arrivals
        .iter()
        .filter_map(|arrival| traces.begin(arrival, || news(arrival, changes, cut)));
    begun.collect()
}

/// Returns what is new in a response, if anything is.
fn news(arrival: &TracedArrival, changes: &[Changes], cut: &Cut) -> Option<TracedNews> {
    let mut news = TracedNews::default();
    let slot = cut.slot(&arrival.type_url);
    let of_type = changes.iter().filter(|change| change.type_url == arrival.type_url);
    for update in of_type.flat_map(|change| &change.updates) {
        let Update::Put(resource, _) = update else { continue };
        if resource.received() != arrival.received {
            continue;
        }
        let before = slot.and_then(|slot| slot.resource(resource.name()));
        if before.is_none_or(|before| before.version() != resource.version()) {
            news.note(resource.name(), before.map(|before| before.received()));
        }
    }
    (news.resources > 0).then_some(news)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::telemetry::{Metrics, Sampler};
    use crate::xds::{Name, Phase, Resource, ResourceParts, TypeUrl};

    fn resource(type_url: &TypeUrl, name: &str, body: &[u8], received: Instant) -> Update {
        let parts = ResourceParts {
            type_url,
            name: Name::from(name),
            aliases: Vec::new(),
            passed_on: &[],
            body,
            endpoints: None,
            received,
        };
        Update::Put(Arc::new(Resource::new(parts, 0)), None)
    }

    fn changes(type_url: &TypeUrl, updates: Vec<Update>) -> Changes {
        Changes {
            type_url: type_url.clone(),
            wildcard: true,
            updates,
            complete: None,
            answered: None,
            phase: Phase::Steady,
        }
    }

    /// Content that is known is no news, nor is what another response brought.
    #[test]
    fn only_new_content_is_traced() {
        let metrics = Metrics::new([]);
        metrics.traces.start(Sampler::named("always_on", 1.0).unwrap());
        let type_url = TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster");
        let start = crate::clock::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let arrival = |received| TracedArrival {
            server: Arc::from("cp:1"),
            type_url: type_url.clone(),
            bytes: 0,
            received,
            decoded: received,
            parent: None,
            stream: None,
        };
        let first = changes(&type_url, vec![resource(&type_url, "a", b"1", at(0))]);
        let (cut, _) = Cut::default().with(&first);
        let again = changes(&type_url, vec![resource(&type_url, "a", b"1", at(1))]);
        assert!(begin(&metrics.traces, &[arrival(at(1))], &[again], &cut).is_empty());
        let updates = vec![
            resource(&type_url, "a", b"2", at(2)),
            resource(&type_url, "b", b"1", at(2)),
            resource(&type_url, "c", b"1", at(3)),
            Update::Forget(Name::from("d")),
        ];
        let arrivals = [arrival(at(2)), arrival(at(4))];
        let traced = begin(&metrics.traces, &arrivals, &[changes(&type_url, updates)], &cut);
        let [change] = &*traced else { panic!("{traced:?}") };
        assert_eq!((change.arrival.received, change.news.resources), (at(2), 2));
        assert_eq!(change.news.names, [Name::from("a"), Name::from("b")]);
    }
}
