// SPDX-License-Identifier: Apache-2.0
//! `/stats`, and what becomes of regular expressions that cannot be used.

use serde_json::json;

use super::Window;
use crate::support::Relay;

/// The three forms show the same numbers, and those that were asked for.
#[tokio::test]
async fn the_metrics_in_three_forms() {
    let window = Window::of(&Relay::start());
    let (status, text) = window.get("/stats").await;
    assert_eq!(status, 200);
    assert!(text.contains("distributary_streams{dialect=\"delta\"}: 0\n"), "{text}");
    let one = |line: &str| line.contains(": ") && !line.starts_with('#');
    assert!(text.lines().all(one), "{text}");
    let (_, some) = window.get("/stats?filter=streams.*sotw").await;
    assert_eq!(some, "distributary_streams{dialect=\"sotw\"}: 0\n");
    let (_, used) = window.get("/stats?usedonly&filter=distributary_(streams|build)").await;
    assert!(used.starts_with("distributary_build_info{"), "{used}");
    assert_eq!(used.lines().count(), 1, "{used}");
    let all = window.json("/stats?format=json&filter=dialect%3D%22sotw").await;
    let expected = json!({"name": "distributary_streams{dialect=\"sotw\"}", "value": 0});
    assert_eq!(all, json!({"stats": [expected]}));
    let (_, prometheus) = window.get("/stats?format=prometheus&filter=distributary_views").await;
    assert!(prometheus.starts_with("# HELP distributary_views ") && prometheus.ends_with("\ndistributary_views 0\n"));
}

#[tokio::test]
async fn wrong_questions_say_what_is_right() {
    let window = Window::of(&Relay::start());
    for (query, word) in [
        ("filter=a(", "filter: `a(` is not a regular expression"),
        ("filter=((a%7B99%7D)%7B99%7D)%7B99%7D", "size limit"),
        ("format=html", "format=text, json or prometheus"),
        ("used", "filter=REGEX"),
    ] {
        let (status, text) = window.get(&format!("/stats?{query}")).await;
        assert!(status == 400 && text.contains(word), "{query}: {status} {text}");
    }
}
