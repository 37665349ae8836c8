//! `selu new mcp` and `selu import`: what they write compiles, and what they cannot is refused by name (P6).

use std::path::Path;

use crate::Desk;

/// An entry as the Docker MCP registry has it; `more` is the rest of it.
fn docker(name: &str, more: &str) -> String {
    format!(
        "name: {name}\nimage: mcp/{name}:1.0\ntype: server\nabout:\n  title: \"{name}: the title\"\n  description: It's \"quoted\"\n{more}"
    )
}

#[test]
fn a_new_wrapper_is_pinned_and_compiles_without_a_finding() {
    for (source, package) in [
        ("--npm", "@modelcontextprotocol/server-memory@2026.8.31"),
        ("--pypi", "mcp-server-time==2026.10.19"),
    ] {
        let desk = Desk::new();
        let arguments = [
            "new",
            "mcp",
            "notes",
            source,
            package,
            "--credential",
            "API_KEY",
            "--allow",
            "api.example.com:443",
            "--",
            "serve",
            "--stdio",
        ];
        let ran = desk.run(&arguments).exits(0);
        assert!(
            ran.out
                .contains("agents/notes/capabilities/notes/container/Dockerfile\n"),
            "{}",
            ran.out
        );
        // No engine answers here.
        ran.says("the server was not asked for its tools")
            .says("`selu build notes/notes`");
        let ran = desk.run(&["check", "--deny", "warnings"]).exits(0);
        assert!(!ran.err.contains("warning"), "{}", ran.err);
        let dockerfile = desk.read("agents/notes/capabilities/notes/container/Dockerfile");
        assert!(dockerfile.contains(package), "{dockerfile}");
        assert!(
            dockerfile.ends_with(
                "ENTRYPOINT [\"/usr/local/bin/selu\",\"mcp-bridge\",\"--placeholder\",\"API_KEY\",\"--\",\"serve\",\"--stdio\"]\n"
            ),
            "{dockerfile}"
        );
        let manifest = desk.read("agents/notes/capabilities/notes/manifest.yaml");
        assert!(
            manifest.contains("- \"api.example.com:443\"") && manifest.contains("name: API_KEY"),
            "{manifest}"
        );
        assert!(desk.read("selu.toml").contains("on_change = \"hold\""));
        desk.run(&["plan", "--offline"]).exits(0);
    }
}

#[test]
fn a_second_wrapper_joins_the_settings_and_nothing_is_overwritten() {
    let desk = Desk::with_project();
    let new = |name| desk.run(&["new", "mcp", name, "--image", "example.com/x:1", "--", "/x"]);
    new("one").exits(0);
    new("two").exits(0);
    let settings = desk.read("selu.toml");
    assert!(
        settings.starts_with("[project]\nname = \"demo\"\n"),
        "{settings}"
    );
    assert!(settings.contains("[build.\"one/one\"]") && settings.contains("[build.\"two/two\"]"));
    new("one")
        .exits(1)
        .says("exists already; nothing was written");
    assert_eq!(desk.read("selu.toml"), settings);
    desk.run(&["check"]).exits(0);
}

#[test]
fn what_is_not_pinned_or_no_id_is_wrong_usage() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        (
            &["n", "--npm", "server"][..],
            64,
            "has no version that stays the same",
        ),
        (
            &["n", "--npm", "server@latest"],
            64,
            "has no version that stays the same",
        ),
        (
            &["n", "--pypi", "a>=1.0"],
            64,
            "has no version that stays the same",
        ),
        (&["n"], 64, "--npm"),
        (&["n", "--image", "x:1"], 64, "COMMAND"),
        (&["N_1", "--pypi", "a==1.0"], 1, "such as `n-1`"),
        (
            &["n", "--pypi", "a==1.0", "--credential", "PATH"],
            64,
            "`PATH` is reserved",
        ),
        (
            &["n", "--pypi", "a==1.0", "--allow", "https://x.com"],
            64,
            "x.com",
        ),
    ] {
        let all = [&["new", "mcp"], arguments].concat();
        desk.run(&all).exits(code).says(words);
    }
    assert_eq!(std::fs::read_dir(desk.path()).unwrap().count(), 0);
}

#[test]
fn a_clients_settings_are_imported_without_their_values() {
    let desk = Desk::new();
    desk.write(
        "client.json",
        r#"{"mcpServers": {
            "time": {"command": "uvx", "args": ["mcp-server-time==2026.10.19", "--local-timezone", "UTC"]},
            "Git Hub": {"command": "docker", "args": ["run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/github/github-mcp-server:1.0"],
                        "env": {"TOKEN": "canary-5511aa"}},
            "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
            "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer canary-5511aa"}},
            "old": {"url": "https://example.com/sse", "type": "sse"}
        }}"#,
    );
    let ran = desk.run(&["import", "mcp-json", "client.json"]).exits(3);
    let ran = ran
        .says("old: not imported")
        .says("has no fixed version")
        .says("4 servers imported, 1 not");
    assert!(!ran.err.contains("canary-5511aa"));
    let checked = desk.run(&["check"]).exits(0);
    // The version that is missing is a finding with its place.
    assert!(
        checked.out.contains("SELU0710") && checked.out.contains("container/Dockerfile"),
        "{}",
        checked.out
    );
    for entry in walk(desk.path())
        .iter()
        .filter(|path| !path.ends_with("client.json"))
    {
        assert!(
            !std::fs::read_to_string(entry)
                .unwrap()
                .contains("canary-5511aa"),
            "{entry:?}"
        );
    }
    assert!(
        desk.read("agents/git-hub/capabilities/git-hub/manifest.yaml")
            .contains("- name: TOKEN")
    );
    desk.run(&["plan", "--offline"]).exits(0);
}

#[test]
fn twenty_entries_and_more_of_each_catalogue_are_imported_compile_without_error_and_are_planned() {
    for shape in ["docker-mcp", "toolhive"] {
        let folder = format!(
            "{}/../tests/cli/catalogues/{shape}",
            env!("CARGO_MANIFEST_DIR")
        );
        let desk = Desk::new();
        let files: Vec<String> = walk(Path::new(&folder))
            .iter()
            .map(|path| path.to_str().unwrap().to_owned())
            .collect();
        let mut arguments = vec!["import", shape];
        arguments.extend(files.iter().map(String::as_str));
        let ran = desk.run(&arguments).exits(0);
        assert!(files.len() >= 20, "{}", files.len());
        let all = format!("{} servers imported, 0 not", files.len());
        ran.says(&all);
        desk.run(&["check"]).exits(0);
        let planned = desk
            .run(&["plan", "--offline", "--format", "json"])
            .exits(0);
        let instances = planned.json()["plan"]["instances"]
            .as_object()
            .unwrap()
            .len();
        assert_eq!(instances, files.len());
    }
}

#[test]
fn a_server_at_a_url_gets_a_rule_for_its_host_and_credentials_for_its_headers() {
    let desk = Desk::new();
    let url = [
        "--url",
        "https://mcp.example.com/mcp",
        "--header",
        "Authorization: Bearer ${KEY}",
    ];
    desk.run(&[&["new", "mcp", "far"], &url[..]].concat())
        .exits(0)
        .says("it runs elsewhere");
    desk.run(&["check", "--deny", "warnings"]).exits(0);
    let manifest = desk.read("agents/far/capabilities/far/manifest.yaml");
    assert!(
        manifest.contains("- \"mcp.example.com:443\"") && manifest.contains("name: KEY"),
        "{manifest}"
    );
    let dockerfile = desk.read("agents/far/capabilities/far/container/Dockerfile");
    assert!(
        dockerfile.ends_with(
            "\"mcp-bridge\",\"--url\",\"https://mcp.example.com/mcp\",\"--header\",\"Authorization: Bearer ${KEY}\"]\n"
        ),
        "{dockerfile}"
    );
    for wrong in [
        &["--url", "http://example.com/mcp", "--header", "A: ${KEY}"][..],
        &["--url", "https://example.com/mcp", "--credential", "KEY"],
        &["--npm", "a@1.0.0", "--header", "A: ${KEY}"],
    ] {
        desk.run(&[&["new", "mcp", "n"], wrong].concat()).exits(64);
    }
}

#[test]
fn entries_of_both_catalogues_are_imported_and_compile() {
    let desk = Desk::new();
    let mut arguments = vec!["import".to_owned(), "docker-mcp".to_owned()];
    for number in 0..5 {
        let more = "run:\n  command: [--stdio]\n  allowHosts: [\"api.example.com:443\", \"*.example.org:443\"]\nconfig:\n  secrets: [{name: a.k, env: KEY}]\n";
        desk.write(
            &format!("d{number}/server.yaml"),
            &docker(&format!("server-{number}"), more),
        );
        arguments.push(format!("d{number}/server.yaml"));
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    desk.run(&words).exits(0).says("5 servers imported, 0 not");
    desk.write(
        "t/registry.json",
        r#"{"servers": {
            "a": {"image": "ghcr.io/x/a:1.0.0", "transport": "stdio", "description": "A", "args": ["stdio"],
                  "env_vars": [{"name": "A_KEY", "required": true, "description": "key: of A"}],
                  "permissions": {"network": {"outbound": {"allow_host": [".a.com"], "allow_port": [443]}}}},
            "b": {"image": "ghcr.io/x/b:1.0.0", "transport": "sse"}
        }}"#,
    );
    desk.run(&["import", "toolhive", "t/registry.json"])
        .exits(3)
        .says("b: not imported: it is reached by SSE");
    desk.write("t/broken.yaml", "a: [");
    desk.run(&["import", "toolhive", "t/broken.yaml"])
        .exits(1)
        .says("t/broken.yaml: not imported");
    desk.run(&["check"]).exits(0);
    desk.run(&["plan", "--offline"]).exits(0);
    let json = desk
        .run(&["import", "toolhive", "t/registry.json", "--format", "json"])
        .exits(1)
        .json();
    assert!(
        json["entries"][0]["refused"]
            .as_str()
            .unwrap()
            .contains("exists already"),
        "{json}"
    );
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_a_file_says_steers_no_terminal_and_forges_no_annotation() {
    let desk = Desk::new();
    desk.write(
        "s.json",
        r#"{"mcpServers": {"n\u001b[31mX": {"command": "npx", "args": ["pkg@1.0.0\u001b[2J\n::error::x"]}}}"#,
    );
    let ran = desk.run(&["import", "mcp-json", "s.json"]).exits(1);
    assert!(ran.err.contains("not imported"), "{}", ran.err);
    assert!(
        !ran.err.contains('\u{1b}') && !ran.err.contains("\n::"),
        "{:?}",
        ran.err
    );
}
