// SPDX-License-Identifier: Apache-2.0
//! The program as a process, and its admin address.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use parking_lot::Mutex;

use crate::PATIENCE;

/// A running program; dropping it ends it.
pub struct Process {
    pub child: Child,
    /// The log lines to come, and those that came.
    log: Mutex<(Receiver<String>, Vec<String>)>,
}

impl Process {
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self {
            child,
            log: Mutex::new((lines, Vec::new())),
        }
    }

    /// Waits for one more line that contains `text`.
    pub fn line(&self, text: &str) -> String {
        let (lines, seen) = &mut *self.log.lock();
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {text}: {error}"),
            }
        }
    }

    /// Returns the lines up to the last one that a test waited for.
    pub fn seen(&self) -> Vec<String> {
        self.log.lock().1.clone()
    }

    /// Returns the lines from there to its end.
    pub fn rest(&self) -> Vec<String> {
        self.log.lock().0.iter().collect()
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the address that a line of the log says, in text or in JSON.
#[must_use]
pub fn address_in(line: &str) -> String {
    let named = line.split_once("address=").or_else(|| line.split_once("\"address\":"));
    let after = named.unwrap().1.trim_start_matches('"');
    after.split([' ', '"', ',', '}']).next().unwrap().to_owned()
}

/// Returns the response of an admin address.
pub fn ask(admin: impl ToSocketAddrs + Display, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(&admin).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nhost: {admin}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
