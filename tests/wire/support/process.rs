// SPDX-License-Identifier: Apache-2.0
//! The relay as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use peers::process::ask;

/// The program as a process; dropping it ends it.
pub(crate) struct Process {
    child: Child,
    pub(crate) clients: SocketAddr,
    /// The addresses of the other listeners.
    pub(crate) others: Vec<SocketAddr>,
    pub(crate) admin: SocketAddr,
    lines: Arc<AtomicUsize>,
}

impl Process {
    /// The program with its default limits and no control plane.
    pub(crate) fn start() -> Self {
        Self::of(
            "memory",
            "127.0.0.1:1",
            "timers: {linger: 100ms}
",
        )
    }

    /// The program with this control plane, and these lines in its configuration, which gets this name.
    pub(crate) fn of(name: &str, control_plane: &str, more: &str) -> Self {
        let upstream = format!("xds_servers: [{{server_uri: '{control_plane}'}}]");
        Self::with(name, &upstream, &[""], more)
    }

    /// The program with these `upstream`, a listener for each of these texts, with it after its address, and these lines in its
    /// configuration. `DISTRIBUTARY_BIN` may name another build of it.
    pub(crate) fn with(name: &str, upstream: &str, listeners: &[&str], more: &str) -> Self {
        Self::under("true", name, upstream, listeners, more)
    }

    /// The same under limits of the system, which are a command of the shell.
    pub(crate) fn under(limits: &str, name: &str, upstream: &str, listeners: &[&str], more: &str) -> Self {
        let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.yaml"));
        let addresses = listeners
            .iter()
            .map(|keys| format!("- {{address: '127.0.0.1:0'{keys}}}\n"));
        let addresses: String = addresses.collect();
        let text =
            format!("upstream: {{{upstream}}}\nadmin: {{address: '127.0.0.1:0'}}\nlisteners:\n{addresses}{more}");
        std::fs::write(&path, text).unwrap();
        let program =
            std::env::var("DISTRIBUTARY_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_distributary").to_owned());
        let mut child = Command::new("sh")
            .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
            .arg(program)
            .args(["serve", "--log-level", "info", "--config"])
            .arg(&path)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut address = |words: &str| {
            let line = log.find(|line| line.contains(words)).unwrap();
            let at = line.find("127.0.0.1:").unwrap();
            let end = |c: char| !c.is_ascii_digit() && c != '.' && c != ':';
            line[at..].split(end).next().unwrap().parse().unwrap()
        };
        let admin = address("admin address");
        let clients = address("listening for clients");
        let others = listeners
            .iter()
            .skip(1)
            .map(|_| address("listening for clients"))
            .collect();
        let lines = Arc::new(AtomicUsize::new(0));
        let count = lines.clone();
        std::thread::spawn(move || {
            log.for_each(|_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
        });
        Self {
            child,
            clients,
            others,
            admin,
            lines,
        }
    }

    /// Bytes of memory that the process has for itself.
    pub(crate) fn resident(&self) -> usize {
        self.status("RssAnon:")
    }

    /// Bytes of memory in which files are, above all that of the program.
    pub(crate) fn files(&self) -> usize {
        self.status("RssFile:")
    }

    /// The most memory that the process ever had, with that of files.
    pub(crate) fn peak(&self) -> usize {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// The processor time that it has used.
    pub(crate) fn processor(&self) -> Duration {
        processor(&self.child.id().to_string())
    }

    /// How many files and sockets it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.unwrap().count()
    }

    /// How many lines it has written into its log since it began to listen.
    pub(crate) fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    /// Whether no stream and no connection is open.
    pub(crate) fn is_empty(&self) -> bool {
        let text = self.metrics();
        let open =
            |line: &&str| line.starts_with("distributary_streams{") || line.starts_with("distributary_connections ");
        let counts: Vec<&str> = text.lines().filter(open).collect();
        assert!(counts.len() >= 2, "{text}");
        counts.iter().all(|line| line.ends_with(" 0"))
    }

    /// How many responses clients were sent.
    pub(crate) fn responses(&self) -> usize {
        let text = self.metrics();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("distributary_responses_total"));
        let counts = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok());
        counts.sum()
    }

    /// All metrics, as text.
    pub(crate) fn metrics(&self) -> String {
        ask(self.admin, "GET /metrics", "", "")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processor time that a process has used, by its number or `self`. Linux counts it in hundredths of a second.
pub(crate) fn processor(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let times = fields.split_ascii_whitespace().skip(11).take(2);
    Duration::from_millis(10 * times.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
}
