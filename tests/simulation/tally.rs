// SPDX-License-Identifier: Apache-2.0
//! How often each rule was checked, and the name of each violation.
//!
//! Owns the list of rules that the worlds check. Does not know how.

use std::fmt;

macro_rules! rules {
    ($($name:ident = $id:literal: $what:literal,)*) => {
        /// A rule of the protocol that some check stands for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Rule { $(#[doc = $what] $name,)* }

        impl Rule {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub(crate) const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            pub(crate) const fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)* }
            }
        }
    };
}

rules! {
    B01 = "B-01": "a stream is who it said it was first",
    B14 = "B-14, C-11": "whoever asks is answered",
    B16 = "B-16": "a full state lists all there is",
    B18 = "B-18": "an answer with secrets lists all of them",
    B20 = "B-20": "the first wildcard request is answered, even if there is nothing",
    B21 = "B-21": "nothing is sent again for nothing",
    B22 = "B-22": "what is rejected is tried again a few times, and no more",
    B24 = "B-24": "what is on its way to a client is bounded",
    B29 = "B-29": "nothing is sent of a type that was not asked for",
    C15 = "C-15": "a name that does not exist is answered for",
    D01 = "D-01": "no route before its cluster",
    D03 = "D-03": "no cluster goes before its routes",
    D09 = "D-09": "no cluster goes by itself while a route in use leads to it",
    E18 = "E-18": "a server that is silent until it is asked for all takes nothing away",
    G18 = "G-18": "only gRPC loses a stream on which something was said for want of an upstream, and only while a name is lost",
    G19 = "G-19": "losing the upstream changes nothing",
    G20 = "G-20": "nothing is left out or removed out of ignorance",
    K02 = "K-02": "classes do not mix",
    K04 = "K-04": "a control plane sees which class asks",
    K16 = "K-16": "a time-out takes nothing away",
    K17 = "K-17": "the time to live is what remains of it",
    K18 = "K-18": "no time to live for those who cannot read it",
    K21 = "K-21": "what is kept for a session is bounded",
    K23 = "K-23": "interest upstream is the union of interest downstream",
    K25 = "K-25": "every relay on the way leaves its mark, and none talks to itself",
    K27 = "K-27": "who stood still reads before any timer counts",
    K37 = "K-37": "who rejects a content was sent it, and older content is for nobody else",
    S01 = "S-01": "a client is sent what the rules allow, and nothing else",
    S03 = "S-03": "nobody is asked for what a client may not have",
    S07 = "S-07": "rules that change hold for open streams",
    Done = "done": "who has said all says no more when it is acknowledged",
    Chain = "chain": "two relays call equal content by equal versions",
    Views = "views": "no more views than allowed, and nobody is kept out by one that is empty",
    M01 = "M-01": "a warming cluster is given its endpoints",
    F09 = "F-09": "who asks by another spelling is answered by that spelling",
    F11 = "F-11": "who reads an authority reads one of its servers",
    F13 = "F-13": "what is under an authority that is not configured is read with the names of old style",
    G01 = "G-01": "nobody is asked while a server before it is good enough",
    G03 = "G-03": "only who lacks something leaves a server that fails, unless reachability is all that counts",
    G04 = "G-04": "where reachability alone counts, everybody leaves a server that fails",
    G08 = "G-08": "who left a server comes back to it",
    G12 = "G-12": "versions are good for the server that gave them alone",
    G17 = "G-17": "what is said of an authority is the word of the one server that is read",
    G21 = "G-21": "who leaves a server for the configuration reads it until one of the new list answers",
    L20 = "L-20": "a server for which another one stood in begins clean",
    Age = "age": "nothing older than what was sent",
    Warm = "warm": "what a relay knew of a type when it ended is what its next run begins with",
    Mute = "mute": "a link on which everything vanishes is found out",
    Hold = "hold": "what is held is named, and what is not held is as the control plane says",
    Judged = "judged": "what a judgement holds goes by one of its ends, and it holds nothing for nobody",
    Lull = "lull": "in the middle everything may come to rest",
    Held = "held": "at rest every client holds what it should",
    Empty = "empty": "in the end nothing is kept",
}

/// How often each rule was checked where it mattered.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) rules: Vec<u64>,
    pub(crate) steps: u64,
    pub(crate) responses: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            rules: vec![0; Rule::ALL.len()],
            steps: 0,
            responses: 0,
        }
    }
}

impl Tally {
    pub(crate) fn hit(&mut self, rule: Rule) {
        self.rules[rule as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.rules.iter_mut().zip(&other.rules) {
            *sum += more;
        }
        self.steps += other.steps;
        self.responses += other.responses;
    }
}

/// An error: a rule was broken, and how.
macro_rules! broken {
    ($rule:ident, $($what:tt)+) => {
        Err(crate::tally::Broken::new(crate::tally::Rule::$rule, format!($($what)+)))
    };
}

/// A rule was broken.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    rule: Rule,
    what: String,
}

impl Broken {
    pub(crate) fn new(rule: Rule, what: impl Into<String>) -> Self {
        Self {
            rule,
            what: what.into(),
        }
    }

    /// The same, with what it is about.
    pub(crate) fn of(self, what: &str, id: impl fmt::Display) -> Self {
        Self::new(self.rule, format!("{what} {id}: {}", self.what))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.rule.id(), self.rule.what(), self.what)
    }
}
