// SPDX-License-Identifier: Apache-2.0
//! The answer to a question of CSDS as JSON, some of the text at a time.
//!
//! Owns the form. Keeps no text that was taken.

use prost::Message;

use super::configs::{ConfigPiece, Configs};
use crate::json::{Schemas, Secrets};
use crate::proto::envoy::service::status::v3::client_config::GenericXdsConfig;

/// A text on its way: a ClientStatusResponse.
pub struct Document {
    schemas: Schemas,
    configs: Configs,
    /// What closes what was begun.
    closing: &'static str,
    /// What stands before the next element.
    separator: &'static str,
    over: bool,
}

const CONFIG: &str = "envoy.service.status.v3.ClientConfig";
const RESOURCE: &str = "envoy.service.status.v3.ClientConfig.GenericXdsConfig";

impl Document {
    pub(super) const fn new(schemas: Schemas, configs: Configs) -> Self {
        Self {
            schemas,
            configs,
            closing: "",
            separator: "{\"config\":[",
            over: false,
        }
    }

    /// Returns the next piece of the text.
    pub async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        Some(match self.configs.next().await {
            Some(ConfigPiece::Begin(config)) => self.begin(&*config),
            Some(ConfigPiece::Resources(resources)) => self.resources(resources),
            None => self.end(),
        })
    }

    fn begin(&mut self, config: &impl Message) -> String {
        let config = self.json(CONFIG, config).unwrap_or_else(|| "{}".to_owned());
        let fields = config.strip_suffix('}').unwrap_or("{");
        let comma = if fields.len() > 1 { "," } else { "" };
        let before = if self.closing.is_empty() { self.separator } else { "," };
        let text = format!("{}{before}{fields}{comma}\"generic_xds_configs\":[", self.closing);
        (self.closing, self.separator) = ("]}", "");
        text
    }

    fn resources(&mut self, resources: Vec<GenericXdsConfig>) -> String {
        let mut text = String::new();
        for mut resource in resources {
            let json = self.json(RESOURCE, &resource).or_else(|| {
                // Its content has something of a type that is not known.
                resource.xds_config = None;
                if let Some(error) = &mut resource.error_state {
                    error.failed_configuration = None;
                }
                self.json(RESOURCE, &resource)
            });
            if let Some(json) = json {
                text.push_str(std::mem::replace(&mut self.separator, ","));
                text.push_str(&json);
            }
        }
        text
    }

    fn end(&mut self) -> String {
        self.over = true;
        let before = if self.closing.is_empty() { self.separator } else { "" };
        format!("{before}{}]}}", self.closing)
    }

    fn json(&self, name: &str, message: &impl Message) -> Option<String> {
        let json = self.schemas.decode(name, &message.encode_to_vec(), Secrets::Redact);
        String::from_utf8(json.ok()?.text).ok()
    }
}
