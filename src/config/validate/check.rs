// SPDX-License-Identifier: Apache-2.0
//! The documents that are checked, and what is wrong with them.
//!
//! Owns how a problem names its place, and that the check goes on after one. Knows no key: what a value may be is said by those who
//! read it.

use std::collections::BTreeMap;
use std::path::Path;

use super::Flags;
use crate::config::document::Document;
use crate::config::gone;
use crate::config::reading::{Raw, Scalar, Shape, ShapeFaults, Spanned, Unknown};
use crate::json::{Bounds, Place, Tree};

/// The problems so far, one line each. A bad value is recorded and replaced by a good one, so that the check goes on.
pub(super) struct Check {
    /// What is being checked.
    document: Document,
    /// How many documents were checked before.
    documents: usize,
    problems: Vec<Line>,
    warnings: Vec<Line>,
    /// Whether the document has unknown keys or wrong kinds of values, so that what seems to be missing may be there.
    unread: bool,
    /// Where the SPIFFE Workload API is, if the document does not say it.
    endpoint_socket: Option<String>,
    /// Which flags have their values from which environment variables.
    variables: BTreeMap<&'static str, &'static str>,
}

/// A problem or a warning.
struct Line {
    /// Where it stands among the others; what has no place stands behind.
    order: (usize, bool, Option<Place>),
    text: String,
}

impl Check {
    /// Returns the check of a document, before anything was read.
    pub(super) fn new(document: Document, flags: &Flags) -> Self {
        Self {
            document,
            documents: 0,
            problems: Vec::new(),
            warnings: Vec::new(),
            unread: false,
            endpoint_socket: flags.endpoint_socket.clone(),
            variables: flags.variables.clone(),
        }
    }

    /// Reads the whole document. A text that is not YAML has no shape.
    pub(super) fn parse<T: Shape>(&mut self) -> Option<T> {
        match Tree::yaml(&self.document.text, Bounds::FILE) {
            Ok(tree) => self.shape(&tree, ""),
            Err(fault) => {
                self.at(fault.place, "", fault.message);
                None
            }
        }
    }

    /// Returns where the value of a key of mappings is.
    pub(super) fn place(&self, path: &[&str]) -> Option<Place> {
        let tree = Tree::yaml(&self.document.text, Bounds::FILE).ok()?;
        let found = path.iter().try_fold(&tree, |within, key| within.get(key));
        found.map(Tree::place)
    }

    /// Reads the value of a key.
    pub(super) fn shape<T: Shape>(&mut self, tree: &Tree, key: &str) -> Option<T> {
        let mut found = ShapeFaults::default();
        let shape = T::read(tree, key, &mut found);
        let unknown = found.unknown.iter().any(|unknown| gone::instead(unknown).is_none());
        let misshapen = found.problems.iter().any(|problem| !problem.is_value);
        self.unread |= misshapen || unknown && !self.document.foreign;
        for problem in found.problems {
            self.at(problem.place, problem.key, problem.message);
        }
        for unknown in found.unknown {
            self.unknown(&unknown);
        }
        shape
    }

    /// Does `work` on another document.
    pub(super) fn within<T>(&mut self, mut document: Document, work: impl FnOnce(&mut Self) -> T) -> T {
        document.secret = self.document.sent;
        let outer = std::mem::replace(&mut self.document, document);
        self.documents += 1;
        let done = work(self);
        self.documents -= 1;
        self.document = outer;
        done
    }

    fn line(&self, place: Option<Place>, key: &str, message: &str) -> Line {
        Line {
            order: (self.documents, place.is_none(), place),
            text: self.document.line(place, key, message),
        }
    }

    pub(super) fn at(&mut self, place: impl Into<Option<Place>>, key: impl AsRef<str>, message: impl AsRef<str>) {
        let line = self.line(place.into(), key.as_ref(), message.as_ref());
        self.problems.push(line);
    }

    pub(super) fn warn(&mut self, place: impl Into<Option<Place>>, key: impl AsRef<str>, message: impl AsRef<str>) {
        let line = self.line(place.into(), key.as_ref(), message.as_ref());
        self.warnings.push(line);
    }

    /// Notes that a list is empty, and what to do instead.
    pub(super) fn filled<T>(&mut self, key: impl AsRef<str>, list: &Spanned<Vec<T>>, instead: &str) {
        if list.value.is_empty() {
            self.at(list.place, key, format!("the list is empty; {instead}"));
        }
    }

    /// Records a problem that is an error in the relay's own file but only a warning in a bootstrap, where gRPC clients ignore
    /// it.
    pub(super) fn foreign(&mut self, place: Place, key: &str, message: String) {
        if self.document.foreign {
            self.warn(place, key, format!("{message}; ignored"));
        } else {
            self.at(place, key, message);
        }
    }

    fn unknown(&mut self, unknown: &Unknown) {
        if self.document.foreign {
            let message = format!("unknown field `{}`; ignored", unknown.name);
            self.warn(unknown.place, &unknown.key, &message);
        } else if let Some(instead) = gone::instead(unknown) {
            self.warn(unknown.place, &unknown.key, &instead);
        } else {
            self.at(unknown.place, &unknown.key, unknown.message());
        }
    }

    /// Parses a scalar; returns `None` if it is missing or bad.
    pub(super) fn read<T>(
        &mut self,
        key: &str,
        scalar: Option<&Scalar>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let scalar = scalar?;
        match parse(&scalar.value) {
            Ok(value) => Some(value),
            Err(message) => {
                self.at(scalar.place, key, message);
                None
            }
        }
    }

    /// Parses the value of a flag.
    pub(super) fn flag<T>(
        &mut self,
        flag: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        parse(text)
            .map_err(|message| self.at(None, self.source(flag), message))
            .ok()
    }

    /// Returns the name of a flag, or of the variable that has its value.
    pub(super) fn source<'a>(&self, flag: &'a str) -> &'a str {
        self.variables.get(flag).copied().unwrap_or(flag)
    }

    /// Reads a configuration whose shape depends on its kind.
    pub(super) fn raw<T: Shape + Default>(&mut self, raw: &Raw, key: &str) -> T {
        let shape = raw.0.as_ref().and_then(|tree| self.shape(tree, key));
        shape.unwrap_or_default()
    }

    /// Returns where the SPIFFE Workload API is by the environment.
    pub(super) fn endpoint_socket(&self) -> Option<&str> {
        self.endpoint_socket.as_deref()
    }

    /// Whether the document is a bootstrap that was written for gRPC.
    pub(super) const fn is_foreign(&self) -> bool {
        self.document.foreign
    }

    /// Whether the document was sent by somebody who is not told what is in files.
    pub(super) const fn is_sent(&self) -> bool {
        self.document.sent
    }

    /// Returns the name of the document.
    pub(super) fn origin(&self) -> &str {
        &self.document.origin
    }

    /// Returns the folder at which relative paths of the document begin, unless it is the working directory.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.document.folder.as_deref()
    }

    /// Returns how many problems were found.
    pub(super) const fn problems(&self) -> usize {
        self.problems.len()
    }

    /// Whether parts of the document were not understood: what seems to be missing may be in them.
    pub(super) const fn is_unread(&self) -> bool {
        self.unread
    }

    /// Returns the problems and the warnings, each in the order of their places.
    pub(super) fn end(self) -> (Vec<String>, Vec<String>) {
        (in_order(self.problems), in_order(self.warnings))
    }
}

/// Returns the lines in the order of the places that they are about.
fn in_order(mut lines: Vec<Line>) -> Vec<String> {
    lines.sort_by_key(|line| line.order);
    lines.into_iter().map(|line| line.text).collect()
}

/// Returns how a text is read that must not be empty; `empty` says what to write.
pub(super) fn text<T: for<'a> From<&'a str>>(empty: &str) -> impl Fn(&str) -> Result<T, String> {
    move |text| match text {
        "" => Err(empty.to_owned()),
        text => Ok(text.into()),
    }
}
