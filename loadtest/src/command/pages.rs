// SPDX-License-Identifier: Apache-2.0
//! What the commands say of themselves besides their options: examples and exit codes. Owns the texts. Knows nothing of what the
//! commands do.

use clap::{Command, CommandFactory as _};
use distributary::cli::{Said, with_examples};

use crate::command::arguments::Program;

type Pairs = &'static [(&'static str, &'static str)];

#[rustfmt::skip]
const RUNS: Pairs = &[
    ("0", "everything held"),
    ("1", "an assertion did not hold, or a client saw a breach of the protocol"),
    ("2", "the command line or a scenario is wrong, or the run could not be completed"),
];
#[rustfmt::skip]
const USUAL: Pairs = &[("0", "all is done"), ("2", "it cannot be done; standard error says why")];

/// What is said of a command without files.
const fn said(command: &'static str, exit: Pairs, examples: Pairs) -> Said {
    Said {
        command,
        examples,
        exit,
        files: &[],
    }
}

/// What is said of the commands of `distributary-load`.
#[rustfmt::skip]
pub(crate) const ALL: &[Said] = &[
    said("run", RUNS, &[
        ("distributary-load run", "a control plane, a relay, 300 clients, and changes"),
        ("distributary-load run steady --set clients.count=500", "a built-in scenario, with fewer clients"),
        ("distributary-load run mine.yaml --server cp:15010", "one of your own, at your control plane"),
        ("distributary-load run --set 'phases[].expect.p99_below=100ms'", "a gate for CI"),
        ("distributary-load run waves --prometheus 127.0.0.1:9090", "watch a long run"),
    ]),
    said("list", USUAL, &[("distributary-load list", "what can be run")]),
    said("explain", USUAL, &[
        ("distributary-load explain p99_below", "say what a key means"),
        ("distributary-load explain | less", "all keys"),
    ]),
    said("dump", USUAL, &[
        ("distributary-load dump --server cp:18000 --node-id edge-1 -o edge-1", "write down what a client is given"),
        ("envoy -c edge-1/bootstrap.json", "start an Envoy with it"),
    ]),
];

/// Returns the command line, in which the help of each command has some examples.
pub(crate) fn command() -> Command {
    with_examples(Program::command(), ALL)
}
