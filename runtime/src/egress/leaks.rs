//! `selu gateway leaks listen` and `selu gateway leaks try`: both ends of the leak probe (security.md S13), and what a
//! container finds in force when it looks at itself.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RecordType};
use serde::{Deserialize, Serialize};

use super::host;

/// What every target says.
const WORD: &[u8] = b"selu";

/// How long a target may take: it is on the same machine, or nowhere.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Attempts at once: the container may have few threads.
const AT_ONCE: usize = 12;

/// Where a target listens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    /// Of its network namespace.
    pub(crate) addresses: Vec<IpAddr>,
}

/// By which way something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    Tcp,
    Udp,
    /// A name that exists outside is asked for.
    Dns,
}

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// For people, such as `the engine's host at 10.0.0.1 by TCP`.
    pub(crate) name: String,
    pub(crate) at: SocketAddr,
    pub(crate) way: Way,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tried {
    /// Names of the targets that answered.
    pub(crate) answered: Vec<String>,
    pub(crate) inside: Inside,
}

/// What is in force for the process itself, whatever the engine says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inside {
    /// Whether system calls are filtered.
    pub(crate) seccomp: bool,
    pub(crate) no_new_privileges: bool,
    /// Whether it has, or could get, any capability of the kernel's.
    pub(crate) capabilities: bool,
    pub(crate) root_writable: bool,
    /// Whether an interface beside loopback has an IPv6 address.
    pub(crate) ipv6: bool,
    /// `uid:gid`, if it has no other identity beside.
    pub(crate) user: Option<String>,
    /// The limits of its control group, [`UNLIMITED`] included; `None` where it cannot see them.
    pub(crate) memory_bytes: Option<u64>,
    /// Beyond the memory.
    pub(crate) swap_bytes: Option<u64>,
    /// Billionths of a processor.
    pub(crate) nano_cpus: Option<u64>,
    pub(crate) pids: Option<u64>,
    /// Files that it may have open.
    pub(crate) nofile: Option<u64>,
}

/// A limit that is none.
const UNLIMITED: u64 = u64::MAX;

/// Listens, says where, and answers until the desk's end of standard input.
pub(super) fn listen() -> io::Result<()> {
    let (tcp, udp) = match TcpListener::bind("[::]:0") {
        Ok(tcp) => (tcp, UdpSocket::bind("[::]:0")?),
        // A namespace without IPv6.
        Err(_) => (
            TcpListener::bind("0.0.0.0:0")?,
            UdpSocket::bind("0.0.0.0:0")?,
        ),
    };
    let listening = Listening {
        tcp: tcp.local_addr()?.port(),
        udp: udp.local_addr()?.port(),
        addresses: host::addresses()?,
    };
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            // Whoever does not take the word has left.
            let _ = stream.write_all(WORD);
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((_, from)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(WORD, from);
        }
    });
    say(&listening)?;
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(())
}

/// Tries what standard input lists.
pub(super) fn attempt() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    let targets: Vec<Target> = serde_json::from_slice(&text)?;
    let mut answered = Vec::new();
    for some in targets.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let tries = some.iter().map(|target| scope.spawn(|| answers(target)));
            let tries: Vec<_> = tries.collect();
            for (target, tried) in some.iter().zip(tries) {
                // A try that ended without an answer was none.
                if tried.join().unwrap_or(false) {
                    answered.push(target.name.clone());
                }
            }
        });
    }
    say(&Tried {
        answered,
        inside: inside(),
    })
}

fn say(answer: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn answers(target: &Target) -> bool {
    match target.way {
        // To get through is enough, whatever is said then.
        Way::Tcp => TcpStream::connect_timeout(&target.at, PATIENCE).is_ok(),
        Way::Udp => exchange(target.at, WORD).is_some_and(|answer| !answer.is_empty()),
        Way::Dns => question()
            .and_then(|question| exchange(target.at, &question))
            .and_then(|answer| Message::from_vec(&answer).ok())
            .is_some_and(|answer| !answer.answers.is_empty()),
    }
}

fn exchange(at: SocketAddr, what: &[u8]) -> Option<Vec<u8>> {
    let any: IpAddr = match at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.send_to(what, at).ok()?;
    let mut buffer = [0; 1500];
    // From wherever: a host with several addresses answers from another one than it was asked at.
    let (length, _) = socket.recv_from(&mut buffer).ok()?;
    Some(buffer[..length].to_vec())
}

/// Asks for a name that is there for examples (RFC 2606).
fn question() -> Option<Vec<u8>> {
    let name = Name::from_ascii("example.com.").ok()?;
    let mut message = Message::new(4711, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, RecordType::A));
    message.to_vec().ok()
}

fn inside() -> Inside {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let addresses = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let group = |path: &str| fs::read_to_string(format!("/sys/fs/cgroup/{path}")).ok();
    let number = |paths: [&str; 2]| {
        paths
            .into_iter()
            .find_map(group)
            .and_then(|text| limit(&text))
    };
    let memory_bytes = number(["memory.max", "memory/memory.limit_in_bytes"]);
    // The first version of control groups counts both together.
    let swap_bytes = match group("memory.swap.max") {
        Some(text) => limit(&text),
        None => group("memory/memory.memsw.limit_in_bytes")
            .and_then(|text| limit(&text)?.checked_sub(memory_bytes?)),
    };
    let of_period = match group("cpu.max") {
        Some(text) => text
            .split_once(' ')
            .map(|(quota, period)| (quota.to_owned(), period.to_owned())),
        None => group("cpu/cpu.cfs_quota_us").zip(group("cpu/cpu.cfs_period_us")),
    };
    Inside {
        root_writable: !read_only_root(&mounts),
        ipv6: addresses
            .lines()
            .any(|line| !line.trim_end().ends_with(" lo")),
        memory_bytes,
        swap_bytes,
        nano_cpus: of_period.and_then(|(quota, period)| processors(&quota, &period)),
        pids: number(["pids.max", "pids/pids.max"]),
        nofile: open_files(&limits),
        ..of_status(&status)
    }
}

/// From `/proc/self/mounts`. Trying to write would show what this user may, and an image may run another.
fn read_only_root(mounts: &str) -> bool {
    // What was mounted last lies on top.
    let root = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .rfind(|fields| fields.get(1) == Some(&"/"));
    let options = root.as_ref().and_then(|fields| fields.get(3));
    options.is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

/// A number, or the words that control groups have for none.
fn limit(text: &str) -> Option<u64> {
    match text.trim() {
        "max" | "-1" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

/// Billionths of a processor, from microseconds of each period.
fn processors(quota: &str, period: &str) -> Option<u64> {
    match limit(quota)? {
        UNLIMITED => Some(UNLIMITED),
        quota => quota
            .checked_mul(1_000_000_000)?
            .checked_div(limit(period)?),
    }
}

/// From `/proc/self/limits`: the hard limit, which the process cannot raise.
fn open_files(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().nth(1)? {
        "unlimited" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

/// From `/proc/self/status`. What is not in it is not in force.
fn of_status(status: &str) -> Inside {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    };
    let none = |name: &str| field(name).is_some_and(|text| text.bytes().all(|byte| byte == b'0'));
    // Real, effective, saved and of the file system.
    let same = |name: &str| {
        let mut ids = field(name)?.split_whitespace();
        let first = ids.next()?;
        ids.all(|id| id == first).then_some(first)
    };
    let user = same("Uid")
        .zip(same("Gid"))
        .map(|(user, group)| format!("{user}:{group}"));
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    Inside {
        seccomp: field("Seccomp") == Some("2"),
        no_new_privileges: field("NoNewPrivs") == Some("1"),
        capabilities: !sets.into_iter().all(none),
        user,
        ..Inside::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_says_of_itself_is_read_and_silence_counts_as_open() {
        let shut = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                    CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n\
                    Seccomp_filters:\t1\n";
        let found = of_status(shut);
        assert!(found.seccomp && found.no_new_privileges && !found.capabilities);
        let open = of_status("CapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n");
        assert!(!open.seccomp && !open.no_new_privileges && open.capabilities);
        let ids = |uids: &str| of_status(&format!("Uid:\t{uids}\nGid:\t7\t7\t7\t7\n")).user;
        assert_eq!(ids("9\t9\t9\t9").as_deref(), Some("9:7"));
        assert_eq!(ids("9\t0\t9\t9"), None, "root by another of its ids");
        let silent = of_status("");
        assert!(!silent.seccomp && !silent.no_new_privileges && silent.capabilities);
    }

    #[test]
    fn what_is_in_force_is_read_and_a_limit_that_is_none_is_seen_as_such() {
        assert_eq!(limit("max\n"), Some(UNLIMITED));
        assert_eq!(limit("33554432\n"), Some(33_554_432));
        assert_eq!(limit(""), None);
        for (quota, period, seen) in [
            ("50000", "100000\n", Some(500_000_000)),
            ("max", "100000\n", Some(UNLIMITED)),
            ("-1\n", "100000\n", Some(UNLIMITED)),
            ("x", "100000", None),
            ("50000", "0", None),
        ] {
            assert_eq!(processors(quota, period), seen, "{quota:?}");
        }
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max open files            1024                 4096                 files     \n";
        assert_eq!(open_files(limits), Some(4096));
        assert_eq!(
            open_files("Max open files  unlimited  unlimited  files\n"),
            Some(UNLIMITED)
        );
        assert_eq!(open_files(""), None);
        let shut = "overlay / overlay ro,relatime,lowerdir=/a 0 0\nproc /proc proc rw 0 0\n";
        assert!(read_only_root(shut));
        assert!(!read_only_root(&shut.replace("ro,", "rw,")));
        assert!(!read_only_root(""));
    }

    #[test]
    fn what_listens_answers_by_both_ways_and_what_does_not_does_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (open, heard) = (tcp.local_addr().unwrap(), udp.local_addr().unwrap());
        thread::spawn(move || {
            let mut buffer = [0; 64];
            let (_, from) = udp.recv_from(&mut buffer).unwrap();
            udp.send_to(WORD, from).unwrap();
        });
        let target = |at, way| Target {
            name: String::new(),
            at,
            way,
        };
        assert!(answers(&target(open, Way::Tcp)));
        assert!(answers(&target(heard, Way::Udp)));
        drop(tcp);
        assert!(!answers(&target(open, Way::Tcp)));
        assert!(!answers(&target(open, Way::Udp)));
    }
}
