// SPDX-License-Identifier: Apache-2.0
//! Characters that cannot be seen: whatever clients and control planes say, the JSON of the admin address has them as numbers.

use distributary::xds::Dialect;
use serde_json::Value;

use super::{Window, client};
use crate::rest::put;
use crate::support::{CDS, Relay};

/// It turns the direction of the text around it.
const TURNS: char = '\u{202e}';
/// A name, a node and a reason with it.
const NAME: &str = "right-to-\u{202e}left";

#[tokio::test]
async fn no_json_has_hidden_characters() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    put(&relay, CDS, &[NAME], 1);
    let mut edge = client(&relay, Dialect::Delta, CDS, NAME).await;
    edge.subscribe(&["*"]);
    edge.next().await.unwrap();
    edge.nack(NAME);
    let encoded = NAME.replace(TURNS, "%E2%80%AE");
    window.until(&encoded, CDS, "ERROR").await;
    put(&relay, CDS, &[NAME], 2);
    edge.next().await.unwrap();
    edge.nack(NAME);
    let paths = "/clients?format=json /nacks /resources /config_dump /changes /views /clients/node=NAME \
                 /resources/NAME?type=cds /config_dump?name_regex=NAME";
    for path in paths.replace("NAME", &encoded).split(' ') {
        let (status, text) = window.get(path).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(!text.contains(TURNS), "{path}: {}", text.escape_debug());
        let read: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
        let says = read.to_string().contains(TURNS) || text.contains("\\u{202e}");
        assert!(path == "/views" || says, "{path} says nothing of it: {text}");
    }
}
