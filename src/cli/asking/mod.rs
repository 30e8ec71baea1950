// SPDX-License-Identifier: Apache-2.0
//! Requests to the admin addresses of running relays.
//!
//! Owns how the addresses are reached, and that several relays are asked at the same time. Knows nothing of what is asked.

mod exchange;
mod place;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ClientConnection;
use rustls_pki_types::ServerName;
use serde::de::DeserializeOwned;

use super::asked::TlsFiles;
use crate::config::Address;
use crate::tls::HTTP1;
use crate::upstream::secured;
use crate::xds::printable;
pub(super) use exchange::Bounds;
pub(super) use place::RelayPlace;
use place::{Site, VARIABLE};

/// How to reach the admin address of a relay.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which relays")]
pub(super) struct AdminAccess {
    /// The admin addresses of the relays, with commas between them: ip:port, [v6]:port, unix:/path, name:port for all addresses of
    /// a name, or a URL of one of them
    #[arg(short, long, value_name = "ADDRESS", env = VARIABLE, default_value = "127.0.0.1:9901", value_parser = RelayPlace::parse, value_delimiter = ',')]
    admin: Vec<RelayPlace>,
    #[command(flatten)]
    tls: AdminTls,
}

/// How to reach it over TLS.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which relays")]
pub(super) struct AdminTls {
    #[command(flatten)]
    files: TlsFiles,
    /// The name that the certificate of the relay is for [default: the name or IP address in --admin]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
}

/// The relays that are asked. A name is looked up once, so that two questions go to the same relays.
#[derive(Debug)]
pub(super) struct Relays<'a> {
    access: &'a AdminAccess,
    sites: Vec<Site>,
}

/// A relay that can be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relay<'a> {
    access: &'a AdminAccess,
    site: &'a Site,
}

/// What a relay says, and what is wrong with it.
pub(super) type Heard = (String, Vec<String>);

impl Relays<'_> {
    /// Asks all relays at the same time. Returns the relays with the results, in the order of their addresses.
    pub(super) fn each<T: Send>(&self, ask: impl Fn(Relay<'_>) -> T + Sync) -> Vec<(String, T)> {
        let ask = &ask;
        std::thread::scope(|threads| {
            let access = self.access;
            let relays = self.sites.iter().map(|site| Relay { access, site });
            let asked = relays.map(|relay| threads.spawn(move || (relay.to_string(), ask(relay))));
            let asked: Vec<_> = asked.collect();
            asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
        })
    }
}

impl AdminAccess {
    /// Returns the relays at these addresses, as they are now.
    pub(super) fn relays(&self) -> Relays<'_> {
        let sites = self.admin.iter().flat_map(RelayPlace::sites).collect();
        Relays { access: self, sites }
    }

    /// The relays at these addresses.
    pub(super) const fn of(admin: Vec<RelayPlace>, tls: AdminTls) -> Self {
        Self { admin, tls }
    }

    /// Asks all relays at the same time. Returns the relays with the results, in the order of their addresses.
    pub(super) fn each<T: Send>(&self, ask: impl Fn(Relay<'_>) -> T + Sync) -> Vec<(String, T)> {
        self.relays().each(ask)
    }

    /// Sends one request to each relay. Prints the answers, a line for each; with several relays, each with its address.
    ///
    /// # Errors
    /// Some relays do not answer, or refuse. The answers of the others are printed.
    pub(super) fn order(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        bounds: Bounds,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        let answers = self.each(|relay| {
            let answer = relay.ask(method, path, body, bounds);
            Ok((relay.body(answer?)?, Vec::new()))
        });
        tell(answers, out)
    }

    /// Returns what names the relays, as a part of a sentence, unless it is the flag.
    fn named_by(&self) -> String {
        match self.admin.iter().all(RelayPlace::is_in_variable) {
            true => format!(", which {VARIABLE} names"),
            false => String::new(),
        }
    }
}

impl AdminTls {
    /// Returns TLS towards a relay, if it is asked so.
    fn connection(&self, site: &Site, address: &Address) -> anyhow::Result<Option<ClientConnection>> {
        if !self.files.is_given() && !site.tls() {
            return match self.server_name {
                Some(_) => bail!("--server-name needs --ca, or an address that begins with https://"),
                None => Ok(None),
            };
        }
        let name = match (&self.server_name, site.host(), address) {
            (Some(name), ..) => ServerName::try_from(name.clone())?,
            (None, Some(host), _) => ServerName::try_from(host.to_owned())?,
            (None, None, Address::Socket(address)) => ServerName::from(address.ip()),
            (None, None, Address::Unix(_)) => bail!("a Unix socket has no TLS; remove --ca and https://"),
        };
        let config = secured(&site.to_string(), &self.files.settings(), HTTP1)?;
        Ok(Some(ClientConnection::new(config, name)?))
    }
}

impl Relay<'_> {
    /// Sends one request. Returns the status of the answer, and its body; of another status than 200 it is safe to print.
    pub(super) fn ask(&self, method: &str, path: &str, body: &[u8], bounds: Bounds) -> anyhow::Result<(u16, String)> {
        let Self { access, site } = self;
        let address = site.address().map_err(|why| anyhow::anyhow!("{why}"))?;
        // In numbers: an order to a name could come from any page that a browser shows.
        let host = match address {
            Address::Socket(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        // In this version the end of the connection is the end of the answer.
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n");
        let request = [head.as_bytes(), body].concat();
        let tls = access.tls.connection(site, address)?;
        let answer = exchange::exchange(address, tls, &request, bounds);
        let answer = answer.with_context(|| format!("no answer from {address}{}", access.named_by()))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5)?.parse().ok());
        match status {
            Some(200) => Ok((200, body.to_owned())),
            Some(status) => Ok((status, lines(body))),
            None => {
                bail!("{address} is not the admin address of a relay: it does not speak HTTP/1 (with TLS, write --ca)")
            }
        }
    }

    /// Returns the answer to a GET.
    ///
    /// # Errors
    /// There is none, or the relay refuses.
    pub(super) fn text(&self, path: &str) -> anyhow::Result<String> {
        self.body(self.ask("GET", path, b"", Bounds::LIST)?)
    }

    /// Returns the answer to a GET, which is JSON.
    ///
    /// # Errors
    /// There is none, the relay refuses, or the answer is something else.
    pub(super) fn json<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.read(&self.text(path)?, path)
    }

    /// Reads an answer, which is JSON.
    pub(super) fn read<T: DeserializeOwned>(&self, body: &str, path: &str) -> anyhow::Result<T> {
        serde_json::from_str(body).with_context(|| format!("the answer of {self} to {path} is not understood"))
    }

    /// Returns the body of an answer.
    ///
    /// # Errors
    /// The relay refuses.
    pub(super) fn body(&self, answer: (u16, String)) -> anyhow::Result<String> {
        match answer {
            (200, body) => Ok(body),
            (status, said) => bail!("{self} answers {status}: {said}"),
        }
    }
}

impl std::fmt::Display for Relay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.site.fmt(f)
    }
}

/// Prints answers, each line safe to print, and after the address of the relay unless it is alone.
///
/// # Errors
/// Some relays do not answer, or something is wrong with them, which stands behind their answers.
pub(super) fn tell(answers: Vec<(String, anyhow::Result<Heard>)>, out: &mut impl Write) -> anyhow::Result<()> {
    let alone = answers.len() == 1;
    let mut wrong = Vec::new();
    for (relay, answer) in answers {
        let (body, faults) = answer.unwrap_or_else(|error| (String::new(), vec![super::told(&error)]));
        for said in lines(&body).lines() {
            match alone {
                true => writeln!(out, "{said}")?,
                false => writeln!(out, "{relay}: {said}")?,
            }
        }
        wrong.extend(faults);
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => bail!(wrong.join("\n")),
    }
}

/// Returns an answer whose lines are safe to print.
fn lines(body: &str) -> String {
    let lines: Vec<_> = body.trim_end().lines().map(printable).collect();
    lines.join("\n")
}

/// Returns the text as a part of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Reads a time: `60s`, `250ms`, `5m`, or seconds without a unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let units = UNITS
        .iter()
        .filter_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = units.into_iter().next().unwrap_or((text, 1.0));
    let seconds = digits.parse::<f64>().ok().map(|number| number * factor);
    let seconds = seconds.filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "not a time; write 250ms, 3s, 5m or 1h, at most 24h".to_owned())
}

/// Reads a share: `1%` is 0.01.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "write a percentage from 0% to 100%, such as 99.5%".to_owned())
}

/// Reads how long to wait.
pub(super) fn patience(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("the time must not be 0".to_owned()),
        patience => Ok(patience),
    }
}

#[expect(clippy::disallowed_methods, reason = "a command measures how long its user waits")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path() {
        assert_eq!(encoded("a/ä &b~"), "a%2F%C3%A4%20%26b~");
    }

    #[test]
    fn times() {
        for (text, millis) in [
            ("3s", 3000),
            ("1.5s", 1500),
            ("10", 10_000),
            ("250ms", 250),
            ("2m", 120_000),
            ("0", 0),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "s", "-1", "soon", "1d", "25h", "nan", "inf"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
