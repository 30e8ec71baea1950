//! Validates classes, types and their descriptors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::reading::Spanned;

use super::Check;
use super::credentials::first;
use crate::classes::{Classes, Members, Parts, Passes, Path, Pattern, Rule, Selector};
use crate::config::class::{member, pattern, selector, template};
use crate::config::reading::Scalar;
use crate::config::shape::{self, ClassNode, ClassNodeParts};
use crate::xds::{NameRule, Traits, TypeUrl};

impl Check {
    /// Returns the rules that decide which clients share a view. `relay` is the relay's own node id; `authorities` is whether
    /// there are names that all classes share.
    pub(super) fn classes(&mut self, classes: Vec<Spanned<shape::Class>>, relay: &str, authorities: bool) -> Classes {
        let mut rules = Vec::new();
        for (index, class) in classes.into_iter().enumerate() {
            let place = class.place;
            let files = class
                .value
                .credentials
                .as_ref()
                .and_then(|written| first(&written.value));
            let rule = self.class(index, class.value);
            if let Some(files) = files {
                self.used_for(index, &rule, files);
            }
            rules.push((rule, place));
        }
        let all = rules.iter().any(|(rule, _)| rule.matches.is_empty());
        let others = match (all, authorities) {
            (false, _) => Some("clients that no rule matches"),
            (true, true) => Some("the view of names with an authority"),
            (true, false) => None,
        };
        self.identities(&rules, relay, others);
        Classes::new(rules.into_iter().map(|(rule, _)| rule).collect())
    }

    fn class(&mut self, index: usize, class: shape::Class) -> Rule {
        let matches = self.matches(&format!("classes[{index}].match"), class.matching);
        let fields: Vec<&str> = matches.iter().flat_map(|(_, pattern)| pattern.fields()).collect();
        let mut key: Vec<Selector> = Vec::new();
        for written in &class.key {
            let name = format!("classes[{index}].key");
            let Some(field) = self.selector(&name, written, &fields) else {
                continue;
            };
            if key.contains(&field) {
                self.at(
                    Some(written.place),
                    name,
                    format!("`{field}` is there twice; remove one"),
                );
            }
            key.push(field);
        }
        let credentials = self.class_credentials(index, class.credentials.as_ref(), &key, &fields);
        let node = format!("classes[{index}].node");
        let parts = match class.node {
            ClassNode::Parts(parts) => *parts,
            ClassNode::Word(word) => {
                if word.value != "client" {
                    self.at(
                        Some(word.place),
                        node,
                        format!("`{}` is not a node; write `client`, or the parts of one", word.value),
                    );
                }
                return Rule {
                    matches,
                    key,
                    passes: Passes::Whole,
                    credentials,
                    ..Rule::default()
                };
            }
        };
        let mut text = |name: &str, written: Option<&Scalar>| {
            self.read(&format!("{node}.{name}"), written, |text| template(text, &key, &fields))
        };
        let id = text("id", parts.id.as_ref());
        let cluster = text("cluster", parts.cluster.as_ref());
        let passes = self.passes(&node, &parts);
        Rule {
            matches,
            key,
            id,
            cluster,
            passes,
            credentials,
        }
    }

    /// Returns the patterns that the clients of a class must match.
    fn matches(&mut self, key: &str, written: BTreeMap<String, Scalar>) -> Vec<(Selector, Pattern)> {
        let mut matches: Vec<(Selector, Pattern)> = Vec::new();
        for (path, text) in written {
            let path = Spanned {
                value: path,
                place: text.place,
            };
            let read = self.selector(key, &path, &[]);
            let known: Vec<&str> = matches.iter().flat_map(|(_, pattern)| pattern.fields()).collect();
            let found = self.read(key, Some(&text), |text| pattern(text, &known));
            matches.extend(read.zip(found));
        }
        matches
    }

    /// Returns which parts of its clients' nodes a class passes on besides its key.
    fn passes(&mut self, node: &str, parts: &ClassNodeParts) -> Passes {
        let mut client = |name: &str, written: Option<&Scalar>| {
            let read = self.read(&format!("{node}.{name}"), written, |text| match text {
                "client" => Ok(true),
                _ => Err(format!(
                    "`{text}` cannot be passed on; write `client`, or leave `{name}` out"
                )),
            });
            read.unwrap_or_default()
        };
        let locality = client("locality", parts.locality.as_ref());
        let user_agent = client("user_agent", parts.user_agent.as_ref());
        let name = format!("{node}.metadata");
        let metadata = match &parts.metadata {
            None => Members::default(),
            Some(shape::Members::List(list)) => {
                let members = list
                    .iter()
                    .filter_map(|written| self.read(&name, Some(written), member));
                Members::These(members.collect())
            }
            Some(shape::Members::Word(word)) => {
                if word.value != "all" {
                    self.at(
                        Some(word.place),
                        name,
                        format!("`{}` is not a list; write `all`, or [KEY, \"KEY.*\"]", word.value),
                    );
                }
                Members::All
            }
        };
        let parts = Parts {
            metadata,
            locality,
            user_agent,
        };
        if parts == Parts::default() {
            Passes::Nothing
        } else {
            Passes::Parts(parts)
        }
    }

    fn selector(&mut self, key: &str, written: &Scalar, fields: &[&str]) -> Option<Selector> {
        let field = self.read(key, Some(written), |text| selector(text, fields))?;
        if let Some(label) = label(&field) {
            let message = format!(
                "every dot begins a nested key; if the dots belong to a label, quote the label: metadata.{label}"
            );
            self.warn(Some(written.place), key, &message);
        }
        Some(field)
    }

    pub(super) fn types(&mut self, types: Vec<shape::Type>) -> BTreeMap<String, Traits> {
        let mut found = BTreeMap::new();
        for (index, written) in types.into_iter().enumerate() {
            let key = |name: &str| format!("types[{index}].{name}");
            let name_rule = self.read(&key("name_field"), written.name_field.as_ref(), |text| {
                match text.parse() {
                    Ok(0) => Ok(NameRule::Wrapper),
                    Ok(number) if number < 1 << 29 => Ok(NameRule::Field(number)),
                    _ => Err(format!(
                        "`{text}` is not a field number; write 1 to 536870911, or 0 for no name in the body"
                    )),
                }
            });
            let Some(type_url) = self.read(&key("type_url"), written.type_url.as_ref(), type_url) else {
                continue;
            };
            let usual = *type_url.traits();
            let traits = Traits {
                kind: usual.kind,
                name: name_rule.unwrap_or(usual.name),
                wildcard: written.wildcard.unwrap_or(usual.wildcard),
                full_state: written.full_state.unwrap_or(usual.full_state),
                // with a configured name field, every resource must have a name.
                nameless: usual.nameless && !matches!(name_rule, Some(NameRule::Field(_))),
                aliases: usual.aliases,
                delta_only: usual.delta_only && !matches!(name_rule, Some(NameRule::Field(_))),
                withheld: usual.withheld,
            };
            if found.insert(type_url.full_name().to_owned(), traits).is_some() {
                let message = format!("`{type_url}` is there twice; remove one");
                let place = written.type_url.as_ref().map(|written| written.place);
                self.at(place, key("type_url"), message);
            }
        }
        found
    }

    pub(super) fn lenient_files(&mut self, written: Option<&Scalar>) -> bool {
        let read = self.read("unknown_fields", written, |text| match text {
            "error" => Ok(false),
            "warning" => Ok(true),
            _ => Err(format!(
                "`{text}` is not a way to treat a field; write error or warning"
            )),
        });
        read.unwrap_or_default()
    }

    pub(super) fn descriptors(&mut self, files: &[Scalar]) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for (index, written) in files.iter().enumerate() {
            let path = self.read_path(&format!("descriptors[{index}]"), Some(written), |text| match text {
                "" => Err("the path is empty; write the file of a FileDescriptorSet".to_owned()),
                path if found.iter().any(|other| other.as_os_str() == path) => {
                    Err(format!("`{path}` is there twice; remove one"))
                }
                path => Ok(PathBuf::from(path)),
            });
            found.extend(path);
        }
        found
    }
}

/// Returns the path that was probably meant if a label was written without quotes: `LABELS.app.kubernetes.io/name`.
fn label(field: &Selector) -> Option<Path> {
    let Selector::Metadata(path) = field else { return None };
    let (map, keys) = path.parts().split_first()?;
    let plain = !path.as_str().contains('"') && keys.len() > 1;
    let label = keys.join(".");
    (plain && label.contains('/')).then(|| Path::new([map.as_str(), &label]))
}

pub(super) fn type_url(text: &str) -> Result<TypeUrl, String> {
    let found = TypeUrl::new(text);
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    // a prefix other than the usual one is part of the type.
    let prefixed = |c: char| valid(c) || matches!(c, '-' | '/');
    let valid = found.message().chars().all(valid) && found.full_name().chars().all(prefixed);
    if found.message().is_empty() || !valid {
        return Err(format!(
            "`{text}` is not a type; write type.googleapis.com/ and the message's full name"
        ));
    }
    Ok(found)
}
