// SPDX-License-Identifier: Apache-2.0
//! Where one kind of data goes.
//!
//! Owns the variables of the exporter: those of one signal come before those of all. Does not know when anything is sent.

use std::path::PathBuf;
use std::time::Duration;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::{Reading, pairs};
use crate::config::{CertificateFiles, Credentials, Endpoint, Supply, Tls};

/// A collector, and how to speak to it.
#[derive(Debug)]
pub(in crate::otlp) struct CollectorTarget {
    pub(in crate::otlp) uri: Uri,
    pub(in crate::otlp) endpoint: Endpoint,
    pub(in crate::otlp) credentials: Credentials,
    pub(in crate::otlp) protocol: Protocol,
    pub(in crate::otlp) headers: HeaderMap,
    pub(in crate::otlp) timeout: Duration,
    pub(in crate::otlp) gzip: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::otlp) enum Protocol {
    Grpc,
    Http,
}

/// A kind of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// Its word in the names of variables, and in sentences.
    word: &'static str,
    noun: &'static str,
    /// Where the methods are below an endpoint.
    grpc_path: &'static str,
    http_path: &'static str,
}

pub(super) const METRICS: Signal = Signal {
    word: "METRICS",
    noun: "metrics",
    grpc_path: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    http_path: "/v1/metrics",
};
pub(super) const TRACES: Signal = Signal {
    word: "TRACES",
    noun: "traces",
    grpc_path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    http_path: "/v1/traces",
};

/// The standard default.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Protocol {
    pub(in crate::otlp) const fn word(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Http => "http/protobuf",
        }
    }
}

impl CollectorTarget {
    /// Returns what to look at if a connection breaks before an answer.
    pub(in crate::otlp) const fn doubt(&self) -> &'static str {
        let unnamed = matches!(&self.credentials, Credentials::Tls(tls) if tls.identity.is_none());
        match (self.protocol, unnamed) {
            (Protocol::Grpc, false) => "is it the port for OTLP over gRPC?",
            (Protocol::Http, false) => "is it the port for OTLP over HTTP?",
            (_, true) => {
                "does it want a client certificate (OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY)?"
            }
        }
    }
}

impl Reading<'_> {
    /// Returns the variable for a signal, or else that for all signals, and its name.
    fn otlp(&self, signal: Signal, name: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.word),
            format!("OTEL_EXPORTER_OTLP_{name}"),
        ];
        names.into_iter().find_map(|name| Some((self.get(&name)?, name)))
    }

    /// Returns where a signal goes, if anywhere.
    pub(super) fn target(&mut self, signal: Signal) -> Option<CollectorTarget> {
        let is_off = self
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|off| off.eq_ignore_ascii_case("true"));
        let exporter = format!("OTEL_{}_EXPORTER", signal.word);
        let others = self.get(&exporter).filter(|exporter| exporter != "otlp");
        let (text, name) = self.otlp(signal, "ENDPOINT").filter(|_| !is_off)?;
        if let Some(other) = others {
            if other != "none" {
                let instead = format!("otlp and none are known; no {} are exported", signal.noun);
                self.warn(&exporter, &other, &instead);
            }
            return None;
        }
        let protocol = self.protocol(signal)?;
        let Some((uri, endpoint)) = located(&text) else {
            let instead = format!(
                "write http://host:port or https://host:port; no {} are exported",
                signal.noun
            );
            self.warn(&name, &text, &instead);
            return None;
        };
        let path = match protocol {
            Protocol::Grpc => signal.grpc_path.to_owned(),
            // The endpoint of one signal is used as it is.
            Protocol::Http if name.contains(signal.word) => uri.path().to_owned(),
            Protocol::Http => format!("{}{}", uri.path().trim_end_matches('/'), signal.http_path),
        };
        let mut parts = uri.into_parts();
        parts.authority = parts.authority.as_ref().and_then(without_credentials);
        parts.path_and_query = PathAndQuery::try_from(path).ok();
        let uri = Uri::from_parts(parts).ok()?;
        let timeout = self.otlp(signal, "TIMEOUT").map(|(_, name)| name);
        Some(CollectorTarget {
            credentials: self.credentials(signal, uri.scheme_str() == Some("https")),
            endpoint,
            uri,
            protocol,
            headers: self.headers(signal),
            timeout: timeout.and_then(|name| self.milliseconds(&name)).unwrap_or(TIMEOUT),
            gzip: self.gzip(signal),
        })
    }

    fn protocol(&mut self, signal: Signal) -> Option<Protocol> {
        let Some((value, name)) = self.otlp(signal, "PROTOCOL") else {
            return Some(Protocol::Http);
        };
        match value.as_str() {
            "grpc" => Some(Protocol::Grpc),
            "http/protobuf" => Some(Protocol::Http),
            other => {
                let instead = format!("grpc and http/protobuf are known; no {} are exported", signal.noun);
                self.warn(&name, other, &instead);
                None
            }
        }
    }

    fn gzip(&mut self, signal: Signal) -> bool {
        match self.otlp(signal, "COMPRESSION") {
            Some((value, _)) if value == "gzip" => true,
            Some((value, name)) if value != "none" => {
                self.warn(&name, &value, "gzip and none are known; nothing is compressed");
                false
            }
            _ => false,
        }
    }

    fn credentials(&mut self, signal: Signal, tls: bool) -> Credentials {
        if !tls {
            return Credentials::Insecure;
        }
        let file = |name| self.otlp(signal, name).map(|(path, _)| PathBuf::from(path));
        let (certificate, key) = (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY"));
        let lonely = match (&certificate, &key) {
            (Some(_), None) => Some(["CERTIFICATE", "KEY"]),
            (None, Some(_)) => Some(["KEY", "CERTIFICATE"]),
            (Some(_), Some(_)) | (None, None) => None,
        };
        let authorities = file("CERTIFICATE").map(Supply::from);
        if let Some([given, missing]) = lonely {
            self.complain(format!(
                "OTEL_EXPORTER_OTLP_CLIENT_{given} is set and OTEL_EXPORTER_OTLP_CLIENT_{missing} is not; collectors are shown no certificate"
            ));
        }
        let identity = certificate.zip(key);
        Credentials::Tls(Tls {
            authorities,
            server_name: None,
            spiffe_id: None,
            identity: identity.map(|(certificate_file, private_key_file)| {
                Supply::from(CertificateFiles {
                    certificate_file,
                    private_key_file,
                })
            }),
        })
    }

    fn headers(&mut self, signal: Signal) -> HeaderMap {
        let Some((text, name)) = self.otlp(signal, "HEADERS") else {
            return HeaderMap::new();
        };
        let mut headers = HeaderMap::new();
        for (key, value) in pairs(&text) {
            let header = HeaderName::try_from(&key).ok().zip(HeaderValue::try_from(&value).ok());
            match header {
                Some((key, mut value)) => {
                    // It may be a token.
                    value.set_sensitive(true);
                    headers.append(key, value);
                }
                None => self.complain(format!("{name} has the header `{key}`, which cannot be sent")),
            }
        }
        headers
    }
}

/// Returns an `http` or `https` URI and where it leads.
fn located(text: &str) -> Option<(Uri, Endpoint)> {
    let uri: Uri = text.parse().ok()?;
    let port = match uri.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(port);
    Some((uri, Endpoint::Tcp { host, port }))
}

/// Returns an authority as it may be logged: OTLP has credentials in header fields.
fn without_credentials(authority: &Authority) -> Option<Authority> {
    authority.as_str().rsplit('@').next()?.parse().ok()
}
