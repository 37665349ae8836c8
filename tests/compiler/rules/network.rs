//! N1–N6 and N9. What is enforced while a container runs is listed with the runtime's tests.

use super::{Case, Files::*, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "N1",
        passing: &[
            Capability("network: {mode: none}\n"),
            Capability("network: {mode: any}\n"),
        ],
        failing: &[Case(
            Capability("network:\n  mode: all\n"),
            &["SELU0304 manifest.yaml:4:9"],
        )],
    },
    Rule {
        id: "N2",
        passing: &[Capability(
            "network:\n  mode: allowlist\n  hosts: [\"a.example:443\", \"*.b.example:443\", \"[2001:db8::1]:443\"]\n",
        )],
        failing: &[Case(
            Capability("network:\n  mode: allowlist\n  hosts: [\"2001:db8::1\", \"a.example\"]\n"),
            &["SELU0501 manifest.yaml:5:11", "SELU0507 manifest.yaml:5:26"],
        )],
    },
    Rule {
        id: "N3",
        passing: &[Capability(
            "network:\n  mode: allowlist\n  hosts: [\"*.a.example:443\", \"a.example:443\"]\n",
        )],
        failing: &[
            Case(
                Capability("network:\n  mode: allowlist\n  hosts: [\"a.*.example:443\"]\n"),
                &["SELU0504 manifest.yaml:5:11"],
            ),
            Case(
                Capability("network:\n  mode: allowlist\n  hosts: [\"*:443\"]\n"),
                &["SELU0503 manifest.yaml:5:11"],
            ),
        ],
    },
    Rule {
        id: "N4",
        passing: &[Capability(
            "network:\n  mode: allowlist\n  hosts: [\"BÜCHER.example:443\", \"other.example.:443\"]\n",
        )],
        failing: &[Case(
            Capability(
                "network:\n  mode: allowlist\n  hosts:\n    - \"bücher.example:443\"\n    - \"XN--BCHER-KVA.example.:443\"\n",
            ),
            &["SELU0508 manifest.yaml:7:7"],
        )],
    },
    Rule {
        id: "N5",
        passing: &[Capability(
            "network:\n  mode: allowlist\n  hosts: [\"a.example:443\", \"*.acme.github.io:443\"]\n",
        )],
        failing: &[
            Case(
                Capability(
                    "network:\n  mode: allowlist\n  hosts:\n    - https://a.example/v1\n    - user@a.example:443\n    - a.example:https\n    - a.example:0\n    - a.example:80-90\n    - \"*\"\n    - .a.example:443\n    - \"\"\n    - a b:443\n",
                ),
                &[
                    "SELU0501 manifest.yaml:6:7",
                    "SELU0501 manifest.yaml:7:7",
                    "SELU0502 manifest.yaml:8:7",
                    "SELU0502 manifest.yaml:9:7",
                    "SELU0502 manifest.yaml:10:7",
                    "SELU0503 manifest.yaml:11:7",
                    "SELU0504 manifest.yaml:12:7",
                    "SELU0501 manifest.yaml:13:7",
                    "SELU0501 manifest.yaml:14:7",
                ],
            ),
            Case(
                Capability(
                    "network:\n  mode: allowlist\n  hosts:\n    - localhost:80\n    - \"*.co.uk:443\"\n    - \"*.github.io:443\"\n    - a.example\n",
                ),
                &[
                    "SELU0505 manifest.yaml:6:7",
                    "SELU0506 manifest.yaml:7:7",
                    "SELU0513 manifest.yaml:8:7",
                    "SELU0507 manifest.yaml:9:7",
                ],
            ),
        ],
    },
    Rule {
        id: "N6",
        passing: &[Capability(
            "network:\n  mode: allowlist\n  hosts: [\"b.example:443\", \"a.example:443\"]\n",
        )],
        failing: &[Case(
            Capability(
                "network:\n  mode: allowlist\n  hosts: [\"*.example.com:443\", \"a.example.com:443\"]\n",
            ),
            &["SELU0508 manifest.yaml:5:32"],
        )],
    },
    Rule {
        id: "N9",
        passing: &[Capability("network: {mode: none}\n")],
        failing: &[Case(
            Capability("network:\n  mode: any\n"),
            &["SELU0509 manifest.yaml:4:9"],
        )],
    },
];
