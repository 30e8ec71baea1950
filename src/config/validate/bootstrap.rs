// SPDX-License-Identifier: Apache-2.0
//! Validates where the bootstrap comes from: the configuration file, a file of its own, or the environment.

use std::path::Path;

use super::{Check, paths, upstream};
use crate::config::bootstrap::{Bootstrap as Shape, NodeShape, Upstream as Written};
use crate::config::document::Document;
use crate::config::reading::Either;
use crate::config::{Address, Bootstrap, Flags, Upstream, bounded};
use crate::json::Place;

/// Returns the control planes, and the node of their bootstrap.
pub(super) fn upstream(
    check: &mut Check,
    file: Written,
    flags: &Flags,
    listeners: &[Address],
) -> (Upstream, NodeShape) {
    let inline = match file {
        Either::Parts(inline) => *inline,
        Either::Word(path) => {
            let file = paths::placed(check, "upstream", Some(path.place), path.value.into());
            return bootstrap_file(check, Some(path.place), "upstream", &file, flags, listeners);
        }
    };
    let configured = inline.is_given() || !flags.upstream.is_empty();
    match &flags.bootstrap {
        Some(Bootstrap::File(path)) if !configured => {
            bootstrap_file(check, None, "GRPC_XDS_BOOTSTRAP", path, flags, listeners)
        }
        Some(Bootstrap::Text(text)) if !configured => {
            let document = Document::foreign("GRPC_XDS_BOOTSTRAP_CONFIG", text.as_bytes());
            check.within(document, |check| foreign_bootstrap(check, flags, listeners))
        }
        Some(_) | None => bootstrap(check, inline, flags, listeners),
    }
}

fn bootstrap_file(
    check: &mut Check,
    place: Option<Place>,
    key: &str,
    path: &Path,
    flags: &Flags,
    listeners: &[Address],
) -> (Upstream, NodeShape) {
    let nothing = (Upstream::default(), NodeShape::default());
    if same_file(path, Path::new(check.origin())) {
        let message = format!("{} is this file itself; write the path of a bootstrap", path.display());
        check.at(place, key, message);
        return nothing;
    }
    // Whoever sends a text may name any file. Opening a pipe may wait, and a device has no end.
    let endless = check.is_sent() && std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let text = match endless {
        true => Err(std::io::Error::other("it is not a regular file")),
        false => bounded(path),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            let message = format!("the bootstrap {} cannot be read: {error}", path.display());
            check.at(place, key, message);
            return nothing;
        }
    };
    let document = Document::foreign(&path.display().to_string(), &text);
    check.within(document, |check| foreign_bootstrap(check, flags, listeners))
}

fn foreign_bootstrap(check: &mut Check, flags: &Flags, listeners: &[Address]) -> (Upstream, NodeShape) {
    match check.parse::<Shape>() {
        Some(shape) => bootstrap(check, shape, flags, listeners),
        None => (Upstream::default(), NodeShape::default()),
    }
}

fn bootstrap(check: &mut Check, shape: Shape, flags: &Flags, listeners: &[Address]) -> (Upstream, NodeShape) {
    let prefix = if check.is_foreign() { "" } else { "upstream." };
    let upstream = upstream::servers(check, prefix, &shape, &flags.upstream, listeners);
    (upstream, shape.node)
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
