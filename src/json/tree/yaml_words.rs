// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a text that is not YAML, in words that need no knowledge of the parser. Owns nothing else.

use granit_parser::ErrorKind as Kind;

/// Returns what is wrong with the syntax, and what to do.
#[expect(clippy::wildcard_enum_match_arm, reason = "the parser adds kinds")]
pub(super) fn wrong(kind: &Kind) -> String {
    if let Some(said) = quoted(kind) {
        return said.to_owned();
    }
    let said = match kind {
        Kind::TabNotAllowed
        | Kind::TabInBlockIndentation
        | Kind::TabInIndentation
        | Kind::TabAtBlockScalarStart
        | Kind::TabInPlainScalar
        | Kind::InvalidBlockEntryWhitespace
        | Kind::InvalidMappingValueWhitespace => "there is a tab where only spaces are allowed; indent with spaces",
        Kind::UnclosedFlowCollection { open } => return format!("the `{open}` here is never closed"),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            return format!("`{open}` is closed with `{close}`");
        }
        Kind::MisplacedFlowCollectionEnd => "there is nothing open that this closes; remove it",
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            "this is inside a list in brackets, where a `,` or the closing `]` is missing"
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => {
            "this is inside a mapping in braces, where a `,` or the closing `}` is missing"
        }
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement | Kind::FlowMappingValueAdjacentCollection => {
            "a `:` cannot be here; quote a value that contains `: `, or correct the indentation"
        }
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            "a key must be on one line, with a `:` after it; add the `:`, or quote a value of several lines"
        }
        Kind::InvalidIndentation
        | Kind::ExpectedBlockMappingKey
        | Kind::ExpectedBlockSequenceEntry
        | Kind::UnexpectedEofBlockSequence
        | Kind::UnexpectedEofBlockMapping
        | Kind::BlockSequenceEntryNotAllowed
        | Kind::MappingKeyNotAllowed
        | Kind::InvalidBlockScalarIndent
        | Kind::InvalidFlowScalarIndent => {
            "this does not fit the lines above; indent the keys of a mapping, and the dashes of a list, by as many spaces as the first of them"
        }
        Kind::BlockEntryInFlowCollection | Kind::PlainScalarStartsWithDashFlowIndicator => {
            "a `-` for a list cannot be inside brackets or braces; write [a, b]"
        }
        Kind::UnexpectedCharacter { character } => {
            return format!("a value cannot begin with `{}`; quote it", character.escape_debug());
        }
        Kind::UnknownAnchor => {
            "no anchor of this name (`&name`) before this alias (`*name`); quote a value that begins with `*`"
        }
        Kind::MissingAnchorOrAliasName => "a name must follow `&` or `*`; quote a value that begins with one of these",
        Kind::RecursionLimitExceeded => "it is nested too deep; make it flatter",
        Kind::CommentInterceptedScalar | Kind::CommentNotSeparated | Kind::ExpectedWhitespace => {
            "a space is missing here, or a comment interrupts a value; quote a value that contains `#`"
        }
        Kind::InvalidBlockScalarHeader | Kind::ZeroBlockScalarIndent => {
            "the text after `|` or `>` must begin on the next line"
        }
        Kind::UnexpectedEof => "the text ends in the middle of a value",
        _ => "this cannot be read; look for a missing quote, colon or space, here or in the line above",
    };
    said.to_owned()
}

/// Returns what is wrong with a text in quotes.
#[expect(clippy::wildcard_enum_match_arm, reason = "the parser adds kinds")]
const fn quoted(kind: &Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::UnclosedQuotedScalar | Kind::DocumentIndicatorInQuotedScalar => {
            "the quote that begins here is never closed"
        }
        Kind::InvalidQuotedScalarIndent => {
            "a quote that began above is not closed, or the lines of its text are not indented"
        }
        Kind::InvalidTrailingSingleQuotedScalar | Kind::InvalidTrailingDoubleQuotedScalar => {
            "text follows the closing quote; quote all of the value"
        }
        Kind::UnknownQuotedScalarEscape
        | Kind::InvalidQuotedScalarHexEscape
        | Kind::InvalidLowSurrogateHexEscape
        | Kind::InvalidLowSurrogate
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate
        | Kind::InvalidUnicodeEscape => {
            "no such escape in double quotes; write `\\\\` for a backslash, or use single quotes"
        }
        _ => return None,
    })
}
