// SPDX-License-Identifier: Apache-2.0
//! What a token says, as texts.
//!
//! Owns which claims become texts: those that the configuration names, and of these all, or the token is refused (S-11). Knows
//! nothing of signatures.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::TokenFault;
use crate::identity::{Named, TEXT_BYTES_MAX, claim, is_text};

/// Claims that a pattern must name in full: they are in every token, and say nothing of the client that `jwt:` does not say.
const REGISTERED: [&str; 7] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];
const NAME_CHARS_MAX: usize = 100;

type ClaimSet = Map<String, Value>;

/// Returns `jwt:ISSUER#SUBJECT`, and `claim:ISSUER#NAME=VALUE` for each value of the claims that are named. The issuer is in all of them,
/// because one of several must not state what only another one may.
pub(super) fn texts(issuer: &str, claims: &ClaimSet, named: &Named) -> Result<Vec<String>, TokenFault> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let subject = subject.filter(|subject| !subject.is_empty());
    let subject = subject.ok_or_else(|| TokenFault::Claim("sub".to_owned()))?;
    let mut texts = vec![kept("sub", format!("jwt:{issuer}#{subject}"))?];
    // In the order of their names: a class may take the first text of a kind.
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in claims {
        // A name with a `=` would make two different claims look alike.
        let possible = !REGISTERED.contains(&name.as_str()) && !name.contains('=');
        if possible && named.begins(&claim(issuer, name)) {
            // A pattern that names no claim in full is about values that are texts.
            all.insert(name, values(value).filter_map(Result::ok).collect());
        }
    }
    for name in named.claims(issuer) {
        let value = match *readings(claims, name) {
            [] => continue,
            [value] => value,
            [..] => return Err(TokenFault::Ambiguous(name.to_owned())),
        };
        let values = values(value).collect::<Result<_, _>>();
        all.insert(name, values.map_err(|what| unreadable(name, what))?);
    }
    for (name, values) in all {
        for value in values {
            texts.push(kept(name, claim(issuer, name) + &value)?);
        }
    }
    Ok(texts)
}

/// Returns all values to which a name leads: as one claim, and by a path on which each `/` may be between two members, or within the
/// name of one (`kubernetes.io/pod/name`).
fn readings<'a>(members: &'a ClaimSet, name: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = members.get(name).into_iter().collect();
    for (at, _) in name.match_indices('/') {
        let (first, rest) = name.split_at(at);
        if let (Some(Value::Object(below)), Some(rest)) = (members.get(first), rest.get(1..)) {
            found.extend(readings(below, rest));
        }
    }
    found
}

/// Returns the values of a claim, or what each is that has none.
fn values(claim: &Value) -> impl Iterator<Item = Result<String, &'static str>> {
    let all = claim.as_array().map_or(std::slice::from_ref(claim), Vec::as_slice);
    all.iter().filter_map(|one| value(one).transpose())
}

/// Returns a value as text; none if there is no value.
fn value(claim: &Value) -> Result<Option<String>, &'static str> {
    Ok(Some(match claim {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        // 1.0 and 1e0 are one number with several texts.
        Value::Number(_) => return Err("it has a number that is no integer of 64 bits"),
        Value::Object(_) => return Err("it has an object; name a member of it, as in `kubernetes.io/pod/name`"),
        Value::Array(_) => return Err("it has a list in a list"),
    }))
}

/// A text that is cut or changed could be taken for another one.
fn kept(name: &str, text: String) -> Result<String, TokenFault> {
    match is_text(&text) {
        true => Ok(text),
        false if text.len() > TEXT_BYTES_MAX => Err(unreadable(name, "it is too long")),
        false => Err(unreadable(name, "it has a control character")),
    }
}

fn unreadable(name: &str, what: &'static str) -> TokenFault {
    let name = name.chars().take(NAME_CHARS_MAX).collect::<String>();
    TokenFault::Unreadable(name.escape_debug().to_string(), what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(named: &Named, claims: Value) -> Result<Vec<String>, TokenFault> {
        let Value::Object(mut claims) = claims else {
            unreachable!("claims are an object")
        };
        claims.entry("sub").or_insert_with(|| "s".into());
        let texts = texts("i", &claims, named)?;
        assert_eq!(texts.first().map(String::as_str), Some("jwt:i#s"));
        let claims = texts.into_iter().skip(1);
        Ok(claims
            .map(|text| text.trim_start_matches("claim:i#").to_owned())
            .collect())
    }

    /// S-11: a claim that is named is read among ten thousand, all of its values too.
    #[test]
    fn what_is_named_is_read_whatever_else_is_there() {
        let of = Named::from_iter(["claim:i#suspended=", "claim:i#groups=admin", "claim:j#team=", "jwt:"]);
        let many: ClaimSet = (0..10_000).map(|n| (n.to_string(), json!("x"))).collect();
        let groups: Vec<Value> = (0..3_000).map(|n| json!(n.to_string())).collect();
        let mut claims = Value::Object(many);
        claims["suspended"] = "yes".into();
        claims["groups"] = groups.into();
        claims["team"] = "a".into();
        let found = read(&of, claims.clone()).unwrap();
        assert_eq!(found.len(), 3_001);
        assert!(found.contains(&"suspended=yes".to_owned()) && found.contains(&"groups=2999".to_owned()));
        assert_eq!(read(&Named::default(), claims.clone()).unwrap().len(), 0);
        let all = read(&Named::from_iter(["claim:"]), claims).unwrap();
        assert_eq!(all.len(), 10_000 + 3_000 + 2);
    }

    /// S-11: what a text can say is one, and what none can say refuses the token.
    #[test]
    fn values_are_texts_or_refused() {
        let of = Named::from_iter(["claim:i#c="]);
        let long = "x".repeat(TEXT_BYTES_MAX);
        for (value, texts) in [
            (json!("a"), Ok(&["c=a"][..])),
            (json!(""), Ok(&["c="])),
            (json!(["a", "b", 3, true, null]), Ok(&["c=a", "c=b", "c=3", "c=true"])),
            (json!(false), Ok(&["c=false"])),
            (json!(-7), Ok(&["c=-7"])),
            (json!(u64::MAX), Ok(&["c=18446744073709551615"])),
            (json!([]), Ok(&[])),
            (json!(null), Ok(&[])),
            (json!(1.5), Err("it has a number that is no integer of 64 bits")),
            (json!(1e300), Err("it has a number that is no integer of 64 bits")),
            (
                json!({"a": 1}),
                Err("it has an object; name a member of it, as in `kubernetes.io/pod/name`"),
            ),
            (
                json!(["a", {"a": 1}]),
                Err("it has an object; name a member of it, as in `kubernetes.io/pod/name`"),
            ),
            (json!(["a", ["b"]]), Err("it has a list in a list")),
            (json!("a\nb"), Err("it has a control character")),
            (json!("a\u{85}"), Err("it has a control character")),
            (json!(["a", long]), Err("it is too long")),
        ] {
            let found = read(&of, json!({"c": value}));
            let expected = texts
                .map(|texts| texts.iter().map(ToString::to_string).collect::<Vec<_>>())
                .map_err(|why| TokenFault::Unreadable("c".to_owned(), why));
            assert_eq!(found, expected, "{value}");
        }
        let subject = read(&of, json!({"sub": "x\u{1}"}));
        assert_eq!(
            subject,
            Err(TokenFault::Unreadable("sub".to_owned(), "it has a control character"))
        );
        assert!(read(&of, json!({"sub": "x".repeat(3_000)})).is_err());
    }

    /// A name may be one claim or a path, also in parts; a token must not have both.
    #[test]
    fn nested_claims() {
        let of = Named::from_iter(["claim:i#kubernetes.io/pod/name="]);
        let pod = json!({"kubernetes.io": {"namespace": "a", "pod": {"name": "x", "uid": "1"}}});
        assert_eq!(read(&of, pod.clone()).unwrap(), ["kubernetes.io/pod/name=x"]);
        let whole = json!({"kubernetes.io/pod/name": "x"});
        assert_eq!(read(&of, whole).unwrap(), ["kubernetes.io/pod/name=x"]);
        assert_eq!(
            read(&of, json!({"kubernetes.io/pod": {"name": "x"}})).unwrap(),
            ["kubernetes.io/pod/name=x"]
        );
        assert_eq!(
            read(&of, json!({"kubernetes.io": {"pod/name": "x"}})).unwrap(),
            ["kubernetes.io/pod/name=x"]
        );
        let mut both = pod;
        both["kubernetes.io/pod/name"] = "y".into();
        assert_eq!(
            read(&of, both),
            Err(TokenFault::Ambiguous("kubernetes.io/pod/name".to_owned()))
        );
        for other in [
            json!({"kubernetes.io": "x"}),
            json!({"kubernetes.io": {"pod": "x"}}),
            json!({"kubernetes.io": {"pod": [{"name": "x"}]}}),
        ] {
            assert_eq!(read(&of, other).unwrap(), [""; 0]);
        }
    }

    /// A pattern without the name of a claim is about claims that are texts; those of every token are not among them.
    #[test]
    fn claims_that_no_pattern_names_in_full() {
        let all = Named::from_iter(["claim:i#"]);
        let claims =
            json!({"iss": "i", "jti": "1", "b": "x", "a": ["y", 1, 1.5, ["z"]], "o": {"m": "z"}, "n": 1.5, "a=b": "c"});
        assert_eq!(read(&all, claims.clone()).unwrap(), ["a=y", "a=1", "b=x"]);
        let some = Named::from_iter(["claim:i#b", "claim:i#jti=", "claim:i#o/m="]);
        assert_eq!(read(&some, claims).unwrap(), ["b=x", "jti=1", "o/m=z"]);
        assert!(read(&all, json!({"b": "x\n"})).is_err());
    }
}
