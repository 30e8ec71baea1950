// SPDX-License-Identifier: Apache-2.0
//! The page of the admin address reads nothing that no answer says. Each of its scripts says on top which fields of which answers it reads,
//! and which properties of its own; a field that is renamed in `src/answers` is then one that nobody answers.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use crate::tree;

/// What browsers have.
const OF_BROWSERS: &str =
    "length size target value message hidden className classList body host hash headers status data";

/// Returns a script without comments, texts and patterns; of templates, what is put into them.
fn code(text: &[char]) -> String {
    let (mut code, mut at) = (String::new(), 0);
    while at < text.len() {
        at = token(text, at, &mut code);
    }
    code
}

/// Adds what begins here, and returns where it ends.
fn token(text: &[char], at: usize, code: &mut String) -> usize {
    let end = |from: usize, what: &str| {
        let what: Vec<char> = what.chars().collect();
        let found = text[from..].windows(what.len()).position(|here| here == what);
        found.map_or(text.len(), |found| from + found + what.len())
    };
    let regular = code.trim_end().ends_with(['=', '(', ',', ':']);
    match (text[at], text.get(at + 1)) {
        ('/', Some('/')) => end(at, "\n"),
        ('/', Some('*')) => end(at, "*/"),
        ('"' | '/', _) if text[at] == '"' || regular => {
            let (mut here, mut class) = (at + 1, false);
            while class || text[here] != text[at] {
                match text[here] {
                    '\\' => here += 1,
                    '[' => class = text[at] == '/',
                    ']' => class = false,
                    _ => {}
                }
                here += 1;
            }
            code.push('0');
            here + 1
        }
        ('`', _) => template(text, at + 1, code),
        (other, _) => {
            code.push(other);
            at + 1
        }
    }
}

fn template(text: &[char], mut at: usize, code: &mut String) -> usize {
    code.push('(');
    while text[at] != '`' {
        match (text[at], text[at + 1]) {
            ('\\', _) => at += 2,
            ('$', '{') => {
                at += 2;
                let mut depth = 0;
                while depth > 0 || text[at] != '}' {
                    depth += i32::from(text[at] == '{') - i32::from(text[at] == '}');
                    at = token(text, at, code);
                }
                code.push(';');
                at += 1;
            }
            _ => at += 1,
        }
    }
    code.push(')');
    at + 1
}

/// Returns where what is opened here is closed.
fn close(code: &[char], open: usize) -> usize {
    let mut depth = 0;
    for (at, here) in code.iter().enumerate().skip(open) {
        depth += i32::from("([{".contains(*here)) - i32::from(")]}".contains(*here));
        if depth == 0 {
            return at;
        }
    }
    panic!("nothing closes {}", code[open..].iter().collect::<String>());
}

/// Whether braces take values apart: what follows says so, or what follows the parameters that they stand in.
fn takes_apart(code: &[char], open: usize, opened: &[usize]) -> bool {
    let behind = |at: usize| code[close(code, at) + 1..].iter().collect::<String>();
    let after = behind(open);
    let after = after.trim_start_matches([' ', '\n', ']']);
    if after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>") {
        return true;
    }
    let parameters = opened.iter().rev().find(|at| code[**at] == '(');
    parameters.is_some_and(|at| {
        let (before, after) = (code[..*at].iter().collect::<String>(), behind(*at));
        let is_condition = ["if", "while", "switch"]
            .iter()
            .any(|word| before.trim_end().ends_with(word));
        !is_condition && (after.trim_start().starts_with("=>") || after.trim_start().starts_with('{'))
    })
}

fn word(code: &[char]) -> String {
    code.iter()
        .take_while(|at| at.is_alphanumeric() || **at == '_')
        .collect()
}

/// Returns the properties that a script reads: behind a dot, unless they are called, and in braces that take a value apart.
fn read(script: &str) -> BTreeSet<String> {
    let code: Vec<char> = code(&script.chars().collect::<Vec<_>>()).chars().collect();
    let (mut found, mut opened) = (BTreeSet::new(), Vec::new());
    let mut put =
        |name: String| _ = (!name.is_empty() && !name.starts_with(char::is_numeric)).then(|| found.insert(name));
    for (at, here) in code.iter().enumerate() {
        match here {
            '.' if at > 0 && code[at - 1] != '.' => {
                let name = word(&code[at + 1..]);
                if code.get(at + 1 + name.len()) != Some(&'(') {
                    put(name);
                }
            }
            '{' if takes_apart(&code, at, &opened) => {
                let (mut depth, mut begins) = (0, true);
                for (at, here) in code.iter().enumerate().take(close(&code, at)).skip(at + 1) {
                    if begins && !here.is_whitespace() {
                        put(word(&code[at..]));
                        begins = false;
                    }
                    depth += i32::from("([{".contains(*here)) - i32::from(")]}".contains(*here));
                    begins |= depth == 0 && *here == ',';
                }
            }
            _ => {}
        }
        match here {
            '(' | '[' | '{' => opened.push(at),
            ')' | ']' | '}' => _ = opened.pop(),
            _ => {}
        }
    }
    // Lists of numbers are called by their names.
    for call in ["points(history, \"", "each(\""] {
        script
            .split(call)
            .skip(1)
            .for_each(|rest| put(word(&rest.chars().collect::<Vec<_>>())));
    }
    found
}

/// Returns the fields of each answer, as they are written.
fn answers() -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in tree::files().iter().filter(|file| file.is("src/answers/", ".rs")) {
        let (mut name, mut attribute) = (String::new(), String::new());
        for line in file.text.lines().map(str::trim) {
            let line = line.trim_start_matches("pub(crate) ");
            if let Some(rest) = line.strip_prefix("struct ").or_else(|| line.strip_prefix("enum ")) {
                name = word(&rest.chars().collect::<Vec<_>>());
                types.entry(name.clone()).or_default();
            } else if line.starts_with("#[serde(") {
                attribute = line.to_owned();
            } else if let Some((field, _)) = line.split_once(": ").filter(|_| !line.starts_with("//")) {
                let renamed = attribute
                    .split("rename = \"")
                    .nth(1)
                    .and_then(|rest| rest.split('"').next());
                // A variant has its one field in the same line.
                let field = field.rsplit(' ').next().unwrap_or(field);
                types
                    .entry(name.clone())
                    .or_default()
                    .insert(renamed.unwrap_or(field).to_owned());
                attribute.clear();
            }
        }
    }
    types
}

/// Returns what a script says that it reads: answers, each with its fields, and its own.
fn declared(script: &str) -> Vec<(String, Vec<String>)> {
    let head = script.lines().take_while(|line| line.starts_with("//"));
    let head: String = head.map(|line| line.trim_start_matches('/')).collect();
    let said = head.split(" Reads ").skip(1).filter_map(|said| said.split_once(" {"));
    let fields = |fields: &str| {
        fields
            .split('}')
            .next()
            .unwrap_or_default()
            .split(',')
            .map(|field| field.trim().to_owned())
            .collect()
    };
    said.map(|(name, rest)| (name.to_owned(), fields(rest))).collect()
}

#[test]
fn the_page_reads_what_is_answered() {
    let (answers, files) = (answers(), tree::files());
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for script in files.iter().filter(|file| file.is("src/admin/page/", ".js")) {
        let (declared, read) = (declared(&script.text), read(&script.text));
        for (name, fields) in declared.iter().filter(|(name, _)| name != "its own") {
            let none = BTreeSet::new();
            let of = answers.get(name).unwrap_or(&none);
            let gone = fields.iter().filter(|field| !of.contains(*field));
            wrong.extend(gone.map(|field| format!("{}: {name} has no field `{field}`", script.path)));
            checked += fields.len();
        }
        let all: BTreeSet<&String> = declared.iter().flat_map(|(_, fields)| fields).collect();
        let idle = all.iter().filter(|field| !read.contains(**field));
        wrong.extend(idle.map(|field| format!("{}: it reads no `{field}`", script.path)));
        let own = |name: &&String| all.contains(name) || OF_BROWSERS.split(' ').any(|of| of == name.as_str());
        let unknown = read.iter().filter(|name| !declared.is_empty() && !own(name));
        wrong.extend(unknown.map(|name| format!("{}: say of which answer `{name}` is", script.path)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(checked > 150, "only {checked} fields are checked");
}

#[test]
fn the_reader_sees_what_it_should() {
    let script = "// x.comment\nexport function f({ a, b: c, d = 1 }, [e, { g }]) {\n  const { h } = a.i.map(({ j }) => `${c.k} l.m`);\n  \
                  return h(\"n.o\", { p: 1 }, a?.q, x.r(), { s });\n}\n";
    let found: Vec<String> = read(script).into_iter().collect();
    assert_eq!(found.join(" "), "a b d g h i j k q");
}
