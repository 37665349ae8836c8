//! L1–L4, and I0–I2 and P5, which are about what an image is made of.

use super::{Case, Files::*, Rule};
use crate::fixture::{Fixture, PROJECT};

const PROJECT_TREE: &str = "\
agents/helper/agent.yaml:
  id: helper
  name: Helper
agents/helper/agent.md:
  You help.
agents/helper/capabilities/weather/manifest.yaml:
  id: weather
  image: example.com/weather:1
";

fn too_large() -> Fixture {
    let fixture = Fixture::new([]);
    fixture.write("manifest.yaml", &vec![b'#'; 8 * 1024 * 1024 + 1]);
    fixture
}

fn latin_1() -> Fixture {
    let fixture = Fixture::new([]);
    fixture.write("manifest.yaml", b"id: weather\nimage: w\xfcrfel:1\n");
    fixture
}

fn a_folder_for_a_file() -> Fixture {
    let fixture = Fixture::new(PROJECT);
    fixture.write("agents/other/agent.yaml/x", b"");
    fixture
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "L1",
        passing: &[
            Tree(PROJECT_TREE),
            Agent(""),
            Capability(""),
            Settings("[project]\nname = \"home\"\n"),
        ],
        failing: &[
            Case(Tree("notes.txt:\n  hello\n"), &["SELU0101 :0:0"]),
            Case(
                Tree(
                    "agent.yaml:\n  id: helper\n  name: Helper\nmanifest.yaml:\n  id: weather\n  image: a/b:1\n",
                ),
                &["SELU0102 :0:0"],
            ),
            Case(Tree("selu.toml:\n  [project]\n"), &["SELU0112 agents:0:0"]),
        ],
    },
    Rule {
        id: "L2",
        passing: &[Tree(
            "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\n  capabilities: [{id: files}]\nagents/helper/agent.md:\n  You help.\ncapabilities/files/manifest.yaml:\n  id: files\n  image: a/b:1\n",
        )],
        failing: &[
            Case(
                Agent("capabilities:\n  - id: wether\n"),
                &["SELU0801 agent.yaml:4:9"],
            ),
            Case(
                Tree(
                    "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\ncapabilities/files/manifest.yaml:\n  id: files\n  image: a/b:1\n",
                ),
                &["SELU0113 capabilities/files/manifest.yaml:1:5"],
            ),
        ],
    },
    Rule {
        id: "L3",
        passing: &[
            Tree(PROJECT_TREE),
            Tree(
                "agents/a/agent.yaml:\n  id: a\n  name: A\nagents/a/agent.md:\n  You help.\nagents/a/capabilities/files/manifest.yaml:\n  id: files\n  image: a/b:1\nagents/b/agent.yaml:\n  id: b\n  name: B\nagents/b/agent.md:\n  You help.\nagents/b/capabilities/files/manifest.yaml:\n  id: files\n  image: a/b:1\n",
            ),
        ],
        failing: &[
            Case(
                Tree(
                    "agents/a/agent.yaml:\n  id: a\n  name: A\nagents/b/agent.yaml:\n  id: a\n  name: B\n",
                ),
                &[
                    "SELU0111 agents/b/agent.yaml:1:5",
                    "SELU0803 agents/b/agent.yaml:1:5",
                ],
            ),
            Case(
                Tree(
                    "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\n  capabilities:\n    - id: files\nagents/helper/agent.md:\n  You help.\nagents/helper/capabilities/files/manifest.yaml:\n  id: files\n  image: a/b:1\ncapabilities/files/manifest.yaml:\n  id: files\n  image: a/b:2\n",
                ),
                &["SELU0802 agents/helper/agent.yaml:4:9"],
            ),
            Case(
                Manifest("id: Weather\nimage: a/b:1\n"),
                &["SELU0308 manifest.yaml:1:5"],
            ),
            Case(
                Settings("[policy]\n\"helper/weather\" = \"ask\"\n"),
                &["SELU0903 selu.toml:2:1"],
            ),
        ],
    },
    Rule {
        id: "L4",
        passing: &[
            Tree(PROJECT_TREE),
            Tree(
                "agent.yaml:\n  id: helper\n  name: Helper\n.git/x:\n  [\nnode_modules/x:\n  [\nagent.yaml~:\n  [\n",
            ),
        ],
        failing: &[
            Case(
                Tree("agents/other/agent.yaml:\n  id: helper\n  name: Helper\n"),
                &["SELU0111 agents/other/agent.yaml:1:5"],
            ),
            Case(
                Tree(
                    "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/helper/agent.md:\n  You help.\nagents/helper/capabilities/files/prompt.md:\n  Ask.\n",
                ),
                &["SELU0103 agents/helper/capabilities/files:0:0"],
            ),
            Case(
                Tree("agents/helper/notes.md:\n  hello\n"),
                &["SELU0104 agents/helper:0:0"],
            ),
            Case(
                Tree("agents/helper/agent.yml:\n  id: helper\n  name: Helper\n"),
                &["SELU0115 agents/helper/agent.yml:0:0"],
            ),
            Case(
                Tree(
                    "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/old.yaml:\n  id: old\n",
                ),
                &["SELU0116 agents/old.yaml:0:0"],
            ),
            Case(
                Tree(
                    "manifest.yaml:\n  id: weather\n  image: a/b:1\ncontainer/x -> ../../elsewhere\n",
                ),
                &["SELU0110 container/x:0:0"],
            ),
            Case(
                Tree("agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/loop -> .\n"),
                &["SELU0106 agents/loop:0:0"],
            ),
            Case(Made(too_large), &["SELU0109 manifest.yaml:0:0"]),
            Case(Made(latin_1), &["SELU0107 manifest.yaml:2:9"]),
            Case(
                Made(a_folder_for_a_file),
                &["SELU0108 agents/other/agent.yaml:0:0"],
            ),
        ],
    },
    Rule {
        id: "I0",
        passing: &[Manifest("id: weather\nimage: ghcr.io/acme/weather:1.0\n")],
        failing: &[Case(
            Manifest("id: weather\nimage: \"@acme/weather:1.0.0\"\n"),
            &["SELU0701 manifest.yaml:2:8"],
        )],
    },
    Rule {
        id: "I1",
        passing: &[
            Manifest("id: weather\nimage: registry.example.com:5000/a/b_c/d-e:1.0_x\n"),
            Manifest(
                "id: weather\nimage: a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
            ),
        ],
        failing: &[
            Case(
                Manifest("id: weather\nimage: acme/Weather:1\n"),
                &["SELU0701 manifest.yaml:2:8"],
            ),
            Case(
                Manifest("id: weather\nimage: \"acme/weather:\"\n"),
                &["SELU0701 manifest.yaml:2:8"],
            ),
            Case(
                Manifest("id: weather\nimage: acme/weather@sha256:12\n"),
                &["SELU0701 manifest.yaml:2:8"],
            ),
        ],
    },
    Rule {
        id: "I2",
        passing: &[Manifest("id: weather\nimage: acme/weather:1.0\n")],
        failing: &[
            Case(
                Manifest("id: weather\nimage: acme/weather\n"),
                &["SELU0702 manifest.yaml:2:8"],
            ),
            Case(
                Manifest("id: weather\nimage: acme/weather:latest\n"),
                &["SELU0703 manifest.yaml:2:8"],
            ),
        ],
    },
    Rule {
        id: "P5",
        passing: &[Tree(
            "manifest.yaml:\n  id: weather\n  image: a/b:1\ncontainer/Dockerfile:\n  FROM node:22.1.0\n  ARG V=1.2.3\n  RUN npm install weather@${V} && pip install -r requirements.txt\ncontainer/requirements.txt:\n  grpcio==1.70.0\n",
        )],
        failing: &[
            Case(
                Tree(
                    "manifest.yaml:\n  id: weather\n  image: a/b:1\ncontainer/Dockerfile:\n  FROM node:22.1.0\n  ARG V=latest\n  RUN npm install weather@${V}\ncontainer/requirements.txt:\n  # one of them\n  grpcio\n",
                ),
                &[
                    "SELU0710 container/Dockerfile:3:17",
                    "SELU0710 container/requirements.txt:2:1",
                ],
            ),
            Case(
                Tree(
                    "manifest.yaml:\n  id: weather\n  image: a/b:1\nDockerfile:\n  FROM node:22.1.0\n  CMD [\"npx\", \"-y\", \"weather\"]\n",
                ),
                &["SELU0710 Dockerfile:2:20"],
            ),
        ],
    },
];
