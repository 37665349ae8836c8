//! M, C and R.

use super::{Case, Files::*, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "M1",
        passing: &[
            Capability("tool_source: dynamic\ntools: []\n"),
            Capability("tool_source: dynamic\ndiscovery_tool_name: tools\n"),
        ],
        failing: &[
            Case(
                Capability(
                    "tool_source: dynamic\ntools:\n  - name: a\n    description: b\n    input_schema: {type: object}\n",
                ),
                &["SELU0309 manifest.yaml:4:1"],
            ),
            Case(
                Capability("discovery_tool_name: tools\n"),
                &["SELU0313 manifest.yaml:3:1"],
            ),
        ],
    },
    Rule {
        id: "M2",
        passing: &[Capability("class: environment\nfilesystem: workspace\n")],
        failing: &[Case(
            Capability("filesystem: workspace\n"),
            &["SELU0310 manifest.yaml:3:13"],
        )],
    },
    Rule {
        id: "M3",
        passing: &[Capability("class: environment\ncache: {enabled: true}\n")],
        failing: &[Case(
            Capability("cache:\n  enabled: true\n"),
            &["SELU0311 manifest.yaml:4:12"],
        )],
    },
    Rule {
        id: "M4",
        passing: &[Capability("sharing: {mode: shared, max_concurrent: 4}\n")],
        failing: &[
            Case(
                Capability("class: environment\nsharing:\n  mode: shared\n"),
                &["SELU0312 manifest.yaml:5:9"],
            ),
            Case(
                Capability("sharing: {max_concurrent: 4}\n"),
                &["SELU0313 manifest.yaml:3:27"],
            ),
        ],
    },
    Rule {
        id: "M5",
        passing: &[Capability(
            "network: {mode: allowlist, hosts: [\"a.example:443\"]}\n",
        )],
        failing: &[
            Case(
                Capability("network:\n  hosts: [\"a.example:443\"]\n"),
                &["SELU0511 manifest.yaml:4:3"],
            ),
            Case(
                Capability("network:\n  mode: allowlist\n"),
                &["SELU0512 manifest.yaml:4:9"],
            ),
            Case(
                Capability("network:\n  mode: any\n  hosts: [\"a.example:443\"]\n"),
                &["SELU0509 manifest.yaml:4:9", "SELU0510 manifest.yaml:5:3"],
            ),
        ],
    },
    Rule {
        id: "M6",
        passing: &[Capability("x-licence: MIT\n")],
        failing: &[
            Case(
                Capability("resources:\n  max_memory: 64\n"),
                &["SELU0305 manifest.yaml:4:3"],
            ),
            Case(
                Capability("credentials:\n  - {name: KEY, scope: user, requried: false}\n"),
                &["SELU0305 manifest.yaml:4:30"],
            ),
            Case(Capability("hosts: []\n"), &["SELU0306 manifest.yaml:3:1"]),
            Case(
                Capability("licence: MIT\n"),
                &["SELU0307 manifest.yaml:3:1"],
            ),
        ],
    },
    Rule {
        id: "M7",
        passing: &[Capability(
            "class: environment\nresources: {max_memory_mb: 6, max_cpu_fraction: 0.01}\n",
        )],
        failing: &[
            Case(Manifest("id: weather\n"), &["SELU0301 manifest.yaml:1:1"]),
            Case(
                Capability("tools: yes please\n"),
                &["SELU0302 manifest.yaml:3:8"],
            ),
            Case(Capability("class: tol\n"), &["SELU0304 manifest.yaml:3:8"]),
            Case(
                Capability("sharing: {max_concurrent: 0}\n"),
                &["SELU0303 manifest.yaml:3:27"],
            ),
        ],
    },
    Rule {
        id: "C1",
        passing: &[Capability(
            "credentials: [{name: API_KEY, scope: system}, {name: _x1, scope: user}]\n",
        )],
        failing: &[
            Case(
                Capability("credentials:\n  - {name: API-KEY, scope: system}\n"),
                &["SELU0601 manifest.yaml:4:12"],
            ),
            Case(
                Capability("credentials:\n  - {name: LD_PRELOAD, scope: system}\n"),
                &["SELU0602 manifest.yaml:4:12"],
            ),
            Case(
                Capability("credentials:\n  - {name: https_proxy, scope: system}\n"),
                &["SELU0603 manifest.yaml:4:12"],
            ),
            Case(
                Capability(
                    "credentials:\n  - {name: KEY, scope: system}\n  - {name: KEY, scope: user}\n",
                ),
                &["SELU0316 manifest.yaml:5:12"],
            ),
        ],
    },
    Rule {
        id: "R1",
        passing: &[Capability(
            "resources: {max_memory_mb: 6, max_cpu_fraction: 0.01, max_cpu_seconds: 1, pids_limit: 1}\n",
        )],
        failing: &[
            Case(
                Capability("resources:\n  max_memory_mb: 5\n"),
                &["SELU0303 manifest.yaml:4:18"],
            ),
            Case(
                Capability("resources:\n  max_cpu_fraction: 0.009\n"),
                &["SELU0303 manifest.yaml:4:21"],
            ),
            Case(
                Capability("resources:\n  max_cpu_seconds: 0\n"),
                &["SELU0303 manifest.yaml:4:20"],
            ),
            Case(
                Capability("resources:\n  pids_limit: -1\n"),
                &["SELU0303 manifest.yaml:4:15"],
            ),
        ],
    },
    Rule {
        id: "R5",
        passing: &[Capability("resources: {max_cpu_fraction: 0.57}\n")],
        failing: &[Case(
            Capability("resources:\n  max_cpu_fraction: 0.1234567891\n"),
            &["SELU0214 manifest.yaml:4:21"],
        )],
    },
];
