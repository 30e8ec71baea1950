// SPDX-License-Identifier: Apache-2.0
//! Parses YAML text into a tree. Owns which YAML is accepted: one document, the core tags, scalar keys, and aliases as long as
//! they do not make the text much larger.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::yaml_words::wrong;
use super::{Bounds, Budget, Entry, Tree, Value, map, place, too_deep};
use crate::DEPTH_MAX;
use crate::fault::{Fault, Place};

/// How much all aliases of a text may add: each value counts 1, and each 16 bytes of text.
const ALIASED_MAX: usize = 200_000;

pub(super) fn parse(text: &str, bounds: Bounds) -> Result<Tree, Fault> {
    let mut builder = Builder {
        open: Vec::new(),
        anchors: BTreeMap::new(),
        document: None,
        documents: 0,
        aliased: 0,
        budget: Budget::new(bounds),
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            Fault::at(
                place(mark.line(), mark.col() + 1),
                "",
                format!("not YAML: {}", wrong(error.kind())),
            )
        })?;
        builder.take(event, &span)?;
    }
    let whole = builder.document.take();
    Ok(whole.unwrap_or_else(|| Tree::new(place(1, 1), Value::Null)))
}

struct Builder {
    open: Vec<Open>,
    /// The finished nodes that an alias may refer to, and their weights.
    anchors: BTreeMap<usize, (Tree, usize)>,
    document: Option<Tree>,
    documents: usize,
    aliased: usize,
    budget: Budget,
}

/// A list or a map that has not ended.
struct Open {
    place: Place,
    anchor: usize,
    content: NodeContent,
}

enum NodeContent {
    List(Vec<Tree>),
    /// The entries, and the key whose value comes next.
    Map(Vec<Entry>, Option<(String, Place)>),
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fault> {
        let at = place(span.start.line(), span.start.col() + 1);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Fault::at(
                        at,
                        "",
                        "a second document begins here; write one file for each",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(text.into_owned(), style, tag.as_deref(), at)?;
                self.finish(Tree::new(at, value), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(at, anchor, NodeContent::List(Vec::new()), tag.as_deref(), "seq")
            }
            Event::MappingStart(_, anchor, tag) => {
                self.begin(at, anchor, NodeContent::Map(Vec::new(), None), tag.as_deref(), "map")
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Alias(anchor) => self.alias(at, anchor),
            Event::UnresolvedAlias(name) => Err(Fault::at(at, "", format!("no anchor `{name}` before this alias"))),
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Anchor(..) | _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        at: Place,
        anchor: usize,
        content: NodeContent,
        tag: Option<&Tag>,
        usual: &str,
    ) -> Result<(), Fault> {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(usual)
        {
            return Err(unknown_tag(tag, at));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(too_deep(at));
        }
        self.open.push(Open {
            place: at,
            anchor,
            content,
        });
        Ok(())
    }

    fn end(&mut self, at: Place) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Err(Fault::at(at, "", "not YAML: an end without a beginning"));
        };
        let value = match open.content {
            NodeContent::List(items) => Value::List(items),
            NodeContent::Map(entries, _) => map(entries)?,
        };
        self.finish(Tree::new(open.place, value), open.anchor)
    }

    fn alias(&mut self, at: Place, anchor: usize) -> Result<(), Fault> {
        let Some((tree, weight)) = self.anchors.get(&anchor) else {
            return Err(Fault::at(at, "", "this alias is inside the value that it refers to"));
        };
        let (mut tree, weight) = (tree.clone(), *weight);
        self.aliased += weight;
        if self.aliased > ALIASED_MAX {
            return Err(Fault::at(
                at,
                "",
                "the aliases make the text too large; write out what differs",
            ));
        }
        if self.open.len() + depth(&tree) > DEPTH_MAX {
            return Err(too_deep(at));
        }
        tree.place = at;
        self.budget.take(weight, at)?;
        self.finish(tree, 0)
    }

    /// Adds a finished node to its parent.
    fn finish(&mut self, tree: Tree, anchor: usize) -> Result<(), Fault> {
        self.budget.take(1, tree.place)?;
        if anchor != 0 {
            let weight = weight(&tree);
            self.budget.take(weight, tree.place)?;
            self.anchors.insert(anchor, (tree.clone(), weight));
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.document = Some(tree),
            Some(NodeContent::List(items)) => items.push(tree),
            Some(NodeContent::Map(entries, key)) => match key.take() {
                Some((key, place)) => entries.push(Entry {
                    key,
                    place,
                    value: tree,
                }),
                None => *key = Some((key_text(&tree)?, tree.place)),
            },
        }
        Ok(())
    }
}

fn key_text(tree: &Tree) -> Result<String, Fault> {
    match tree.text() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Fault::at(
            tree.place,
            "",
            format!("expected a key, found {}", tree.description()),
        )),
    }
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>, at: Place) -> Result<Value, Fault> {
    let plain = style == ScalarStyle::Plain;
    match tag {
        None if plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") => Ok(Value::Null),
        None if plain => Ok(Value::Plain(text)),
        None => Ok(Value::Text(text)),
        Some(tag) => match tag.core_suffix() {
            Some("str") => Ok(Value::Text(text)),
            Some("null") => Ok(Value::Null),
            Some("bool" | "int" | "float") => Ok(Value::Plain(text)),
            _ if tag.handle().is_empty() && tag.suffix() == "!" => Ok(Value::Text(text)),
            _ => Err(unknown_tag(tag, at)),
        },
    }
}

fn unknown_tag(tag: &Tag, at: Place) -> Fault {
    Fault::at(
        at,
        "",
        format!("the tag {} is not supported; remove it", tag.original()),
    )
}

fn weight(tree: &Tree) -> usize {
    1 + match &tree.value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(text) | Value::Text(text) | Value::Plain(text) => text.len() / 16,
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => entries
            .iter()
            .map(|entry| 1 + entry.key.len() / 16 + weight(&entry.value))
            .sum(),
    }
}

fn depth(tree: &Tree) -> usize {
    match &tree.value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Plain(_) => 0,
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Map(entries) => {
            1 + entries
                .iter()
                .map(|entry| depth(&entry.value))
                .max()
                .unwrap_or_default()
        }
    }
}
