//! An internet of our own: a network namespace with globally reachable addresses, servers and a name server
//! (tests/internet/serve.py), one host route away, so that what a container sends there takes the way of the real one.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::run;

/// The name server that the gateway and the unrestricted containers ask.
pub(crate) const DNS: &str = "11.20.30.53";
/// `www.selu-lab.net`, `mail.selu-lab.net` and others.
pub(crate) const WWW: &str = "11.20.30.10";
/// Every name that is not listed.
pub(crate) const OTHER: &str = "11.20.30.11";
/// `api.selu-lab.net`, `wild.selu-lab.net` and everything below it.
pub(crate) const WILD: &str = "11.20.30.12";
/// `private.selu-lab.net`: in nobody's network here, and private.
pub(crate) const PRIVATE: &str = "10.123.0.10";
/// `private6.selu-lab.net` shares the machine with it; nobody may reach this one.
pub(crate) const PRIVATE_OTHER: &str = "10.123.0.11";
/// Where only fences go.
const FENCE: &str = "11.20.30.14";
/// Metadata services of four clouds. The second is globally reachable by the registry.
pub(crate) const METADATA: [&str; 4] = [
    "169.254.169.254",
    "168.63.129.16",
    "100.100.100.200",
    "169.254.170.2",
];
/// Addresses of the engine's host that are globally reachable: the one towards the internet, and one on a device of its own.
pub(crate) const HOST: [&str; 2] = ["11.20.30.1", "11.20.31.1"];
/// Where the host's own services listen, on every address that it has; the second is where an engine's API would be.
pub(crate) const HOST_PORTS: [u16; 2] = [7077, 2375];

const NAMESPACE: &str = "selu-lab";
const OTHER_DEVICE: &str = "selu-lab0";
/// A routing table of our own for the metadata addresses, so that only what is forwarded comes here, and nothing that
/// the host itself asks.
const TABLE: &str = "7077";

/// The running internet. One at a time on a machine; gone with the last user.
pub(crate) struct Lab {
    server: Child,
    seen: Arc<Seen>,
    folder: tempfile::TempDir,
    host_stopped: Arc<AtomicBool>,
    /// Locked while this exists.
    _turn: std::fs::File,
}

#[derive(Default)]
struct Seen {
    lines: Mutex<Vec<Value>>,
    more: Condvar,
}

impl Seen {
    fn add(&self, line: Value) {
        self.lines.lock().unwrap().push(line);
        self.more.notify_all();
    }
}

impl Lab {
    /// Makes it, when nobody else on this machine has it: what arrives is then of one test. `None`, having said why, where
    /// it cannot be made.
    pub(crate) fn take() -> Option<Self> {
        if rustix::process::geteuid().is_root() {
            Some(Self::start())
        } else {
            eprintln!("skipped: needs root, to make a network namespace");
            None
        }
    }

    fn start() -> Self {
        let turn = std::fs::File::create(std::env::temp_dir().join("selu-lab.lock")).unwrap();
        turn.lock().unwrap();
        remove_network();
        make_network();
        let folder = tempfile::tempdir().unwrap();
        let servers: Vec<&str> = [WWW, OTHER, WILD, FENCE, PRIVATE, PRIVATE_OTHER]
            .into_iter()
            .chain(METADATA)
            .collect();
        make_certificates(folder.path(), &servers);
        let config = json!({
            "dns": DNS,
            "servers": servers,
            "fallback": OTHER,
            "certificates": folder.path(),
            "names": {
                "www.selu-lab.net": [WWW],
                "mail.selu-lab.net": [WWW],
                "xn--bcher-kva.selu-lab.net": [WWW],
                "api.selu-lab.net": [WILD],
                "wild.selu-lab.net": [WILD],
                "*.wild.selu-lab.net": [WILD],
                "private.selu-lab.net": [PRIVATE],
            },
        });
        let file = folder.path().join("config.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let mut server = Self::command("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/internet/serve.py"))
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (ready, wait) = channel();
        let seen = Arc::new(Seen::default());
        let output = BufReader::new(server.stdout.take().unwrap());
        let writer = seen.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["kind"] == "ready" {
                    let _ = ready.send(());
                }
                writer.add(line);
            }
        });
        match wait.recv_timeout(Duration::from_secs(30)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => panic!("the internet is not ready after 30 s"),
            Err(RecvTimeoutError::Disconnected) => panic!("the internet ended, see above"),
        }
        let host_stopped = Arc::new(AtomicBool::new(false));
        for port in HOST_PORTS {
            host_service(port, &host_stopped, &seen);
        }
        Self {
            server,
            seen,
            folder,
            host_stopped,
            _turn: turn,
        }
    }

    /// The certificate that signed all of the servers'.
    pub(crate) fn authority(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("ca.pem")).unwrap()
    }

    /// The files of a server's certificate and of its key.
    pub(crate) fn certificate(&self, server: &str) -> [PathBuf; 2] {
        ["pem", "key"].map(|kind| self.folder.path().join(format!("{server}.{kind}")))
    }

    /// A command whose program runs in this internet.
    pub(crate) fn command(program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", NAMESPACE, program]);
        command
    }

    /// How much has arrived so far: where [`Self::since`] may begin.
    pub(crate) fn mark(&self) -> usize {
        self.seen.lines.lock().unwrap().len()
    }

    /// What has arrived since a mark.
    pub(crate) fn since(&self, mark: usize) -> Vec<Value> {
        self.seen.lines.lock().unwrap()[mark..].to_vec()
    }

    /// Sends datagrams into the lab until all that came before is told: what is told of the second one is told after all
    /// that was there when the first one was.
    pub(crate) fn fence(&self) {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        for _ in 0..2 {
            let mark = self.mark();
            socket.send_to(b"fence", (FENCE, 443)).unwrap();
            let deadline = Instant::now() + Duration::from_secs(30);
            let mut lines = self.seen.lines.lock().unwrap();
            while !lines[mark..]
                .iter()
                .any(|line| line["at"] == format!("{FENCE}:443"))
            {
                let left = deadline.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "a datagram never arrived in the lab");
                lines = self.seen.more.wait_timeout(lines, left).unwrap().0;
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
        self.host_stopped.store(true, Ordering::Relaxed);
        for port in HOST_PORTS {
            // Wakes the thread that accepts, which then ends.
            let _ = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            let waker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
            let _ = waker.and_then(|socket| socket.send_to(b"", (Ipv4Addr::LOCALHOST, port)));
        }
        remove_network();
    }
}

/// Greets over TCP and echoes over UDP on every address of the host, of both families.
fn host_service(port: u16, stopped: &Arc<AtomicBool>, seen: &Arc<Seen>) {
    let any = std::net::SocketAddr::from(([0u16; 8], port));
    let tcp = TcpListener::bind(any).unwrap_or_else(|error| panic!("port {port}: {error}"));
    let udp = UdpSocket::bind(any).unwrap();
    let arrived = |kind: &'static str| {
        let (seen, at) = (seen.clone(), format!("host:{port}"));
        move || seen.add(json!({"kind": kind, "at": at}))
    };
    let (done, say) = (stopped.clone(), arrived("tcp"));
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            if done.load(Ordering::Relaxed) {
                return;
            }
            say();
            let _ = std::io::Write::write_all(&mut stream, b"reached the host\n");
        }
    });
    let (done, say) = (stopped.clone(), arrived("udp"));
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((_, peer)) = udp.recv_from(&mut buffer) {
            if done.load(Ordering::Relaxed) {
                return;
            }
            say();
            let _ = udp.send_to(b"reached the host", peer);
        }
    });
}

fn make_network() {
    for line in [
        format!("netns add {NAMESPACE}"),
        format!("link add {NAMESPACE} type veth peer name lab netns {NAMESPACE}"),
        format!("address add {}/24 dev {NAMESPACE}", HOST[0]),
        format!("link set {NAMESPACE} up"),
        format!("link add {OTHER_DEVICE} type bridge"),
        format!("address add {}/32 dev {OTHER_DEVICE}", HOST[1]),
        format!("link set {OTHER_DEVICE} up"),
        format!("-n {NAMESPACE} link set lo up"),
        format!("-n {NAMESPACE} link set lab up"),
    ] {
        ip(&line);
    }
    for address in [DNS, WWW, OTHER, WILD, FENCE] {
        ip(&format!("-n {NAMESPACE} address add {address}/24 dev lab"));
    }
    ip(&format!("-n {NAMESPACE} route add default via {}", HOST[0]));
    for address in [PRIVATE, PRIVATE_OTHER] {
        ip(&format!("-n {NAMESPACE} address add {address}/32 dev lab"));
        ip(&format!("route add {address}/32 via {WWW}"));
    }
    for (number, address) in METADATA.iter().enumerate() {
        ip(&format!("-n {NAMESPACE} address add {address}/32 dev lab"));
        ip(&format!("route add {address}/32 via {WWW} table {TABLE}"));
        let order = 7000 + 2 * number;
        ip(&format!(
            "rule add priority {order} iif lo to {address} lookup main"
        ));
        ip(&format!(
            "rule add priority {} to {address} lookup {TABLE}",
            order + 1
        ));
    }
}

/// Also what an earlier run left that was killed.
fn remove_network() {
    for order in 7000..7000 + 2 * METADATA.len() {
        let _ = try_ip(&format!("rule del priority {order}"));
    }
    for line in [
        format!("route flush table {TABLE}"),
        format!("link del {NAMESPACE}"),
        format!("link del {OTHER_DEVICE}"),
        format!("netns del {NAMESPACE}"),
    ] {
        let _ = try_ip(&line);
    }
}

fn try_ip(line: &str) -> crate::project::Run {
    run(Command::new("ip").args(line.split(' ')))
}

#[track_caller]
fn ip(line: &str) {
    let done = try_ip(line);
    assert_eq!(done.code, 0, "ip {line}: {}", done.stderr);
}

/// An authority and, signed by it, a certificate for each server: for every name of ours and the server's address. Its
/// subject says whose it is, and TLS 1.2 shows that to whoever looks.
fn make_certificates(folder: &Path, servers: &[&str]) {
    let openssl = |arguments: &[&str]| {
        let done = run(Command::new("openssl").current_dir(folder).args(arguments));
        assert_eq!(done.code, 0, "openssl {arguments:?}: {}", done.stderr);
    };
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt"];
    let request = [
        &request[..],
        &["ec_paramgen_curve:P-256", "-nodes", "-days", "30"],
    ]
    .concat();
    let authority = [
        "-subj",
        "/CN=selu-lab authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ];
    openssl(&[&request[..], &authority].concat());
    let names = [
        "selu-lab.net",
        "wild.selu-lab.net",
        "a.wild.selu-lab.net",
        "at.selu-lab.net",
        "selu-other.net",
    ]
    .map(|zone| format!("DNS:*.{zone},DNS:{zone}"))
    .join(",");
    for address in servers {
        let subject = format!("/CN=reached {address}");
        let alternatives = format!("subjectAltName={names},IP:{address}");
        let (key, out) = (format!("{address}.key"), format!("{address}.pem"));
        let own = [
            "-CA", "ca.pem", "-CAkey", "ca.key", "-subj", &subject, "-addext",
        ];
        let files = [
            alternatives.as_str(),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            &key,
            "-out",
            &out,
        ];
        openssl(&[&request[..], &own, &files].concat());
    }
}
