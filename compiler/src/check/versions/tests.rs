use super::check;
use crate::source::SourceFile;

/// `line:column message` of each finding.
fn found(name: &str, text: &str) -> Vec<String> {
    let file = SourceFile {
        path: format!("container/{name}").into(),
        text: text.to_owned(),
    };
    let mut findings = Vec::new();
    check(&file, &mut findings);
    findings
        .iter()
        .map(|finding| {
            let origin = &finding.place.origin;
            assert_eq!(finding.code.name, "package-unpinned");
            format!("{}:{} {}", origin.line, origin.column, finding.message)
        })
        .collect()
}

/// Whether a command in a Dockerfile leaves something open.
fn open(command: &str) -> bool {
    !found("Dockerfile", &format!("FROM scratch\nRUN {command}\n")).is_empty()
}

#[test]
fn packages_without_a_version_of_their_own_are_found() {
    for command in [
        "npm install -g @acme/server",
        "npm i server@latest",
        "npm install --prefix /app server@next",
        "npm add server@^1.2.0",
        "npm install server@1",
        "npx -y @acme/server",
        "npx --package server@latest run-it",
        "pnpm dlx server",
        "yarn global add server",
        "bunx server",
        "pip install server",
        "pip3 install --no-cache-dir 'server>=1.0'",
        "python3 -m pip install server~=1.0",
        "uv pip install server==1.*",
        "uv tool install server",
        "uvx server@latest",
        "uvx --from server run-it",
        "pipx run server",
        "cargo install server",
        "gem install server",
        "go install example.com/server@latest",
        "sudo NODE_ENV=production npm i server",
        "apk add nodejs && npm i server",
        "sh -c 'npm i server'",
        "pip install good==1.0 bad",
        "--mount=type=cache,target=/var/cache/npm npm i server",
    ] {
        assert!(open(command), "{command}");
    }
}

#[test]
fn pinned_packages_files_and_addresses_pass() {
    for command in [
        "npm ci",
        "npm install",
        "npm install -g @acme/server@1.2.3",
        "npm install --prefix /app server@v1.2.3-rc.1",
        "npm i ./server https://example.com/server.tgz",
        "npx -y @acme/server@1.2.3 --port 80 latest",
        "pip install -r requirements.txt",
        "pip install --index-url https://example.com/simple server==1.2",
        "pip install 'server[cli]==1.2' .",
        "pip install -c constraints.txt server",
        "pip install 'server @ https://example.com/server.whl'",
        "uvx server@1.2.3",
        "uvx --from server==1.2.3 run-it",
        "cargo install server@1.2.3",
        "cargo install server --version 1.2.3",
        "gem install server -v 1.2.3",
        "go install example.com/server@v1.2.3",
        "go run ./cmd/server",
        "echo npm install server",
        "V=$(cat version) && npm i server@$V",
    ] {
        assert!(!open(command), "{command}");
    }
}

#[test]
fn defaults_of_arg_and_env_are_filled_in() {
    let with = |before: &str, version: &str| {
        found(
            "Dockerfile",
            &format!("{before}\nFROM node:22.1.0\nRUN npm install x@{version}\n"),
        )
    };
    assert_eq!(with("", "${V}"), [""; 0], "of the shell: unknown");
    let stage = |before: &str, version: &str| {
        found(
            "Dockerfile",
            &format!("FROM node:22.1.0\n{before}\nRUN npm install x@{version}\n"),
        )
    };
    let newest = ["3:17 `x@latest` is installed in whatever version is the newest"];
    assert_eq!(stage("ARG V=latest", "${V}"), newest);
    assert_eq!(stage("ENV V=latest", "$V"), newest);
    assert_eq!(stage("ENV V latest", "$V"), newest);
    assert_eq!(stage("ARG V", "${V:-latest}"), newest);
    assert_eq!(stage("ARG V=1.2.3", "${V}"), [""; 0]);
    assert_eq!(stage("ARG V=\"1.2.3\"", "\"$V\""), [""; 0]);
    assert_eq!(stage("ARG V", "${V:-1.2.3}"), [""; 0]);
    assert_eq!(
        stage("ARG V", "${V}"),
        ["3:17 `x@` is installed without a version"]
    );
    // Before FROM an argument is declared for FROM alone, until a stage names it again.
    assert_eq!(
        found(
            "Dockerfile",
            "ARG V=latest\nFROM scratch\nARG V\nRUN npm i x@$V\n"
        ),
        ["4:11 `x@latest` is installed in whatever version is the newest"]
    );
}

#[test]
fn places_are_right_across_lines_lists_and_here_documents() {
    assert_eq!(
        found(
            "Dockerfile",
            "FROM scratch\nRUN apk add nodejs \\\n    # the server\n    && npm i \\\n      server\n"
        ),
        ["5:7 `server` is installed without a version"]
    );
    assert_eq!(
        found(
            "Dockerfile",
            "FROM scratch\nCMD [\"npx\", \"-y\", \"server\"]\n"
        ),
        ["2:20 `server` is installed without a version"]
    );
    assert_eq!(
        found(
            "Dockerfile",
            "FROM scratch\nRUN <<EOF\nnpm i server\nEOF\nRUN npm ci\n"
        ),
        ["3:7 `server` is installed without a version"]
    );
}

#[test]
fn requirements_have_one_version_each() {
    assert_eq!(
        found(
            "requirements.txt",
            "# pinned\ngood==1.0\n  also[cli]==2.0 ; python_version > '3.8' # why\nhashed==1.0 \\\n    --hash=sha256:00\n-r other.txt\nopen\nranged>=1.0\n"
        ),
        [
            "7:1 `open` is installed without a version",
            "8:1 `ranged>=1.0` allows more than one version"
        ]
    );
}
