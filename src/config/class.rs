//! How the rules are written that say which clients share a view. It owns the grammar; the cache owns the rules.

use crate::xds::{Path, Piece, Selector};

/// `cluster`, `locality.zone`, `metadata.A.B`
pub(super) fn selector(text: &str) -> Result<Selector, String> {
    Ok(match text {
        "id" => Selector::Id,
        "cluster" => Selector::Cluster,
        "locality.region" => Selector::Region,
        "locality.zone" => Selector::Zone,
        "locality.sub_zone" => Selector::SubZone,
        "user_agent_name" => Selector::UserAgent,
        _ => match text.strip_prefix("metadata.") {
            Some(keys) => Selector::Metadata(Path::read(keys)?),
            None => {
                return Err(format!(
                    "`{text}` is not a field of a node; write id, cluster, locality.region, locality.zone, \
                     locality.sub_zone, user_agent_name or metadata.KEY"
                ));
            }
        },
    })
}

/// `relay/{cluster}`, in which every field is one of `key`; `{{` and `}}` are braces.
pub(super) fn template(text: &str, key: &[Selector]) -> Result<Vec<Piece>, String> {
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
            let field = selector(field)?;
            // K-03: clients of one class may differ in what is not in its key, and they all have one node upstream.
            let position = key.iter().position(|in_key| *in_key == field).ok_or_else(|| {
                format!("`{{{field}}}` is not in `key`, so clients that share a view may differ in it; add it there")
            })?;
            pieces.push(Piece::Key(position));
            rest = after;
        } else {
            return Err(format!(
                "`{text}` has a brace without its partner; write {{{{ or }}}} for a brace itself"
            ));
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// The field before the closing brace, and what follows; a brace in quotes is part of the field.
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
        ];
        let text = |text: &str| Piece::Text(text.to_owned());
        for (written, pieces) in [
            ("", vec![]),
            ("relay", vec![text("relay")]),
            ("relay/{cluster}", vec![text("relay/"), Piece::Key(1)]),
            ("{id}{cluster}", vec![Piece::Key(0), Piece::Key(1)]),
            ("{{{id}}}", vec![text("{"), Piece::Key(0), text("}")]),
            ("{{x}}", vec![text("{x}")]),
            ("{metadata.a.b}", vec![Piece::Key(2)]),
            (r#"{metadata.a."b"}"#, vec![Piece::Key(2)]),
            (r#"{metadata.a."b}\"{"}}}"#, vec![Piece::Key(3), text("}")]),
        ] {
            assert_eq!(template(written, &key), Ok(pieces), "{written}");
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
        ] {
            assert!(template(bad, &key).is_err(), "{bad}");
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
        ] {
            assert_eq!(selector(path).map(|selector| selector.to_string()).as_deref(), Ok(path));
        }
    }
}
