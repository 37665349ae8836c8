use super::network;
use crate::diag::Severity;
use crate::model::NetworkMode;

fn hosts(list: &[&str]) -> Vec<String> {
    list.iter().map(|host| (*host).to_owned()).collect()
}

/// The normalised list, and code and pointer of each error and warning.
fn check(mode: NetworkMode, list: &[&str]) -> (Option<Vec<String>>, Vec<String>) {
    let (network, problems) = network(mode, &hosts(list));
    let found = problems
        .iter()
        .filter(|problem| problem.code.severity > Severity::Note)
        .map(|problem| format!("{} {}", problem.code.name, problem.pointer))
        .collect();
    (network.map(|network| network.hosts), found)
}

fn allowed(list: &[&str]) -> Vec<String> {
    let (hosts, problems) = check(NetworkMode::Allowlist, list);
    assert_eq!(problems, [""; 0], "{list:?}");
    hosts.unwrap()
}

/// Code and suggestion of the one error of an entry.
fn refused(entry: &str) -> (&'static str, Option<String>) {
    let (network, problems) = network(NetworkMode::Allowlist, &hosts(&[entry]));
    assert_eq!(network, None, "{entry:?} fell open");
    assert_eq!(problems.len(), 1, "{entry:?}");
    assert_eq!(problems[0].pointer, "/hosts/0");
    assert!(problems[0].is_error());
    (problems[0].code.name, problems[0].suggestion.clone())
}

#[test]
fn entries_are_normalised_sorted_and_kept_apart() {
    assert_eq!(
        allowed(&[
            "b.example.com:443",
            "API.Example.COM.:443",
            "*.Other.org:8443",
            "bücher.example:443",
            "93.184.216.34:443",
            "[2001:DB8::1]:443",
            "my_bucket.example.net:443",
            "intranet:443",
        ]),
        [
            "*.other.org:8443",
            "93.184.216.34:443",
            "[2001:db8::1]:443",
            "api.example.com:443",
            "b.example.com:443",
            "intranet:443",
            "my_bucket.example.net:443",
            "xn--bcher-kva.example:443",
        ]
    );
}

#[test]
fn order_does_not_matter_g10() {
    assert_eq!(
        allowed(&["a.example:443", "b.example:1", "a.example:80"]),
        allowed(&["a.example:80", "a.example:443", "b.example:1"])
    );
}

#[test]
fn every_malformed_entry_is_an_error_with_the_right_form_n5() {
    for (entry, code, better) in [
        ("", "host-invalid", None),
        (
            "https://api.example.com",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            "http://api.example.com:8080/v1?x",
            "host-invalid",
            Some("api.example.com:8080"),
        ),
        (
            "https://me:pw@api.example.com/v1",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            "api.example.com:443/path",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            "me@api.example.com:443",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        ("a b:443", "host-invalid", None),
        (
            "api.example.com: 443",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            " api.example.com:443",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            "api.example.com:443\n",
            "host-invalid",
            Some("api.example.com:443"),
        ),
        (
            "api.example.com:https",
            "host-port-invalid",
            Some("api.example.com:443"),
        ),
        (
            "api.example.com:",
            "host-port-invalid",
            Some("api.example.com"),
        ),
        (
            "api.example.com:*",
            "host-port-invalid",
            Some("api.example.com"),
        ),
        ("api.example.com:0", "host-port-invalid", None),
        ("api.example.com:65536", "host-port-invalid", None),
        (
            "api.example.com:99999999999999999999",
            "host-port-invalid",
            None,
        ),
        (
            "api.example.com:0443",
            "host-port-invalid",
            Some("api.example.com:443"),
        ),
        ("api.example.com:-1", "host-port-invalid", None),
        ("api.example.com:+443", "host-port-invalid", None),
        ("api.example.com:80-90", "host-port-invalid", None),
        ("api.example.com:80,443", "host-port-invalid", None),
        (":443", "host-invalid", None),
        ("*", "host-bare-wildcard", None),
        ("*:443", "host-bare-wildcard", None),
        (".x.com", "host-wildcard-invalid", Some("*.x.com")),
        (".x.com:443", "host-wildcard-invalid", Some("*.x.com:443")),
        ("a.*.com:443", "host-wildcard-invalid", None),
        ("ex*mple.com:443", "host-wildcard-invalid", None),
        ("*example.com:443", "host-wildcard-invalid", None),
        ("*.*.example.com", "host-wildcard-invalid", None),
        ("22:22", "host-invalid", None),
        ("127.1:80", "host-invalid", None),
        ("0x7f.0x1:80", "host-invalid", None),
        ("2130706433", "host-invalid", None),
        ("*.1.2.3.4:80", "host-invalid", None),
        ("1.2.3.4.5:80", "host-invalid", None),
        ("10.0.0.0/8", "host-invalid", None),
        ("::1", "host-invalid", Some("[::1]")),
        ("[::1", "host-invalid", None),
        ("[::1]443", "host-invalid", None),
        ("[fe80::1%eth0]:443", "host-invalid", None),
        ("[1.2.3.4]:443", "host-invalid", None),
        ("a:1:2", "host-invalid", None),
        ("a..b:443", "host-invalid", None),
        ("a.b..:443", "host-invalid", None),
        (".:443", "host-wildcard-invalid", None),
        ("-a.example:443", "host-invalid", None),
        ("a$.example:443", "host-invalid", None),
        ("xn--a.example:443", "host-invalid", None),
    ] {
        let (found, suggestion) = refused(entry);
        assert_eq!(found, code, "{entry:?}");
        assert_eq!(suggestion.as_deref(), better, "{entry:?}");
    }
}

#[test]
fn a_list_with_a_wrong_entry_is_no_list_in_any_mode_d19() {
    for mode in [NetworkMode::None, NetworkMode::Allowlist, NetworkMode::Any] {
        let (hosts, problems) = check(mode, &["api.example.com:443", "*", "x y"]);
        assert_eq!(hosts, None);
        assert!(problems.contains(&"host-bare-wildcard /hosts/1".to_owned()));
        assert!(problems.contains(&"host-invalid /hosts/2".to_owned()));
    }
}

#[test]
fn mode_and_list_that_disagree_are_warnings_m5() {
    for (mode, list, expected) in [
        (NetworkMode::None, vec![], vec![]),
        (
            NetworkMode::None,
            vec!["a.example:443"],
            vec!["network-none-with-hosts /hosts"],
        ),
        (
            NetworkMode::Allowlist,
            vec![],
            vec!["network-allowlist-empty /mode"],
        ),
        (NetworkMode::Any, vec![], vec!["network-any /mode"]),
        (
            NetworkMode::Any,
            vec!["a.example:443"],
            vec!["network-any /mode", "network-any-with-hosts /hosts"],
        ),
    ] {
        let (hosts, problems) = check(mode, &list);
        assert_eq!(problems, expected);
        assert_eq!(hosts, Some(Vec::new()), "{mode:?} lists hosts");
    }
}

#[test]
fn the_container_itself_is_a_warning() {
    for entry in [
        "localhost:80",
        "LOCALHOST.:80",
        "a.localhost:80",
        "127.0.0.1:80",
        "[::1]:80",
    ] {
        let (hosts, problems) = check(NetworkMode::Allowlist, &[entry]);
        assert_eq!(problems, ["host-local /hosts/0"], "{entry}");
        assert!(hosts.is_some());
    }
}

#[test]
fn a_wildcard_over_a_public_suffix_is_a_warning() {
    for entry in [
        "*.com:443",
        "*.co.uk:443",
        "*.anything.ck:443",
        "*.рф:443",
        "*.internal:443",
    ] {
        assert_eq!(
            check(NetworkMode::Allowlist, &[entry]).1,
            ["host-public-suffix /hosts/0"],
            "{entry}"
        );
    }
    for entry in ["*.github.io:443", "*.s3.amazonaws.com:443"] {
        let (_, problems) = network(NetworkMode::Allowlist, &hosts(&[entry]));
        let codes: Vec<&str> = problems.iter().map(|problem| problem.code.name).collect();
        assert_eq!(codes, ["host-shared-suffix"], "{entry}");
    }
    allowed(&[
        "*.example.com:443",
        "*.bring.co:443",
        "*.www.ck:443",
        "*.acme.github.io:443",
        "github.io:443",
    ]);
}

#[test]
fn an_entry_without_a_port_is_noted_and_means_any_port() {
    let (network, problems) = network(NetworkMode::Allowlist, &hosts(&["a.example"]));
    assert_eq!(network.unwrap().hosts, ["a.example"]);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].code.name, "host-any-port");
    assert_eq!(problems[0].code.severity, Severity::Note);
}

#[test]
fn what_another_entry_covers_is_a_warning_n6() {
    for (list, place) in [
        (["a.example:443", "A.example.:443"], 1),
        (["a.example:443", "a.example"], 0),
        (["*.b.example", "a.b.example:443"], 1),
        (["*.c.b.example:443", "*.b.example:443"], 0),
    ] {
        let (hosts, problems) = check(NetworkMode::Allowlist, &list);
        assert_eq!(
            problems[0],
            format!("host-covered /hosts/{place}"),
            "{list:?}"
        );
        assert!(hosts.is_some());
    }
}

#[test]
fn d01_a_wildcard_covers_any_depth_and_never_the_apex_or_a_look_alike() {
    assert_eq!(
        allowed(&["*.bring.com:443", "bring.com:443", "xbring.com:443"]).len(),
        3
    );
    let deeper = ["*.bring.com:443", "a.bring.com:443", "a.b.bring.com:443"];
    let (_, problems) = check(NetworkMode::Allowlist, &deeper);
    assert_eq!(problems, ["host-covered /hosts/2", "host-covered /hosts/1"]);
}

#[test]
fn d02_a_name_that_ends_alike_is_another_name() {
    let entries = [
        "*.example.com:443",
        "evilexample.com:443",
        "example.com.evil.net:443",
        "example.com:443",
        "notexample.com:443",
    ];
    assert_eq!(allowed(&entries).len(), entries.len());
}

#[test]
fn another_port_is_not_covered() {
    assert_eq!(allowed(&["*.bring.com:443", "a.bring.com:80"]).len(), 2);
}

#[test]
fn user_info_is_not_repeated_in_the_error() {
    for entry in [
        "https://me:s3cret@a.example/v1",
        "me:s3cret@a.example:443",
        "s3cret@a.example/x",
    ] {
        let (_, problems) = network(NetworkMode::Allowlist, &hosts(&[entry]));
        assert!(!format!("{problems:?}").contains("s3cret"), "{problems:?}");
    }
}
