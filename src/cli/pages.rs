// SPDX-License-Identifier: Apache-2.0
//! What a command says of itself besides its options: examples, exit codes and files, for `--help` and for manual pages.
//!
//! Owns the texts. Knows nothing of what the commands do.

use clap::Command;

/// What is said of a command.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// The command, without the name of the program.
    pub command: &'static str,
    /// Command lines, each with what it does.
    pub examples: Pairs,
    /// Exit codes, each with what it means.
    pub exit: Pairs,
    /// Files, each with what it is.
    pub files: Pairs,
}

/// Texts, each with what is said of it.
type Pairs = &'static [(&'static str, &'static str)];

const USUAL: Pairs = &[
    ("0", "all is done"),
    ("1", "it cannot be done; standard error says why"),
];
const ASKS: Pairs = &[
    ("0", "all relays have done it"),
    ("1", "a relay does not answer, or refuses; standard error says why"),
];

/// What is said of the commands of `distributary`.
#[rustfmt::skip]
pub(super) const ALL: &[Said] = &[
    Said { files: &[("/etc/distributary/relay.yaml", "the configuration that packages and images have")], ..said("serve", &[
        ("distributary serve relay.yaml", "run with a file"),
        ("distributary serve --upstream cp:18000", "run without one"),
        ("distributary serve -c relay.yaml --log-format json", "log for programs"),
    ], &[
        ("0", "the relay has drained and stopped"),
        ("1", "the configuration is bad, or an address cannot be bound"),
    ]) },
    said("validate", &[
        ("distributary validate relay.yaml", "check a configuration and the files that it names"),
        ("distributary validate --resources resources/", "check resources, without a configuration"),
        ("distributary validate relay.yaml --explain --node web.a,a-edge --type cds", "say which rule decides about a client"),
        ("distributary validate new.yaml --against localhost:9901", "say what it would change in a running relay"),
    ], &[
        ("0", "all is well; warnings do not change that"),
        ("1", "something is wrong; standard error lists it"),
    ]),
    said("explain", &[
        ("distributary explain listeners.tls", "say what a key means"),
        ("distributary explain", "list the keys"),
        ("distributary explain --schema > relay.schema.json", "for editors"),
    ], USUAL),
    said("bootstrap", &[
        ("distributary bootstrap envoy --relay relay:15010 --node-id edge-1 > envoy.yaml", "what an Envoy needs"),
        ("distributary bootstrap grpc --from xds.json --relay relay:15010 > relayed.json", "the bootstrap that a client has, with the relay in place of whom it asks"),
    ], USUAL),
    said("get", &[
        ("distributary get cds --server cp:18000", "all clusters"),
        ("distributary get eds backend -o json --server https://cp", "one by name, over TLS"),
        ("distributary get lds --watch -o name", "follow changes"),
    ], &[
        ("0", "everything that was asked for is there"),
        ("1", "something is not, or the server does not answer"),
    ]),
    said("compare", &[
        ("distributary compare cp:18000 relay:15010 --from envoy.yaml", "whether a client is told the same by both"),
        ("distributary compare cp:18000 relay:15010 --for 10m", "what stays different while configuration moves"),
        ("distributary compare https://cp relay:15010 --listener shop --ca ca.pem", "as gRPC asks for xds:///shop"),
    ], &[
        ("0", "both say the same"),
        ("1", "something differs, or is rejected; standard output says what"),
        ("2", "a server was not reached or needs longer, or the command line is wrong"),
    ]),
    said("survey", &[
        ("distributary survey cp:18000 --from edge.yaml shop.json", "which fields of a node change the answer, and the `classes` for that"),
        ("distributary survey cp:18000 --own-ids-only --from edge.yaml shop.json", "the same without nodes that do not exist"),
    ], &[
        ("0", "the classes are printed"),
        ("1", "it cannot be told, or the control plane does not answer; standard error says why"),
    ]),
    said("health", &[
        ("distributary health --wait 30s", "wait until clients can be served"),
        ("distributary health --live", "ask only whether it runs"),
    ], ASKS),
    said("drain", &[("distributary drain -a 10.0.0.7:9901", "move the clients of one relay away")], ASKS),
    said("reload", &[
        ("distributary reload", "the relay of this machine"),
        ("distributary reload -a relay-headless.xds.svc", "all relays behind a name"),
    ], ASKS),
    said("log-level", &[
        ("distributary log-level debug", "log more"),
        ("distributary log-level upstream=debug", "log more of one part"),
    ], ASKS),
    said("holds", &[
        ("distributary holds", "what is removed and still served"),
        ("distributary holds release cds/payments --reason moved", "pass it on"),
    ], &[
        ("0", "nothing is held at which somebody should look; or the order is done"),
        ("1", "much was lost at once, or is referred to for over 15 min; or a relay does not answer"),
    ]),
    said("status", &[
        ("distributary status -a relay-headless.xds.svc", "all relays behind a name"),
        ("distributary status --clients --state rejecting", "who rejects something"),
        ("distributary status --servers --watch", "follow the control planes"),
    ], &[
        ("0", "nothing in the table is wrong"),
        ("1", "something is; standard error says what"),
    ]),
    said("wait", &[("distributary wait cds/web --for 99% --timeout 2m", "until nearly all clients have it")], &[
        ("0", "they have accepted it"),
        ("1", "they have not, in time; standard error says who"),
    ]),
];

const fn said(command: &'static str, examples: Pairs, exit: Pairs) -> Said {
    Said {
        command,
        examples,
        exit,
        files: &[],
    }
}

/// Returns the command line with examples in the help of each command.
pub fn with_examples(command: Command, said: &'static [Said]) -> Command {
    said.iter().fold(command, |command, said| {
        let examples = said.examples.iter();
        let width = examples.clone().map(|(line, _)| line.len()).max().unwrap_or_default();
        let lines = examples.map(|(line, about)| format!("  $ {line:width$}  # {about}\n"));
        let text = format!("Examples:\n{}", lines.collect::<String>());
        command.mut_subcommand(said.command, |command| command.after_help(text.trim_end().to_owned()))
    })
}

/// Returns what a manual page says behind the options, as roff.
pub(super) fn sections(command: &Command, said: Option<&Said>) -> String {
    let mut text = String::new();
    let mut list = |title: &str, lines: &mut dyn Iterator<Item = (String, String)>| {
        let lines = lines.map(|(term, about)| format!(".TP\n{}\n{}\n", roff(&term), roff(&about)));
        let lines: String = lines.collect();
        if !lines.is_empty() {
            text.push_str(&format!(".SH \"{title}\"\n{lines}"));
        }
    };
    let own = |(term, about): &(&str, &str)| ((*term).to_owned(), (*about).to_owned());
    let misuse = said.filter(|said| said.exit.iter().all(|(code, _)| *code != "2"));
    let misuse = misuse.map(|_| &("2", "the command line is wrong"));
    list(
        "EXIT STATUS",
        &mut said.iter().flat_map(|said| said.exit).chain(misuse).map(own),
    );
    let variables = command.get_arguments().filter_map(|argument| {
        let variable = argument.get_env()?.to_str()?.to_owned();
        let flag = argument.get_long().map(|long| format!("--{long}"));
        let flag = flag.unwrap_or_else(|| argument.get_id().to_string());
        Some((variable, format!("stands for {flag} where that is not given")))
    });
    list("ENVIRONMENT", &mut variables.into_iter());
    list("FILES", &mut said.iter().flat_map(|said| said.files).map(own));
    list("EXAMPLES", &mut said.iter().flat_map(|said| said.examples).map(own));
    text
}

/// Returns a text in which roff sees no orders.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}
