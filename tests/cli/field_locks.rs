//! Scenarios of locks and plans from bug reports of other projects, as far as no engine is needed: each test named by the
//! scenario's id.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::{Desk, project_lock};

/// A desk whose lock fits.
fn locked() -> Desk {
    let desk = Desk::with_project();
    desk.write("selu.lock", &project_lock("1"));
    desk.run(&["lock", "--check"]).exits(0);
    desk
}

/// Runs a command that must leave the lock alone, its time stamp too.
fn untouched(desk: &Desk, arguments: &[&str], code: i32) -> crate::Ran {
    let path = desk.path().join("selu.lock");
    let before = fs::read(&path).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(old).unwrap();
    let ran = desk.run(arguments).exits(code);
    assert_eq!(fs::read(&path).unwrap(), before, "{arguments:?}");
    let now = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(now, old, "{arguments:?}");
    ran
}

#[test]
fn g10_order_is_no_change_and_twenty_runs_give_the_same_bytes() {
    let desk = Desk::with_project();
    let tool = |name: &str| {
        format!(
            "  - {{name: {name}, description: x, recommended_policy: ask, input_schema: {{type: object}}}}\n"
        )
    };
    let write = |tools: [&str; 2], hosts: &str, credentials: &str| {
        let text = format!(
            "id: api\nimage: weather:1\nnetwork: {{mode: allowlist, hosts: [{hosts}]}}\ncredentials: [{credentials}]\ntools:\n{}{}",
            tool(tools[0]),
            tool(tools[1])
        );
        desk.write("agents/weather/capabilities/api/manifest.yaml", &text);
    };
    // Where something is written moves with it; what is planned does not.
    let planned = || {
        let ran = desk
            .run(&["plan", "--offline", "--format", "json"])
            .exits(0);
        let mut value = ran.json();
        strip_origins(&mut value);
        value
    };
    let (a, b) = ("{name: A_KEY, scope: system}", "{name: B_KEY, scope: user}");
    write(
        ["one", "two"],
        "\"a.example:1\", \"b.example:2\"",
        &format!("{a}, {b}"),
    );
    let first = planned();
    let bytes = desk.run(&["plan", "--offline", "--format", "json"]).out;
    for _ in 0..20 {
        assert_eq!(
            desk.run(&["plan", "--offline", "--format", "json"]).out,
            bytes
        );
    }
    write(
        ["two", "one"],
        "\"b.example:2\", \"a.example:1\"",
        &format!("{b}, {a}"),
    );
    assert_eq!(planned(), first);
}

fn strip_origins(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            map.remove("origin");
            map.values_mut().for_each(strip_origins);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip_origins),
        _ => {}
    }
}

#[test]
fn h02_a_stale_lock_is_no_success_and_stays_as_it_is() {
    let desk = locked();
    desk.write(
        "agents/weather/capabilities/api/manifest.yaml",
        "id: api\nimage: weather:2\ntools:\n  - name: forecast\n    description: Tells it\n    recommended_policy: allow\n    input_schema: {type: object}\n",
    );
    for arguments in [
        &["lock", "--check"][..],
        &["apply", "-y", "--locked"],
        &["apply", "-y", "--frozen"],
    ] {
        let ran = untouched(&desk, arguments, 2);
        assert!(
            ran.out.contains(
                "image.written is `weather:1` in the lock but `weather:2` in the directory"
            ),
            "{}",
            ran.out
        );
    }
}

#[test]
fn h03_what_binds_the_lock_and_what_needs_no_network_are_told_apart() {
    let desk = locked();
    // A full lock: neither registry nor engine is there, and none is missed.
    untouched(&desk, &["plan", "--offline"], 0);
    untouched(&desk, &["lock", "--check"], 0);
    let plan = untouched(&desk, &["plan", "--offline", "--format", "json"], 0).json();
    let digest = &plan["plan"]["instances"]["weather/api"]["image"]["digest"];
    assert_eq!(digest.as_str().unwrap().len(), 71, "the lock pins it");
    // A fitting lock is not what stops these.
    for arguments in [
        &["apply", "-y", "--locked"][..],
        &["apply", "-y", "--frozen"],
        &["apply", "-y", "--locked", "--frozen"],
    ] {
        untouched(&desk, arguments, 1).says("no container engine answered");
    }
    // A stale one is not what stops this.
    desk.manifest("resources: {pids_limit: 9}\n");
    untouched(&desk, &["plan", "--offline"], 0);
    untouched(&desk, &["apply", "-y", "--frozen"], 2);
}

#[test]
fn h05_what_a_textual_merge_left_is_named_and_never_mended_in_silence() {
    let desk = locked();
    let text = project_lock("1");
    let entry = &text[text.find("\n[instance").unwrap()..];
    desk.write("selu.lock", &format!("{text}{entry}"));
    let ran = untouched(&desk, &["lock", "--check"], 1);
    let ran = ran.says("SELU1001").says("selu.lock:33");
    assert!(
        ran.err.contains("weather/api") || ran.err.contains("duplicate"),
        "{}",
        ran.err
    );

    let gone = entry.replace("weather/api", "weather/gone");
    desk.write("selu.lock", &format!("{text}{gone}"));
    let ran = untouched(&desk, &["lock", "--check"], 2);
    assert!(
        ran.out
            .contains("`weather/gone` is in the lock but not in the directory"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("selu.lock:33"), "{}", ran.out);
    assert!(
        !text.contains("checksum") && !text.contains("generated"),
        "nothing global"
    );
}

#[test]
fn h08_versions_are_read_before_anything_else_and_nothing_is_written() {
    let desk = Desk::with_project();
    for (text, said) in [
        ("version = 99\n[future]\nx = { y = 1 }\n", "SELU1004"),
        ("version = 99\nnew: syntax\n", "SELU1004"),
        ("version = \"1\"\n", "SELU1003"),
        ("[instance]\n", "SELU1003"),
    ] {
        desk.write("selu.lock", text);
        for arguments in [
            &["lock", "--check"][..],
            &["plan", "--offline"],
            &["apply", "-y", "--locked"],
            &["lock", "--migrate"],
        ] {
            untouched(&desk, arguments, 1).says(said);
        }
    }
}

#[test]
fn h08_g09_a_field_of_a_newer_version_is_named_with_its_line_and_neither_dropped_nor_rewritten() {
    let desk = locked();
    let lock = desk.read("selu.lock");
    let later = lock.replacen(
        "\ncache = false\n",
        "\ncache = false\ncheckpoint = \"never\"\n",
        1,
    );
    assert_ne!(later, lock);
    let line = 1 + later
        .lines()
        .position(|line| line.starts_with("checkpoint"))
        .unwrap();
    desk.write("selu.lock", &later);
    for arguments in [
        &["lock", "--check"][..],
        &["plan", "--offline"],
        &["apply", "-y", "--locked"],
        &["lock", "--migrate"],
    ] {
        let mut run = untouched(&desk, arguments, 1);
        for said in [
            "SELU1001",
            "unknown field `checkpoint`",
            &format!("selu.lock:{line}:1"),
            "newer one",
        ] {
            run = run.says(said);
        }
    }
}

#[test]
fn h12_the_way_to_the_project_leaves_no_trace() {
    let desk = locked();
    let plain = desk
        .run(&["plan", "--offline", "--format", "json"])
        .exits(0)
        .out;
    std::os::unix::fs::symlink(desk.path(), desk.path().join("way")).unwrap();
    let whole = desk.path().display().to_string();
    for way in ["./", "way", "way/", whole.as_str()] {
        let ran = desk
            .run(&["plan", "--offline", way, "--format", "json"])
            .exits(0);
        assert_eq!(ran.out, plain, "{way}");
        desk.run(&["lock", "--check", way]).exits(0);
    }
}
