//! What words of a rejection may do, and what becomes of older secrets.

use std::time::Duration;

use distributary::xds::{Dialect, VerdictSettings};

use super::{Case, OLD, RDS, gets};
use crate::support::CDS;

/// What a client rejects is what was in the response, whatever its words name, how long they are, and what is in them.
#[tokio::test]
async fn words_that_name_others() {
    for (dialect, type_url) in [(Dialect::Delta, CDS), (Dialect::Sotw, RDS), (Dialect::Delta, RDS)] {
        let case = Case::new((dialect, type_url, &["a", "b"]));
        case.put("good");
        case.relay.put(type_url, &["b"], "good b");
        let mut clients = vec![case.client("one", OLD).await, case.client("two", OLD).await];
        for client in &mut clients {
            assert_eq!(client.next().await.unwrap().bodies.len(), 2);
            client.ack();
        }
        case.acks_reach(2).await;
        case.relay.put(type_url, &["b"], "better b");
        for client in &mut clients {
            assert!(client.next().await.unwrap().bodies.contains(&"better b".to_owned()));
            client.ack();
        }
        case.acks_reach(4).await;
        case.put("bad");
        let words = format!("cluster b: \u{1b}[31m\r\n\0{}", "b ".repeat(32 << 10));
        for client in &mut clients {
            assert!(client.next().await.unwrap().bodies.contains(&"bad".to_owned()));
            client.nack(&words);
        }
        case.holds(1).await;
        let condemned = case.relay.view().head().condemned()[0].clone();
        assert_eq!(condemned.name().as_str(), "a", "{dialect:?} {type_url}");
        let told = condemned.objection.words();
        assert!(
            told.len() <= 4096 && !told.contains(['\u{1b}', '\0']),
            "{} bytes",
            told.len()
        );
        let mut newcomer = case.client("three", OLD).await;
        let got = newcomer.next().await.unwrap().bodies;
        assert!(
            got.contains(&"good".to_owned()) && got.contains(&"better b".to_owned()),
            "{got:?}"
        );
    }
}

/// An older secret stands in, and is kept for nothing else: when verdicts were off, it is gone.
#[tokio::test]
async fn an_older_secret() {
    const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = Case::new((dialect, SDS, &["a"]));
        let (_old, _new) = case.condemned("bad").await;
        gets(&mut case.client("four", OLD).await, "good").await;
        let docket = case.relay.shared.scopes.docket();
        let on = docket.settings();
        docket.set(VerdictSettings { after: 0, ..on });
        case.holds(0).await;
        // As a reload does.
        case.relay.view().head().forget_secrets();
        docket.set(on);
        let mut newcomers = Vec::new();
        for id in ["five", "six"] {
            let mut client = case.client(id, OLD).await;
            assert_eq!(client.next().await.unwrap().bodies, ["bad"]);
            client.nack("a: no");
            newcomers.push(client);
        }
        case.rejects(4).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(case.relay.view().head().condemned().is_empty(), "{dialect:?}");
    }
}
