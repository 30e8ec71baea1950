//! Very many kinds of clients, and very many contents.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Contents, Earlier, Verdicts, Witness};
use xds::{Name, Resource, ResourceParts, Version};

use super::Standing::Rejected;
use super::{Client, Court, cds, node};

/// Beyond a number of kinds the rest are one: any of them may accept for all.
#[test]
fn very_many_kinds() {
    let versions: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let mut court = Court::new();
    let clients: Vec<Client<'_>> = versions.iter().map(|version| ("a", &**version, 0, Rejected)).collect();
    court.hears(&clients);
    let served = court.served();
    assert_eq!(served.len(), 65);
    assert_eq!(served[64].0, "other software");
}

/// Ten thousand changes in a second, each of which all clients reject: questions keep their pace, and what is condemned is what the control
/// plane says now. An answer that is late condemns nothing.
#[test]
fn ten_thousand_changes_in_a_second() {
    let mut court = Court::new();
    let both: [Client<'_>; 2] = [("a", "1", 0, Rejected), ("b", "1", 0, Rejected)];
    let (mut asked, mut condemned) = (0, 0);
    for number in 0..10_000 {
        let before = court.current.clone();
        court.says_after(Duration::from_micros(100), &format!("bad {number}"));
        assert!(court.served().is_empty(), "{number}");
        if let Some(hearing) = court.rejection() {
            asked += 1;
            let is_late = asked % 2 == 0;
            let answered = if is_late { before } else { court.current.clone() };
            court.answer(hearing, &answered, &both);
            assert_eq!(court.served().is_empty(), is_late, "{number}");
            condemned += court.served().len();
        }
    }
    assert!((4..=5).contains(&asked), "{asked}");
    assert!(condemned >= 2, "{condemned}");
}

/// Beyond a number of contents no more are condemned: newcomers are served them as the control plane says them.
#[test]
fn ten_thousand_contents() {
    let (now, mut verdicts) = (Court::new().now, Verdicts::default());
    verdicts.set(2);
    let contents = Contents {
        is_current: &|_, _, _| true,
        earlier: &|_, name, _| {
            let parts = ResourceParts {
                type_url: &cds(),
                name: name.clone(),
                aliases: Vec::new(),
                passed_on: &[],
                body: b"before",
                endpoints: None,
                received: now,
            };
            Some(Earlier {
                resource: Arc::new(Resource::new(parts, 0)),
                until: now + Duration::from_secs(1),
            })
        },
    };
    for round in 0..10_u64 {
        let names: Vec<Name> = (0..1000)
            .map(|number| format!("{round} {number}").as_str().into())
            .collect();
        let now = now + Duration::from_secs(round * 60);
        verdicts.handle_rejection(&cds(), now);
        let mut hearing = verdicts.poll_question(now).unwrap();
        let rejecting = node("a", "1");
        names.iter().for_each(|name| hearing.ask(&rejecting, name));
        for client in [1, 2] {
            let witness = Witness {
                node: &rejecting,
                client,
                tenant: 0,
                since: now.checked_sub(Duration::from_secs(3600)).unwrap(),
                accepts: true,
            };
            hearing.hear(
                witness,
                names.iter().map(|name| (name, Version::from_bits(7), Rejected, None)),
            );
        }
        verdicts.handle_hearing(&hearing, &contents, now);
    }
    assert_eq!(verdicts.condemned().len(), 1024);
}
