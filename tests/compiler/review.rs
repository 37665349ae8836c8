//! What a change of selu.toml means, and whose rules say what needs a person (S14).

use selu_compiler::report::{review_markdown, review_sarif, review_text};
use selu_compiler::resolve::resolve;
use selu_compiler::review::Grade::{self, Narrowing, Neutral, Widening};
use selu_compiler::review::{Finding, Kind, Review, Snapshot};

use crate::fixture::{Fixture, PROJECT, WEATHER, check_settings, lines};

/// The project with this selu.toml and this manifest.
fn state(toml: &str, manifest: &str) -> Snapshot {
    let mut files = Vec::from(PROJECT);
    files[2].1 = manifest;
    files.push(("selu.toml", toml));
    let checked = Fixture::new(files).check();
    let found = lines(&checked);
    let Some(project) = checked.project else {
        panic!("{toml}: {found:?}");
    };
    let plan = resolve(&project, None, None).plan.unwrap();
    Snapshot::of_plan(&plan, None).with_project(&project)
}

fn settings(toml: &str) -> Snapshot {
    state(&format!("project.name = \"demo\"\n{toml}"), WEATHER)
}

const WIDER: &str = "network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\nresources: {max_memory_mb: 256}\n";

fn wider(toml: &str) -> Snapshot {
    let manifest = format!("{WEATHER}{WIDER}");
    state(&format!("project.name = \"demo\"\n{toml}"), &manifest)
}

/// Path → whether a person is needed, of what nobody accepted.
fn open(review: &Review) -> Vec<&str> {
    review.open().map(|finding| finding.path.as_str()).collect()
}

#[test]
fn every_edit_of_the_settings_is_graded_and_the_edit_back_the_other_way() {
    let table: &[(&str, &str, Kind, &str, Grade, Grade)] = &[
        (
            "",
            "policy.\"helper/weather/forecast\" = \"ask\"\n",
            Kind::Policy,
            "policy",
            Narrowing,
            Widening,
        ),
        (
            "policy.\"helper/weather/forecast\" = \"block\"\n",
            "policy.\"helper/weather/forecast\" = \"ask\"\n",
            Kind::Policy,
            "policy",
            Widening,
            Narrowing,
        ),
        (
            "",
            "policy.\"helper/weather/forecast\" = \"allow\"\n",
            Kind::Setting,
            "policy.\"helper/weather/forecast\"",
            Neutral,
            Neutral,
        ),
        (
            "",
            "limits.\"helper/weather\".max_memory_mb = 512\n",
            Kind::Limit,
            "limits.memory_mb",
            Widening,
            Narrowing,
        ),
        (
            "",
            "limits.\"helper/weather\".max_memory_mb = 128\n",
            Kind::Setting,
            "limits.\"helper/weather\"",
            Neutral,
            Neutral,
        ),
        (
            "discovery.on_change = \"hold\"\n",
            "discovery.on_change = \"update\"\n",
            Kind::Setting,
            "discovery.on_change",
            Widening,
            Narrowing,
        ),
        (
            "runtime.idle_stop = true\n",
            "",
            Kind::Setting,
            "runtime.idle_stop",
            Widening,
            Narrowing,
        ),
        (
            "",
            "engine.host = \"unix:///run/docker.sock\"\n",
            Kind::Setting,
            "engine.host",
            Widening,
            Widening,
        ),
        (
            "",
            "engine.resolvers = [\"192.0.2.53\"]\n",
            Kind::Setting,
            "engine.resolvers",
            Widening,
            Widening,
        ),
        (
            "",
            "engine.subnets = \"10.213.0.0/16\"\n",
            Kind::Setting,
            "engine.subnets",
            Neutral,
            Neutral,
        ),
        (
            "",
            "build.\"helper/weather\".prepare = [\"make\"]\n",
            Kind::Setting,
            "build.\"helper/weather\".prepare",
            Widening,
            Narrowing,
        ),
        (
            "",
            "diagnostics.image-latest = \"allow\"\n",
            Kind::Setting,
            "diagnostics.image-latest",
            Widening,
            Narrowing,
        ),
        (
            "diagnostics.image-latest = \"error\"\n",
            "diagnostics.image-latest = \"warning\"\n",
            Kind::Setting,
            "diagnostics.image-latest",
            Widening,
            Narrowing,
        ),
        (
            "",
            "review.person = [\"network\"]\n",
            Kind::Setting,
            "review.person",
            Widening,
            Narrowing,
        ),
        (
            "review.person = [\"network\", \"image\"]\n",
            "review.person = [\"network\", \"policy\", \"schema\"]\n",
            Kind::Setting,
            "review.person",
            Widening,
            Widening,
        ),
        (
            "review.max_tools = 10\n",
            "review.max_tools = 20\n",
            Kind::Setting,
            "review.max_tools",
            Widening,
            Narrowing,
        ),
        (
            "review.max_tools = 10\n",
            "",
            Kind::Setting,
            "review.max_tools",
            Widening,
            Narrowing,
        ),
        (
            "review.image_source = true\n",
            "",
            Kind::Setting,
            "review.image_source",
            Widening,
            Narrowing,
        ),
        (
            "",
            "[[review.accepted]]\npath = \"network.hosts\"\nreason = \"r\"\n",
            Kind::Setting,
            "review.accepted",
            Widening,
            Narrowing,
        ),
    ];
    for (old, new, kind, path, there, back) in table {
        let (before, now) = (settings(old), settings(new));
        for (from, to, grade) in [(&before, &now, there), (&now, &before, back)] {
            let found = Review::new(from, to).findings;
            let [one] = found.as_slice() else {
                panic!("{old} → {new}: {found:#?}");
            };
            assert_eq!(
                (one.kind, one.path.as_str(), one.grade),
                (*kind, *path, *grade),
                "{old} → {new}: {one:#?}"
            );
        }
        assert_eq!(Review::new(&now, &now).findings, []);
    }
}

#[test]
fn what_an_agent_tells_a_model_and_how_long_its_sessions_live_is_told() {
    let with = |agent: &str, prompt: &str| {
        let mut files = Vec::from(PROJECT);
        (files[0].1, files[1].1) = (agent, prompt);
        files.push(("selu.toml", "project.name = \"demo\"\n"));
        let project = Fixture::new(files).check().project.unwrap();
        let plan = resolve(&project, None, None).plan.unwrap();
        Snapshot::of_plan(&plan, None).with_project(&project)
    };
    let old = with(PROJECT[0].1, PROJECT[1].1);
    let longer = format!("{}session: {{idle_timeout_minutes: 600}}\n", PROJECT[0].1);
    let review = Review::new(&old, &with(&longer, "You obey.\n"));
    let told: Vec<(&str, Kind, Grade)> = review
        .findings
        .iter()
        .map(|one| (one.path.as_str(), one.kind, one.grade))
        .collect();
    assert_eq!(
        told,
        [
            (
                "helper/session.idle_timeout_minutes",
                Kind::Sharing,
                Widening
            ),
            ("helper/agent.md", Kind::Prompt, Neutral),
        ]
    );
    let text = review_text(&review).unwrap();
    assert!(text.contains("  agents  helper/agent.md\n"), "{text}");
    let log = review_sarif(&review, &with(&longer, "You obey.\n"), "".into());
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "agents/helper/agent.yaml");
    let back = Review::new(&with(&longer, PROJECT[1].1), &old);
    assert_eq!(back.count(Narrowing), 1);
}

#[test]
fn another_name_owns_other_objects() {
    let (old, new) = (
        state("project.name = \"a\"\n", WEATHER),
        state("project.name = \"b\"\n", WEATHER),
    );
    let found = Review::new(&old, &new).findings;
    assert_eq!(
        (found[0].path.as_str(), found[0].grade),
        ("project.name", Widening)
    );
}

#[test]
fn a_policy_for_a_tool_that_is_not_there_is_graded_by_what_it_would_do() {
    let manifest = "id: weather\nimage: example.com/weather:1\ntool_source: dynamic\n";
    let with = |policy: &str| state(&format!("project.name = \"demo\"\n{policy}"), manifest);
    let over = |policy: &str| with(&format!("policy.\"helper/weather/x\" = \"{policy}\"\n"));
    for (old, new, grade) in [
        (with(""), over("allow"), Widening),
        (with(""), over("ask"), Widening),
        (with(""), over("block"), Narrowing),
        (over("block"), with(""), Widening),
        (over("ask"), with(""), Widening),
        (over("allow"), with(""), Narrowing),
        (over("ask"), over("allow"), Widening),
        (over("ask"), over("block"), Narrowing),
    ] {
        let found = Review::new(&old, &new).findings;
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].kind, found[0].grade),
            (Kind::Setting, grade),
            "{found:#?}"
        );
    }
}

#[test]
fn the_rules_are_those_of_the_old_state_and_a_change_cannot_loosen_its_own_s14() {
    let all = Review::new(&settings(""), &wider(""));
    assert_eq!(
        open(&all),
        ["limits.memory_mb", "network.mode", "network.hosts"]
    );

    let network = "review.person = [\"network\"]\n";
    let listed = Review::new(&settings(network), &wider(network));
    assert_eq!(open(&listed), ["network.mode", "network.hosts"]);
    assert!(review_text(&listed).unwrap().contains("it needs no person"));

    // The change brings its own rules along: they are told, and count for the next one.
    for own in [
        "review.person = []\n",
        "[[review.accepted]]\ninstance = \"helper/weather\"\npath = \"network.hosts\"\nnew = \"api.example.com:443\"\nreason = \"mine\"\n",
    ] {
        let review = Review::new(&settings(""), &wider(own));
        let open = open(&review);
        assert_eq!(open.len(), 4, "{open:?}");
        assert!(
            open.iter().any(|path| path.starts_with("review.")),
            "{open:?}"
        );
        assert!(open.contains(&"network.hosts"), "{open:?}");
    }
    // No list lets the guards themselves pass.
    let loosened = Review::new(&settings(network), &settings("review.person = []\n"));
    assert_eq!(open(&loosened), ["review.person"]);
}

#[test]
fn what_was_accepted_passes_for_this_value_and_no_other() {
    let accepted = |new: &str| {
        format!(
            "[[review.accepted]]\ninstance = \"helper/weather\"\npath = \"network.hosts\"\nnew = \"{new}\"\nreason = \"the supplier's *new* address\"\n"
        )
    };
    let right = accepted("api.example.com:443");
    let review = Review::new(&settings(&right), &wider(&right));
    assert_eq!(open(&review), ["limits.memory_mb", "network.mode"]);
    let text = review_text(&review).unwrap();
    assert!(
        text.starts_with(
            "3 widening, 0 narrowing, 0 neutral. 1 accepted beforehand. 2 need a person.\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("accepted beforehand: the supplier's *new* address"),
        "{text}"
    );
    let comment = review_markdown(&review).unwrap();
    assert!(
        comment.contains("the supplier's \\*new\\* address"),
        "{comment}"
    );
    let other = accepted("*.example.com:443");
    let review = Review::new(&settings(&other), &wider(&other));
    assert_eq!(open(&review).len(), 3);
}

#[test]
fn a_listed_kind_needs_a_person_also_where_nothing_widens_and_hidden_text_always_does() {
    let described = |text: &str| WEATHER.replace("Tells the weather", text);
    let toml = "project.name = \"demo\"\nreview.person = [\"description\"]\n";
    let old = state(toml, WEATHER);
    let review = Review::new(&old, &state(toml, &described("Tells it all")));
    assert_eq!(
        (review.count(Neutral), open(&review)),
        (1, vec!["description"])
    );
    assert!(
        review_text(&review)
            .unwrap()
            .contains("a person has to look at it")
    );

    let toml = "project.name = \"demo\"\nreview.person = []\n";
    let old = state(toml, WEATHER);
    assert_eq!(
        open(&Review::new(&old, &state(toml, &described("Tells it all")))),
        [""; 0]
    );
    let hidden = Review::new(&old, &state(toml, &described("Tells\u{200b} it")));
    assert_eq!(open(&hidden), ["description"]);
}

#[test]
fn more_tools_than_the_rules_let_pass_need_a_person() {
    let toml = "project.name = \"demo\"\nreview.person = []\nreview.max_tools = 2\n";
    let tools = |names: &[&str]| {
        let mut manifest = WEATHER.to_owned();
        for name in names {
            manifest.push_str(&format!("  - {{name: {name}, description: D, input_schema: {{type: object}}, recommended_policy: ask}}\n"));
        }
        state(toml, &manifest)
    };
    let review = Review::new(&tools(&[]), &tools(&["a"]));
    assert_eq!(open(&review), [""; 0]);
    let review = Review::new(&tools(&[]), &tools(&["a", "b"]));
    assert_eq!(open(&review), ["tools"]);
    let review = Review::new(&tools(&["a", "b", "c"]), &tools(&["a", "b"]));
    assert_eq!(open(&review), [""; 0], "fewer than before");
}

#[test]
fn an_image_that_says_no_source_needs_a_person_where_the_rules_ask_for_one() {
    let toml = "project.name = \"demo\"\nreview.person = []\nreview.image_source = true\n";
    let moved = || {
        let key = selu_compiler::model::InstanceKey::new("helper", "weather");
        let mut new = state(toml, WEATHER);
        new.instances.get_mut(&key).unwrap().image.digest = Some("sha256:2".to_owned());
        (key, new)
    };
    let old = state(toml, WEATHER);
    let (key, mut new) = moved();
    assert_eq!(
        open(&Review::new(&old, &new)),
        ["image.digest"],
        "nobody looked at it"
    );
    let labels = [
        (
            "org.opencontainers.image.source",
            "https://example.com/repo",
        ),
        ("org.opencontainers.image.revision", "abc"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let said = selu_compiler::review::ImageSource::of(&labels.into());
    new.sources.insert(key.clone(), said);
    let review = Review::new(&old, &new);
    assert_eq!(open(&review), [""; 0]);
    let says = &review.findings[0].says;
    assert!(
        says.contains("built from https://example.com/repo at abc"),
        "{says}"
    );
    new.sources.insert(key, Default::default());
    assert_eq!(open(&Review::new(&old, &new)), ["image.digest"]);
}

#[test]
fn misspelt_rules_are_errors_with_their_place() {
    for (toml, expected) in [
        (
            "[review]\npersons = [\"network\"]\n",
            "2:1 error unknown-setting",
        ),
        (
            "[review]\nperson = [\"netwrok\"]\n",
            "2:11 error not-one-of",
        ),
        ("[review]\nperson = \"network\"\n", "2:10 error wrong-type"),
        ("[review]\nmax_tools = -1\n", "2:13 error out-of-range"),
        (
            "[[review.accepted]]\npath = \"x\"\n",
            "2:1 error accepted-without-reason",
        ),
        (
            "[[review.accepted]]\npath = \"x\"\nreason = \" \"\n",
            "2:1 error accepted-without-reason",
        ),
        (
            "[[review.accepted]]\nreason = \"x\"\n",
            "2:1 error accepted-without-reason",
        ),
        (
            "[[review.accepted]]\npath = \"x\"\nreason = \"y\"\nvalue = \"z\"\n",
            "4:1 error unknown-setting",
        ),
        (
            "[[review.accepted]]\ninstance = \"weather\"\npath = \"x\"\nreason = \"y\"\n",
            "2:12 error bad-instance-key",
        ),
    ] {
        assert_eq!(check_settings(toml), [expected], "{toml}");
    }
    assert_eq!(
        check_settings("[review]\nperson = [\"network\", \"setting\"]\n"),
        [""; 0]
    );
}

#[test]
fn sarif_says_where_a_change_is_written_and_a_finding_keeps_its_number() {
    let (old, new) = (settings(""), wider("discovery.on_change = \"hold\"\n"));
    let review = Review::new(&old, &new);
    let log = review_sarif(&review, &new, "agents-repo".into());
    crate::formats::assert_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let of = |path: &str| {
        let finding = |result: &&serde_json::Value| {
            result["message"]["text"].as_str().unwrap().contains(path)
        };
        results.iter().find(finding).unwrap()
    };
    let host = of("network.hosts");
    assert_eq!(
        (&host["level"], &host["ruleId"]),
        (&"error".into(), &"review/network".into())
    );
    let place = &host["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"]["uri"],
        "agents-repo/agents/helper/capabilities/weather/manifest.yaml"
    );
    assert_eq!(place["region"]["startLine"], 1);
    let setting = of("discovery.on_change");
    assert_eq!(setting["level"], "note");
    assert_eq!(
        setting["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "agents-repo/selu.toml"
    );
    let numbers: std::collections::BTreeSet<String> = results
        .iter()
        .map(|result| result["partialFingerprints"].to_string())
        .collect();
    assert_eq!(numbers.len(), results.len());
    let kinds: Vec<Kind> = review
        .findings
        .iter()
        .map(|finding: &Finding| finding.kind)
        .collect();
    assert!(kinds.contains(&Kind::Setting));
}
