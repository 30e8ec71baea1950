//! The relay as a process, and clients of it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::marker::PhantomData;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use distributary::wire::message;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::Request;
use prost::Message;
use tokio::net::TcpListener;

pub(crate) use crate::messages::{cluster, clusters, node};
use crate::plane::{PATIENCE, soon};

pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const SERVICE: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService";

#[expect(clippy::disallowed_methods, reason = "some instant")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A new directory for a test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Looks until something is there.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Listens on an address that was in use before.
pub(crate) async fn listen(address: SocketAddr) -> TcpListener {
    let end = now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A running relay; dropping it ends it.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    child: Child,
    /// The log lines to come, and those that came.
    log: Mutex<(Receiver<String>, Vec<String>)>,
}

impl Relay {
    pub(crate) fn start(upstream: SocketAddr, snapshots: &Path) -> Self {
        Self::with(upstream, snapshots, Duration::from_millis(100))
    }

    pub(crate) fn with(upstream: SocketAddr, snapshots: &Path, interval: Duration) -> Self {
        Self::snapshotting(&[], upstream, snapshots, interval)
    }

    /// A relay that `command` starts by `exec`.
    pub(crate) fn behind(command: &[String], upstream: SocketAddr, snapshots: &Path) -> Self {
        Self::snapshotting(command, upstream, snapshots, Duration::from_millis(100))
    }

    fn snapshotting(command: &[String], upstream: SocketAddr, snapshots: &Path, interval: Duration) -> Self {
        let text = format!(
            "upstream: {{xds_servers: [{{server_uri: '{upstream}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\nsnapshot: {{dir: '{}', interval: {}ms}}\n",
            snapshots.display(),
            interval.as_millis()
        );
        let name = format!("{}-{}", upstream.port(), interval.as_millis());
        Self::execute(command, &name, &text, "json")
    }

    /// With this configuration, which has listeners and an admin address of any port.
    pub(crate) fn run(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "json")
    }

    /// The same with a log for people.
    pub(crate) fn telling(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "text")
    }

    fn execute(command: &[String], name: &str, text: &str, log: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{name}.yaml"));
        std::fs::write(&path, text).unwrap();
        let words = [command, &[env!("CARGO_BIN_EXE_distributary").to_owned()]].concat();
        let (first, rest) = words.split_first().unwrap();
        let mut child = Command::new(first)
            .args(rest)
            .args(["serve", "--log-format", log, "--config"])
            .arg(&path)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let anywhere = SocketAddr::from(([0; 4], 0));
        let mut relay = Self {
            address: anywhere,
            admin: anywhere,
            child,
            log: Mutex::new((lines, Vec::new())),
        };
        relay.admin = address(&relay.line("admin address"));
        relay.address = address(&relay.line("listening for clients"));
        relay
    }

    /// Returns the first line that contains `text`; waits for it if there is none yet.
    pub(crate) fn line(&self, text: &str) -> String {
        let (lines, seen) = &mut *self.log.lock().unwrap();
        if let Some(line) = seen.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
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
    pub(crate) fn seen(&self) -> Vec<String> {
        self.log.lock().unwrap().1.clone()
    }

    /// How many lines with `text` there are up to the last one that a test waited for.
    pub(crate) fn lines(&self, text: &str) -> usize {
        let (_, seen) = &*self.log.lock().unwrap();
        seen.iter().filter(|line| line.contains(text)).count()
    }

    /// Returns the response of the admin address.
    pub(crate) fn admin(&self, path: &str) -> String {
        self.ask("GET", path)
    }

    /// Returns the response of the admin address to an order.
    pub(crate) fn post(&self, path: &str) -> String {
        self.ask("POST", path)
    }

    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = self.admin;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Ends it in an orderly way.
    pub(crate) fn terminate(&mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(line: &str) -> SocketAddr {
    if let Some((_, rest)) = line.split_once(" address=") {
        return rest
            .split_whitespace()
            .next()
            .unwrap()
            .trim_matches('"')
            .parse()
            .unwrap();
    }
    let fields: serde_json::Value = serde_json::from_str(line).unwrap();
    fields.get("address").unwrap().as_str().unwrap().parse().unwrap()
}

/// One connection of clients.
pub(crate) struct Client(SendRequest<Bytes>);

/// One ADS stream; `R` is the type of its responses.
pub(crate) struct Stream<R> {
    requests: SendStream<Bytes>,
    responses: RecvStream,
    read: BytesMut,
    of: PhantomData<R>,
}

pub(crate) type Delta = Stream<DeltaDiscoveryResponse>;
pub(crate) type Sotw = Stream<DiscoveryResponse>;

/// A delta response, in short.
pub(crate) struct Got {
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) removed: Vec<String>,
}

/// A response, and the method that it comes from.
pub(crate) trait Answer: Message + Default {
    const METHOD: &'static str;
}

impl Answer for DeltaDiscoveryResponse {
    const METHOD: &'static str = "DeltaAggregatedResources";
}

impl Answer for DiscoveryResponse {
    const METHOD: &'static str = "StreamAggregatedResources";
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = soon("a connection", tokio::net::TcpStream::connect(address))
            .await
            .unwrap();
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(1 << 20)
            .initial_connection_window_size(64 << 20);
        let (send, connection) = builder.handshake(socket).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "a connection runs beside the test")]
        tokio::spawn(async move { drop(connection.await) });
        Self(send)
    }

    pub(crate) async fn open<M: Message, R: Answer>(&self, first: &M) -> Stream<R> {
        let request = Request::post(format!("http://relay{SERVICE}/{}", R::METHOD))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let mut send = self.0.clone().ready().await.unwrap();
        let (response, mut requests) = send.send_request(request, false).unwrap();
        requests.send_data(message(&first.encode_to_vec()), false).unwrap();
        let responses = soon("an answer", response).await.unwrap().into_body();
        Stream {
            requests,
            responses,
            read: BytesMut::new(),
            of: PhantomData,
        }
    }
}

impl<R: Answer> Stream<R> {
    /// One more request.
    pub(crate) fn says<M: Message>(&mut self, request: &M) {
        self.requests
            .send_data(message(&request.encode_to_vec()), false)
            .unwrap();
    }

    /// The next response, which is neither acknowledged nor rejected.
    pub(crate) async fn message(&mut self) -> R {
        loop {
            if let Some(length) = self.read.get(1..5).map(|mut bytes| bytes.get_u32() as usize)
                && self.read.len() >= 5 + length
            {
                self.read.advance(5);
                return R::decode(self.read.split_to(length)).unwrap();
            }
            let bytes = self.responses.data().await.expect("the stream goes on").unwrap();
            self.responses.flow_control().release_capacity(bytes.len()).unwrap();
            self.read.extend_from_slice(&bytes);
        }
    }

    /// Waits for its end; returns the code and the message.
    pub(crate) async fn end(&mut self) -> (tonic::Code, String) {
        let trailers = soon("the end", async {
            while let Some(bytes) = self.responses.data().await {
                let length = bytes.unwrap().len();
                self.responses.flow_control().release_capacity(length).unwrap();
            }
            self.responses.trailers().await.unwrap().unwrap()
        })
        .await;
        let status = tonic::Status::from_header_map(&trailers).unwrap();
        (status.code(), status.message().to_owned())
    }

    /// The same of a stream on which there must be no response.
    pub(crate) async fn ends_unanswered(&mut self) -> (tonic::Code, String) {
        let data = soon("the end", self.responses.data()).await;
        assert!(self.read.is_empty() && data.is_none(), "it is answered");
        self.end().await
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(500), self.message())
            .await
            .is_err()
    }
}

impl Delta {
    /// The next response, acknowledged, as a whole.
    pub(crate) async fn whole(&mut self) -> DeltaDiscoveryResponse {
        let response = soon("a response", self.message()).await;
        let ack = distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..Default::default()
        };
        self.says(&ack);
        response
    }

    /// The next response, acknowledged.
    pub(crate) async fn first(&mut self) -> Got {
        let response = self.whole().await;
        Got {
            versions: response
                .resources
                .into_iter()
                .map(|found| (found.name, found.version))
                .collect(),
            removed: response.removed_resources,
        }
    }

    /// The next response that is not empty.
    pub(crate) async fn next(&mut self) -> Got {
        loop {
            let got = self.first().await;
            if !(got.versions.is_empty() && got.removed.is_empty()) {
                return got;
            }
        }
    }
}

impl Sotw {
    /// The next response, from a client that asks for everything.
    pub(crate) async fn next(&mut self) -> DiscoveryResponse {
        self.next_asking(|_| Vec::new()).await
    }

    /// The next response, acknowledged with the names of its type.
    pub(crate) async fn next_asking(&mut self, names: impl FnOnce(&str) -> Vec<String>) -> DiscoveryResponse {
        let response = soon("a response", self.message()).await;
        let ack = distributary::proto::envoy::service::discovery::v3::DiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            version_info: response.version_info.clone(),
            resource_names: names(&response.type_url),
            ..Default::default()
        };
        self.says(&ack);
        response
    }
}
