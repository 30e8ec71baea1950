// SPDX-License-Identifier: Apache-2.0
//! Names that clients do not write in canonical form: servers that compare bytes are asked for what was written.

use xds::Dialect;

use crate::{EDS, Upstream, delta, ms, refusal, sotw};

const E: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/";
/// Two spellings of one name, neither of which is canonical.
const ONE: &str = "a%20b?k=1&j=2";
const TWO: &str = "a b?k=1&j=2";
const NAME: &str = "a b?j=2&k=1";

fn full(text: &str) -> String {
    format!("{E}{text}")
}

impl Upstream {
    fn wants_as(&mut self, text: &str) {
        self.want(EDS, &full(text));
    }

    /// A response in the dialect: names with their content, and names that are gone, each as the server writes it.
    fn hears_as(&mut self, nonce: &str, puts: &[(&str, &str)], removed: &[&str]) {
        match self.client.dialect() {
            Dialect::Delta => {
                let mut response = delta(EDS, nonce, &[], &[]);
                let put = |(text, content): &(&str, &str)| crate::resource(EDS, &full(text), content);
                response.resources = puts.iter().map(put).collect();
                response.removed_resources = removed.iter().map(|text| full(text)).collect();
                self.hears(response);
            }
            Dialect::Sotw => {
                let mut response = sotw(EDS, nonce, nonce, &[]);
                let put = |(text, content): &(&str, &str)| crate::body(EDS, &full(text), content);
                response.resources = puts.iter().map(put).collect();
                self.hears_sotw(response);
            }
        }
    }

    /// The requests that are sent, in delta without acknowledgements.
    fn says(&mut self) -> Vec<String> {
        let lines = self.sent().into_iter().map(|line| line.replace(E, ""));
        lines.filter(|line| !line.starts_with("eds ack")).collect()
    }

    fn holds(&self) -> String {
        self.named(EDS).replace(E, "")
    }
}

fn asking(dialect: Dialect, texts: &[&str]) -> Upstream {
    let texts: Vec<String> = texts.iter().map(|text| full(text)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Upstream::streaming(dialect, EDS, &texts)
}

/// F-07: on every stream the server is asked for the very bytes, they are declared with the version that it gave, and they are
/// unsubscribed.
#[test]
fn the_very_bytes() {
    for text in ["a%20b", "%C3%BC", "%22", "a%2Fb", "x?b=2&a=1", "d/%2A"] {
        let mut upstream = Upstream::new(Dialect::Delta);
        upstream.wants_as(text);
        upstream.connect();
        assert_eq!(upstream.says(), [format!("eds +{text}")]);
        if text != "d/%2A" {
            upstream.hears_as("n1", &[(text, "1")], &[]);
            assert!(upstream.holds().ends_with("=1"), "{}", upstream.holds());
            upstream.sent();
            upstream.reconnect();
            assert_eq!(upstream.says(), [format!("eds +{text} {text}@unknown")]);
        }
        upstream.wants_as("other");
        upstream.says();
        upstream.unwant(EDS, &full(text));
        assert_eq!(upstream.says(), [format!("eds -{text}")]);

        let mut upstream = Upstream::new(Dialect::Sotw);
        upstream.wants_as(text);
        upstream.connect();
        assert_eq!(upstream.says(), [format!("eds [{text}] v")]);
    }
    // F-07: directives are never sent upstream.
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.wants_as("%78#entry=y");
    upstream.connect();
    assert_eq!(upstream.says(), ["eds +%78"]);
}

/// F-04, F-07: what the server has under one text answers all other spellings: they are one subscription.
#[test]
fn one_answer_for_all() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = asking(dialect, &[ONE]);
        upstream.hears_as("n1", &[(ONE, "1")], &[]);
        upstream.sent();
        upstream.wants_as(TWO);
        upstream.wants_as(NAME);
        assert!(upstream.says().is_empty());
        assert_eq!(upstream.holds(), format!("{NAME}=1"));
    }
    // A server that uses its own spelling may be asked in any spelling.
    let mut upstream = asking(Dialect::Delta, &[ONE]);
    upstream.hears_as("n1", &[("a%20b?j=2&k=1", "1")], &[]);
    upstream.wants_as(TWO);
    assert!(upstream.says().is_empty());
    upstream.hears_as("n2", &[], &["a%20b?j=2&k=1"]);
    assert_eq!(upstream.holds(), format!("{NAME}:Said"));
}

/// F-04, F-07: the same if the server has answered to the canonical text before any client used another spelling.
#[test]
fn one_answer_to_the_canonical_text() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = asking(dialect, &[NAME]);
        upstream.hears_as("n1", &[(NAME, "1")], &[]);
        upstream.sent();
        upstream.wants_as(ONE);
        assert!(upstream.says().is_empty());
        assert_eq!(upstream.holds(), format!("{NAME}=1"));
        upstream.reconnect();
        let told = upstream.says();
        assert!(told.iter().all(|line| !line.contains(ONE)), "{told:?}");
    }
}

/// F-07: a resource that a server moves from one text to another in one response exists under the other from then on: that is no
/// contradiction, and no session is told that it is gone.
#[test]
fn moved_in_one_response() {
    let mut upstream = asking(Dialect::Delta, &[ONE, TWO]);
    upstream.hears_as("n1", &[(ONE, "1")], &[TWO]);
    assert_eq!(upstream.holds(), format!("{NAME}=1"));
    upstream.hears_as("n2", &[(TWO, "2")], &[ONE]);
    assert_eq!(refusal(&mut upstream), "");
    assert_eq!(upstream.holds(), format!("{NAME}=2"));
    upstream.hears_as("n3", &[], &[ONE]);
    assert_eq!(upstream.holds(), format!("{NAME}=2"));
    // The same text cannot be both present and removed.
    upstream.hears_as("n4", &[(TWO, "3")], &[TWO]);
    upstream.refuses("both in resources and in removed_resources");
}

/// F-07: that there is nothing under one text says nothing about another: the server is asked for both until it answers to one.
#[test]
fn what_is_not_there_in_one_way() {
    let mut upstream = asking(Dialect::Delta, &[ONE]);
    upstream.hears_as("n1", &[], &[ONE]);
    assert_eq!(upstream.holds(), format!("{NAME}:Said"));
    upstream.wants_as(TWO);
    assert_eq!(upstream.holds(), "");
    assert_eq!(upstream.says(), [format!("eds +{TWO}")]);
    upstream.hears_as("n2", &[(TWO, "1")], &[]);
    assert_eq!(upstream.holds(), format!("{NAME}=1"));
    assert!(upstream.says().is_empty());
    // The text that it answers to goes: there may be something under the other text by now.
    upstream.hears_as("n3", &[], &[TWO]);
    assert_eq!(upstream.holds(), format!("{NAME}:Said"));
    assert_eq!(upstream.says(), [format!("eds -{ONE}"), format!("eds +{ONE}")]);
    upstream.hears_as("n4", &[(ONE, "2")], &[]);
    assert_eq!(upstream.holds(), format!("{NAME}=2"));
    // The next stream begins with the text that the server answers to.
    upstream.says();
    upstream.reconnect();
    assert_eq!(upstream.says(), [format!("eds +{ONE} {ONE}@unknown")]);
    upstream.hears_as("n5", &[], &[ONE]);
    assert_eq!(upstream.says(), [format!("eds +{TWO}")]);
}

/// E-08, F-07: a name that is asked for by two texts does not exist if there is nothing under either, or when the time is over.
#[test]
fn neither_is_there() {
    let mut upstream = asking(Dialect::Delta, &[ONE, TWO]);
    upstream.hears_as("n1", &[], &[ONE]);
    assert_eq!(upstream.holds(), "");
    upstream.hears_as("n2", &[], &[TWO]);
    assert_eq!(upstream.holds(), format!("{NAME}:Said"));

    let mut upstream = asking(Dialect::Sotw, &[ONE]);
    assert_eq!(upstream.after(ms(15_000)).holds(), format!("{NAME}:TimedOut"));
    upstream.wants_as(TWO);
    assert_eq!(upstream.says(), [format!("eds [{TWO} {ONE}] v")]);
    assert_eq!(upstream.after(ms(14_000)).holds(), "");
    upstream.hears_as("n1", &[(TWO, "1")], &[]);
    assert_eq!(upstream.holds(), format!("{NAME}=1"));
}

/// F-07: a response with different content under two texts is not rejected; the text that the server answers to first counts
/// until it is gone.
#[test]
fn both_are_there_and_differ() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        // In one response.
        let mut upstream = asking(dialect, &[ONE, TWO]);
        upstream.hears_as("n1", &[(ONE, "1"), (TWO, "2")], &[]);
        assert_eq!(refusal(&mut upstream), "");
        assert_eq!(upstream.holds(), format!("{NAME}=2"));
        // One after the other.
        let mut upstream = asking(dialect, &[ONE, TWO]);
        upstream.hears_as("n1", &[(ONE, "1")], &[]);
        upstream.hears_as("n2", &[(ONE, "1"), (TWO, "2")], &[]);
        assert_eq!(upstream.holds(), format!("{NAME}=1"));
        upstream.hears_as("n3", &[(TWO, "3")], &[]);
        assert_eq!(upstream.holds(), format!("{NAME}=1"));
        upstream.hears_as("n4", &[(ONE, "4")], &[]);
        assert_eq!(upstream.holds(), format!("{NAME}=4"));
        upstream.hears_as("n5", &[], &[TWO]);
        assert_eq!(upstream.holds(), format!("{NAME}=4"));
        assert_eq!(refusal(&mut upstream), "");
    }
    let mut upstream = asking(Dialect::Delta, &[ONE, TWO]);
    upstream.hears_as("n1", &[(ONE, "1")], &[]);
    upstream.hears_as("n2", &[(TWO, "2")], &[]);
    upstream.hears_as("n3", &[], &[ONE]);
    assert_eq!(upstream.says(), [format!("eds -{TWO}"), format!("eds +{TWO}")]);
    upstream.hears_as("n4", &[(TWO, "2")], &[]);
    assert_eq!(upstream.holds(), format!("{NAME}=2"));
    // E-12: the same text twice is that name twice.
    let mut upstream = asking(Dialect::Delta, &[ONE, TWO]);
    upstream.hears_as("n1", &[(ONE, "1"), (ONE, "2")], &[]);
    upstream.refuses("more than once");
}

/// F-07: a name that is given up is given up in all its spellings, and begins anew.
#[test]
fn given_up_and_wanted_anew() {
    let mut upstream = asking(Dialect::Delta, &[ONE, TWO, "other"]);
    upstream.unwant(EDS, &full(ONE));
    assert_eq!(upstream.says(), [format!("eds -{TWO} -{ONE}")]);
    upstream.wants_as(NAME);
    assert_eq!(upstream.says(), [format!("eds +{NAME}")]);
    upstream.wants_as(ONE);
    assert_eq!(upstream.says(), [format!("eds +{ONE}")]);
    upstream.reconnect();
    assert_eq!(upstream.says(), [format!("eds +{NAME} +{ONE} +other")]);
}
