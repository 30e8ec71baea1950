// SPDX-License-Identifier: Apache-2.0
//! Reads what a client says of its software.
//!
//! Owns the two forms in which a version is written.

use prost::Message;

use classes::UserAgent;
use proto::envoy::config::core::v3 as core;
use proto::envoy::config::core::v3::node::UserAgentVersionType;

/// The part of `envoy.config.core.v3.BuildVersion` that is read.
#[derive(Clone, PartialEq, Message)]
struct BuildVersion {
    #[prost(message, optional, tag = "1")]
    version: Option<SemanticVersion>,
}

/// `envoy.type.v3.SemanticVersion`.
#[derive(Clone, PartialEq, Message)]
struct SemanticVersion {
    #[prost(uint32, tag = "1")]
    major: u32,
    #[prost(uint32, tag = "2")]
    minor: u32,
    #[prost(uint32, tag = "3")]
    patch: u32,
}

/// Returns the software of a node. A version that cannot be read is none.
pub(super) fn read(node: &core::Node) -> UserAgent {
    let version = match &node.user_agent_version_type {
        Some(UserAgentVersionType::UserAgentVersion(text)) => text.clone(),
        Some(UserAgentVersionType::UserAgentBuildVersion(encoded)) => {
            let version = BuildVersion::decode(encoded.clone())
                .ok()
                .and_then(|build| build.version);
            let version = version.map(|of| format!("{}.{}.{}", of.major, of.minor, of.patch));
            version.unwrap_or_default()
        }
        None => String::new(),
    };
    UserAgent {
        name: node.user_agent_name.as_str().into(),
        version: version.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_version() {
        let version = SemanticVersion {
            major: 1,
            minor: 36,
            patch: 4,
        };
        let build = BuildVersion { version: Some(version) }.encode_to_vec();
        for (said, expected) in [
            (
                Some(UserAgentVersionType::UserAgentBuildVersion(build.into())),
                "1.36.4",
            ),
            (
                Some(UserAgentVersionType::UserAgentBuildVersion(b"x".as_slice().into())),
                "",
            ),
            (
                Some(UserAgentVersionType::UserAgentVersion("1.2-dev".to_owned())),
                "1.2-dev",
            ),
            (None, ""),
        ] {
            let node = core::Node {
                user_agent_name: "envoy".to_owned(),
                user_agent_version_type: said,
                ..core::Node::default()
            };
            assert_eq!((&*read(&node).name, &*read(&node).version), ("envoy", expected));
        }
    }
}
