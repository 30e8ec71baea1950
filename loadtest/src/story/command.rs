// SPDX-License-Identifier: Apache-2.0
//! Runs a command, within bounds: time, output, and what it leaves behind. Knows nothing of changes.

use std::cell::RefCell;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// How much of the end of an output is kept for errors; the rest is read and dropped.
const OUTPUT_BYTES: usize = 2048;
/// How long the rest of an output is read after the command has ended: what it started may hold its end open.
const AFTER: Duration = Duration::from_millis(100);

/// A group of processes that ends when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // If there is nobody left in the group, it has ended by itself.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs a command, and then ends everything that is still in its process group.
pub(crate) async fn run(text: &str, within: Duration) -> anyhow::Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", text])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run `{text}`"))?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(leader);
    let said = RefCell::new(Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = async { tokio::join!(keep_end(out, &said), keep_end(err, &said)) };
    tokio::pin!(reading);
    let mut open = true;
    let ended = timeout(within, async {
        loop {
            tokio::select! {
                status = child.wait() => return status,
                _ = &mut reading, if open => open = false,
            }
        }
    });
    let ended = ended.await;
    drop(group);
    if open {
        let _ = timeout(AFTER, reading).await;
    }
    let words = || match String::from_utf8_lossy(&said.borrow()).trim() {
        "" => "it said nothing".to_owned(),
        words => format!("it said: {}", words.escape_debug()),
    };
    match ended {
        Err(_) => bail!("`{text}` did not end within {within:?} and was killed; {}", words()),
        Ok(status) => {
            let status = status.with_context(|| format!("cannot wait for `{text}`"))?;
            ensure!(status.success(), "`{text}` failed ({status}); {}", words());
            Ok(())
        }
    }
}

/// Reads to the end, and keeps the last bytes.
async fn keep_end(pipe: Option<impl AsyncRead + Unpin>, said: &RefCell<Vec<u8>>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = [0; 16 * 1024];
    while let Ok(bytes @ 1..) = pipe.read(&mut piece).await {
        let mut said = said.borrow_mut();
        said.extend_from_slice(piece.get(..bytes).unwrap_or_default());
        let surplus = said.len().saturating_sub(OUTPUT_BYTES);
        said.drain(..surplus);
    }
}
