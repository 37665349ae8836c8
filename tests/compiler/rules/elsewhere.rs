//! Rules whose failing side is no directory's, codes that belong to no rule, and the tests that hold both.

use super::{AtRuntime, Case, Files::*};
use crate::fixture::Fixture;

fn with_manifest(text: &str) -> Fixture {
    Fixture::new([("manifest.yaml", text)])
}

const HEAD: &str = "id: weather\nimage: example.com/weather:1\n";

fn deep() -> Fixture {
    with_manifest(&format!(
        "{HEAD}x-a: {}{}\n",
        "[".repeat(200),
        "]".repeat(200)
    ))
}

fn many() -> Fixture {
    with_manifest(&format!("{HEAD}x-a: [{}]\n", "1,".repeat(250_001)))
}

fn large_schema() -> Fixture {
    with_manifest(&format!(
        "{HEAD}tools:\n  - name: a\n    description: b\n    input_schema: {{type: object, x-a: {}{}}}\n",
        "[".repeat(70),
        "]".repeat(70)
    ))
}

/// One tool more than a discovery may bring.
fn too_many_tools() -> String {
    let tools: Vec<String> = (0..=1_000)
        .map(|at| {
            format!(
                "{{\"name\": \"t{at}\", \"description\": \"b\", \"input_schema\": {{\"type\": \"object\"}}}}"
            )
        })
        .collect();
    format!("[{}]", tools.join(","))
}

const ENGINE: &str = "compiler/src/resolve/tests.rs";

pub(crate) const AT_RUNTIME: &[AtRuntime] = &[
    AtRuntime {
        id: "N7",
        reason: "what a container reaches is seen from inside it",
        test: (
            "tests/engine/isolation.rs",
            "d11_from_inside_a_none_container_nothing_answers_that_answers_elsewhere",
        ),
    },
    AtRuntime {
        id: "N8",
        reason: "addresses are known when a name is dialled",
        test: (
            "runtime/src/egress/worker/reach.rs",
            "the_registries_are_followed_to_their_edges",
        ),
    },
    AtRuntime {
        id: "N10",
        reason: "protocols are seen on a connection",
        test: (
            "runtime/src/egress/worker/http/tests.rs",
            "a_request_for_another_host_reaches_nobody_and_ends_the_connection",
        ),
    },
    AtRuntime {
        id: "F1",
        reason: "what is writable is tried from inside",
        test: (
            "tests/engine/hardening.rs",
            "nothing_is_writable_but_what_the_filesystem_mode_says",
        ),
    },
    AtRuntime {
        id: "F2",
        reason: "what is writable is tried from inside",
        test: (
            "tests/engine/hardening.rs",
            "nothing_is_writable_but_what_the_filesystem_mode_says",
        ),
    },
    AtRuntime {
        id: "F3",
        reason: "what is writable is tried from inside",
        test: (
            "tests/engine/hardening.rs",
            "nothing_is_writable_but_what_the_filesystem_mode_says",
        ),
    },
    AtRuntime {
        id: "F4",
        reason: "an engine makes volumes",
        test: (
            "tests/engine/volumes.rs",
            "a_new_volume_belongs_to_its_user_and_its_content_is_never_touched_again",
        ),
    },
    AtRuntime {
        id: "F5",
        reason: "an image declares its volumes",
        test: (
            "tests/engine/networks.rs",
            "an_images_volume_is_no_place_to_write_to",
        ),
    },
    AtRuntime {
        id: "C2",
        reason: "values exist only while something runs",
        test: (
            "tests/engine/main_job.rs",
            "a_declared_system_credential_arrives_in_discovery_and_appears_nowhere_else",
        ),
    },
    AtRuntime {
        id: "C3",
        reason: "values exist only while something runs",
        test: (
            "runtime/src/secrets/tests.rs",
            "discovery_gets_declared_system_credentials_only",
        ),
    },
    AtRuntime {
        id: "C4",
        reason: "a discovery gets its values from the operator",
        test: (
            "runtime/src/discover/tests.rs",
            "a_missing_required_system_credential_stops_discovery_before_any_call",
        ),
    },
    AtRuntime {
        id: "C5",
        reason: "users exist only in calls; a resident is one container and one network",
        test: (
            "tests/engine/hardening.rs",
            "a_container_has_its_network_to_itself_and_nobody_elses",
        ),
    },
    AtRuntime {
        id: "R2",
        reason: "limits are enforced by an engine, and read back",
        test: (
            "tests/engine/hardening.rs",
            "inspect_of_every_container_shows_the_hardening_of_w6_field_by_field",
        ),
    },
    AtRuntime {
        id: "R3",
        reason: "containers end while they run",
        test: (
            "runtime/src/apply/ready.rs",
            "f07_exit_codes_are_explained_and_memory_has_its_grades",
        ),
    },
    AtRuntime {
        id: "R4",
        reason: "limits are enforced by an engine, and read back",
        test: (
            "tests/engine/hardening.rs",
            "inspect_of_every_container_shows_the_hardening_of_w6_field_by_field",
        ),
    },
    AtRuntime {
        id: "I3",
        reason: "digests and image ids come from registries and engines",
        test: (ENGINE, "a_written_digest_wins_over_the_lock"),
    },
    AtRuntime {
        id: "A4",
        reason: "it decides between two right answers",
        test: (
            ENGINE,
            "auto_routing_is_inline_up_to_each_bound_and_not_beyond",
        ),
    },
];

/// Codes that no fixture can cause for every user: a test sets the scene, and says so where it cannot.
pub(crate) const NOT_AS_DATA: &[(&str, (&str, &str))] = &[(
    "unreadable",
    ("tests/compiler/layout.rs", "an_unreadable_file_is_an_error"),
)];

/// Codes of the lock, and the tests that cause them.
pub(crate) const LOCK_CODES: &[(&str, (&str, &str))] = &[
    (
        "lock-invalid",
        (
            "compiler/src/lock/tests/read.rs",
            "what_is_not_a_lock_is_an_error_with_its_line",
        ),
    ),
    (
        "lock-conflict",
        (
            "compiler/src/lock/tests/read.rs",
            "conflict_markers_are_named_with_their_line_26",
        ),
    ),
    (
        "lock-version",
        (
            "compiler/src/lock/tests/read.rs",
            "the_version_is_checked_before_all_else_h08",
        ),
    ),
    (
        "lock-version-newer",
        (
            "compiler/src/lock/tests/read.rs",
            "the_version_is_checked_before_all_else_h08",
        ),
    ),
    (
        "lock-stale",
        (
            "compiler/src/lock/tests/stale.rs",
            "every_field_has_its_own_reason_with_old_and_new",
        ),
    ),
];

/// What belongs to no rule of the format: selu.toml, and what bounds alone refuse.
pub(crate) const OTHER_CASES: &[Case] = &[
    Case(Settings("[policy\n"), &["SELU0901 selu.toml:1:8"]),
    Case(
        Settings("[projct]\nname = \"home\"\n"),
        &["SELU0902 selu.toml:1:2"],
    ),
    Case(
        Settings("[policy]\n\"helper/wether/a\" = \"ask\"\n"),
        &["SELU0904 selu.toml:2:1"],
    ),
    Case(
        Settings("[engine]\nsubnets = \"8.8.8.0/24\"\n"),
        &["SELU0905 selu.toml:2:11"],
    ),
    Case(
        Settings("[engine]\nhost = \"/run/docker.sock\"\n"),
        &["SELU0906 selu.toml:2:8"],
    ),
    Case(
        Settings("[build.\"helper/weather\"]\nprepare = []\n"),
        &["SELU0907 selu.toml:2:1"],
    ),
    Case(
        Settings("[diagnostics]\nhost-anyport = \"error\"\n"),
        &["SELU0910 selu.toml:2:1"],
    ),
    Case(
        Settings("[diagnostics]\nimage-invalid = \"warning\"\n"),
        &["SELU0911 selu.toml:2:17"],
    ),
    Case(
        Settings("[limits.\"helper/wether\"]\npids_limit = 9\n"),
        &["SELU0916 selu.toml:1:9"],
    ),
    Case(
        Settings("[diagnostics]\nSELU0507 = \"error\"\nhost-any-port = \"allow\"\n"),
        &["SELU0912 selu.toml:3:1"],
    ),
    Case(
        Settings("[engine]\nresolvers = [\"192.0.2.53\", \"127.0.0.53\"]\n"),
        &["SELU0913 selu.toml:2:28"],
    ),
    Case(
        Settings("[network.\"helper/weather\"]\nprivate = [\"169.254.169.254:80\"]\n"),
        &["SELU0914 selu.toml:2:12"],
    ),
    Case(
        Settings("[network.\"helper/weather\"]\nprivate = [\"db.corp.example:5432\"]\n"),
        &["SELU0915 selu.toml:2:12"],
    ),
    Case(
        Settings("[[review.accepted]]\npath = \"network.hosts\"\n"),
        &["SELU0917 selu.toml:2:1"],
    ),
    Case(Made(deep), &["SELU0207 manifest.yaml:3:133"]),
    Case(Made(many), &["SELU0208 manifest.yaml:3:499997"]),
    Case(Made(large_schema), &["SELU0420 manifest.yaml:6:5"]),
    Case(DiscoveryMade(too_many_tools), &["SELU1202 "]),
];
