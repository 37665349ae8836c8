//! The worker's own jail (S7): what it never needs it cannot ask the kernel for, whatever its bytes make of it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// System calls that are refused: other programs, other processes, other namespaces, mounts, the kernel's inner parts.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Families of sockets that are left.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET];

/// Why there is no jail; then there is no worker.
#[derive(Debug, thiserror::Error)]
#[error("cannot confine the worker")]
pub(crate) struct JailError(#[from] Error);

/// Confines this thread and every one that it makes. There is no way back.
pub(super) fn enter() -> Result<(), JailError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let foreign = FAMILIES
        .iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socket, vec![rule(foreign)?]);
    // A thread shares everything with its process; what does not is a process of its own.
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let process = condition(0, SeccompCmpOp::MaskedEq(thread), 0)?;
    rules.insert(libc::SYS_clone, vec![rule(vec![process])?]);
    install(rules, libc::EPERM)?;

    // Its arguments are in memory, where no filter can see them. The C library goes back to the older call.
    install(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
    )
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    Ok(SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        operator,
        value,
    )?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(conditions)?)
}

fn install(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<(), JailError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(Error::from)?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        architecture,
    )
    .map_err(Error::from)?;
    let program = BpfProgram::try_from(filter).map_err(Error::from)?;
    Ok(apply_filter(&program)?)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::process::Command;
    use std::thread;

    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;

    #[test]
    fn a_confined_thread_serves_sockets_and_threads_and_starts_no_program() {
        assert!(Command::new("/bin/true").status().is_ok());
        thread::spawn(|| {
            enter().unwrap();
            assert!(Command::new("/bin/true").status().is_err());
            assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
            for family in [
                AddressFamily::NETLINK,
                AddressFamily::PACKET,
                AddressFamily::VSOCK,
                AddressFamily::INET6,
            ] {
                let refused = socket(family, SocketType::DGRAM, None).unwrap_err();
                assert_eq!(refused, rustix::io::Errno::PERM, "{family:?}");
            }
            let inner = thread::spawn(|| Command::new("/bin/true").status().is_err());
            assert!(inner.join().unwrap(), "a thread of a confined one");
        })
        .join()
        .unwrap();
        assert!(
            Command::new("/bin/true").status().is_ok(),
            "no other thread"
        );
    }
}
