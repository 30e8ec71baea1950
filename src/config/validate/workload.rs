// SPDX-License-Identifier: Apache-2.0
//! Validates the `spiffe` of a `tls`: where a SPIFFE Workload API is, and what to take from it.

use std::path::PathBuf;

use super::Check;
use super::spiffe::Supplies;
use crate::config::reading::Spanned;
use crate::config::shape::Spiffe;
use crate::config::{Supply, Workload, is_abstract, unix};

const EXAMPLE: &str = "unix:///run/spire/agent/public/api.sock";
/// The variable by which workloads know where their agent is.
const ENVIRONMENT: &str = "SPIFFE_ENDPOINT_SOCKET";

pub(super) fn workload(check: &mut Check, key: &str, written: &Spanned<Spiffe>) -> Option<Supplies> {
    let place = Some(written.place);
    let Spiffe { socket, hint } = &written.value;
    let of_socket = format!("{key}.socket");
    let socket = match (socket, check.endpoint_socket().map(str::to_owned)) {
        (Some(_), _) => check.read(&of_socket, socket.as_ref(), path)?,
        (None, Some(given)) => {
            let bad = |why| check.at(place, key, format!("{ENVIRONMENT}: {why}"));
            path(&given).map_err(bad).ok()?
        }
        (None, None) => {
            let message = format!("there is no socket; write such as {EXAMPLE}, or set {ENVIRONMENT}");
            check.at(place, of_socket, message);
            return None;
        }
    };
    let hint = hint.as_ref().map(|hint| hint.value.clone());
    let workload = Workload { socket, hint };
    Some((
        Some(Supply::Workload(workload.clone())),
        Some(Supply::Workload(workload)),
    ))
}

/// Reads `unix:///path`, `unix:/path` or `unix:@name`.
fn path(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix:");
    let path = path.map(|path| path.strip_prefix("//").unwrap_or(path));
    let path = path.and_then(|path| unix::path(path).ok());
    path.filter(|path| path.is_absolute() || is_abstract(path))
        .ok_or_else(|| format!("`{text}` is not the Unix socket of a Workload API; write such as {EXAMPLE}"))
}
