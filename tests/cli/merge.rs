//! Two branches that both change selu.lock: by git alone, and by the driver. A merge is right, or a clear conflict.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use selu_compiler::lock::{
    Lock, LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool, ToolOrigin,
};
use selu_compiler::model::{
    Class, CredentialScope, Filesystem, InstanceKey, Limits, Network, NetworkMode, Policy, Sharing,
    SharingMode,
};
use selu_compiler::plan::{ImageKind, PolicyOrigin};

use super::Desk;

/// A change to a lock, as a branch makes it.
type Edit = fn(&mut Lock);

/// What the driver makes of two branches.
enum Then {
    /// Both changes, as if one had been made after the other.
    Both,
    /// A conflict that names this.
    Clash(&'static str),
}

fn key(text: &str) -> InstanceKey {
    InstanceKey::parse(text).unwrap()
}

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn tool(description: &str, source: ToolOrigin) -> LockedTool {
    LockedTool {
        source,
        policy: Policy::Ask,
        policy_origin: match source {
            ToolOrigin::Manifest => PolicyOrigin::Manifest,
            ToolOrigin::Discovered => PolicyOrigin::Discovered,
        },
        recommended: None,
        description: description.to_owned(),
        input_schema: serde_json::json!({
            "type": "object",
            "properties": { "city": { "type": "string" } },
            "required": ["city"],
        }),
        terminal_on_success: false,
    }
}

fn instance(name: &str) -> LockedInstance {
    LockedInstance {
        image: LockedImage {
            written: format!("ghcr.io/acme/{name}:1"),
            kind: ImageKind::Registry,
            digest: Some(digest('a')),
            source: None,
        },
        class: Class::Tool,
        filesystem: Filesystem::None,
        cache: false,
        sharing: Sharing {
            mode: SharingMode::Exclusive,
            max_concurrent: 1,
            idle_timeout_seconds: 300,
        },
        limits: Limits {
            memory_mb: 128,
            nano_cpus: 500_000_000,
            cpu_seconds: 30,
            pids: 64,
        },
        network: Network {
            mode: NetworkMode::Allowlist,
            hosts: vec!["b.example.com:443".to_owned(), "m.example.com".to_owned()],
        },
        credentials: BTreeMap::from([(
            "API_KEY".to_owned(),
            LockedCredential {
                scope: CredentialScope::System,
                required: true,
            },
        )]),
        prompts: BTreeMap::from([("prompt.md".to_owned(), digest('b'))]),
        discovery: None,
        tools: BTreeMap::from([
            (
                "forecast".to_owned(),
                tool("Tells it", ToolOrigin::Manifest),
            ),
            ("warn".to_owned(), tool("Warns of it", ToolOrigin::Manifest)),
        ]),
    }
}

fn dynamic(name: &str) -> LockedInstance {
    let mut instance = instance(name);
    instance.discovery = Some(LockedDiscovery {
        tool: "list_tools".to_owned(),
        credentials_present: Some(vec!["API_KEY".to_owned()]),
    });
    for tool in instance.tools.values_mut() {
        tool.source = ToolOrigin::Discovered;
        tool.policy_origin = PolicyOrigin::Discovered;
    }
    instance
}

fn base() -> Lock {
    let mut lock = Lock::default();
    for name in ["home/alpha", "home/delta", "home/kilo", "work/papa"] {
        add(&mut lock, name);
    }
    lock.instances.insert(key("work/zulu"), dynamic("zulu"));
    lock
}

fn add(lock: &mut Lock, name: &str) {
    let key = key(name);
    let instance = instance(key.capability());
    lock.instances.insert(key, instance);
}

fn at<'a>(lock: &'a mut Lock, name: &str) -> &'a mut LockedInstance {
    lock.instances.get_mut(&key(name)).unwrap()
}

fn tool_at<'a>(lock: &'a mut Lock, name: &str, tool: &str) -> &'a mut LockedTool {
    at(lock, name).tools.get_mut(tool).unwrap()
}

fn remove(lock: &mut Lock, name: &str) {
    lock.instances.remove(&key(name)).unwrap();
}

/// Idempotent where both branches may do the same.
fn upgrade(lock: &mut Lock, name: &str, digit: char) {
    at(lock, name).image.digest = Some(digest(digit));
}

fn host(lock: &mut Lock, name: &str, host: &str) {
    let hosts = &mut at(lock, name).network.hosts;
    hosts.push(host.to_owned());
    hosts.sort();
    hosts.dedup();
}

/// Name, one branch, the other one, and what is right.
fn merges() -> Vec<(&'static str, Edit, Edit, Then)> {
    use Then::{Both, Clash};
    vec![
        (
            "add far apart",
            |l| add(l, "home/bravo"),
            |l| add(l, "work/xray"),
            Both,
        ),
        (
            "add side by side",
            |l| add(l, "home/bravo"),
            |l| add(l, "home/charlie"),
            Both,
        ),
        (
            "add side by side, the other way round",
            |l| add(l, "home/charlie"),
            |l| add(l, "home/bravo"),
            Both,
        ),
        (
            "add at the top and at the end",
            |l| add(l, "aaa/aaa"),
            |l| add(l, "zzz/zzz"),
            Both,
        ),
        (
            "add at the end twice",
            |l| add(l, "zzz/yyy"),
            |l| add(l, "zzz/zzz"),
            Both,
        ),
        (
            "add the same alike",
            |l| add(l, "home/bravo"),
            |l| add(l, "home/bravo"),
            Both,
        ),
        (
            "add the same otherwise",
            |l| add(l, "home/bravo"),
            |l| {
                add(l, "home/bravo");
                upgrade(l, "home/bravo", 'c');
            },
            Clash("home/bravo"),
        ),
        (
            "remove two",
            |l| remove(l, "home/alpha"),
            |l| remove(l, "work/papa"),
            Both,
        ),
        (
            "remove two neighbours",
            |l| remove(l, "home/alpha"),
            |l| remove(l, "home/delta"),
            Both,
        ),
        (
            "remove the same",
            |l| remove(l, "home/delta"),
            |l| remove(l, "home/delta"),
            Both,
        ),
        (
            "remove one, add its neighbour",
            |l| remove(l, "home/delta"),
            |l| add(l, "home/echo"),
            Both,
        ),
        (
            "remove one, change its neighbour",
            |l| remove(l, "home/delta"),
            |l| at(l, "home/kilo").limits.memory_mb = 256,
            Both,
        ),
        (
            "remove what the other changed",
            |l| remove(l, "home/delta"),
            |l| at(l, "home/delta").limits.memory_mb = 256,
            Clash("home/delta"),
        ),
        (
            "change what the other removed",
            |l| upgrade(l, "home/delta", 'c'),
            |l| remove(l, "home/delta"),
            Clash("home/delta"),
        ),
        (
            "change two instances",
            |l| upgrade(l, "home/alpha", 'c'),
            |l| upgrade(l, "home/kilo", 'd'),
            Both,
        ),
        (
            "change the same alike",
            |l| upgrade(l, "home/alpha", 'c'),
            |l| upgrade(l, "home/alpha", 'c'),
            Both,
        ),
        (
            "upgrade the same image otherwise",
            |l| upgrade(l, "home/alpha", 'c'),
            |l| upgrade(l, "home/alpha", 'd'),
            Clash("home/alpha: both sides changed image"),
        ),
        (
            "two fields of one instance",
            |l| at(l, "home/alpha").limits.memory_mb = 256,
            |l| at(l, "home/alpha").cache = true,
            Both,
        ),
        (
            "two neighbouring limits",
            |l| at(l, "home/alpha").limits.memory_mb = 256,
            |l| at(l, "home/alpha").limits.nano_cpus = 1_000_000_000,
            Both,
        ),
        (
            "the same limit otherwise",
            |l| at(l, "home/alpha").limits.pids = 1,
            |l| at(l, "home/alpha").limits.pids = 2,
            Clash("home/alpha: both sides changed limits.pids"),
        ),
        (
            "two hosts side by side",
            |l| host(l, "home/alpha", "c.example.com"),
            |l| host(l, "home/alpha", "d.example.com"),
            Both,
        ),
        (
            "a host more, a host less",
            |l| host(l, "home/alpha", "c.example.com"),
            |l| {
                at(l, "home/alpha")
                    .network
                    .hosts
                    .retain(|h| h != "b.example.com:443")
            },
            Both,
        ),
        (
            "a host more, no network at all",
            |l| host(l, "home/alpha", "c.example.com"),
            |l| {
                at(l, "home/alpha").network = Network {
                    mode: NetworkMode::None,
                    hosts: Vec::new(),
                }
            },
            Clash("home/alpha: both sides changed network"),
        ),
        (
            "two tools of one manifest",
            |l| tool_at(l, "home/kilo", "forecast").description = "Tells all".to_owned(),
            |l| tool_at(l, "home/kilo", "warn").policy = Policy::Block,
            Both,
        ),
        (
            "a policy against another definition",
            |l| tool_at(l, "home/kilo", "forecast").policy = Policy::Allow,
            |l| {
                tool_at(l, "home/kilo", "forecast").description = "Sends your files away".to_owned()
            },
            Clash("home/kilo: both sides changed the tool forecast"),
        ),
        (
            "remove a tool, add another one",
            |l| {
                at(l, "home/kilo").tools.remove("forecast");
            },
            |l| {
                at(l, "home/kilo")
                    .tools
                    .insert("grow".to_owned(), tool("Grows", ToolOrigin::Manifest));
            },
            Both,
        ),
        (
            "discover otherwise on both sides",
            |l| {
                at(l, "work/zulu")
                    .tools
                    .insert("a".to_owned(), tool("A", ToolOrigin::Discovered));
            },
            |l| {
                at(l, "work/zulu").tools.remove("warn");
            },
            Clash("work/zulu: both sides discovered"),
        ),
        (
            "another image and another list of tools",
            |l| upgrade(l, "work/zulu", 'c'),
            |l| tool_at(l, "work/zulu", "warn").description = "Warns of all".to_owned(),
            Clash("work/zulu: both sides discovered"),
        ),
        (
            "discover on one side, a policy on the other",
            |l| tool_at(l, "work/zulu", "warn").description = "Warns of all".to_owned(),
            |l| tool_at(l, "work/zulu", "forecast").policy = Policy::Block,
            Both,
        ),
        (
            "add, change and remove on both sides",
            |l| {
                add(l, "home/bravo");
                upgrade(l, "home/kilo", 'c');
                remove(l, "work/papa");
            },
            |l| {
                add(l, "home/bravo");
                add(l, "work/quebec");
                at(l, "home/kilo").limits.pids = 32;
                remove(l, "home/alpha");
            },
            Both,
        ),
        (
            "the same tool otherwise, and something else",
            |l| {
                tool_at(l, "home/kilo", "warn").description = "One".to_owned();
                add(l, "work/romeo");
            },
            |l| {
                tool_at(l, "home/kilo", "warn").description = "Two".to_owned();
                remove(l, "home/alpha");
            },
            Clash("home/kilo: both sides changed the tool warn"),
        ),
    ]
}

fn git(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["-c", "commit.gpgSign=false", "-c", "core.autocrlf=false"])
        .args(arguments)
        .output()
        .unwrap()
}

fn done(folder: &Path, arguments: &[&str]) {
    let ran = git(folder, arguments);
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
}

/// A repository with a branch for each side, on ours.
fn repository(ours: Edit, theirs: Edit, driver: bool) -> Desk {
    let desk = Desk::new();
    let folder = desk.path();
    let commit = |lock: &Lock| {
        desk.write("selu.lock", &lock.write(None));
        done(folder, &["add", "--all"]);
        // A side that changes nothing would be no merge.
        done(folder, &["commit", "--quiet", "--message", "x"]);
    };
    done(folder, &["init", "--quiet", "--initial-branch", "main"]);
    if driver {
        desk.run(&["git", "install"]).exits(0);
    }
    commit(&base());
    let side = |name: &str, edit: Edit| {
        done(folder, &["checkout", "--quiet", "-b", name, "main"]);
        let mut lock = base();
        edit(&mut lock);
        commit(&lock);
    };
    side("theirs", theirs);
    side("ours", ours);
    desk
}

/// Whether git says that it is merged, and what lies there then.
fn merge(desk: &Desk) -> (bool, String, String) {
    let ran = git(desk.path(), &["merge", "--quiet", "--no-edit", "theirs"]);
    let text = std::fs::read_to_string(desk.path().join("selu.lock")).unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    (ran.status.success(), text, said)
}

fn both(ours: Edit, theirs: Edit) -> Lock {
    let mut lock = base();
    ours(&mut lock);
    // What one branch removed the other one cannot remove again.
    let mut other = base();
    theirs(&mut other);
    let before = base();
    for name in before.instances.keys() {
        if !other.instances.contains_key(name) {
            lock.instances.remove(name);
        }
    }
    let removed: Vec<InstanceKey> = base()
        .instances
        .keys()
        .filter(|name| !lock.instances.contains_key(*name))
        .cloned()
        .collect();
    for name in &removed {
        lock.instances
            .insert(name.clone(), before.instances[name].clone());
    }
    theirs(&mut lock);
    for name in &removed {
        lock.instances.remove(name);
    }
    lock
}

#[test]
fn thirty_merges_by_git_and_by_the_driver_are_right_or_a_clear_conflict() {
    let merges = merges();
    assert!(merges.len() >= 30);
    let (mut by_git, mut by_driver) = (0, 0);
    for (name, ours, theirs, then) in merges {
        // By git alone: what it calls merged is what both branches did, and everything else is refused when it is read.
        let desk = repository(ours, theirs, false);
        let (merged, text, _) = merge(&desk);
        if merged {
            by_git += 1;
            assert_eq!(Lock::read(&text).unwrap(), both(ours, theirs), "{name}");
        } else {
            assert!(Lock::read(&text).is_err(), "{name}: {text}");
        }
        let without_driver = desk;

        let desk = repository(ours, theirs, true);
        let (merged, text, said) = merge(&desk);
        let again = |desk: &Desk| desk.run(&["lock", "--resolve"]);
        match then {
            Then::Both => {
                let expected = both(ours, theirs).write(None);
                assert!(merged, "{name}: {said}");
                assert_eq!(text, expected, "{name}");
                by_driver += 1;
                // The same after the fact.
                again(&without_driver).exits(0);
                let path = without_driver.path().join("selu.lock");
                assert_eq!(std::fs::read_to_string(path).unwrap(), expected, "{name}");
            }
            Then::Clash(what) => {
                assert!(!merged, "{name}");
                assert!(said.contains(what), "{name}: {said}");
                assert!(Lock::read(&text).is_err(), "{name}: {text}");
                again(&desk).exits(1).says(what);
                let path = desk.path().join("selu.lock");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}");
                // Either side settles it, and is what that side has.
                for (side, edit) in [("ours", ours), ("theirs", theirs)] {
                    std::fs::write(&path, &text).unwrap();
                    desk.run(&["lock", &format!("--resolve={side}")]).exits(0);
                    let settled = std::fs::read_to_string(&path).unwrap();
                    let settled = Lock::read(&settled).unwrap();
                    let mut wanted = base();
                    edit(&mut wanted);
                    let named = key(what.split(':').next().unwrap());
                    assert_eq!(
                        settled.instances.get(&named),
                        wanted.instances.get(&named),
                        "{name}: {side}"
                    );
                }
            }
        }
    }
    println!("merged: {by_git} by git alone, {by_driver} by the driver");
    assert!(by_driver > by_git);
}

#[test]
fn markers_are_settled_where_no_repository_knows_the_sides() {
    let desk = Desk::new();
    let (mut ours, mut theirs) = (base(), base());
    at(&mut ours, "home/alpha").limits.pids = 1;
    add(&mut theirs, "home/bravo");
    let text = selu_compiler::lock::marked([&base(), &ours, &theirs], 9, None);
    desk.write("selu.lock", &text.replace('\n', "\r\n"));
    desk.run(&["lock", "--resolve"]).exits(0);
    let mut expected = ours.clone();
    add(&mut expected, "home/bravo");
    let path = desk.path().join("selu.lock");
    let settled = std::fs::read_to_string(&path).unwrap();
    assert_eq!(settled, expected.write(Some("\r\n")));
    desk.run(&["lock", "--resolve"])
        .exits(0)
        .says("no conflict markers");

    // Without what both came from, what only one side has stays, and that is said.
    let mut bare = String::new();
    let mut skipping = false;
    for line in text.split_inclusive('\n') {
        skipping = match line.as_bytes() {
            [b'|', b'|', ..] => true,
            [b'=', b'=', ..] => false,
            _ => skipping,
        };
        if !skipping {
            bare.push_str(line);
        }
    }
    desk.write("selu.lock", &bare);
    let ran = desk
        .run(&["lock", "--resolve", "--format", "json"])
        .exits(1);
    assert_eq!(ran.json()["conflicts"].as_array().unwrap().len(), 1);
    desk.run(&["lock", "--resolve=ours"])
        .exits(0)
        .says("home/bravo: kept");

    for broken in ["<<<<<<< a\n", "=======\n", ">>>>>>> b\n"] {
        desk.write("selu.lock", &format!("version = 1\n{broken}"));
        desk.run(&["lock", "--resolve"])
            .exits(1)
            .says("not as a merge writes them");
    }
}

#[test]
fn a_side_that_is_no_lock_is_a_conflict_and_never_a_merge() {
    let desk = Desk::new();
    desk.write("base", "");
    desk.write("ours", &base().write(None));
    desk.write("theirs", "version = 2\n");
    let driver = [
        "lock",
        "--merge-driver",
        "base",
        "ours",
        "theirs",
        "7",
        "selu.lock",
    ];
    desk.run(&driver).exits(1).says("not to be trusted");
    let text = std::fs::read_to_string(desk.path().join("ours")).unwrap();
    assert!(Lock::read(&text).is_err(), "{text}");
}

#[test]
fn git_is_set_up_once_says_what_it_is_told_and_takes_it_back() {
    let desk = Desk::new();
    desk.run(&["git", "install"])
        .exits(1)
        .says("not a git repository");
    done(desk.path(), &["init", "--quiet"]);
    desk.write(".gitattributes", "*.png binary");
    let first = desk.run(&["git", "install"]).exits(0);
    assert_eq!(first.out.matches("(set)").count(), 4, "{}", first.out);
    let attributes = || std::fs::read_to_string(desk.path().join(".gitattributes")).unwrap();
    let line = "selu.lock merge=selu-lock diff=selu-lock\n";
    assert_eq!(attributes(), format!("*.png binary\n{line}"));
    let second = desk.run(&["git", "install"]).exits(0);
    assert_eq!(
        second.out.matches("(was so already)").count(),
        4,
        "{}",
        second.out
    );
    assert_eq!(attributes(), format!("*.png binary\n{line}"));

    desk.write(".gitattributes", &format!("{line}*.lock -diff -merge\n"));
    desk.run(&["git", "install"]).exits(0).says("overrule");

    desk.run(&["git", "install", "--remove"]).exits(0);
    assert_eq!(attributes(), "*.lock -diff -merge\n");
    let left = git(desk.path(), &["config", "--local", "--get-regexp", "selu"]);
    assert!(left.stdout.is_empty(), "{left:?}");
    let json = desk
        .run(&["git", "install", "--remove", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(json["settings"][0]["changed"], false);
}

#[test]
fn a_diff_by_git_names_instance_and_tool_in_each_line() {
    let desk = repository(
        |l| host(l, "home/alpha", "c.example.com"),
        |l| add(l, "zzz/zzz"),
        true,
    );
    let shown = |arguments: &[&str]| {
        let ran = git(desk.path(), arguments);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    let diff = shown(&["diff", "-U0", "main", "ours", "--", "selu.lock"]);
    assert!(
        diff.contains("\n+home/alpha network.hosts has \"c.example.com\"\n"),
        "{diff}"
    );
    let diff = shown(&["diff", "-U0", "main", "theirs", "--", "selu.lock"]);
    assert!(
        diff.contains("\n+zzz/zzz forecast input_schema/properties/city/type = \"string\"\n"),
        "{diff}"
    );
    // A lock that cannot be read is shown as it is: git would stop at a failure.
    desk.write("selu.lock", "version = 1\n<<<<<<< ours\n");
    assert!(shown(&["diff", "--", "selu.lock"]).contains("+<<<<<<< ours"));
}
