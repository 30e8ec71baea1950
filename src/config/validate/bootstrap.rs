//! Validates where the bootstrap comes from: the configuration file, a file of its own, or the environment.

use std::path::Path;

use super::Check;
use crate::config::bootstrap::{Bootstrap as Shape, NodeShape, Upstream as Written};
use crate::config::document::Document;
use crate::config::{Address, Bootstrap, Flags, Upstream};
use crate::json::Place;

impl Check {
    /// Returns the control planes, and the node of their bootstrap.
    pub(super) fn upstream(&mut self, file: Written, flags: &Flags, listeners: &[Address]) -> (Upstream, NodeShape) {
        let inline = match file {
            Written::Inline(inline) => *inline,
            Written::File(path) => {
                let file = self.placed("upstream", Some(path.place), path.value.into());
                return self.bootstrap_file(Some(path.place), "upstream", &file, flags, listeners);
            }
        };
        let configured = inline.is_given() || !flags.upstream.is_empty();
        match &flags.bootstrap {
            Some(Bootstrap::File(path)) if !configured => {
                self.bootstrap_file(None, "GRPC_XDS_BOOTSTRAP", path, flags, listeners)
            }
            Some(Bootstrap::Text(text)) if !configured => {
                let document = Document::foreign("GRPC_XDS_BOOTSTRAP_CONFIG", text.as_bytes());
                self.within(document, |check| check.foreign_bootstrap(flags, listeners))
            }
            Some(_) | None => self.bootstrap(inline, flags, listeners),
        }
    }

    fn bootstrap_file(
        &mut self,
        place: Option<Place>,
        key: &str,
        path: &Path,
        flags: &Flags,
        listeners: &[Address],
    ) -> (Upstream, NodeShape) {
        let nothing = (Upstream::default(), NodeShape::default());
        if same_file(path, Path::new(&self.document.origin)) {
            let message = format!("{} is this file itself; write the path of a bootstrap", path.display());
            self.at(place, key, message);
            return nothing;
        }
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("the bootstrap {} cannot be read: {error}", path.display());
                self.at(place, key, message);
                return nothing;
            }
        };
        let document = Document::foreign(&path.display().to_string(), &text);
        self.within(document, |check| check.foreign_bootstrap(flags, listeners))
    }

    fn foreign_bootstrap(&mut self, flags: &Flags, listeners: &[Address]) -> (Upstream, NodeShape) {
        match self.parse::<Shape>() {
            Some(shape) => self.bootstrap(shape, flags, listeners),
            None => (Upstream::default(), NodeShape::default()),
        }
    }

    fn bootstrap(&mut self, shape: Shape, flags: &Flags, listeners: &[Address]) -> (Upstream, NodeShape) {
        let prefix = if self.document.foreign { "" } else { "upstream." };
        let upstream = self.servers(prefix, &shape, &flags.upstream, listeners);
        (upstream, shape.node)
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
