// SPDX-License-Identifier: Apache-2.0
//! The configuration as it was written, for people who look at it.
//!
//! Owns what of it is not shown, and what flags override. Does not know what it means.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Bootstrap, Flags};
use crate::json::{Bounds, Tree};

/// A configuration as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct WrittenConfig {
    text: Arc<[u8]>,
    flags: Flags,
}

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";
/// Keys below which anybody may write anything.
const FREE: [&str; 4] = ["metadata", "config", "certificate_providers", "allowed_grpc_services"];
/// Parts of keys there whose values nobody should see.
const SECRET: [&str; 9] = [
    "authorization",
    "credential",
    "key",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
    "cookie",
];

impl WrittenConfig {
    pub(super) fn new(text: &[u8], flags: &Flags) -> Self {
        Self {
            text: text.into(),
            flags: flags.clone(),
        }
    }

    /// Returns it as JSON, with the flags in place of what they override, and without secrets.
    pub fn json(&self) -> Value {
        let mut written = match read(&self.text) {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
        };
        let flags = &self.flags;
        if !flags.listen.is_empty() {
            let listeners = flags.listen.iter().map(|address| json!({ "address": address }));
            written.insert("listeners".to_owned(), listeners.collect());
        }
        if !flags.upstream.is_empty() {
            let servers = flags.upstream.iter().map(|uri| json!({ "server_uri": uri }));
            set(&mut written, "upstream", "xds_servers", servers.collect());
        } else if !written.contains_key("upstream") {
            let upstream = flags.bootstrap.as_ref().map(|bootstrap| match bootstrap {
                Bootstrap::File(path) => path.display().to_string().into(),
                Bootstrap::Text(text) => read(text.as_bytes()),
            });
            written.extend(upstream.map(|upstream| ("upstream".to_owned(), upstream)));
        }
        if let Some(address) = &flags.admin {
            set(&mut written, "admin", "address", address.as_str().into());
        }
        if let Some(secrets) = &flags.secrets {
            written.insert("secrets".to_owned(), secrets.as_str().into());
        }
        if let Some(level) = &flags.log_level {
            set(&mut written, "logging", "level", level.as_str().into());
        }
        written.into()
    }
}

impl fmt::Debug for WrittenConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written").field("bytes", &self.text.len()).finish()
    }
}

/// Reads a text that was checked before.
fn read(text: &[u8]) -> Value {
    let tree = Tree::yaml(text, Bounds::FILE).ok();
    let mut written = tree
        .and_then(|tree| serde_json::from_str(&tree.to_json()).ok())
        .unwrap_or(Value::Null);
    hide_secrets(&mut written);
    written
}

/// Sets a member of a mapping, which is made if there is none.
fn set(members: &mut Map<String, Value>, outer: &str, inner: &str, value: Value) {
    let within = members.entry(outer).or_insert(Value::Null);
    if !within.is_object() {
        *within = json!({});
    }
    if let Some(within) = within.as_object_mut() {
        within.insert(inner.to_owned(), value);
    }
}

/// Replaces what may be a secret in a configuration or a node. In both, others choose some of the keys.
pub fn hide_secrets(written: &mut Value) {
    hide(written, "", false);
}

/// `free` says that somebody else has chosen the key of this value.
fn hide(value: &mut Value, key: &str, free: bool) {
    let free_below = free || FREE.contains(&key);
    match value {
        value if free && is_secret(key) => *value = REDACTED.into(),
        // A file that stands where its path should be.
        Value::String(text) if text.contains("-----BEGIN ") => *text = REDACTED.to_owned(),
        Value::Array(elements) => elements.iter_mut().for_each(|element| hide(element, key, free)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(key, member)| hide(member, key, free_below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a key that somebody has chosen sounds like that of a secret. A path is none.
fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRET.iter().any(|word| key.contains(word)) && !key.ends_with("_file") && !key.ends_with("_path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_paths_are() {
        let text = "
node: {id: a, metadata: {API_TOKEN: HIDDEN, inner: [{client_secret: {x: HIDDEN}}], tier: edge, size: 3}}
listeners: [{address: '0.0.0.0:1', tls: {certificate: c.pem, private_key: k.pem}}]
upstream:
  xds_servers:
  - server_uri: cp:1
    call_creds: [{type: jwt_token_file, config: {jwt_token_file: t, token: HIDDEN}}]
  certificate_providers: {default: {config: {private_key: \"-----BEGIN KEY-----HIDDEN\", private_key_file: k}}}
secrets: allow
chunk: \"-----BEGIN KEY-----HIDDEN\"
";
        let shown = WrittenConfig::new(text.as_bytes(), &Flags::default()).json();
        assert!(!shown.to_string().contains("HIDDEN"), "{shown}");
        assert_eq!(shown["node"]["metadata"]["tier"], "edge");
        assert_eq!(shown["node"]["metadata"]["size"], 3);
        assert_eq!(shown["node"]["metadata"]["API_TOKEN"], REDACTED);
        assert_eq!(shown["listeners"][0]["tls"]["private_key"], "k.pem");
        let creds = &shown["upstream"]["xds_servers"][0]["call_creds"][0]["config"];
        assert_eq!(creds["jwt_token_file"], "t");
        assert_eq!(shown["secrets"], "allow");
    }

    #[test]
    fn flags_stand_in_place_of_what_they_override() {
        let flags = Flags {
            listen: vec!["127.0.0.1:2".to_owned()],
            upstream: vec!["cp:3".to_owned()],
            admin: Some("127.0.0.1:4".to_owned()),
            secrets: Some("allow".to_owned()),
            log_level: Some("warn".to_owned()),
            ..Flags::default()
        };
        let text = b"upstream: {node: {id: x}, xds_servers: []}\nsecrets: by_rule\nadmin:\n";
        let expected = json!({
            "listeners": [{"address": "127.0.0.1:2"}],
            "upstream": {"node": {"id": "x"}, "xds_servers": [{"server_uri": "cp:3"}]},
            "admin": {"address": "127.0.0.1:4"},
            "secrets": "allow",
            "logging": {"level": "warn"},
        });
        assert_eq!(WrittenConfig::new(text, &flags).json(), expected);
        let bootstrap = Some(Bootstrap::Text(
            "{\"xds_servers\": [{\"server_uri\": \"cp:5\"}]}".to_owned(),
        ));
        let flags = Flags {
            bootstrap,
            ..Flags::default()
        };
        let shown = WrittenConfig::new(b"", &flags).json();
        assert_eq!(shown, json!({"upstream": {"xds_servers": [{"server_uri": "cp:5"}]}}));
    }
}
