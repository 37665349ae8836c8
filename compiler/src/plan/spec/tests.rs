//! What every container has, and the seccomp profile as data. That a kernel enforces it is a test of the runtime.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{PARENT_SECCOMP_PROFILE, closed_gateway, helper_spec, open_gateway, seccomp_profile};
use crate::plan::{SECCOMP_PROFILE, label};

fn profile() -> Value {
    serde_json::from_str(SECCOMP_PROFILE).unwrap()
}

fn rules() -> Vec<Value> {
    profile()["syscalls"].as_array().unwrap().clone()
}

fn rules_of(name: &str) -> Vec<Value> {
    let names_it = |rule: &Value| {
        let names = rule["names"].as_array().unwrap();
        names.iter().any(|known| known == name)
    };
    rules().into_iter().filter(names_it).collect()
}

#[test]
fn what_no_rule_names_is_refused_on_the_native_architecture_alone() {
    let profile = profile();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let architectures = profile["archMap"].as_array().unwrap();
    assert_eq!(architectures.len(), 2);
    for architecture in architectures {
        assert_eq!(architecture["subArchitectures"], Value::Array(vec![]));
    }
}

#[test]
fn no_rule_allows_what_opens_the_kernel() {
    let refused = "add_key bpf chroot delete_module finit_module fsopen init_module io_uring_enter \
        io_uring_register io_uring_setup ioperm iopl kcmp kexec_load keyctl mount mount_setattr move_mount \
        open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv \
        process_vm_writev ptrace quotactl reboot request_key setdomainname sethostname setns settimeofday socketcall \
        swapoff swapon syslog umount2 unshare userfaultfd vhangup";
    for name in refused.split_whitespace() {
        assert_eq!(rules_of(name), Vec::<Value>::new(), "{name}");
    }
}

#[test]
fn sockets_are_of_four_families_and_netlink_of_one_protocol() {
    let mut allowed = BTreeSet::new();
    for rule in rules_of("socket") {
        let conditions: Vec<(u64, u64)> = rule["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|condition| {
                assert_eq!(condition["op"], "SCMP_CMP_EQ");
                let number = |name: &str| condition[name].as_u64().unwrap();
                (number("index"), number("value"))
            })
            .collect();
        allowed.insert(conditions);
    }
    // AF_UNIX, AF_INET, AF_INET6, AF_NETLINK with NETLINK_ROUTE.
    let expected = [
        vec![(0, 1)],
        vec![(0, 2)],
        vec![(0, 10)],
        vec![(0, 16), (2, 0)],
    ];
    assert_eq!(allowed, BTreeSet::from(expected));
}

#[test]
fn clone_makes_no_namespaces_and_clone3_falls_back_to_it() {
    let [clone] = &rules_of("clone")[..] else {
        panic!("one rule");
    };
    let condition = &clone["args"][0];
    assert_eq!(condition["op"], "SCMP_CMP_MASKED_EQ");
    // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
    assert_eq!(condition["value"], 0x7e02_0000);
    assert_eq!(condition["valueTwo"], 0);
    let [clone3] = &rules_of("clone3")[..] else {
        panic!("one rule");
    };
    assert_eq!(clone3["action"], "SCMP_ACT_ERRNO");
    assert_eq!(clone3["errnoRet"], 38);
}

#[test]
fn a_call_is_named_in_one_unconditional_rule_at_most() {
    let mut seen = BTreeMap::new();
    for rule in rules() {
        for name in rule["names"].as_array().unwrap() {
            let conditional = !rule["args"].is_null();
            let name = name.as_str().unwrap().to_owned();
            if let Some(before) = seen.insert(name.clone(), conditional) {
                assert!(before && conditional, "{name}");
            }
        }
    }
}

#[test]
fn a_gateway_with_nothing_to_carry_routes_nothing_and_is_no_more_privileged_than_a_capability() {
    let (spec, hash) = closed_gateway("p");
    assert_eq!(spec.image, "selu.local/p/gateway:2");
    assert_eq!(spec.user, "65532:65532");
    assert_eq!(
        (&spec.cap_drop[..], &spec.cap_add[..]),
        (&["ALL".to_owned()][..], &[][..])
    );
    assert!(spec.read_only_root && spec.no_new_privileges);
    assert_eq!(spec.sysctls["net.ipv4.ip_forward"], "0");
    assert_eq!(spec.sysctls["net.ipv4.conf.all.rp_filter"], "1");
    assert_eq!(spec.volumes["/policy"], "selu_p_gateway");
    assert_eq!(spec.labels[label::SPEC], hash);
    assert_eq!(spec.labels[label::ROLE], "gateway");
}

#[test]
fn a_gateway_that_carries_has_three_rights_and_one_more_kind_of_socket() {
    let (closed, closed_hash) = closed_gateway("p");
    let (spec, hash) = open_gateway("p", 8, &["192.0.2.53".parse().unwrap()]);
    assert_ne!(hash, closed_hash);
    assert_eq!(spec.labels[label::SPEC], hash);
    assert_eq!(spec.user, "0:0");
    assert_eq!(spec.cap_drop, ["ALL"]);
    assert_eq!(spec.cap_add, ["NET_ADMIN", "SETGID", "SETUID"]);
    assert!(spec.read_only_root && spec.no_new_privileges);
    assert_eq!(spec.nano_cpus, 2_000_000_000);
    assert_eq!(open_gateway("p", 1, &[]).0.nano_cpus, 1_000_000_000);
    assert_eq!(spec.sysctls["net.ipv4.ip_forward"], "0");
    assert_eq!(spec.volumes["/egress"], "selu_p_egress");
    assert_eq!(
        spec.dns,
        ["192.0.2.53".parse::<std::net::Ipv4Addr>().unwrap()]
    );

    let profile = seccomp_profile(&spec.seccomp).unwrap();
    assert_eq!(profile, PARENT_SECCOMP_PROFILE.as_str());
    assert_eq!(seccomp_profile(&closed.seccomp), Some(SECCOMP_PROFILE));
    assert_eq!(seccomp_profile("sha256:00"), None);
    let mut parsed: Value = serde_json::from_str(profile).unwrap();
    let rules = parsed["syscalls"].as_array_mut().unwrap();
    let added = rules.remove(0);
    assert_eq!(parsed, self::profile(), "nothing else differs");
    assert_eq!(added["names"], serde_json::json!(["socket"]));
    let values: Vec<u64> = added["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["value"].as_u64().unwrap())
        .collect();
    assert_eq!(values, [16, 12], "AF_NETLINK, NETLINK_NETFILTER");
}

#[test]
fn a_helper_has_its_role_and_nothing_to_write_to() {
    let spec = helper_spec("p", "hold", vec!["gateway".to_owned(), "hold".to_owned()]);
    assert_eq!(spec.labels[label::ROLE], "hold");
    assert_eq!(spec.labels[label::PROJECT], "p");
    assert!(spec.cap_add.is_empty() && spec.volumes.is_empty() && spec.tmpfs.is_empty());
    assert!(spec.read_only_root && !spec.restart);
}
