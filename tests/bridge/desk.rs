//! A bridge as a process of its own, and a client in front of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, getuid, kill_process};
use selu_proto::MAX_MESSAGE_BYTES;
use selu_proto::v1::capability_client::CapabilityClient;
use selu_proto::v1::{DownloadOutputArtifactRequest, InvokeRequest};
use serde_json::{Value, json};
use tonic::transport::Channel;

/// Nothing here may take longer; a test that waits for this has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// What the bridge writes, while it does.
#[derive(Default)]
pub(crate) struct Log(Mutex<String>);

impl Log {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Waits for words, for as long as a test may take. The client goes on meanwhile.
    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let seen = async {
                while !self.text().contains(words) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            let seen = tokio::time::timeout(LIMIT, seen).await;
            assert!(
                seen.is_ok(),
                "{caller}: {words:?} never came: {}",
                self.text()
            );
        }
    }
}

pub(crate) struct Bridge {
    process: Child,
    pub(crate) log: Arc<Log>,
    pub(crate) client: CapabilityClient<Channel>,
}

/// `selu mcp-bridge`, without its command.
pub(crate) fn command(arguments: &[&str]) -> Command {
    settled(Command::new(env!("CARGO_BIN_EXE_selu")), arguments)
}

/// The same without the capabilities that root has outside of a container.
pub(crate) fn powerless(arguments: &[&str]) -> Command {
    if !getuid().is_root() {
        return command(arguments);
    }
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--bounding-set=-all", "--inh-caps=-all", "--"]);
    setpriv.arg(env!("CARGO_BIN_EXE_selu"));
    settled(setpriv, arguments)
}

fn settled(mut command: Command, arguments: &[&str]) -> Command {
    command
        .args(["mcp-bridge", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// The test server of a kind, as a command.
pub(crate) fn server(kind: &str) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bridge/server.py");
    let script = script.to_str().unwrap().to_owned();
    ["python3", "-u", &script, kind].map(str::to_owned).to_vec()
}

impl Bridge {
    /// In front of the test server of a kind.
    pub(crate) async fn of(kind: &str) -> Self {
        Self::with(kind, &[], &[]).await
    }

    pub(crate) async fn with(kind: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = command(arguments);
        command.envs(environment.iter().copied());
        command.arg("--").args(server(kind));
        Self::start(command).await
    }

    pub(crate) async fn start(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let stderr = process.stderr.take().unwrap();
        let log = Arc::new(Log::default());
        let writing = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { break };
                let mut text = writing.0.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        log.wait_for("serving on ").await;
        let text = log.text();
        let (_, rest) = text.split_once("serving on ").unwrap();
        let (address, _) = rest.split_once(',').unwrap();
        let channel = Channel::from_shared(format!("http://{address}"))
            .unwrap()
            .connect()
            .await
            .unwrap();
        let client = CapabilityClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self {
            process,
            log,
            client,
        }
    }

    /// One call with these credentials; an error is the tool's own text.
    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        credentials: Value,
        deadline: Duration,
    ) -> Result<Value, String> {
        let mut request = tonic::Request::new(InvokeRequest {
            tool_name: tool.to_owned(),
            args_json: arguments.to_string().into_bytes(),
            config_json: credentials.to_string().into_bytes(),
            ..InvokeRequest::default()
        });
        request.set_timeout(deadline);
        let answer = self.client.clone().invoke(request).await;
        let answer = answer
            .map_err(|status| format!("status: {status}"))?
            .into_inner();
        if answer.error.is_empty() {
            Ok(serde_json::from_slice(&answer.result_json).unwrap())
        } else {
            assert!(answer.result_json.is_empty());
            Err(answer.error)
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.call_with(tool, arguments, json!({}), LIMIT).await
    }

    /// Fails with the server's words, whatever they are.
    pub(crate) async fn error(&self, tool: &str) -> String {
        self.call(tool, json!({})).await.unwrap_err()
    }

    pub(crate) async fn list(&self) -> Result<Value, String> {
        self.call("list_tools", json!({})).await
    }

    /// The process that answers now.
    pub(crate) async fn pid(&self) -> i64 {
        let result = self.call("look", json!({})).await.unwrap();
        result["pid"].as_i64().unwrap()
    }

    /// A file that a result names.
    pub(crate) async fn download(&self, id: &str) -> (Vec<u8>, String) {
        let request = DownloadOutputArtifactRequest {
            capability_artifact_id: id.to_owned(),
        };
        let mut chunks = self
            .client
            .clone()
            .download_output_artifact(request)
            .await
            .unwrap()
            .into_inner();
        let (mut bytes, mut kind) = (Vec::new(), String::new());
        while let Some(chunk) = chunks.message().await.unwrap() {
            bytes.extend(chunk.data);
            kind = chunk.mime_type;
        }
        (bytes, kind)
    }

    /// Ends it as an engine does, and gives its exit code and everything that it wrote.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.signal();
        let status = self.process.wait().unwrap();
        (status.code(), self.log.text())
    }

    fn signal(&self) {
        if let Some(pid) = Pid::from_raw(i32::try_from(self.process.id()).unwrap()) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.signal();
            let _ = self.process.wait();
        }
    }
}

/// Whether a process is there, and no zombie.
pub(crate) fn runs(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a process is gone.
#[track_caller]
pub(crate) fn wait_gone(pid: i64) {
    let end = std::time::Instant::now() + LIMIT;
    while runs(pid) {
        assert!(std::time::Instant::now() < end, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}
