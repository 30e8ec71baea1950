// SPDX-License-Identifier: Apache-2.0
//! The two text forms of metrics: OpenMetrics, which the library writes, and Prometheus's own, which everything reads.
//!
//! Owns what differs between them. Knows no metric.

/// A text form of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus's own.
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

const OPENMETRICS: &str = "application/openmetrics-text";

impl Exposition {
    /// Returns the form for a client that accepts these content types: OpenMetrics if it is among them.
    #[must_use]
    pub fn accepted(content_types: &str) -> Self {
        if content_types.contains(OPENMETRICS) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Returns its content type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Begins an example of a bucket, after the value.
const EXAMPLE: &str = " # {trace_id=";

/// Returns a text of OpenMetrics in Prometheus's own form, which has no units, no examples and no end, and describes a counter under
/// the name that its samples have. In the text each description begins with the help, and the type follows.
pub(super) fn prometheus(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut lines = openmetrics.lines().peekable();
    let mut counted = false;
    while let Some(line) = lines.next() {
        let Some(description) = line.strip_prefix("# ") else {
            let sample = line.rsplit_once(EXAMPLE).map_or(line, |(sample, _)| sample);
            text.extend([sample, "\n"]);
            continue;
        };
        let Some((kind, rest)) = description.split_once(' ') else {
            continue;
        };
        if kind == "HELP" {
            counted = lines.peek().is_some_and(|next| next.ends_with(" counter"));
        }
        if let ("HELP" | "TYPE", Some((name, rest))) = (kind, rest.split_once(' ')) {
            let suffix = if counted { "_total" } else { "" };
            text.extend(["# ", kind, " ", name, suffix, " ", rest, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_described_under_the_name_of_its_samples() {
        let openmetrics = "\
# HELP a_seconds Some # text with counter
# TYPE a_seconds gauge
# UNIT a_seconds seconds
a_seconds{x=\"# EOF\"} 1
# HELP b Some counter
# TYPE b counter
b_total{x=\"\\n\"} 2
# HELP c Others
# TYPE c histogram
c_sum 0.0
c_bucket{le=\"+Inf\"} 0 # {trace_id=\"0a\",span_id=\"0b\"} 0.5 1.5
# EOF
";
        let expected = "\
# HELP a_seconds Some # text with counter
# TYPE a_seconds gauge
a_seconds{x=\"# EOF\"} 1
# HELP b_total Some counter
# TYPE b_total counter
b_total{x=\"\\n\"} 2
# HELP c Others
# TYPE c histogram
c_sum 0.0
c_bucket{le=\"+Inf\"} 0
";
        assert_eq!(prometheus(openmetrics), expected);
    }

    #[test]
    fn who_asks_for_openmetrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        assert_eq!(Exposition::accepted(prometheus), Exposition::OpenMetrics);
        for others in ["", "*/*", "text/plain;version=0.0.4", "text/html"] {
            assert_eq!(Exposition::accepted(others), Exposition::Prometheus, "{others}");
        }
    }
}
