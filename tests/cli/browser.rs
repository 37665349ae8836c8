//! The page in a real browser: it opens from a file, its filters work by keyboard, nothing is fetched, hostile text stays
//! text. Without a browser these tests say so, and prove nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Desk;

/// Names a browser; else one of these is looked for.
const VARIABLE: &str = "SELU_BROWSER";
const NAMES: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    NAMES
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// A browser without a window, told what to do through two pipes.
struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    asked: u64,
    /// What it told by itself.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// On a page, with the colours that a person prefers.
    fn open(page: &Path, scheme: &str) -> Option<Self> {
        let Some(program) = browser() else {
            println!("skipped: no browser here; install chromium, or name one in {VARIABLE}");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            // It takes commands on descriptor 3 and answers on 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--disable-quic",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            input,
            output,
            session: None,
            asked: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.ask(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser.ask(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
        browser.size(1280, 900);
        let url = format!("file://{}", page.display());
        browser.ask("Page.navigate", json!({ "url": url }));
        browser.wait_for("Page.loadEventFired");
        Some(browser)
    }

    fn size(&mut self, width: u32, height: u32) {
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        let read = self.output.read_until(0, &mut message).unwrap();
        assert!(read > 0, "the browser ended");
        message.pop();
        serde_json::from_slice(&message).unwrap()
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.input
            .write_all(message.to_string().as_bytes())
            .unwrap();
        self.input.write_all(&[0]).unwrap();
        self.input.flush().unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn wait_for(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == method) {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// What an expression is in the page. The protocol runs it, which the page's own policy does not let anything else do.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", parameters);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    fn key(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == " " && kind == "keyDown" {
                " "
            } else {
                ""
            };
            self.ask(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text }),
            );
        }
    }

    /// How many elements are to be seen.
    fn seen(&mut self, selector: &str) -> u64 {
        let count = format!(
            "[...document.querySelectorAll({selector:?})].filter(one => one.checkVisibility()).length"
        );
        self.value(&count).as_u64().unwrap()
    }

    /// A picture for whoever wants to look, where the variable names a folder.
    fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SELU_PICTURES") else {
            return;
        };
        let answer = self.ask("Page.captureScreenshot", json!({ "format": "png" }));
        let data = answer["data"].as_str().unwrap();
        let decoded = base64(data);
        std::fs::write(Path::new(&folder).join(name), decoded).unwrap();
    }

    /// Every address that it asked for.
    fn fetched(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent")
            .filter_map(|event| event["params"]["request"]["url"].as_str())
            .collect()
    }

    /// What the page's policy refused, and what went wrong.
    fn complaints(&self) -> Vec<&Value> {
        let wrong = |event: &&Value| {
            event["method"] == "Log.entryAdded" || event["method"] == "Runtime.exceptionThrown"
        };
        self.events.iter().filter(wrong).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xFF) as u8);
        }
    }
    bytes
}

const HOSTILE: &str = "Tells it</p><script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=\\\"document.title='owned'\\\"><style>*{display:none}</style><a href=javascript:alert(1)>x</a>";

/// The page of a change that widens, narrows and is hostile.
fn page(desk: &Desk) -> PathBuf {
    let lock = "agents/weather/capabilities/api/manifest.yaml";
    desk.manifest("network: {mode: allowlist, hosts: [\"a.example.com:443\"]}\n");
    let manifest = std::fs::read_to_string(desk.path().join(lock)).unwrap();
    std::fs::create_dir_all(desk.path().join("old")).unwrap();
    for name in [
        "selu.toml",
        "agents/weather/agent.yaml",
        "agents/weather/agent.md",
        lock,
    ] {
        let text = std::fs::read_to_string(desk.path().join(name)).unwrap();
        desk.write(&format!("old/{name}"), &text);
    }
    let changed = manifest
        .replace("Tells it", &format!("\"{HOSTILE}\""))
        .replace("a.example.com:443", "b.example.com:443")
        + "resources: {max_memory_mb: 64}\ncredentials: [{name: API_KEY, scope: system}]\n";
    desk.write(lock, &changed);
    let made = desk.run(&["diff", "old", ".", "--format", "html"]).exits(0);
    let path = desk.path().join("page.html");
    std::fs::write(&path, made.out).unwrap();
    path
}

#[test]
fn a_page_opens_from_a_file_fetches_nothing_and_hostile_text_stays_text() {
    let desk = Desk::with_project();
    let page = page(&desk);
    let Some(mut browser) = Browser::open(&page, "light") else {
        return;
    };
    assert_eq!(browser.value("document.title"), "selu: Review");
    assert_eq!(browser.value("document.scripts.length"), 0);
    assert_eq!(browser.value("document.images.length"), 0);
    assert_eq!(browser.value("document.styleSheets.length"), 1);
    assert_eq!(browser.value("document.links.length"), 0);
    let text = browser.value("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("<script>document.title='owned'</script>"),
        "{text}"
    );
    let fetched = browser.fetched();
    assert!(
        fetched
            .iter()
            .all(|url| url.starts_with("file://") || *url == "about:blank"),
        "{fetched:?}"
    );
    assert_eq!(
        fetched
            .iter()
            .filter(|url| url.starts_with("file://"))
            .count(),
        1
    );
    assert_eq!(browser.complaints(), Vec::<&Value>::new());

    // The same policy stops what would run or be fetched if it did get into the page: here the test puts it there.
    browser.value(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"http://127.0.0.1:9/y\"><p id=p onclick=\"document.title=1\" style=\"color:red\">x</p>'); \
         document.getElementById('p').click()",
    );
    let script = "var s = document.createElement('script'); s.textContent = 'document.title = 2'; document.body.append(s)";
    browser.value(script);
    assert_eq!(browser.value("document.title"), "selu: Review");
    browser.wait_for("Network.loadingFailed");
    let failed = browser.events.iter();
    let failed: Vec<&Value> = failed
        .filter(|event| event["method"] == "Network.loadingFailed")
        .map(|event| &event["params"]["blockedReason"])
        .collect();
    assert_eq!(failed, ["csp"], "nobody was asked");
    assert!(!browser.complaints().is_empty(), "the policy is in force");
}

#[test]
fn each_grade_is_shown_or_hidden_by_keyboard_and_everything_has_a_name() {
    let desk = Desk::with_project();
    let page = page(&desk);
    let Some(mut browser) = Browser::open(&page, "dark") else {
        return;
    };
    let background = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(13, 17, 23)", "dark");
    let (widening, narrowing) = (browser.seen(".widening li"), browser.seen(".narrowing li"));
    assert!(widening > 0 && narrowing > 0);
    browser.picture("dark.png");
    // The first thing that the tabulator reaches.
    browser.key("Tab", 9);
    assert_eq!(browser.value("document.activeElement.id"), "show-widening");
    browser.key(" ", 32);
    assert_eq!(browser.seen(".widening li"), 0);
    assert_eq!(browser.seen(".narrowing li"), narrowing);
    browser.picture("filtered.png");
    browser.key(" ", 32);
    assert_eq!(browser.seen(".widening li"), widening);
    browser.key("Tab", 9);
    browser.key(" ", 32);
    assert_eq!(browser.seen(".narrowing li"), 0);

    // What a screen reader is told.
    let tree = browser.ask("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let role = |node: &&Value, role: &str| node["role"]["value"] == role;
    let names = |wanted: &str| -> Vec<String> {
        nodes
            .iter()
            .filter(|node| role(node, wanted))
            .map(|node| {
                node["name"]["value"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    };
    let boxes = names("checkbox");
    assert_eq!(boxes.len(), 3);
    assert!(boxes[0].starts_with("widening ("), "{boxes:?}");
    let pictures = names("image");
    assert!(
        pictures
            .iter()
            .any(|name| name.starts_with("Graph of 1 agent")),
        "{pictures:?}"
    );
    for landmark in ["main", "banner", "form"] {
        assert_eq!(names(landmark).len(), 1, "{landmark}");
    }

    // On a narrow screen nothing but the picture is wider than the screen.
    browser.size(380, 800);
    let over = browser.value("document.documentElement.scrollWidth - innerWidth");
    assert!(over.as_i64().unwrap() <= 0, "{over}");
    browser.picture("narrow.png");
}

#[test]
fn a_plan_is_a_page_too_in_light_colours() {
    let desk = Desk::with_project();
    let made = desk
        .run(&["plan", "--offline", "--format", "html"])
        .exits(0);
    let page = desk.path().join("plan.html");
    std::fs::write(&page, made.out).unwrap();
    let Some(mut browser) = Browser::open(&page, "light") else {
        return;
    };
    assert_eq!(browser.value("document.title"), "selu: Plan of demo");
    let background = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(255, 255, 255)");
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)");
    assert!(browser.seen("svg rect.capability") == 1);
    browser.picture("plan.png");
}
