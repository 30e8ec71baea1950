// SPDX-License-Identifier: Apache-2.0
//! Parses JSON text into a tree. Owns the strict grammar of JSON; `serde_json` unescapes strings.

use super::{Bounds, Budget, Entry, Tree, Value, map, place, too_deep};
use crate::DEPTH_MAX;
use crate::fault::{Fault, Place};

pub(super) fn parse(text: &str, bounds: Bounds) -> Result<Tree, Fault> {
    let mut parser = Parser {
        text,
        at: 0,
        line: 1,
        line_start: 0,
        continued: 0,
        budget: Budget::new(bounds),
    };
    parser.space();
    let tree = parser.value(0)?;
    parser.space();
    match parser.peek() {
        None => Ok(tree),
        Some(_) => Err(parser.fault("text after the end of the value; remove it")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes read.
    at: usize,
    line: usize,
    line_start: usize,
    /// Bytes of this line that continue a character.
    continued: usize,
    budget: Budget,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn place(&self) -> Place {
        place(self.line, self.at - self.line_start - self.continued + 1)
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::at(self.place(), "", message)
    }

    /// Returns the fault that `what` was expected here.
    fn expected(&self, what: &str) -> Fault {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => self.fault(format!("expected {what}, found {found:?}")),
            None => self.fault(format!("the text ends where {what} was expected")),
        }
    }

    fn space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek() {
            self.at += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.at;
                self.continued = 0;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Tree, Fault> {
        let place = self.place();
        self.budget.take(1, place)?;
        if depth > DEPTH_MAX {
            return Err(too_deep(place));
        }
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Tree::new(place, value))
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut entries = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Map(entries));
        }
        loop {
            let place = self.place();
            self.budget.take(1, place)?;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in double quotes"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.expected("a colon"));
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, place, value });
            if !self.more(b'}', "a comma or the end of the object")? {
                return map(entries);
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.more(b']', "a comma or the end of the list")? {
                return Ok(Value::List(items));
            }
        }
    }

    /// Reads a comma or the end; returns whether it was a comma.
    fn more(&mut self, end: u8, what: &str) -> Result<bool, Fault> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.space();
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn number(&mut self) -> Result<String, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return Err(self.fault("a JSON number has no leading zero; remove it, or quote the text"));
        }
        Ok(self.text.get(start..self.at).unwrap_or_default().to_owned())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected("a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Fault> {
        let begin = self.place();
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Fault::at(begin, "", "this string has no end")),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 1;
                    if let Some(0x21..=0x7F) = self.peek() {
                        self.at += 1;
                    }
                }
                Some(0x00..=0x1F) => return Err(self.expected("an escaped control character in a string")),
                Some(byte) => {
                    self.continued += usize::from(byte & 0xC0 == 0x80);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        let whole = self.text.get(start..self.at).unwrap_or_default();
        if !escaped {
            let inner = whole.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            return Ok(inner.unwrap_or_default().to_owned());
        }
        serde_json::from_str(whole)
            .map_err(|_| Fault::at(begin, "", "this string has an escape that is not valid in JSON"))
    }
}
