//! Digests and pulls through the engine, from a registry of the test's own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use selu_compiler::model::ImageReference;
use selu_runtime::engine::{Engine, EngineError, EngineView};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::world::{World, docker, docker_text, hex};

/// Path → content type and body; everything else is unknown.
type Content = BTreeMap<String, (&'static str, Vec<u8>)>;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// A registry on loopback, which every engine takes without TLS.
pub(crate) struct Registry {
    pub(crate) address: String,
    content: Arc<Mutex<Content>>,
    /// The digest of the first `x:1`.
    pub(crate) digest: String,
}

impl Registry {
    /// With one image, `x:1`.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let content = Arc::new(Mutex::new(Content::new()));
        let served = Arc::clone(&content);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                thread::spawn(move || serve(&stream, &served));
            }
        });
        let mut registry = Self {
            address,
            content,
            digest: String::new(),
        };
        registry.put("/v2/", "application/json", b"{}".to_vec());
        registry.digest = registry.push("1", &registry.address);
        registry
    }

    fn put(&self, path: &str, kind: &'static str, body: Vec<u8>) {
        let mut content = self.content.lock().unwrap();
        content.insert(path.to_owned(), (kind, body));
    }

    /// Lets `x:TAG` be an image of that content from now on, and says its digest.
    pub(crate) fn push(&self, tag: &str, text: &str) -> String {
        let mut layer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        layer
            .append_data(&mut header, "where", text.as_bytes())
            .unwrap();
        let layer = layer.into_inner().unwrap();
        let config = json!({
            "architecture": match std::env::consts::ARCH { "x86_64" => "amd64", "aarch64" => "arm64", other => other },
            "os": "linux",
            "config": { "Cmd": ["/where"] },
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        let config = serde_json::to_vec(&config).unwrap();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "size": config.len(), "digest": digest(&config),
            },
            "layers": [{
                "mediaType": "application/vnd.docker.image.rootfs.diff.tar",
                "size": layer.len(), "digest": digest(&layer),
            }],
        });
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let named = digest(&manifest);
        for blob in [config, layer] {
            let path = format!("/v2/x/blobs/{}", digest(&blob));
            self.put(&path, "application/octet-stream", blob);
        }
        for reference in [tag, named.as_str()] {
            let path = format!("/v2/x/manifests/{reference}");
            self.put(&path, MANIFEST, manifest.clone());
        }
        named
    }

    fn reference(&self, tag: &str) -> ImageReference {
        ImageReference {
            written: format!("{}/x:{tag}", self.address),
            registry: self.address.clone(),
            repository: "x".to_owned(),
            tag: Some(tag.to_owned()),
            digest: None,
        }
    }
}

fn serve(stream: &TcpStream, content: &Mutex<Content>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut header = line.clone();
        while header != "\r\n" {
            header.clear();
            if reader.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
        }
        let mut words = line.split(' ');
        let head = words.next() == Some("HEAD");
        let path = words.next().unwrap_or_default();
        let found = content.lock().unwrap().get(path).cloned();
        let (status, kind, body) = match found {
            Some(("limit", body)) => ("429 Too Many Requests", "application/json", body),
            Some((kind, body)) => ("200 OK", kind, body),
            None => {
                let body =
                    br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
                ("404 Not Found", "application/json", body.to_vec())
            }
        };
        let head_text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: {}\r\n\
             Docker-Distribution-Api-Version: registry/2.0\r\n\r\n",
            body.len(),
            digest(&body)
        );
        let mut stream = stream;
        let sent = stream.write_all(head_text.as_bytes());
        let sent = sent.and_then(|()| {
            if head {
                Ok(())
            } else {
                stream.write_all(&body)
            }
        });
        if sent.is_err() {
            return;
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_is_resolved_and_pulled_by_its_digest_and_an_unknown_one_is_none() {
    let world = World::new("registry").await;
    let engine = &world.engine;
    let registry = Registry::new();
    let found = engine
        .registry_digest(&registry.reference("1"))
        .await
        .unwrap();
    assert_eq!(found.as_ref(), Some(&registry.digest));
    assert_eq!(
        engine
            .registry_digest(&registry.reference("2"))
            .await
            .unwrap(),
        None
    );

    let pinned = format!("{}/x@{}", registry.address, registry.digest);
    assert!(
        engine.image(&pinned).await.unwrap().is_none(),
        "asking pulled nothing"
    );
    let lines = Mutex::new(Vec::new());
    engine
        .pull(&pinned, &|line| lines.lock().unwrap().push(line.to_owned()))
        .await
        .unwrap();
    assert!(!lines.lock().unwrap().is_empty());
    let facts = engine.image(&pinned).await.unwrap().unwrap();
    assert_eq!(facts.digest.as_ref(), Some(&registry.digest));
    let tagged = docker(&["image", "inspect", &format!("{}/x:1", registry.address)]);
    assert!(!tagged.status.success(), "a pull by digest moves no tag");
    docker_text(&["image", "rm", &pinned]);

    let error = engine
        .pull(&format!("{}/x:1", registry.address), &|_| {})
        .await
        .unwrap_err();
    assert!(error.to_string().contains("a tag can move"), "{error}");
    let gone = format!("{}/x@{}", registry.address, digest(b"gone"));
    let error = engine.pull(&gone, &|_| {}).await.unwrap_err();
    assert!(matches!(error, EngineError::NotFound { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_limits_or_does_not_answer_is_not_an_unknown_image() {
    let world = World::new("limits").await;
    let engine = &world.engine;
    let registry = Registry::new();
    let body = br#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}"#.to_vec();
    let path = "/v2/x/manifests/1".to_owned();
    registry
        .content
        .lock()
        .unwrap()
        .insert(path, ("limit", body));
    let error = engine
        .registry_digest(&registry.reference("1"))
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::RateLimited { .. }), "{error}");

    let mut nowhere = registry.reference("1");
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    nowhere.registry = unused.local_addr().unwrap().to_string();
    drop(unused);
    let error = engine.registry_digest(&nowhere).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { .. }), "{error}");
}
