// SPDX-License-Identifier: Apache-2.0
//! The syntax of the rules that decide which clients share a view. Owns the syntax; `xds` owns the rules.

use crate::classes::{IDENTITIES, Member, Path, Pattern, Piece, Selector};
use crate::xds::meant;

/// `cluster`, `locality.zone`, `metadata.A.B`, `identity.spiffe`, and fields of the patterns that a client must match.
pub(super) fn selector(text: &str, fields: &[&str]) -> Result<Selector, String> {
    if fields.contains(&text) {
        return Ok(Selector::Field(text.into()));
    }
    Ok(match text {
        "id" => Selector::Id,
        "cluster" => Selector::Cluster,
        "locality.region" => Selector::Region,
        "locality.zone" => Selector::Zone,
        "locality.sub_zone" => Selector::SubZone,
        "user_agent_name" => Selector::UserAgent,
        _ => {
            if let Some(keys) = text.strip_prefix("metadata.") {
                return Path::read(keys).map(Selector::Metadata);
            }
            if let Some(kind) = text.strip_prefix("identity.") {
                return Selector::identity(kind).ok_or_else(|| no_identity(kind));
            }
            return Err(format!(
                "`{text}` is not a field of a node; write id, cluster, locality.region, locality.zone, locality.sub_zone, \
                 user_agent_name, metadata.KEY, identity.KIND, or a field of a pattern in `match`"
            ));
        }
    })
}

fn no_identity(kind: &str) -> String {
    let kinds = IDENTITIES.map(|word| word.trim_end_matches(':'));
    match meant(kind, kinds) {
        Some(meant) => format!("`{kind}` is not a kind of identity; did you mean identity.{meant}?"),
        None => format!("`{kind}` is not a kind of identity; write {}", kinds.join(", ")),
    }
}

/// `edge-*`, `spiffe://example.org/ns/{ns}/sa/*`: what a client must match. `known` are the fields of other patterns.
pub(super) fn pattern(text: &str, known: &[&str]) -> Result<Pattern, String> {
    let pattern = Pattern::read(text)?;
    let mut fields: Vec<&str> = known.to_vec();
    for field in pattern.fields() {
        if fields.contains(&field) {
            return Err(format!("`{{{field}}}` is there twice; give each field its own name"));
        }
        if selector(field, &[]).is_ok() {
            return Err(format!(
                "`{{{field}}}` is also a field of a node; give it another name, or write {{{{{field}}}}} for the text in braces"
            ));
        }
        fields.push(field);
    }
    Ok(pattern)
}

/// `TENANT`, `LABELS.*`: a path below the metadata.
pub(super) fn member(text: &str) -> Result<Member, String> {
    let (path, below) = match text.strip_suffix(".*") {
        Some(path) => (path, true),
        None => (text, false),
    };
    if path.split('"').step_by(2).any(|bare| bare.contains('*')) {
        return Err(format!(
            "`{text}` has a `*` that is not the whole last key; write `all` for all of the metadata, \"KEY.*\" for all below a key, and \
             quotes around a key that has a `*` in it"
        ));
    }
    if let Some(rest) = path.strip_prefix("metadata.") {
        return Err(format!(
            "`{text}` must be relative to the metadata; write `{rest}`, or \"metadata\" in quotes if that is its key"
        ));
    }
    let path = Path::read(path)?;
    Ok(Member { path, below })
}

/// `relay/{cluster}`: text with fields, each of which must be in `key`; `{{` and `}}` are literal braces. `fields` are those of
/// patterns.
pub(super) fn template(text: &str, key: &[Selector], fields: &[&str]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = brace.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else if let Some((field, after)) = brace.strip_prefix('{').and_then(field) {
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            let field = selector(field, fields)?;
            // K-03: clients that share a view may differ in fields outside the key, but present one node to the control plane.
            let position = key.iter().position(|in_key| *in_key == field).ok_or_else(|| {
                format!("`{{{field}}}` is not in `key`, so clients that share a view may differ in it; add it there")
            })?;
            pieces.push(Piece::Key(position));
            rest = after;
        } else {
            return Err(format!(
                "`{text}` has an unmatched brace; write {{{{ or }}}} for a literal brace"
            ));
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// Returns the first field of a node that a text has in braces.
pub(super) fn field_in(text: &str) -> Option<&str> {
    let parts = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    parts.into_iter().find(|part| selector(part, &[]).is_ok())
}

/// Returns the field before the closing brace, and the rest; a brace in quotes is part of the field.
fn field(text: &str) -> Option<(&str, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let closing = text.find(|c| {
        let closes = c == '}' && !quoted;
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        closes
    })?;
    let (field, after) = text.split_at(closing);
    Some((field, after.strip_prefix('}')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_fields_and_escapes() {
        let key = [
            Selector::Id,
            Selector::Cluster,
            Selector::Metadata(Path::new(["a", "b"])),
            Selector::Metadata(Path::new(["a", "b}\"{"])),
            Selector::Identity("spiffe:"),
            Selector::Field("ns".into()),
        ];
        let text = |text: &str| Piece::Text(text.to_owned());
        for (written, pieces) in [
            ("", vec![]),
            ("relay", vec![text("relay")]),
            ("relay/{cluster}", vec![text("relay/"), Piece::Key(1)]),
            ("{id}{cluster}", vec![Piece::Key(0), Piece::Key(1)]),
            ("{{{id}}}", vec![text("{"), Piece::Key(0), text("}")]),
            ("{{x}}", vec![text("{x}")]),
            ("{identity.spiffe}/{ns}", vec![Piece::Key(4), text("/"), Piece::Key(5)]),
            ("{metadata.a.b}", vec![Piece::Key(2)]),
            (r#"{metadata.a."b"}"#, vec![Piece::Key(2)]),
            (r#"{metadata.a."b}\"{"}}}"#, vec![Piece::Key(3), text("}")]),
        ] {
            assert_eq!(template(written, &key, &["ns"]), Ok(pieces), "{written}");
        }
        for bad in [
            "{",
            "}",
            "{id",
            "id}",
            "{}",
            "{name}",
            "{metadata.}",
            "{metadata.a..b}",
            r#"{metadata.a."b}"#,
            r#"{metadata.a."b"c}"#,
            "{locality}",
            "{locality.zone}",
            "{identity.dns}",
        ] {
            assert!(template(bad, &key, &["ns"]).is_err(), "{bad}");
        }
    }

    #[test]
    fn members_are_below_the_metadata() {
        let member_at = |parts: &[&str], below| {
            Ok(Member {
                path: Path::new(parts.iter().copied()),
                below,
            })
        };
        assert_eq!(member("TENANT"), member_at(&["TENANT"], false));
        assert_eq!(member("LABELS.*"), member_at(&["LABELS"], true));
        assert_eq!(member(r#"LABELS."a.b/c".*"#), member_at(&["LABELS", "a.b/c"], true));
        assert_eq!(member(r#""*""#), member_at(&["*"], false));
        assert_eq!(member(r#""metadata".x"#), member_at(&["metadata", "x"], false));
        for bad in ["", "*", "A.*.B", "ISTIO_*", "*.A", "metadata.A", "A..B", ".*"] {
            assert!(member(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fields_print_as_they_are_written() {
        for path in [
            "id",
            "cluster",
            "locality.region",
            "locality.zone",
            "locality.sub_zone",
            "user_agent_name",
            "metadata.a.b",
            r#"metadata.LABELS."app.kubernetes.io/name""#,
            "identity.dns",
            "identity.spiffe",
            "ns",
        ] {
            assert_eq!(
                selector(path, &["ns"]).map(|selector| selector.to_string()).as_deref(),
                Ok(path)
            );
        }
    }
}
