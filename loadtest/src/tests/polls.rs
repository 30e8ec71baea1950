// SPDX-License-Identifier: Apache-2.0
//! Tests that a polling client has one poll of each type at a time, and finds every fault in the answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::now;
use crate::fleet::client::profile::Profile;
use crate::fleet::client::{Client, Outcome, Output};
use crate::fleet::violation::Violation;
use crate::measure::tally::Tally;
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::wire::http2::hpack::Head;
use crate::wire::kind::{Dialect, Kind};

/// One client that polls for all of four clusters.
struct Poller {
    ledger: Arc<Ledger>,
    client: Client,
    tally: Tally,
}

const EVERY: Duration = Duration::from_millis(100);

impl Poller {
    fn new() -> Self {
        let ledger = Arc::new(Ledger::new(Kind::Cds, 4, 100, now()));
        let mut profile = Profile::plain(Dialect::Sotw, Kind::Cds, 4);
        (profile.polls, profile.aggregated) = (Some(EVERY), false);
        let mut client = Client::new(0, Arc::new(profile), World::of(Arc::clone(&ledger)));
        client.begin(now());
        Self {
            ledger,
            client,
            tally: Tally::new().unwrap(),
        }
    }

    /// Returns its poll, if it sends one.
    fn asks(&mut self) -> Option<Value> {
        let output = self.client.poll_output()?;
        let Output::Post(0, "/v3/discovery:clusters", body) = output else {
            panic!("{output:?}")
        };
        Some(serde_json::from_slice(&body).unwrap())
    }

    fn told(&mut self, status: u16, body: &str) -> Result<Outcome, Violation> {
        let head = Head {
            status: Some(status),
            ..Head::default()
        };
        self.client.handle_head(0, head, now())?;
        for piece in body.as_bytes().chunks(7) {
            self.client.handle_data(0, piece, &mut self.tally, now())?;
        }
        self.client.handle_end(0, None, &mut self.tally, now())
    }

    fn resource(&self, index: u32) -> Value {
        let current = |history: &[Arc<crate::origin::ledger::Content>]| self.ledger.json(index, history.last()?);
        self.ledger.inspect(index, current).flatten().unwrap()
    }

    fn answer(&mut self, version: &str, indexes: &[u32]) -> Result<Outcome, Violation> {
        let resources: Vec<Value> = indexes.iter().map(|index| self.resource(*index)).collect();
        let body = json!({ "versionInfo": version, "resources": resources, "type_url": Kind::Cds.type_url() });
        self.told(200, &body.to_string())
    }
}

/// H-02, H-05: the next poll has the version of the last answer.
#[test]
fn a_poll_says_what_its_client_has() {
    let mut poller = Poller::new();
    let asked = poller.asks().unwrap();
    assert_eq!(
        (&asked["version_info"], &asked["resource_names"]),
        (&json!(""), &json!([]))
    );
    assert!(poller.answer("1", &[0, 1, 2, 3]).unwrap().completed);
    assert_eq!(poller.client.check_final(), Ok(()));
    // One poll at a time, each some time after the answer before.
    assert_eq!(poller.asks(), None);
    poller.client.handle_time(now() + EVERY);
    assert_eq!(poller.asks().unwrap()["version_info"], json!("1"));
    poller.client.handle_time(now() + EVERY * 2);
    assert_eq!(poller.asks(), None);
    assert_eq!(poller.told(304, "").unwrap(), Outcome::default());
    let changed = poller.ledger.change(2, 1, true, now()).unwrap();
    poller.client.handle_time(now() + EVERY * 3);
    assert_eq!(poller.asks().unwrap()["version_info"], json!("1"));
    poller.answer("2", &[0, 1, 2, 3]).unwrap();
    assert_eq!(changed.awaited.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!((poller.tally.delivered, poller.tally.responses), (1, 2));
}

#[test]
fn an_answer_to_a_poll_must_be_true() {
    let mut poller = Poller::new();
    let mut body = poller.resource(0);
    body["alt_stat_name"] = json!("other");
    let text = json!({ "version_info": "1", "resources": [body] }).to_string();
    assert_eq!(poller.told(200, &text), Err(Violation::Foreign(poller.ledger.name(0))));
    assert!(matches!(Poller::new().told(200, "{"), Err(Violation::Unreadable(_))));
    assert_eq!(Poller::new().told(404, ""), Err(Violation::Status(404)));
    assert_eq!(Poller::new().answer("", &[0, 1, 2, 3]), Err(Violation::NoVersion));
    let mut poller = Poller::new();
    assert_eq!(
        poller.answer("1", &[0, 0]),
        Err(Violation::Twice(poller.ledger.name(0)))
    );
    // B-04, B-16.
    let mut poller = Poller::new();
    poller.answer("1", &[0, 1, 2, 3]).unwrap();
    poller.ledger.change(0, 1, false, now());
    assert_eq!(
        poller.answer("1", &[0, 1, 2, 3]),
        Err(Violation::SameVersion("1".to_owned()))
    );
    assert_eq!(
        poller.answer("2", &[0, 1, 2]),
        Err(Violation::Lost(poller.ledger.name(3)))
    );
}

/// H-06: a client that wants no names does not ask for all.
#[test]
fn a_poll_for_no_names_is_not_made() {
    let world = World::of(Arc::new(Ledger::new(Kind::Eds, 4, 100, now())));
    let mut profile = Profile::plain(Dialect::Sotw, Kind::Eds, 0);
    (profile.polls, profile.aggregated) = (Some(EVERY), false);
    let mut client = Client::new(0, Arc::new(profile), world);
    client.begin(now());
    assert_eq!(client.poll_output(), None);
    assert!(client.deadline().is_some());
}
