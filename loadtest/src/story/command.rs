//! Runs a command or sends a request, within bounds: time, output, and what it leaves behind. Knows nothing of changes.

use std::cell::RefCell;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use http::Uri;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// How much of the end of an output is kept for errors; the rest is read and dropped.
const OUTPUT_BYTES: usize = 2048;
/// How long the rest of an output is read after the command has ended: what it started may hold its end open.
const AFTER: Duration = Duration::from_millis(100);
/// The largest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

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

/// Returns the host, the port and the path of an address.
pub(crate) fn address(url: &str) -> anyhow::Result<(String, u16, String)> {
    let uri: Uri = url.parse().context("this is no URL")?;
    ensure!(
        uri.scheme_str() == Some("http"),
        "only http:// is known here: for others use `exec` with a command such as curl"
    );
    let host = uri
        .host()
        .context("it has no host")?
        .trim_matches(['[', ']'])
        .to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok((host, uri.port_u16().unwrap_or(80), path.to_owned()))
}

/// Posts a body; fails unless the answer is a success.
pub(crate) async fn post(url: &str, kind: &str, body: &str, within: Duration) -> anyhow::Result<()> {
    let (host, port, path) = address(url)?;
    let asked = async {
        let mut socket = TcpStream::connect((host.as_str(), port)).await?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
            if socket.read_buf(&mut head).await? == 0 {
                break;
            }
        }
        Ok::<_, std::io::Error>(head)
    };
    let head = timeout(within, asked).await;
    let head = head.with_context(|| format!("{url} did not answer within {within:?}"))?;
    let head = head.with_context(|| format!("cannot post to {url}"))?;
    let head = String::from_utf8_lossy(&head);
    let status = head.lines().next().unwrap_or_default();
    let success = status
        .strip_prefix("HTTP/1.")
        .is_some_and(|rest| rest.get(1..3) == Some(" 2"));
    ensure!(success, "{url} answered: {}", status.escape_debug());
    Ok(())
}
