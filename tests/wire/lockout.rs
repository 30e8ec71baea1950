// SPDX-License-Identifier: Apache-2.0
//! Connections with many tokens that are refused, and with many calls: they wait, and others do not.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tonic::Code;

use crate::hostile::wrong_token;
use crate::support::client::Client;
use crate::support::{CDS, Relay, path, raw, until};
use crate::tokens::{Published, Signer};

/// How many tokens of a connection may be refused before it waits.
const FREE: u32 = 16;

fn relay(signer: &Signer) -> Relay {
    let published = Published::new(&[signer.public()]);
    let relay = Relay::with(|plan| plan.tokens = published.tokens());
    relay.put(CDS, &["a"], "body");
    relay
}

/// How many tokens had this result.
fn counted(relay: &Relay, result: &str) -> u32 {
    let shown = relay.shared.metrics.encode().unwrap();
    let name = format!("distributary_tokens_total{{result=\"{result}\"}} ");
    let count = shown.lines().find_map(|line| line.strip_prefix(&name));
    count.unwrap().parse().unwrap()
}

async fn says(client: &Client, token: &str) -> String {
    let token = format!("Bearer {token}");
    let mut call = client
        .call_with(path(xds::Dialect::Delta), &[("authorization", &*token)])
        .await;
    let ended = call.end().await;
    assert_eq!(ended.code, Code::Unauthenticated as i32, "{ended:?}");
    ended.message
}

/// After some refused tokens, none of the connection is looked at for a while. Other connections do not wait, and this one comes in
/// again with a good token.
#[tokio::test]
async fn a_connection_with_wrong_tokens_waits() {
    let signer = Signer::new("one");
    let relay = relay(&signer);
    let (bad, good) = (relay.connect().await, relay.connect().await);
    let token = format!("Bearer {}", signer.sign(&json!({})));
    let (path, headers) = (path(xds::Dialect::Delta), [("authorization", &*token)]);
    // On a busy machine the connection may have waited long enough before the good token comes: then it waits anew.
    let mut refused = None;
    let mut heard = 0;
    for round in 0..10 {
        for number in 0..FREE + 8 {
            says(&bad, &wrong_token(100 * round + number)).await;
        }
        heard = counted(&relay, "good");
        let mut call = bad.call_with(path, &headers).await;
        if let Ok(ended) = timeout(Duration::from_secs(1), call.next_bytes()).await {
            refused = Some(ended.expect_err("a response instead of the end"));
            break;
        }
    }
    let refused = refused.expect("it never waits");
    assert_eq!(refused.code, Code::Unauthenticated as i32, "{refused:?}");
    assert!(refused.message.contains("is not looked at"), "{refused:?}");
    let mut other = good.call_with(path, &headers).await;
    assert!(other.is_silent().await);
    until(|| counted(&relay, "good") == heard + 1, || "the other was not heard").await;
    let mut patience = 0;
    while counted(&relay, "good") < heard + 2 {
        let mut again = bad.call_with(path, &headers).await;
        let came = again.is_silent().await;
        patience += 1;
        assert!(came || patience < 100, "it does not come in again");
    }
}

/// However many wrong tokens come, few of their signatures are checked.
#[tokio::test]
async fn few_of_many_wrong_tokens_are_checked() {
    const CALLS: u32 = 1000;
    let signer = Signer::new("one");
    let relay = relay(&signer);
    let (mut frames, mut write) = raw::connect(relay.port()).await;
    frames.next_of(raw::WINDOW_UPDATE).await;
    let head = |n: u32| {
        let token = format!("Bearer {}", wrong_token(n));
        raw::call(2 * n + 1, path(xds::Dialect::Delta), &[("authorization", &token)])
    };
    let heads: Vec<u8> = (0..CALLS).flat_map(head).collect();
    let read = async {
        for _ in 0..CALLS {
            frames.next_of(raw::HEADERS).await;
        }
    };
    tokio::join!(read, async { write.write_all(&heads).await.unwrap() });
    let checked = counted(&relay, "signature");
    // The waits double from 10 ms on.
    assert!((FREE..FREE + 12).contains(&checked), "{checked} were checked");
    assert_eq!(counted(&relay, "unchecked"), CALLS - checked);
}

/// Of many calls that come at once, few begin in a turn of their connection, and others have turns in between.
#[tokio::test]
async fn many_calls_begin_in_several_turns() {
    const CALLS: i64 = 2000;
    const IN_A_TURN: i64 = 64;
    let relay = Relay::start();
    let (mut frames, mut write) = raw::connect(relay.port()).await;
    frames.next_of(raw::WINDOW_UPDATE).await;
    let heads = (0..u32::try_from(CALLS).unwrap()).flat_map(|n| raw::call(2 * n + 1, path(xds::Dialect::Delta), &[]));
    let heads: Vec<u8> = heads.collect();
    let (mut open, mut most) = (0, 0);
    let begin = async {
        while open < CALLS {
            let now = relay.open().0;
            most = most.max(now - open);
            open = now;
            tokio::task::yield_now().await;
        }
    };
    let read = async { while frames.next().await.is_some() {} };
    tokio::select! {
        () = begin => {}
        () = read => panic!("the connection has ended"),
        _ = async {
            write.write_all(&heads).await.unwrap();
            std::future::pending::<()>().await;
        } => {}
    }
    assert!(most <= 2 * IN_A_TURN, "{most} calls began in one turn");
}
