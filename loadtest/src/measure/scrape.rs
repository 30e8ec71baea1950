// SPDX-License-Identifier: Apache-2.0
//! Reads the relay's admin port: one HTTP/1.1 GET at a time, and the counters in the response.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Gets the body of a page; fails if the status is not 200.
pub(crate) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    socket.read_to_string(&mut response).await?;
    let (head, body) = response
        .split_once("\r\n\r\n")
        .context("the admin port does not speak HTTP")?;
    if !head.starts_with("HTTP/1.1 200 ") {
        bail!(
            "the admin port answered {path} with {}",
            head.lines().next().unwrap_or_default()
        );
    }
    Ok(body.to_owned())
}

/// Counters in Prometheus' text form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Vec<(String, f64)>);

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// Returns the sum over all series of this name; none if there is no such counter.
    pub(crate) fn sum(&self, name: &str) -> Option<f64> {
        let mut values = self
            .0
            .iter()
            .filter(|(series, _)| series.split('{').next() == Some(name))
            .map(|(_, value)| *value);
        let first = values.next()?;
        Some(first + values.sum::<f64>())
    }
}
