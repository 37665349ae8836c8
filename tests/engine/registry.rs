//! Digests and pulls through the engine, from a registry of the test's own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use selu_compiler::model::ImageReference;
use selu_runtime::engine::{Engine as _, EngineError, EngineView as _};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::project::run;
use crate::world::{World, docker, docker_text, hex};

/// Path → content type and body; everything else is unknown.
type Content = BTreeMap<String, (&'static str, Vec<u8>)>;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// This machine's architecture, as images name it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// How a registry behaves, and what it was asked.
#[derive(Default)]
struct State {
    content: Content,
    /// `Basic …`, without which nothing is told.
    login: Option<String>,
    /// Names a place that gives tokens for the login instead of taking it itself.
    tokens: bool,
    /// How many answers are still 429, and the Retry-After of each.
    limited: (u32, String),
    /// `METHOD PATH`, and whether the engine asked.
    asked: Vec<(String, bool)>,
}

/// A registry on loopback, which every engine takes without TLS.
pub(crate) struct Registry {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
    /// The digest of the first `x:1`.
    pub(crate) digest: String,
}

impl Registry {
    /// With one image, `x:1`.
    pub(crate) fn new() -> Self {
        Self::at("127.0.0.1")
    }

    /// On an address of this machine.
    pub(crate) fn at(address: &str) -> Self {
        Self::serving(address, serve)
    }

    /// On an address of this machine, with TLS whose certificate nobody else has signed.
    pub(crate) fn self_signed(address: &str) -> Self {
        let config = self_signed(address);
        Self::serving(address, move |stream, state| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            // Whoever does not trust it says so and leaves.
            answer(rustls::StreamOwned::new(connection, stream), state);
        })
    }

    fn serving(
        address: &str,
        serve: impl Fn(TcpStream, &Mutex<State>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (served, serve) = (Arc::clone(&served), Arc::clone(&serve));
                thread::spawn(move || serve(stream, &served));
            }
        });
        let mut registry = Self {
            address,
            state,
            digest: String::new(),
        };
        registry.put("/v2/", "application/json", b"{}".to_vec());
        registry.digest = registry.push("1", &registry.address);
        registry
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Tells nothing to whoever has another name and password from now on; a registry that has `tokens` sends people
    /// elsewhere for one.
    pub(crate) fn lock_up(&self, login: &str, tokens: bool) {
        let mut state = self.state();
        state.login = Some(format!("Basic {}", STANDARD.encode(login)));
        state.tokens = tokens;
    }

    /// Limits the next requests.
    pub(crate) fn limit(&self, times: u32, retry_after: &str) {
        self.state().limited = (times, retry_after.to_owned());
    }

    /// What was asked since this was last called, by us or by the engine, apart from logins.
    pub(crate) fn asked(&self, by_engine: bool) -> Vec<String> {
        let mut state = self.state();
        let of_whom = |(_, engine): &(String, bool)| *engine == by_engine;
        let asked = state.asked.iter().filter(|one| of_whom(one));
        let asked = asked.map(|(line, _)| line.clone()).collect();
        state.asked.retain(|one| !of_whom(one));
        asked
    }

    /// Forgets a tag or digest of `x`.
    pub(crate) fn forget(&self, reference: &str) {
        let path = format!("/v2/x/manifests/{reference}");
        self.state().content.remove(&path).expect("it was there");
    }

    fn put(&self, path: &str, kind: &'static str, body: Vec<u8>) {
        self.state().content.insert(path.to_owned(), (kind, body));
    }

    /// Lets `x:TAG` be an image of that content from now on, and says its digest.
    pub(crate) fn push(&self, tag: &str, text: &str) -> String {
        let config = json!({ "Cmd": ["/where"] });
        let manifest = self.image(architecture(), "where", text.as_bytes(), config);
        self.publish(tag, MANIFEST, manifest)
    }

    /// The same with an executable that is started with some arguments.
    pub(crate) fn push_program(&self, tag: &str, program: &[u8], arguments: &[&str]) -> String {
        let entry: Vec<&str> = [&["/program"], arguments].concat();
        let config = json!({ "Entrypoint": entry });
        let manifest = self.image(architecture(), "program", program, config);
        self.publish(tag, MANIFEST, manifest)
    }

    /// Lets `x:TAG` be an index of images for some architectures.
    pub(crate) fn push_index(&self, tag: &str, architectures: &[&str]) -> String {
        let entries = architectures.iter().map(|architecture| {
            let config = json!({ "Cmd": ["/where"] });
            let manifest = self.image(architecture, "where", tag.as_bytes(), config);
            let size = manifest.len();
            let digest = self.publish(&digest(&manifest), MANIFEST, manifest);
            let platform = json!({ "os": "linux", "architecture": architecture });
            json!({ "mediaType": MANIFEST, "size": size, "digest": digest, "platform": platform })
        });
        let kind = "application/vnd.docker.distribution.manifest.list.v2+json";
        let entries: Vec<_> = entries.collect();
        let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": entries });
        self.publish(tag, kind, serde_json::to_vec(&index).unwrap())
    }

    fn publish(&self, tag: &str, kind: &'static str, manifest: Vec<u8>) -> String {
        let named = digest(&manifest);
        for reference in [tag, named.as_str()] {
            let path = format!("/v2/x/manifests/{reference}");
            self.put(&path, kind, manifest.clone());
        }
        named
    }

    /// An image of one file; its manifest.
    fn image(&self, architecture: &str, file: &str, content: &[u8], config: Value) -> Vec<u8> {
        let mut layer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        layer.append_data(&mut header, file, content).unwrap();
        let layer = layer.into_inner().unwrap();
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": config,
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
        for blob in [config, layer] {
            let path = format!("/v2/x/blobs/{}", digest(&blob));
            self.put(&path, "application/octet-stream", blob);
        }
        serde_json::to_vec(&manifest).unwrap()
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

/// What is read of a request.
#[derive(Default)]
struct Request {
    method: String,
    path: String,
    authorization: Option<String>,
    host: String,
    by_engine: bool,
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut request = Request::default();
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return None;
    }
    let mut words = line.split(' ');
    request.method = words.next()?.to_owned();
    request.path = words.next()?.to_owned();
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Some(request);
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => request.authorization = Some(value.to_owned()),
            "host" => request.host = value.to_owned(),
            "user-agent" => request.by_engine = !value.starts_with("selu/"),
            _ => {}
        }
    }
}

/// Status, headers besides the usual ones, and body.
type Reply = (&'static str, Vec<(&'static str, String)>, Vec<u8>);

fn reply(request: &Request, state: &mut State) -> Reply {
    let kind = |kind: &str| ("Content-Type", kind.to_owned());
    let error = |code: &str, message: &str| {
        let body = json!({ "errors": [{ "code": code, "message": message }] });
        serde_json::to_vec(&body).unwrap()
    };
    let path = request.path.split('?').next().unwrap_or_default();
    if path == "/token" {
        return match request.authorization == state.login {
            true => (
                "200 OK",
                vec![kind("application/json")],
                br#"{"token":"good"}"#.to_vec(),
            ),
            false => (
                "401 Unauthorized",
                Vec::new(),
                error("UNAUTHORIZED", "wrong password"),
            ),
        };
    }
    let admitted = match (&state.login, state.tokens) {
        (None, _) => true,
        (login, false) => request.authorization == *login,
        (_, true) => request.authorization.as_deref() == Some("Bearer good"),
    };
    if !admitted {
        let wanted = match state.tokens {
            false => "Basic realm=\"x\"".to_owned(),
            true => format!(
                "Bearer realm=\"http://{}/token\",service=\"x\",scope=\"repository:x:pull\"",
                request.host
            ),
        };
        let wanted = ("WWW-Authenticate", wanted);
        let body = error("UNAUTHORIZED", "authentication required");
        return ("401 Unauthorized", vec![wanted], body);
    }
    let line = format!("{} {path}", request.method);
    state.asked.push((line, request.by_engine));
    if state.limited.0 > 0 {
        state.limited.0 -= 1;
        let after = ("Retry-After", state.limited.1.clone());
        return (
            "429 Too Many Requests",
            vec![after],
            error("TOOMANYREQUESTS", "slow down"),
        );
    }
    match state.content.get(path) {
        Some((content, body)) => {
            let digest = ("Docker-Content-Digest", digest(body));
            ("200 OK", vec![kind(content), digest], body.clone())
        }
        None => (
            "404 Not Found",
            Vec::new(),
            error("MANIFEST_UNKNOWN", "manifest unknown"),
        ),
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut first = [0; 1];
    if stream.peek(&mut first).is_ok() && first[0] == 0x16 {
        // The beginning of TLS, to which servers without say this.
        let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\nthis is no HTTPS\n");
        return;
    }
    answer(stream, state);
}

fn answer(stream: impl Read + Write, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let (status, headers, body) = reply(&request, &mut state.lock().unwrap());
        let mut head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nDocker-Distribution-Api-Version: registry/2.0\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let stream = reader.get_mut();
        let sent = stream.write_all(head.as_bytes());
        let sent = sent.and_then(|()| match request.method.as_str() {
            "HEAD" => Ok(()),
            _ => stream.write_all(&body),
        });
        let sent = sent.and_then(|()| stream.flush());
        if sent.is_err() {
            return;
        }
    }
}

/// For TLS on an address, by a key and a certificate of its own.
fn self_signed(address: &str) -> Arc<rustls::ServerConfig> {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let folder = tempfile::tempdir().unwrap();
    let name = format!("subjectAltName=IP:{address}");
    let words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=registry",
        "-addext",
        &name,
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ];
    run(Command::new("openssl").current_dir(&folder).args(words)).expect(0);
    let certificate = CertificateDer::from_pem_file(folder.path().join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

pub(crate) fn digest(bytes: &[u8]) -> String {
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
    registry.limit(1, "3600");
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
