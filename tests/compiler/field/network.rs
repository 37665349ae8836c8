//! Section D: allowlists.

use super::HEAD;
use crate::fixture::{check_manifest, manifest};

#[test]
fn d19_a_malformed_entry_is_an_error_that_names_it_and_never_opens_the_list() {
    for bad in [
        "https://api.example.com",
        "api.example.com:0",
        ":443",
        "api.example.com:https",
        "a b:443",
        "ex*mple.com:443",
        "a.*.com:443",
        "api.example.com:443/path",
        "",
        "*",
        "*:443",
        ".x.com",
        "api.example.com:65536",
        "api.example.com:80-443",
        "user@api.example.com:443",
    ] {
        let fixture = manifest(&format!(
            "{HEAD}network:\n  mode: allowlist\n  hosts: [\"{bad}\"]\n"
        ));
        let checked = fixture.check();
        assert!(checked.project.is_none(), "{bad}");
        assert_eq!(checked.diagnostics.len(), 1, "{bad}: {:?}", fixture.lines());
        let finding = &checked.diagnostics[0];
        assert_eq!(finding.place.path, "network.hosts[0]", "{bad}");
        assert!(finding.code.name.starts_with("host-"), "{bad}");
        // Named by the line that is underlined, where the message speaks of a part of it.
        let text = fixture.text();
        assert!(text.contains(&format!("hosts: [\"{bad}\"]")), "{text}");
        assert!(
            finding.help.is_some() || finding.suggestion.is_some(),
            "{text}"
        );
    }
    assert_eq!(
        check_manifest(&format!("{HEAD}network: {{mode: allowlist, hosts: []}}\n")),
        ["3:17 warning network-allowlist-empty"]
    );
    // N2: a host without a port means any port, which a note says.
    assert_eq!(
        check_manifest(&format!(
            "{HEAD}network: {{mode: allowlist, hosts: [api.example.com]}}\n"
        )),
        ["3:36 note host-any-port"]
    );
}
