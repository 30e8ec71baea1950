// SPDX-License-Identifier: Apache-2.0
//! The page for browsers: at `/` for who accepts HTML, and its parts below `/page/`. All of it is in the program.
//!
//! Owns the files, and what a browser is told about them: they need nothing from elsewhere, and nothing else may become a part of
//! them. What the page shows it asks of the other paths; names and words from clients become text there, never markup.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file of the page.
struct Asset {
    name: &'static str,
    text: &'static str,
}

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns the files with these names.
macro_rules! parts {
    ($($name:literal)+) => {
        &[$(Asset { name: $name, text: include_str!($name) }),+]
    };
}

const HTML: Asset = Asset {
    name: "page.html",
    text: include_str!("page.html"),
};

const PARTS: &[Asset] = parts! {
    "figures.css" "narrow.css" "page.css" "parts.css" "mark.svg"
    "asked.js" "certificates.js" "changes.js" "charts.js" "clients.js" "contents.js" "difference.js" "elements.js" "holds.js" "hour.js"
    "live.js" "overview.js" "page.js" "parts.js" "rejections.js" "resources.js" "searched.js" "servers.js" "troubles.js" "words.js"
};

impl Asset {
    fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("css") => STYLE,
            Some("js") => SCRIPT,
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }
}

/// What a browser may load for the page, and from where: only what this address has. Nobody may show the page inside another one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page for who accepts HTML, and the list of paths for everybody else.
pub(super) async fn root(headers: HeaderMap) -> Response {
    let answer = match accepts_html(&headers) {
        true => shown(&HTML),
        false => super::help().into_response(),
    };
    ([(header::VARY, "accept")], answer).into_response()
}

pub(super) async fn part(Path(name): Path<String>) -> Response {
    match PARTS.iter().find(|part| part.name == name) {
        Some(part) => shown(part),
        None => (StatusCode::NOT_FOUND, "the page has no such part\n").into_response(),
    }
}

/// Whether an `Accept` header names HTML, and does not say that it is refused. `*/*` does not: that is what curl sends.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        html && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

fn shown(part: &Asset) -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(part.kind())),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        // Another version of the program has other files under the same names.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, part.text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::INVISIBLE;

    fn accepting(accept: &str) -> HeaderMap {
        [(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]
            .into_iter()
            .collect()
    }

    #[test]
    fn who_gets_the_page() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
        for html in [browser, "Text/HTML;q=0.5", "application/json, text/html"] {
            assert!(accepts_html(&accepting(html)), "{html}");
        }
        for other in ["*/*", "text/plain", "application/json", "text/html;q=0", "text/*", ""] {
            assert!(!accepts_html(&accepting(other)), "{other}");
        }
        assert!(!accepts_html(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn browsers_load_nothing_from_elsewhere() {
        let page = root(accepting("text/html")).await;
        let says = |answer: &Response, name: HeaderName| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(says(&page, header::CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(says(&page, header::VARY), "accept");
        let list = root(HeaderMap::new()).await;
        assert_eq!(says(&list, header::CONTENT_TYPE), "text/plain; charset=utf-8");
        assert!(!list.headers().contains_key(header::CONTENT_SECURITY_POLICY));
        let script = part(Path("page.js".to_owned())).await;
        assert_eq!(says(&script, header::CONTENT_TYPE), SCRIPT);
        for answer in [page, script] {
            let policy = says(&answer, header::CONTENT_SECURITY_POLICY);
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
                "{policy}"
            );
        }
        assert_eq!(part(Path("mod.rs".to_owned())).await.status(), StatusCode::NOT_FOUND);
    }

    /// The page escapes what all other outputs escape; tabs and ends of lines are its own affair.
    #[test]
    fn nothing_is_hidden() {
        let range = |(first, last): (char, char)| match first == last {
            true => format!("\\u{{{:x}}}", u32::from(first)),
            false => format!("\\u{{{:x}}}-\\u{{{:x}}}", u32::from(first), u32::from(last)),
        };
        let controls = [('\0', '\u{8}'), ('\u{b}', '\u{1f}'), ('\u{7f}', '\u{9f}')];
        let all: String = controls.into_iter().chain(INVISIBLE).map(range).collect();
        let elements = PARTS.iter().find(|part| part.name == "elements.js").unwrap();
        assert!(elements.text.contains(&format!("/[{all}]/gu")), "write /[{all}]/gu");
    }

    /// Scripts, styles and pictures have paths of their own, because the policy allows none within the page; and each import exists.
    #[test]
    fn the_parts_fit_together() {
        let known = |name: &str| PARTS.iter().any(|part| part.name == name);
        assert!(!HTML.text.contains("<style") && !HTML.text.contains(" style=") && !HTML.text.contains("javascript:"));
        let own = HTML.text.match_indices("\"/page/").map(|(at, _)| &HTML.text[at + 7..]);
        let own: Vec<&str> = own.filter_map(|rest| rest.split('"').next()).collect();
        assert!(own.len() >= 3 && own.iter().all(|name| known(name)), "{own:?}");
        for script in PARTS.iter().filter(|part| part.kind() == SCRIPT) {
            let imports = script.text.lines().filter(|line| line.contains("from \"")).count();
            let known = PARTS
                .iter()
                .filter(|part| script.text.contains(&format!("from \"./{}\"", part.name)));
            assert_eq!(known.count(), imports, "{}", script.name);
            let addresses = script.text.matches("://").count();
            assert_eq!(
                addresses,
                script.text.matches("http://www.w3.org/").count(),
                "{}",
                script.name
            );
            for markup in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!script.text.contains(markup), "{}: {markup}", script.name);
            }
        }
    }
}
