//! Plans in files, as far as no engine is needed.

use crate::Desk;

#[test]
fn show_takes_what_plan_printed_and_refuses_everything_else_with_the_reason() {
    let desk = Desk::with_project();
    let printed = desk.run(&["plan", "--offline"]).exits(0).out;
    let json = desk
        .run(&["plan", "--offline", "--format", "json"])
        .exits(0);
    desk.write("p.json", &json.out);
    assert_eq!(desk.run(&["show", "p.json"]).exits(0).out, printed);
    let again = desk.run(&["show", "p.json", "--format", "json"]).exits(0);
    assert_eq!(again.json(), json.json());

    // A later minor version may know more; what is not known is passed over, and not lost in JSON.
    let mut newer = json.json();
    newer["format_version"] = "1.7".into();
    newer["plan"]["instances"]["weather/api"]["mood"] = "sunny".into();
    desk.write("newer.json", &newer.to_string());
    assert_eq!(desk.run(&["show", "newer.json"]).exits(0).out, printed);
    let shown = desk
        .run(&["show", "newer.json", "--format", "json"])
        .exits(0);
    assert_eq!(shown.json(), newer);
    newer["format_version"] = "2.0".into();
    desk.write("major.json", &newer.to_string());
    desk.run(&["show", "major.json"])
        .exits(1)
        .says("format 2.0");

    desk.write("junk.json", "[1, 2]");
    desk.run(&["show", "junk.json"])
        .exits(1)
        .says("is not a plan");
    desk.run(&["show", "no.json"]).exits(1).says("no.json");
    desk.run(&["apply", "-y", "--plan", "p.json"])
        .exits(1)
        .says("plan --out");
    desk.run(&["apply", "-y", "--plan", "p.json", "--locked"])
        .exits(64);
}

#[test]
fn a_target_limits_what_is_shown_and_a_misspelt_one_is_wrong_usage() {
    let desk = Desk::with_project();
    desk.write("agents/mail/agent.yaml", "id: mail\nname: Mail\n");
    desk.write("agents/mail/agent.md", "Mails.\n");
    desk.write(
        "agents/mail/capabilities/box/manifest.yaml",
        "id: box\nimage: box:1\n",
    );
    let all = desk.run(&["plan", "--offline"]).exits(0).out;
    assert!(all.contains("mail/box") && all.contains("weather/api"));
    for target in ["mail", "mail/box"] {
        let some = desk
            .run(&["plan", "--offline", "--target", target])
            .exits(0);
        assert!(some.out.contains("mail/box"), "{}", some.out);
        assert!(!some.out.contains("weather"), "{}", some.out);
    }
    let both = [
        "plan",
        "--offline",
        "--target",
        "mail",
        "--target",
        "weather",
    ];
    assert_eq!(desk.run(&both).exits(0).out, all);
    desk.run(&["plan", "--offline", "--target", "box"])
        .exits(64)
        .says("there are mail/box, weather/api");
}

#[test]
fn what_has_no_end_prints_no_json_and_pauses_have_bounds() {
    let desk = Desk::with_project();
    for arguments in [
        &["sync", "--every", "15m", "--format", "json"][..],
        &["logs", "api", "--follow", "--format", "json"],
        &["sync", "--every", "1s"],
        &["sync", "--every", "fortnight"],
    ] {
        desk.run(arguments).exits(64);
    }
}

#[test]
fn a_service_without_an_engine_writes_its_metrics_and_ends_well_on_a_signal() {
    use std::io::{BufRead, BufReader};
    let desk = Desk::with_project();
    let mut child = desk
        .command(&["sync", "--every", "1h", "--metrics", "selu.prom"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines {
        let line = line.unwrap();
        said.push_str(&line);
        if line.starts_with("next round in ") {
            break;
        }
    }
    assert!(said.contains("no container engine answered"), "{said}");
    let metrics = std::fs::read_to_string(desk.path().join("selu.prom")).unwrap();
    assert!(
        metrics.contains("selu_sync_failed_rounds_total{project=\"demo\"} 1\n"),
        "{metrics}"
    );
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
