// SPDX-License-Identifier: Apache-2.0
//! What follows when clients reject: nothing for those who do not.

#![expect(clippy::unwrap_used, reason = "what a test begins with is there")]

use cache::Rejecter;
use classes::{Node, UserAgent};
use xds::{Holds, Objection, Refusal, Stance};

use super::scopes::by_cluster;
use super::*;

struct Fleet {
    seats: Vec<Seat>,
    node: Arc<Node>,
    good: Arc<Resource>,
    bad: Arc<Resource>,
}

impl Fleet {
    /// So many clients of one kind ask for all clusters; then a cluster changes.
    fn of(count: usize) -> Self {
        let scopes = by_cluster(0);
        let agent = UserAgent {
            name: "envoy".into(),
            version: "1.36.4".into(),
        };
        let node = Arc::new(Node {
            user_agent: Arc::new(agent),
            ..Node::default()
        });
        let seats = (0..count).map(|_| {
            let seat = scopes.enter(&node, None, 0, &Arc::default()).unwrap();
            seat.want(&want(&cds(), "*", true)).unwrap();
            seat.rest();
            seat
        });
        let fleet = Self {
            seats: seats.collect(),
            node,
            good: resource(&cds(), "a", &[], b"good"),
            bad: resource(&cds(), "a", &[], b"bad"),
        };
        for content in [&fleet.good, &fleet.bad] {
            let update = Update::Put(content.clone(), None);
            fleet.view().publish(&[covered(&cds(), vec![update])]);
        }
        fleet
    }

    fn view(&self) -> &Arc<View> {
        self.seats.first().unwrap().view()
    }

    /// These clients reject the change and go on with what they had.
    fn reject(&self, count: usize) {
        for (at, seat) in (1..).zip(self.seats.iter().take(count)) {
            let stance = Stance {
                rejects: Some(Refusal {
                    version: Some(self.bad.version()),
                    objection: Arc::new(Objection::new(13, "no", start())),
                    since: start(),
                }),
                holds: Holds::Own(self.good.clone()),
            };
            let rejecter = Rejecter {
                node: self.node.clone(),
                stream: format!("{at}.1").parse().unwrap(),
                stance,
            };
            seat.tell((&cds(), Some(&"a".into())), Some(rejecter), start());
            seat.rest_stances();
        }
    }
}

/// Nobody else is woken, and there is one row, for people and for the control plane.
#[test]
fn nobody_else_is_concerned() {
    let fleet = Fleet::of(100);
    fleet.seats.iter().for_each(|seat| drop(heard(seat)));
    fleet.reject(3);
    assert!(fleet.seats.iter().all(|seat| heard(seat).is_empty()));
    let told = fleet.view().rejections(&cds());
    assert_eq!(told.len(), 1);
    assert_eq!((&*told[0].kind, told[0].clients, told[0].of), ("envoy 1.36.4", 3, 100));
    let rows = fleet.view().rejections_of(&(cds(), Some("a".into())));
    let row = &rows[0];
    assert_eq!(
        (rows.len(), &*row.kind, row.clients, row.older),
        (1, "envoy 1.36.4", 3, 0)
    );
    assert_eq!(
        row.before.as_ref().map(|before| before.version()),
        Some(fleet.good.version())
    );
    assert_eq!(fleet.view().head().older().len(), 1, "it is kept once for all");
}

/// Who rejects what comes after a removal is not sent what was there before it (K-37).
#[test]
fn what_was_removed_is_not_offered() {
    let fleet = Fleet::of(1);
    let offered = || fleet.view().older(&cds(), &"a".into(), &fleet.node, start()).len();
    let says = |update| drop(fleet.view().publish(&[covered(&cds(), vec![update])]));
    fleet.good.note_accepted(1);
    assert_eq!(offered(), 1);
    says(Update::Forget("a".into()));
    says(Update::Put(fleet.bad.clone(), None));
    assert_eq!(offered(), 0);
}
