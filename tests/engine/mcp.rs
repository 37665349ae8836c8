//! MCP servers that people use, from their registries: bridged, deployed, discovered, locked and called under their limits
//! and network rules (section 6). Where a registry does not answer, the test says that it was skipped.

use std::process::Command;

use serde_json::Value;

use crate::project::{TestProject, run};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/mcp-rootfs");

/// One server, and every tool of it that can be called without the outside.
struct Server {
    /// `npm` or `pypi`.
    registry: &'static str,
    package: &'static str,
    /// What starts it, without its program.
    arguments: &'static [&'static str],
    /// More of the image, and more of the manifest.
    dockerfile: &'static str,
    manifest: &'static str,
    /// Run besides the script that makes the root file system.
    prepare: &'static str,
    tools: usize,
    /// Tool, arguments, and a part of what is answered; or, after a `!`, of its error.
    calls: &'static [(&'static str, &'static str, &'static str)],
}

const NPM: Server = Server {
    registry: "npm",
    package: "",
    arguments: &[],
    dockerfile: "",
    manifest: "",
    prepare: "true",
    tools: 0,
    calls: &[],
};

const PYPI: Server = Server {
    registry: "pypi",
    ..NPM
};

/// Whether the registry gives the package; its tree is then kept, and the build takes it.
fn is_there(server: &Server, project: &TestProject) -> bool {
    let out = tempfile::tempdir().unwrap();
    let script = run(Command::new(SCRIPT)
        .args([server.registry, server.package])
        .current_dir(project.path())
        .env("SELU", env!("CARGO_BIN_EXE_selu"))
        .env("SELU_BUILD_OUT", out.path()));
    if script.code == 75 {
        eprintln!("skipped {}: {}", server.package, script.stderr.trim());
        return false;
    }
    script.expect(0);
    true
}

fn up(topic: &str, server: &Server) -> Option<TestProject> {
    let project = TestProject::new(topic);
    if !is_there(server, &project) {
        return None;
    }
    project.write("agents/a/agent.yaml", "id: a\nname: a\n");
    project.write("agents/a/agent.md", "Uses an MCP server.\n");
    let image = project.image("a", "mcp");
    let folder = "agents/a/capabilities/mcp";
    project.write(
        &format!("{folder}/manifest.yaml"),
        &format!(
            "id: mcp\nimage: {image}\ntool_source: dynamic\n\
             resources: {{max_memory_mb: 256, max_cpu_fraction: 1.0}}\n{}",
            server.manifest
        ),
    );
    let program = if server.registry == "npm" {
        "node"
    } else {
        "python3"
    };
    let command = [
        &["/selu", "mcp-bridge", "--", program, "/server"],
        server.arguments,
    ];
    let entry = serde_json::to_string(&command.concat()).unwrap();
    // Another time zone than the server gets to see.
    project.write(
        &format!("{folder}/container/Dockerfile"),
        &format!(
            "FROM scratch\nADD rootfs.tar /\nCOPY selu /selu\nENV PATH=/usr/bin TZ=Pacific/Chatham\n{}ENTRYPOINT {entry}\n",
            server.dockerfile
        ),
    );
    let prepare = format!(
        "SELU='{}' '{SCRIPT}' {} {} && {}",
        env!("CARGO_BIN_EXE_selu"),
        server.registry,
        server.package,
        server.prepare
    );
    let settings = project.read("selu.toml");
    project.write(
        "selu.toml",
        &format!("{settings}\n[build.\"a/mcp\"]\nprepare = [\"sh\", \"-c\", {prepare:?}]\n"),
    );
    project.up();
    Some(project)
}

fn proves(topic: &str, server: &Server) {
    let Some(project) = up(topic, server) else {
        return;
    };
    let lock = project.read("selu.lock");
    let locked = lock.matches(".tool.\"").count();
    assert_eq!(locked, server.tools, "{lock}");
    assert!(!lock.contains("Chatham"), "{lock}");
    for (tool, arguments, words) in server.calls {
        let consent = format!("a/mcp/{tool}");
        let call = [
            "invoke", "a/mcp", tool, "--args", arguments, "--yes-to", &consent, "--format", "json",
        ];
        let called = project.selu(&call);
        match words.strip_prefix('!') {
            Some(words) => {
                let called = called.expect(1);
                let said = format!("{}{}", called.stdout, called.stderr);
                assert!(said.contains(words), "{tool}: {said}");
            }
            None => {
                let result: Value = called.expect(0).json()["result"].clone();
                assert!(result.to_string().contains(words), "{tool}: {result}");
            }
        }
    }
    project.selu(&["sync"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        lock,
        "asked again, it says the same"
    );
    project.selu(&["lock", "--check"]).expect(0);
    project.selu(&["status"]).expect(0);
}

#[test]
fn npm_everything_is_bridged_with_all_its_kinds_of_content() {
    proves(
        "mcp-everything",
        &Server {
            package: "@modelcontextprotocol/server-everything@2026.8.31",
            manifest: "filesystem: temp\n",
            tools: 13,
            calls: &[
                ("echo", r#"{"message": "hällo"}"#, "hällo"),
                (
                    "get-annotated-message",
                    r#"{"messageType": "success", "includeImage": true}"#,
                    "capability_artifact_id",
                ),
                ("get-env", "{}", "SELU_CAPABILITY_ID"),
                ("get-resource-links", r#"{"count": 2}"#, "resource_link"),
                (
                    "get-resource-reference",
                    r#"{"resourceType": "Blob", "resourceId": 2}"#,
                    "capability_artifact_id",
                ),
                (
                    "get-structured-content",
                    r#"{"location": "Chicago"}"#,
                    "temperature",
                ),
                ("get-sum", r#"{"a": 2, "b": 3}"#, "5"),
                ("get-tiny-image", "{}", "image/png"),
                (
                    "gzip-file-as-resource",
                    r#"{"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}"#,
                    "a.gz",
                ),
                ("toggle-simulated-logging", "{}", "logging"),
                ("toggle-subscriber-updates", "{}", "ubscri"),
                (
                    "trigger-long-running-operation",
                    r#"{"duration": 1, "steps": 2}"#,
                    "completed",
                ),
            ],
            ..NPM
        },
    );
}

#[test]
fn npm_filesystem_reads_and_writes_what_is_writable_and_nothing_else() {
    proves(
        "mcp-filesystem",
        &Server {
            package: "@modelcontextprotocol/server-filesystem@2026.8.31",
            arguments: &["/tmp"],
            manifest: "filesystem: temp\n",
            tools: 14,
            calls: &[
                ("list_allowed_directories", "{}", "/tmp"),
                ("create_directory", r#"{"path": "/tmp/d"}"#, "/tmp/d"),
                (
                    "write_file",
                    r#"{"path": "/tmp/d/a.txt", "content": "one\ntwo\n"}"#,
                    "a.txt",
                ),
                ("read_file", r#"{"path": "/tmp/d/a.txt"}"#, "two"),
                (
                    "read_text_file",
                    r#"{"path": "/tmp/d/a.txt", "head": 1}"#,
                    "one",
                ),
                (
                    "read_multiple_files",
                    r#"{"paths": ["/tmp/d/a.txt"]}"#,
                    "two",
                ),
                (
                    "edit_file",
                    r#"{"path": "/tmp/d/a.txt", "edits": [{"oldText": "two", "newText": "2"}]}"#,
                    "+2",
                ),
                ("list_directory", r#"{"path": "/tmp/d"}"#, "a.txt"),
                (
                    "list_directory_with_sizes",
                    r#"{"path": "/tmp/d"}"#,
                    "a.txt",
                ),
                ("directory_tree", r#"{"path": "/tmp/d"}"#, "a.txt"),
                (
                    "search_files",
                    r#"{"path": "/tmp", "pattern": "**/*.txt"}"#,
                    "a.txt",
                ),
                ("get_file_info", r#"{"path": "/tmp/d/a.txt"}"#, "size"),
                (
                    "move_file",
                    r#"{"source": "/tmp/d/a.txt", "destination": "/tmp/b.txt"}"#,
                    "b.txt",
                ),
                (
                    "read_media_file",
                    r#"{"path": "/tmp/b.txt"}"#,
                    "capability_artifact_id",
                ),
                ("read_file", r#"{"path": "/etc/passwd"}"#, "!Access denied"),
            ],
            ..NPM
        },
    );
}

#[test]
fn npm_memory_keeps_its_graph_between_calls() {
    proves(
        "mcp-memory",
        &Server {
            package: "@modelcontextprotocol/server-memory@2026.8.31",
            dockerfile: "ENV MEMORY_FILE_PATH=/tmp/graph.json\n",
            manifest: "filesystem: temp\n",
            tools: 9,
            calls: &[
                (
                    "create_entities",
                    r#"{"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}, {"name": "Bob", "entityType": "person", "observations": []}]}"#,
                    "Ada",
                ),
                (
                    "create_relations",
                    r#"{"relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}]}"#,
                    "knows",
                ),
                (
                    "add_observations",
                    r#"{"observations": [{"entityName": "Bob", "contents": ["reads"]}]}"#,
                    "reads",
                ),
                ("read_graph", "{}", "reads"),
                ("search_nodes", r#"{"query": "writes"}"#, "Ada"),
                ("open_nodes", r#"{"names": ["Bob"]}"#, "Bob"),
                (
                    "delete_observations",
                    r#"{"deletions": [{"entityName": "Bob", "observations": ["reads"]}]}"#,
                    "deleted",
                ),
                (
                    "delete_relations",
                    r#"{"relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}]}"#,
                    "deleted",
                ),
                ("delete_entities", r#"{"entityNames": ["Ada"]}"#, "deleted"),
            ],
            ..NPM
        },
    );
}

#[test]
fn npm_sequential_thinking_thinks() {
    proves(
        "mcp-thinking",
        &Server {
            package: "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
            tools: 1,
            calls: &[(
                "sequentialthinking",
                r#"{"thought": "first", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}"#,
                "thoughtHistoryLength",
            )],
            ..NPM
        },
    );
}

#[test]
fn pypi_time_lists_the_same_in_every_time_zone() {
    proves(
        "mcp-time",
        &Server {
            package: "mcp-server-time==2026.10.19",
            tools: 2,
            calls: &[
                (
                    "get_current_time",
                    r#"{"timezone": "Europe/Berlin"}"#,
                    "Europe/Berlin",
                ),
                (
                    "convert_time",
                    r#"{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
                    "21:00",
                ),
                (
                    "get_current_time",
                    r#"{"timezone": "Mars/Base"}"#,
                    "!Mars/Base",
                ),
            ],
            ..PYPI
        },
    );
}

#[test]
fn pypi_git_reads_a_repository_of_the_image_and_cannot_change_it() {
    proves(
        "mcp-git",
        &Server {
            package: "mcp-server-git==2026.10.19",
            dockerfile: "COPY --chown=1000:1000 repo /repo\n",
            prepare: "cd \"$SELU_BUILD_OUT\" && git init -q -b main repo && cd repo && echo one >a && git add a && \
                      git -c user.name=t -c user.email=t@t commit -qm first && echo two >>a",
            tools: 12,
            calls: &[
                ("git_status", r#"{"repo_path": "/repo"}"#, "modified"),
                ("git_diff_unstaged", r#"{"repo_path": "/repo"}"#, "+two"),
                ("git_diff_staged", r#"{"repo_path": "/repo"}"#, "taged"),
                (
                    "git_diff",
                    r#"{"repo_path": "/repo", "target": "main"}"#,
                    "+two",
                ),
                ("git_log", r#"{"repo_path": "/repo"}"#, "first"),
                (
                    "git_show",
                    r#"{"repo_path": "/repo", "revision": "main"}"#,
                    "first",
                ),
                (
                    "git_branch",
                    r#"{"repo_path": "/repo", "branch_type": "local"}"#,
                    "main",
                ),
                ("git_add", r#"{"repo_path": "/repo", "files": ["a"]}"#, "!"),
                (
                    "git_commit",
                    r#"{"repo_path": "/repo", "message": "no"}"#,
                    "!",
                ),
                (
                    "git_create_branch",
                    r#"{"repo_path": "/repo", "branch_name": "no"}"#,
                    "!",
                ),
                ("git_status", r#"{"repo_path": "/nowhere"}"#, "!/nowhere"),
            ],
            ..PYPI
        },
    );
}

#[test]
fn pypi_fetch_is_listed_offline_and_its_call_fails_with_its_own_words() {
    proves(
        "mcp-fetch",
        &Server {
            package: "mcp-server-fetch==2026.10.24",
            tools: 1,
            calls: &[("fetch", r#"{"url": "https://example.com/"}"#, "!fetch")],
            ..PYPI
        },
    );
}
