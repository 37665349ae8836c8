use super::*;
use crate::egress::worker::testing::rule;

fn allowlist(hosts: &[&str]) -> Rules {
    Rules::new(&rule(NetworkMode::Allowlist, hosts, &[])).unwrap()
}

fn target(text: &str) -> Target {
    let (host, port) = text.rsplit_once(':').unwrap();
    Target {
        host: Host::read(host).unwrap(),
        port: port.parse().unwrap(),
    }
}

#[track_caller]
fn check(rules: &Rules, text: &str, expected: Result<(), Reason>) {
    assert_eq!(rules.check(&target(text)), expected, "{text}");
}

#[test]
fn a_listed_name_opens_its_ports_and_no_others() {
    let rules = allowlist(&[
        "api.example.com:443",
        "api.example.com:8443",
        "db.example.com",
    ]);
    check(&rules, "api.example.com:443", Ok(()));
    check(&rules, "api.example.com:8443", Ok(()));
    check(&rules, "db.example.com:1", Ok(()));
    check(&rules, "API.Example.COM.:443", Ok(()));
    check(&rules, "api.example.com:80", Err(Reason::PortNotListed));
    for other in [
        "example.com:443",
        "x.api.example.com:443",
        "api.example.com.evil.com:443",
        "apiXexample.com:443",
        "xapi.example.com:443",
        "api.example.co:443",
    ] {
        check(&rules, other, Err(Reason::NotListed));
    }
}

#[test]
fn a_wildcard_matches_every_depth_and_never_its_apex() {
    let rules = allowlist(&["*.example.com:443"]);
    check(&rules, "a.example.com:443", Ok(()));
    check(&rules, "a.b.example.com:443", Ok(()));
    check(&rules, "a.example.com:80", Err(Reason::PortNotListed));
    for other in [
        "example.com:443",
        "aexample.com:443",
        "a.example.com.x.org:443",
    ] {
        check(&rules, other, Err(Reason::NotListed));
    }
    assert_eq!(rules.verdict_on_name("example.com"), Err(Reason::NotListed));
    assert_eq!(
        rules.verdict_on_name("a_b.example.com"),
        Err(Reason::NameTooLong),
        "labels below a wildcard are letters, digits and hyphens"
    );
}

#[test]
fn ports_of_a_name_and_of_a_wildcard_above_it_add_up() {
    let rules = allowlist(&["*.example.com:443", "db.example.com:5432"]);
    check(&rules, "db.example.com:443", Ok(()));
    check(&rules, "db.example.com:5432", Ok(()));
    check(&rules, "other.example.com:5432", Err(Reason::PortNotListed));
}

#[test]
fn a_literal_is_itself_and_no_name_is_it() {
    let rules = allowlist(&["192.0.2.7:443", "[2001:db8::1]:443", "api.example.com:443"]);
    check(&rules, "192.0.2.7:443", Ok(()));
    check(&rules, "[2001:db8::1]:443", Ok(()));
    check(&rules, "[2001:DB8:0::1]:443", Ok(()));
    check(&rules, "192.0.2.8:443", Err(Reason::NotListed));
    check(&rules, "192.0.2.7:80", Err(Reason::PortNotListed));
    check(&rules, "[::ffff:192.0.2.7]:443", Err(Reason::NotListed));
}

#[test]
fn internationalised_names_are_compared_in_punycode() {
    let rules = allowlist(&["xn--bcher-kva.example:443"]);
    check(&rules, "xn--bcher-kva.example:443", Ok(()));
    check(&rules, "XN--BCHER-KVA.example:443", Ok(()));
    check(&rules, "bucher.example:443", Err(Reason::NotListed));
}

#[test]
fn any_is_for_public_names_on_every_port() {
    let rules = Rules::new(&rule(NetworkMode::Any, &[], &[])).unwrap();
    check(&rules, "api.example.com:443", Ok(()));
    check(&rules, "api.example.com:1", Ok(()));
    for other in [
        "localhost:80",
        "printer:80",
        "metadata.google.internal:80",
        "printer.local:80",
        "a.localhost:80",
        "x.onion:80",
        "4.3.2.1.in-addr.arpa:80",
        "x.home.arpa:80",
        "a_b.example.com:80",
        "8.8.8.8:53",
        "[2606:4700::1111]:443",
    ] {
        check(&rules, other, Err(Reason::NotPublicName));
    }
}

#[test]
fn none_allows_nothing() {
    let rules = Rules::new(&rule(NetworkMode::None, &[], &[])).unwrap();
    check(&rules, "api.example.com:443", Err(Reason::NotListed));
    check(&rules, "8.8.8.8:443", Err(Reason::NotListed));
    assert_eq!(
        rules.verdict_on_name("api.example.com"),
        Err(Reason::NotListed)
    );
}

#[test]
fn a_permission_for_private_addresses_is_for_its_target_alone() {
    let hosts = ["10.0.0.5:443", "db.corp.example:5432", "db.corp.example:80"];
    let private = ["10.0.0.5:443", "db.corp.example:5432"];
    let rules = Rules::new(&rule(NetworkMode::Allowlist, &hosts, &private)).unwrap();
    assert!(rules.permits_private(&target("db.corp.example:5432")));
    assert!(!rules.permits_private(&target("db.corp.example:80")));
    assert!(!rules.permits_private(&target("x.db.corp.example:5432")));
    assert!(rules.permits_private(&target("10.0.0.5:443")));

    let any = Rules::new(&rule(NetworkMode::Any, &[], &["10.0.0.5:443"])).unwrap();
    check(&any, "10.0.0.5:443", Ok(()));
    check(&any, "10.0.0.5:80", Err(Reason::NotPublicName));
}

#[test]
fn an_entry_that_is_not_in_its_normal_form_is_no_rule() {
    for wrong in [
        "API.example.com:443",
        "https://a.b",
        "*:443",
        "a.b:0",
        "a..b:1",
    ] {
        let rule = rule(NetworkMode::Allowlist, &["a.example.com:443", wrong], &[]);
        assert!(Rules::new(&rule).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_neither_a_name_nor_an_address_is_nothing() {
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a b",
        "a/b",
        "a@b",
        "a:1",
        "*.a.b",
        "http://a",
        "127.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.0.0.01",
        "1.2.3.4.5",
        "::1",
        "[::1",
        "[1.2.3.4]",
        "[fe80::1%25eth0]",
        "-a.b",
        "a-.b",
        "a%2eb",
        "b\u{fc}cher.example",
        "a\0.b",
    ] {
        assert_eq!(Host::read(text), None, "{text:?}");
    }
    let long = format!("{}.com", "a".repeat(64));
    assert_eq!(Host::read(&long), None);
    let long = "a.".repeat(127) + "b";
    assert_eq!(
        Host::read(&long),
        None,
        "254 characters and no dot at the end"
    );
    assert_eq!(
        Host::read(&long[2..]),
        Some(Host::Name(long[2..].to_owned()))
    );
}

#[test]
fn codes_are_kebab_case_and_sentences_repeat_no_code() {
    let reasons = [
        Reason::NotListed,
        Reason::SniMismatch("x\u{1b}[0m".to_owned()),
        Reason::TimedOut(10),
    ];
    for reason in reasons {
        assert!(
            reason
                .code()
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b == b'-')
        );
        assert!(!reason.to_string().contains('\u{1b}'), "{reason}");
    }
}
