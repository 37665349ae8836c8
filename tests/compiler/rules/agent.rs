//! A1–A3 and A5.

use super::{Case, Files::*, Rule};

/// An agent with a capability that has one tool and one credential, and with translations.
const TRANSLATED: &str = "\
agent.yaml:
  id: helper
  name: Helper
  i18n: {default_locale: en, supported_locales: [en, de-AT]}
  install_steps:
    - {id: key, type: input, label: Key, store_as: {scope: user_credential, capability_id: weather, credential_name: KEY}}
  automation: {schedules: [{id: morning, cron_expression: 0 0 7 * * *}]}
agent.md:
  You help.
agent.de.md:
  Du hilfst.
i18n/de.yaml:
  agent: {name: Helfer}
  install_steps: {key: {label: Schlüssel}}
  automation: {schedules: {morning: {label: Morgens}}}
  capabilities:
    weather:
      tools: {get-forecast: {display_name: Wetter}}
      credentials: {KEY: {description: Schlüssel}}
  approval: {tools: {weather__get_forecast: {message: Fragen?}}}
capabilities/weather/manifest.yaml:
  id: weather
  image: a/b:1
  credentials: [{name: KEY, scope: user}]
  tools:
    - {name: get_forecast, description: Tells, input_schema: {type: object}}
";

const MISTRANSLATED: &str = "\
agent.yaml:
  id: helper
  name: Helper
  i18n:
    default_locale: en
    supported_locales: [en, de, fr]
agent.md:
  You help.
agent.de.md:
  Du hilfst.
i18n/de.yaml:
  install_steps:
    key: {label: Schlüssel}
  automation:
    schedules:
      morning: {label: Morgens}
  capabilities:
    wether:
      tools: {}
    weather:
      tools:
        forecast: {display_name: Wetter}
      credentials:
        TOKEN: {description: Schlüssel}
  approval:
    tools:
      weather__forecast: {label: Wetter}
      open__anything: {label: Irgendwas}
capabilities/weather/manifest.yaml:
  id: weather
  image: a/b:1
  credentials: [{name: KEY, scope: user}]
  tools:
    - {name: get_forecast, description: Tells, input_schema: {type: object}}
capabilities/open/manifest.yaml:
  id: open
  image: a/b:1
  tool_source: dynamic
";

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "A1",
        passing: &[
            Tree(TRANSLATED),
            Agent(
                "install_steps:\n  - {id: url, type: input, validation: url, default: \"https://a.example\"}\n  - {id: try, type: test, depends_on: url, request: {method: GET, url: \"{{url}}/health\", expect_status: 200}}\n",
            ),
            Agent(
                "install_steps:\n  - {id: url, type: input}\n  - {id: try, type: test, depends_on: [url], request: {url: \"{{ url }}/health\"}}\n",
            ),
        ],
        failing: &[
            Case(
                Agent(
                    "install_steps:\n  - {id: a, type: test, request: {url: \"https://a.example/{{b}}\"}, depends_on: b}\n  - {id: b, type: test, request: {url: \"https://a.example\"}}\n",
                ),
                &["SELU0805 agent.yaml:4:80"],
            ),
            Case(
                Agent(
                    "install_steps:\n  - id: a\n    type: test\n    depends_on: [a]\n    request: {url: \"https://a.example/{{key}}\"}\n  - id: b\n    type: test\n    request: {url: \"https://a.example/{{a\"}\n",
                ),
                &[
                    "SELU0805 agent.yaml:6:18",
                    "SELU0805 agent.yaml:7:20",
                    "SELU0805 agent.yaml:10:20",
                ],
            ),
            Case(
                Agent(
                    "install_steps:\n  - id: a\n    type: input\n    store_as: {scope: user_credential, capability_id: weather, credential_name: KEY}\n",
                ),
                &["SELU0806 agent.yaml:6:55"],
            ),
            Case(
                Agent("install_steps:\n  - {id: a, type: input}\n  - {id: a, type: test}\n"),
                &[
                    "SELU0808 agent.yaml:4:10",
                    "SELU0804 agent.yaml:5:10",
                    "SELU0808 agent.yaml:5:10",
                ],
            ),
            Case(
                Agent(
                    "install_steps:\n  - {id: a, type: input, validation: url, default: a.example}\n  - {id: b, type: test, default: x, request: {url: \"{{a}}\"}}\n",
                ),
                &["SELU0809 agent.yaml:4:52", "SELU0808 agent.yaml:5:25"],
            ),
        ],
    },
    Rule {
        id: "A2",
        passing: &[Agent(
            "automation:\n  schedules:\n    - {id: a, cron_expression: 0 0 7 * * 0}\n    - {id: b, cron_expression: 0 0 7 * * 7}\n    - {id: c, cron_expression: 0 */5 8-18 1 JAN MON-FRI}\n",
        )],
        failing: &[
            Case(
                Agent("automation:\n  schedules:\n    - {id: a, cron_expression: 0 7 * * *}\n"),
                &["SELU0807 agent.yaml:5:32"],
            ),
            Case(
                Agent(
                    "automation:\n  schedules:\n    - id: a\n      cron_expression: 0 0 7 * * 8\n",
                ),
                &["SELU0807 agent.yaml:6:24"],
            ),
        ],
    },
    Rule {
        id: "A3",
        passing: &[Tree(TRANSLATED)],
        failing: &[
            Case(
                Tree(MISTRANSLATED),
                &[
                    "SELU0810 agent.yaml:5:31",
                    "SELU0811 i18n/de.yaml:2:3",
                    "SELU0811 i18n/de.yaml:5:5",
                    "SELU0811 i18n/de.yaml:7:3",
                    "SELU0811 i18n/de.yaml:11:7",
                    "SELU0811 i18n/de.yaml:13:7",
                    "SELU0811 i18n/de.yaml:16:5",
                ],
            ),
            Case(
                Agent("i18n: {default_locale: en, supported_locales: [de, de]}\n"),
                &[
                    "SELU0810 agent.yaml:3:24",
                    "SELU0810 agent.yaml:3:48",
                    "SELU0810 agent.yaml:3:52",
                ],
            ),
        ],
    },
    Rule {
        id: "A5",
        passing: &[Tree(TRANSLATED), Agent("")],
        failing: &[Case(
            Tree(
                "agent.yaml:\n  id: helper\n  name: Helper\ncapabilities/weather/manifest.yaml:\n  id: weather\n  image: a/b:1\n",
            ),
            &["SELU0114 agent.yaml:1:5"],
        )],
    },
];
