// SPDX-License-Identifier: Apache-2.0
//! What `/clusters` shows of a control plane that is polled.

use distributary::upstream::StreamPhase;
use distributary::xds::{Cut, Known, Name, TypeUrl};

use crate::plane::soon;
use crate::polling::Site;
use crate::unserved::VHDS;
use crate::{CDS, EDS, Relay};

/// G-15, H-07: the status of a polled server has its phase and since when, its last answer, and the error until it is over, also
/// when only one of its types fails.
#[tokio::test]
async fn how_it_stands_is_shown() {
    let mut site = Site::start().await;
    let relay = Relay::polling(&site, "", &[]);
    let status = || (relay.statuses)().remove(0);
    assert_eq!((status().phase, status().last_success), (StreamPhase::Idle, None));
    relay.want(CDS, "*", true);
    let poll = site.poll().await;
    assert_eq!((status().phase, status().error), (StreamPhase::Connecting, None));
    poll.say("1", &["a"]).await;
    relay.has_clusters(&["a"]).await;
    let first = status();
    assert_eq!(
        (first.phase, &first.error, first.next_attempt),
        (StreamPhase::Answering, &None, None)
    );
    assert!(first.last_success >= Some(first.since));
    relay.want(EDS, "e", true);
    let refused = async {
        while status().error.is_none() {
            let poll = site.poll().await;
            if poll.path == "/v3/discovery:endpoints" {
                poll.status("404 Not Found", "no endpoints here").await;
            } else {
                poll.status("304 Not Modified", "").await;
            }
        }
    };
    soon("one type fails", refused).await;
    let one = status();
    assert_eq!(
        (one.phase, one.failing_since, one.since),
        (StreamPhase::Answering, None, first.since)
    );
    assert!(one.error.unwrap().contains("no endpoints here"));
    assert!(one.next_attempt.is_some() && one.last_success >= first.last_success);
    let right = async {
        while status().error.is_some() {
            let poll = site.poll().await;
            if poll.path == "/v3/discovery:endpoints" {
                poll.say("1", &["e"]).await;
            } else {
                poll.status("304 Not Modified", "").await;
            }
        }
    };
    soon("all is well", right).await;
    assert_eq!((status().phase, status().next_attempt), (StreamPhase::Answering, None));
    let lost = async {
        while status().phase == StreamPhase::Answering {
            site.poll().await.status("500 Internal Server Error", "on fire").await;
        }
    };
    soon("the server fails", lost).await;
    let lost = status();
    assert_eq!(lost.phase, StreamPhase::Waiting);
    assert!(lost.error.unwrap().contains("on fire") && lost.failing_since.is_some());
    assert!(lost.next_attempt.is_some() && lost.last_success > first.last_success);
}

/// H-03: the relay does not wait for a type that cannot be polled: clients get an error at once, and the status shows it.
#[tokio::test]
async fn what_cannot_be_polled() {
    let site = Site::start().await;
    let relay = Relay::polling(&site, "", &[(VHDS, "*"), (VHDS, "main/a")]);
    let (hosts, host) = (TypeUrl::new(VHDS), Name::from("main/a"));
    let told = |cut: &Cut| {
        let error = cut.slot(&hosts).and_then(|slot| slot.named.error(&host));
        error.is_some_and(|error| error.message.contains("over REST"))
    };
    relay.sees("an error", told).await;
    let absent = |cut: &Cut| {
        matches!(
            cut.slot(&hosts).and_then(|slot| slot.known(&host)),
            Some(Known::Absent(_))
        )
    };
    relay.sees("no virtual host", absent).await;
    let shown = (relay.statuses)()
        .into_iter()
        .any(|status| status.unserved.contains_key(&hosts));
    assert!(shown);
}
