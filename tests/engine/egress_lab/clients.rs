//! Clients that nobody wrote for us, in a capability's own network: what is listed works for them and the rest does not,
//! with the proxy's variables and without.

use std::process::Command;

use super::lab::{Lab, OTHER, PRIVATE, WWW};
use super::scene::{Scene, in_network_of};
use super::table::Outcome;
use crate::project::{Run, run};

struct Client {
    name: &'static str,
    command: Vec<String>,
    /// What it prints when it has reached the server.
    answer: String,
    /// Whether it goes by the proxy's variables.
    proxied: bool,
    allowed: bool,
}

/// Runs every client that this machine has.
pub(crate) fn run_all(scene: &Scene, lab: &Lab) -> Vec<Outcome> {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    std::fs::write(&authority, lab.authority()).unwrap();
    let mut outcomes = Vec::new();
    for client in clients(authority.to_str().unwrap()) {
        if !exists(&client) {
            eprintln!(
                "skipped: {}: this machine has no {}",
                client.name,
                client.command.join(" ")
            );
            continue;
        }
        outcomes.push(client.run(scene, &[], ""));
        if client.proxied {
            let variables = scene.proxy_variables("open");
            outcomes.push(client.run(scene, &variables, ", by the proxy"));
        }
    }
    outcomes
}

/// Whether the program is here, and for Python the module that it imports first.
fn exists(client: &Client) -> bool {
    let words: Vec<&str> = client.command.iter().map(String::as_str).collect();
    let import = match words.as_slice() {
        ["python3", "-c", script, ..] => script.lines().next().unwrap_or_default(),
        _ => "",
    };
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", words[0]])
        .output()
        .unwrap()
        .status
        .success();
    found && (import.is_empty() || run(Command::new("python3").args(["-c", import])).code == 0)
}

impl Client {
    fn run(&self, scene: &Scene, variables: &[(String, String)], way: &str) -> Outcome {
        let command: Vec<&str> = ["timeout", "20"]
            .into_iter()
            .chain(self.command.iter().map(String::as_str))
            .collect();
        let says =
            |done: &Run| done.stdout.contains(&self.answer) || done.stderr.contains(&self.answer);
        let free = in_network_of(&scene.free.name, &[], &command);
        let here = in_network_of(&scene.resident("open"), variables, &command);
        let shown = |done: &Run| format!("{} {} {}", done.code, done.stdout, done.stderr);
        let (proved, reached) = (says(&free), says(&here));
        let failure = if !proved {
            Some(format!("does not work at all: {}", shown(&free)))
        } else if reached != self.allowed {
            Some(shown(&here))
        } else {
            None
        };
        let met = if reached { "reached" } else { "refused" };
        Outcome::of(format!("{}{way}", self.name), proved, met, failure)
    }
}

fn curl(authority: &str, arguments: &[&str]) -> Vec<String> {
    ["curl", "-sS", "--max-time", "10", "--cacert", authority]
        .iter()
        .chain(arguments)
        .map(|word| (*word).to_owned())
        .collect()
}

fn clients(authority: &str) -> Vec<Client> {
    let client = |name: &'static str, command: &[&str], answer: &str| Client {
        name,
        command: command.iter().map(ToString::to_string).collect(),
        answer: answer.to_owned(),
        proxied: false,
        allowed: true,
    };
    let proxied = |client: Client| Client {
        proxied: true,
        ..client
    };
    let refused = |client: Client| Client {
        allowed: false,
        ..client
    };
    let here = format!("reached {WWW}");
    let curl = |name: &'static str, arguments: &[&str], answer: &str| Client {
        command: curl(authority, arguments),
        ..client(name, &[], answer)
    };
    let python = |script: &str| {
        vec![
            "python3".to_owned(),
            "-c".to_owned(),
            script.replace("AUTHORITY", authority),
        ]
    };
    let script = |name: &'static str, text: &str, answer: &str| Client {
        command: python(text),
        ..client(name, &[], answer)
    };
    let node = |script: &str| {
        // Reading the file is all that makes a client of Node's trust the lab.
        let script = script.replace("AUTHORITY", authority);
        vec![
            "env".to_owned(),
            format!("NODE_EXTRA_CA_CERTS={authority}"),
            "node".to_owned(),
            "--experimental-websocket".to_owned(),
            "--no-warnings".to_owned(),
            "-e".to_owned(),
            script,
        ]
    };
    let node_script = |name: &'static str, text: &str, answer: &str| Client {
        command: node(text),
        ..client(name, &[], answer)
    };
    let s_client = [
        "openssl",
        "s_client",
        "-connect",
        "www.selu-lab.net:443",
        "-verify_return_error",
        "-CAfile",
        authority,
    ];
    let denied = format!("reached {OTHER}");
    let private = format!("reached {PRIVATE}");
    vec![
        proxied(curl("curl: HTTP", &["http://www.selu-lab.net/"], &here)),
        proxied(curl(
            "curl: HTTPS with HTTP/1.1",
            &["--http1.1", "https://www.selu-lab.net/"],
            &here,
        )),
        proxied(curl(
            "curl: HTTPS with HTTP/2",
            &["--http2", "https://www.selu-lab.net/"],
            "over HTTP/2",
        )),
        curl(
            "curl: HTTP/2 without TLS",
            &["--http2-prior-knowledge", "http://www.selu-lab.net/"],
            "over HTTP/2",
        ),
        proxied(curl(
            "curl: below a wildcard",
            &["https://a.wild.selu-lab.net/"],
            "over HTTP/2",
        )),
        curl(
            "curl: a port of its own",
            &["https://api.selu-lab.net:8443/"],
            "over HTTP/2",
        ),
        curl(
            "curl: IMAP over TLS",
            &[
                "-v",
                "-u",
                "a:b",
                "imaps://mail.selu-lab.net/",
                "-X",
                "NOOP",
            ],
            &here,
        ),
        curl(
            "curl: SMTP",
            &["-v", "smtp://mail.selu-lab.net/", "-X", "NOOP"],
            &here,
        ),
        proxied(script(
            "Python: urllib",
            "import ssl, urllib.request\nprint(urllib.request.urlopen('https://www.selu-lab.net/', timeout=10, context=ssl.create_default_context(cafile='AUTHORITY')).read().decode())",
            &here,
        )),
        proxied(script(
            "Python: requests, one session",
            "import requests\ns = requests.Session()\nfor _ in range(3): r = s.get('https://www.selu-lab.net/', timeout=10, verify='AUTHORITY')\nprint(r.text)",
            &here,
        )),
        script(
            "Python: imaplib over TLS",
            "import imaplib, ssl\nm = imaplib.IMAP4_SSL('mail.selu-lab.net', ssl_context=ssl.create_default_context(cafile='AUTHORITY'), timeout=10)\nprint(m.welcome, m.login('a', 'b'), m.logout())",
            &here,
        ),
        script(
            "Python: smtplib",
            "import smtplib\nm = smtplib.SMTP('mail.selu-lab.net', timeout=10)\nprint(m.ehlo(), m.quit())",
            &here,
        ),
        node_script(
            "Node: fetch",
            "fetch('https://www.selu-lab.net/').then(r => r.text()).then(console.log)",
            &here,
        ),
        node_script(
            "Node: a websocket",
            "const w = new WebSocket('ws://www.selu-lab.net/'); w.onmessage = m => { console.log(m.data); process.exit() }",
            &here,
        ),
        client("openssl s_client", &s_client, &here),
        client(
            "ssh, up to the banner",
            &[
                "ssh",
                "-v",
                "-F",
                "/dev/null",
                "-o",
                "BatchMode=yes",
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "mail.selu-lab.net",
            ],
            &format!("reached_{WWW}"),
        ),
        client(
            "psql",
            &[
                "psql",
                "host=mail.selu-lab.net user=a dbname=a sslmode=prefer",
                "-X",
                "-At",
                "-c",
                "select 1",
            ],
            &here,
        ),
        client(
            "redis-cli",
            &["redis-cli", "-h", "mail.selu-lab.net", "PING"],
            "PONG",
        ),
        proxied(refused(curl(
            "curl: a name that is not listed",
            &["http://denied.selu-other.net/"],
            &denied,
        ))),
        proxied(refused(curl(
            "curl: an address that is not listed",
            &[&format!("http://{OTHER}/")],
            &denied,
        ))),
        refused(curl(
            "curl: past the proxy",
            &["--noproxy", "*", &format!("http://{OTHER}/")],
            &denied,
        )),
        refused(curl(
            "curl: an allowed name at an address of one's own choice",
            &[
                "--resolve",
                &format!("www.selu-lab.net:80:{OTHER}"),
                "http://www.selu-lab.net/",
            ],
            &denied,
        )),
        proxied(refused(curl(
            "curl: an allowed name redirects to a private address",
            &[
                "-L",
                &format!("http://www.selu-lab.net/redirect?to=http://{PRIVATE}/"),
            ],
            &private,
        ))),
        proxied(refused(curl(
            "curl: an allowed name redirects to a name that is not listed",
            &[
                "-L",
                "http://www.selu-lab.net/redirect?to=http://denied.selu-other.net/",
            ],
            &denied,
        ))),
        refused(client(
            "openssl s_client: another name in TLS",
            &[
                &s_client[..4],
                &["-servername", "denied.selu-other.net", "-verify_quiet"],
            ]
            .concat(),
            &here,
        )),
        proxied(refused(script(
            "Python: requests with a foreign Host",
            "import requests\nprint(requests.get('http://www.selu-lab.net/', timeout=10, headers={'Host': 'denied.selu-other.net'}).text)",
            &here,
        ))),
    ]
}
