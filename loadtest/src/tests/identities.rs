// SPDX-License-Identifier: Apache-2.0
//! Tests that who clients say they are arrives at a server, written as keys of a group.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpListener;

use super::scenarios::try_record;
use crate::story::file::Scenario;
use crate::wire::folder::Folder;
use crate::wire::tls::{self, Papers};

/// Listens, and returns what the first client says until all `words` were in it.
fn listen(papers: Option<&Papers>, words: &'static [&'static str]) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let acceptor = papers.map(|papers| tls::acceptor(papers.identity(), None).unwrap());
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    let heard = async move {
        let (client, _) = TcpListener::from_std(socket).unwrap().accept().await.unwrap();
        match acceptor {
            Some(acceptor) => hear(acceptor.accept(client).await.unwrap(), words).await,
            None => hear(client, words).await,
        }
    };
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    (address, std::thread::spawn(move || runtime().block_on(heard)))
}

async fn hear(mut client: impl AsyncRead + Unpin, words: &[&str]) {
    let mut said = Vec::new();
    let lacks = |said: &[u8]| {
        let has = |word: &&&str| said.windows(word.len()).any(|part| part == word.as_bytes());
        words.iter().find(|word| !has(word)).copied()
    };
    while let Some(word) = lacks(&said) {
        let read = client.read_buf(&mut said).await.unwrap();
        assert!(read > 0, "it never says {word}: {}", String::from_utf8_lossy(&said));
    }
}

fn scenario(keys: &str) -> Scenario {
    let text = format!(
        "description: Who.
world: {{ cds: {{ count: 1 }} }}
clients: {{ count: 1, groups: [{{ kind: clusters{keys} }}] }}
phases: [{{ name: join, do: {{ join: {{}} }}, limit: 20s }}]
"
    );
    Scenario::read("here", &text, None, &[]).unwrap()
}

const WORDS: &[&str] = &[
    "edge-0", "shop", "r1", "z1", "ISTIO", "pod-0", "grpc-go", "1.70", "x-team", "blue",
];

#[test]
fn a_server_is_told_what_the_keys_of_a_group_say() {
    let folder = Folder::new().unwrap();
    let (metadata, nodes) = (folder.0.join("metadata.yaml"), folder.0.join("nodes.yaml"));
    std::fs::write(&metadata, "ISTIO: 'pod-{n}'").unwrap();
    std::fs::write(&nodes, "- { id: other, cluster: shop }").unwrap();
    let (address, heard) = listen(None, WORDS);
    let keys = format!(
        ", node_id: 'edge-{{n}}', locality: r1/z1, node_metadata: '{}', nodes: '{}', user_agent: grpc-go/1.70, headers: [x-team=blue]",
        metadata.display(),
        nodes.display()
    );
    let _ = try_record(&scenario(&keys), &format!("--server {address}"));
    heard.join().unwrap();
}

#[test]
fn a_token_is_sent_with_tls_and_only_then() {
    let folder = Folder::new().unwrap();
    let token = folder.0.join("token");
    std::fs::write(&token, "abc.def").unwrap();
    let papers = Papers::new(false, None).unwrap();
    let (address, heard) = listen(Some(&papers), &["authorization", "Bearer abc.def"]);
    let ca = papers.identity().certificate.display();
    let words = format!("--server https://{address} --server-name {} --ca {ca}", Papers::NAME);
    let keys = format!(", token_file: '{}'", token.display());
    let _ = try_record(&scenario(&keys), &words);
    heard.join().unwrap();
    let refused = try_record(&scenario(&keys), "--server 127.0.0.1:1")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("only with TLS"), "{refused}");
}

#[test]
fn a_wrong_identity_is_told_with_its_group() {
    for (keys, words) in [
        (", locality: a/b/c/d", "group 0: locality: write REGION"),
        (", node_metadata: /nowhere", "node metadata: /nowhere"),
        (", nodes: /nowhere", "/nowhere: cannot be read"),
        (", user_agent: /1", "NAME/VERSION"),
        (", headers: [x]", "KEY=VALUE"),
        (", token_file: /nowhere", "token in /nowhere"),
    ] {
        let error = format!("{:#}", try_record(&scenario(keys), "--direct").unwrap_err());
        assert!(error.contains(words), "{keys}: {error}");
    }
}
