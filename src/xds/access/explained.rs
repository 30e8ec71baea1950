// SPDX-License-Identifier: Apache-2.0
//! Why a client may or may not have something.
//!
//! Owns the words. They follow from the same rules in the same order as the answer that a client gets.

use std::fmt;

use super::rights::{Applied, is_secret};
use super::{Access, AccessRule, Caller};
use crate::TypeUrl;
use classes::Fields;

/// What an operator asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Who opens the stream.
    pub caller: Caller<'a>,
    /// The type; without one: whether the stream may begin.
    pub type_url: Option<&'a TypeUrl>,
    /// The name of the resource; without one: whether the client may have any resource of the type.
    pub name: Option<&'a str>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether it is allowed.
    pub allowed: bool,
    /// What decides.
    why: String,
    /// The rules before it, each with the reason why it does not decide.
    passed: Vec<String>,
    /// How many more there are.
    more: usize,
}

/// How many rules are listed that do not decide.
const PASSED_MAX: usize = 20;

impl Access {
    /// Returns the rule that decides, and why no rule before it does.
    pub fn explain(&self, question: &Question<'_>) -> Explanation {
        let mut explanation = Explanation {
            allowed: false,
            why: "no rule matches, and what no rule allows is denied".to_owned(),
            passed: Vec::new(),
            more: 0,
        };
        for (at, rule) in self.rules.iter().enumerate() {
            let title = format!("rules[{at}] `{}`", rule.name);
            match self.objection(rule, question) {
                None => {
                    explanation.allowed = rule.allow;
                    let action = if rule.allow { "allows" } else { "denies" };
                    explanation.why = format!("{title} {action} it{}", limits(rule, question));
                    return explanation;
                }
                Some(reason) if explanation.passed.len() < PASSED_MAX => {
                    explanation.passed.push(format!("{title}: {reason}"));
                }
                Some(_) => explanation.more += 1,
            }
        }
        if self.rules.is_empty() {
            let secret = question.type_url.is_some_and(is_secret);
            explanation.allowed = self.secrets || !secret;
            explanation.why = match (secret, self.secrets) {
                (false, _) => "there are no rules, and without rules all but secrets is allowed",
                (true, true) => "there are no rules, and `secrets: allow` is set",
                (true, false) => "secrets are served only where a rule names them, or with `secrets: allow`",
            }
            .to_owned();
        }
        explanation
    }

    /// Returns why a rule does not decide a question.
    fn objection(&self, rule: &AccessRule, question: &Question<'_>) -> Option<String> {
        let known = rule.known(&question.caller);
        if known.is_empty() {
            return Some("no text of the identity matches `identities`".to_owned());
        }
        let objection = |fields: &Fields| rule.objects(&question.caller, fields);
        let bound = known.iter().filter(|fields| objection(fields).is_none());
        let bound: Vec<Applied> = bound.map(|fields| Applied::new(rule, fields)).collect();
        if bound.is_empty() {
            return known.first().and_then(objection);
        }
        let Some(type_url) = question.type_url else {
            let partly = !rule.allow && !rule.is_about_everything();
            return partly.then(|| "it denies only some resources".to_owned());
        };
        if !bound.iter().any(|one| one.is_about(type_url, self.secrets)) {
            return Some(if rule.types.is_empty() {
                "it allows secrets only if `types` names them, or with `secrets: allow`".to_owned()
            } else {
                format!("`types` does not name {type_url}")
            });
        }
        match question.name {
            Some(name) if !bound.iter().any(|one| one.covers(name)) => Some("the name matches no pattern".to_owned()),
            None if !rule.allow && !bound.iter().any(|one| one.covers_all()) => {
                Some("it denies only some names".to_owned())
            }
            Some(_) | None => None,
        }
    }
}

/// Returns which part of what was asked a rule decides.
fn limits(rule: &AccessRule, question: &Question<'_>) -> String {
    if question.name.is_some() || rule.names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = rule.names.iter().map(|name| format!("`{name}`")).collect();
    format!(", of the names {}", names.join(", "))
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed { "ALLOWED" } else { "DENIED" };
        writeln!(f, "{word}: {}", self.why)?;
        self.passed.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        if self.more > 0 {
            writeln!(f, "  and {} more rules that do not decide", self.more)?;
        }
        Ok(())
    }
}
