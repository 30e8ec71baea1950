//! What the commands say of themselves besides their options: examples, exit codes, and which groups of options belong to each. Owns
//! the texts. Knows nothing of what the commands do.

use clap::{Arg, Command, CommandFactory as _};
use distributary::cli::{Said, with_examples};

use crate::command::arguments::{Arguments, FLEET};
use crate::fleet::identity::IDENTITY;
use crate::measure::shard::MACHINES;
use crate::report::REPORT;
use crate::wire::place::SERVER;

const RUNS: &[(&str, &str)] = &[
    ("0", "everything held"),
    (
        "1",
        "an assertion did not hold, a client saw a breach of the protocol, or --fail-if or --fail-above failed",
    ),
    (
        "2",
        "the command line or a scenario is wrong, or the run could not be completed",
    ),
];
const USUAL: &[(&str, &str)] = &[
    ("0", "all is done"),
    ("2", "it cannot be done; standard error says why"),
];

/// What is said of the commands of `distributary-load`.
pub(crate) const ALL: &[Said] = &[
    Said {
        command: "run",
        examples: &[
            (
                "distributary-load run steady --clients 500",
                "a built-in scenario, with fewer clients",
            ),
            (
                "distributary-load run mine.yaml --server cp:15010",
                "one of your own, at your control plane",
            ),
            ("distributary-load run churn --fail-if 'p99>100ms'", "a gate for CI"),
            (
                "distributary-load run waves --prometheus 127.0.0.1:9090",
                "watch a long run",
            ),
        ],
        exit: RUNS,
        files: &[],
    },
    Said {
        command: "list",
        examples: &[("distributary-load list", "what can be run")],
        exit: USUAL,
        files: &[],
    },
    Said {
        command: "explain",
        examples: &[
            ("distributary-load explain p99_below", "say what a key means"),
            ("distributary-load explain | less", "all keys"),
        ],
        exit: USUAL,
        files: &[],
    },
    Said {
        command: "merge",
        examples: &[(
            "distributary-load merge 1.json 2.json --json run.json",
            "one report of two shares",
        )],
        exit: RUNS,
        files: &[],
    },
    Said {
        command: "dump",
        examples: &[
            (
                "distributary-load dump --server cp:18000 --node-id edge-1 -o edge-1",
                "write down what a client is given",
            ),
            ("envoy -c edge-1/bootstrap.json", "start an Envoy with it"),
        ],
        exit: USUAL,
        files: &[],
    },
];

/// The examples of the program itself.
const EXAMPLES: &str = "Examples:
  $ distributary-load                                   # a control plane, a relay, 300 clients, and changes
  $ distributary-load list                              # the scenarios
  $ distributary-load --server cp:15010 --idle 5m       # watch your own control plane with 300 clients
  $ distributary-load run steady --json target/run.json # all that was measured
  $ distributary-load --compare a.json b.json --fail-above 1.2";

/// The groups of options that a command has.
fn groups(command: &str) -> &'static [&'static str] {
    match command {
        "run" => &[FLEET, SERVER, IDENTITY, MACHINES, REPORT],
        "merge" => &[REPORT],
        "dump" => &[FLEET, SERVER, IDENTITY],
        _ => &[],
    }
}

/// Returns the command line, in which the help of each command shows only its own options and some examples.
pub(crate) fn command() -> Command {
    let mut command = with_examples(Arguments::command(), ALL).after_help(EXAMPLES);
    // All commands take all options; those of others are not shown.
    command.build();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    names.iter().fold(command, |command, name| {
        let own = groups(name);
        let hidden = |argument: Arg| {
            let is_foreign =
                argument.is_global_set() && argument.get_help_heading().is_some_and(|it| !own.contains(&it));
            argument.hide(is_foreign)
        };
        command.mut_subcommand(name, |command| command.mut_args(hidden))
    })
}
