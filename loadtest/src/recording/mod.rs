//! Recordings of what a control plane says: its resources, in order and with their times; how they are made and played.
//!
//! Owns the format of the file, and its bounds. Refuses to know what a recording is played for.
//!
//! A recording is text, a JSON object on each line. The first says what it is, the last that it is whole, and each one between is one
//! resource that one client was told, or its removal:
//!
//! ```text
//! {"distributary_recording":1,"server":"http://127.0.0.1:18000","begun_unix":1795189616,"clients":["edge-0","edge-1"]}
//! {"at_ms":12,"client":0,"type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"a","body":"CgFh"}
//! {"at_ms":1860,"client":0,"type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"a"}
//! {"end_ms":60000,"events":2}
//! ```

mod bootstrap;
pub(crate) mod dumping;
pub(crate) mod listening;
pub(crate) mod playing;
mod refused;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::kind::Kind;

/// The version of the format that this program writes and reads.
const FORM: u32 = 1;
const EVENTS_MAX: u64 = 1_000_000;
/// A recording is kept in memory while it is played.
const FILE_BYTES_MAX: u64 = 1 << 30;
const LINE_BYTES_MAX: u64 = 128 << 20;
pub(crate) const CLIENTS_MAX: usize = 8;

/// What was recorded, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    distributary_recording: u32,
    pub(crate) server: String,
    /// Seconds since 1970.
    begun_unix: u64,
    /// The node id of each client.
    pub(crate) clients: Vec<String>,
}

/// What one client was told about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ms: u64,
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// None if it was removed.
    pub(crate) body: Option<Bytes>,
}

/// The lines of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventLine {
    at_ms: u64,
    client: usize,
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastLine {
    end_ms: u64,
    events: u64,
}

/// A recording in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    pub(crate) head: Head,
    pub(crate) events: Vec<Event>,
    pub(crate) length_ms: u64,
}

/// A recording that is being written.
pub(crate) struct Sink {
    file: BufWriter<File>,
    path: PathBuf,
    events: u64,
    bytes: u64,
}

impl Head {
    pub(crate) const fn new(server: String, begun_unix: u64, clients: Vec<String>) -> Self {
        Self {
            distributary_recording: FORM,
            server,
            begun_unix,
            clients,
        }
    }
}

impl Sink {
    /// Creates the file. `replaces`: also if there is one.
    pub(crate) fn create(path: &Path, head: &Head, replaces: bool) -> anyhow::Result<Self> {
        let mut options = File::options();
        options.write(true).truncate(true).create(true).create_new(!replaces);
        let (file, name) = (options.open(path), path.display());
        if let Err(error) = &file
            && error.kind() == ErrorKind::AlreadyExists
        {
            bail!("{name} is there already: choose another --output, or replace it with --force");
        }
        let file = file.with_context(|| format!("cannot write {name}"))?;
        let mut sink = Self {
            file: BufWriter::new(file),
            path: path.to_owned(),
            events: 0,
            bytes: 0,
        };
        sink.line(head)?;
        Ok(sink)
    }

    /// Writes one event. Returns whether there is room for more.
    pub(crate) fn write(&mut self, event: &Event) -> anyhow::Result<bool> {
        self.line(&EventLine {
            at_ms: event.at_ms,
            client: event.client,
            type_url: event.kind.type_url().to_owned(),
            name: event.name.clone(),
            body: event.body.as_ref().map(|body| BASE64.encode(body)),
        })?;
        self.events += 1;
        Ok(self.events < EVENTS_MAX && self.bytes < FILE_BYTES_MAX - LINE_BYTES_MAX)
    }

    /// Writes the last line. Returns how many events there are.
    pub(crate) fn close(mut self, end_ms: u64) -> anyhow::Result<u64> {
        let events = self.events;
        self.line(&LastLine { end_ms, events })?;
        self.file
            .flush()
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(events)
    }

    /// Whether no event was written.
    pub(crate) const fn is_empty(&self) -> bool {
        self.events == 0
    }

    fn line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        self.bytes += u64::try_from(text.len())?;
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Recording {
    /// Reads a recording. One that is torn is read up to its last whole line, and `warn` is told.
    pub(crate) fn read(path: &Path, warn: &mut impl FnMut(&str)) -> anyhow::Result<Self> {
        let name = path.display();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        let size = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
        ensure!(
            size <= FILE_BYTES_MAX,
            "{name} has {size} bytes: a recording has at most {FILE_BYTES_MAX}"
        );
        let mut lines = Lines {
            reader: BufReader::new(file),
            number: 0,
            name: name.to_string(),
        };
        let first = lines.next()?.filter(|line| line.ends_with('\n'));
        let first = first.with_context(|| format!("{name} is no recording: its first line is not whole"))?;
        let head = head(&first).with_context(|| format!("{name}:1"))?;
        let (mut events, mut end) = (Vec::new(), None);
        while let Some(line) = lines.next()? {
            let place = format!("{name}:{}", lines.number);
            ensure!(
                end.is_none(),
                "{place}: there is more after the last line of the recording"
            );
            if !line.ends_with('\n') {
                break;
            }
            if let Ok(last) = serde_json::from_str::<LastLine>(&line) {
                let told = u64::try_from(events.len())?;
                ensure!(
                    last.events == told,
                    "{place}: the recording had {} events, but {told} are here",
                    last.events
                );
                end = Some(last.end_ms);
                continue;
            }
            ensure!(
                u64::try_from(events.len())? < EVENTS_MAX,
                "{place}: a recording has at most {EVENTS_MAX} events"
            );
            let before = events.last().map_or(0, |event: &Event| event.at_ms);
            events.push(event(&line, before, head.clients.len()).with_context(|| place)?);
        }
        let last = events.last().map_or(0, |event| event.at_ms);
        if end.is_none() {
            warn(&format!(
                "{name} is torn: it was not closed. What is there is played, up to {last} ms"
            ));
        }
        Ok(Self {
            head,
            events,
            length_ms: end.unwrap_or_default().max(last),
        })
    }
}

/// The lines of a file, none of which may be too long.
struct Lines {
    reader: BufReader<File>,
    number: usize,
    name: String,
}

impl Lines {
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        self.number += 1;
        let mut line = String::new();
        let place = format!("{}:{}", self.name, self.number);
        let read = (&mut self.reader).take(LINE_BYTES_MAX).read_line(&mut line);
        let read = u64::try_from(read.with_context(|| place.clone())?)?;
        ensure!(
            read < LINE_BYTES_MAX,
            "{place}: the line is longer than {LINE_BYTES_MAX} bytes"
        );
        Ok((read > 0).then_some(line))
    }
}

fn head(line: &str) -> anyhow::Result<Head> {
    #[derive(Deserialize)]
    struct Version {
        distributary_recording: u32,
    }
    let read: Result<Version, _> = serde_json::from_str(line);
    let Version { distributary_recording } =
        read.context("this is no recording; `distributary-load record` makes one")?;
    if distributary_recording != FORM {
        bail!(
            "the recording has format {distributary_recording}, but this program reads format {FORM}: use the version that made it"
        );
    }
    let head: Head = serde_json::from_str(line)?;
    ensure!(
        (1..=CLIENTS_MAX).contains(&head.clients.len()),
        "a recording has 1 to {CLIENTS_MAX} clients, but this has {}",
        head.clients.len()
    );
    Ok(head)
}

fn event(line: &str, before_ms: u64, clients: usize) -> anyhow::Result<Event> {
    let line: EventLine = serde_json::from_str(line)?;
    let kind = Kind::of(line.type_url.as_bytes()).filter(|kind| Kind::ROUTING.contains(kind));
    let kind = kind.with_context(|| format!("recordings have no resources of type `{}`", line.type_url))?;
    ensure!(
        line.client < clients,
        "there is no client {}: numbers begin at 0",
        line.client
    );
    ensure!(line.at_ms >= before_ms, "this happened before the line above it");
    let body = line.body.map(|body| BASE64.decode(body)).transpose();
    Ok(Event {
        at_ms: line.at_ms,
        client: line.client,
        kind,
        name: line.name,
        body: body.context("the body is not base64")?.map(Bytes::from),
    })
}
