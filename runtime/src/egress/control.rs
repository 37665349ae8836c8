//! What the gateway's processes say to each other.
//!
//! Parent and worker: one JSON line a message; orders go to the worker's standard input, reports come from its standard
//! output. The role `policy` and the parent: one question and one answer on a socket.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::policy::{Policy, Standing};

/// A tmpfs of a gateway that carries egress; one that carries none has no such folder.
pub(crate) const CONTROL_FOLDER: &str = "/run";

/// How long the parent may take to open its socket.
const BEGIN_LIMIT: Duration = Duration::from_secs(5);

/// The parent's socket in it.
pub(crate) const SOCKET: &str = "/run/control";

/// Where every connection from a container to a virtual address arrives in the gateway, whatever its port was.
pub(crate) const REDIRECT_PORT: u16 = 61_443;

/// Where the gateway's HTTP proxy listens.
pub(crate) const PROXY_PORT: u16 = 3128;

/// The gateway's name in every container's network.
pub(crate) const GATEWAY_NAME: &str = "gateway.selu.internal";

/// Parent → worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Go by this from now on, and say so once it is so. What is no longer in it is cut before the report.
    Apply(Box<Apply>),
    /// Say that you are alive.
    Ping,
}

/// A policy with the devices that the kernel has for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Apply {
    /// [`Policy::hash`].
    pub(crate) hash: String,
    /// The policy.
    pub(crate) policy: Policy,
    /// The device of each of its networks that may open anything and that the gateway is attached to, by network. The
    /// others have none yet; when they have, the same policy is ordered again.
    pub(crate) networks: BTreeMap<String, Device>,
    /// The way out; `None` while there is none, and then nothing is dialled.
    pub(crate) outside: Option<Device>,
}

/// A network device of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    /// Its name, such as `eth1`.
    pub(crate) device: String,
    /// Its index. A device that was taken away and came back has the same name and another index.
    pub(crate) index: u32,
}

/// Worker → parent: the answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Report {
    /// It goes by this policy.
    Applied {
        /// [`Policy::generation`].
        generation: u64,
        /// [`Policy::hash`].
        hash: String,
    },
    /// It goes by nothing: whatever it carried is cut. Why, for people.
    Failed(String),
    /// It is alive.
    Alive,
}

/// The role `policy` → parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// There is a new policy: how does the gateway stand once it is gone by?
    Reload,
    /// How does it stand?
    Show,
}

/// Parent → the role `policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// It goes by this.
    Standing(Standing),
    /// It goes by nothing. Why, for people.
    Failed(String),
}

/// Why the parent did not say how it stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// It could not be asked.
    #[error("the gateway's first process does not answer")]
    Silent(#[source] io::Error),
    /// It goes by nothing.
    #[error("the gateway carries nothing: {0}")]
    Nothing(String),
}

/// The parent may just have begun.
fn connect() -> io::Result<UnixStream> {
    let give_up = Instant::now() + BEGIN_LIMIT;
    loop {
        match UnixStream::connect(SOCKET) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) && Instant::now() < give_up =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// Asks the parent.
pub(crate) fn ask(question: Question) -> Result<Standing, AskError> {
    let talk = || {
        let mut stream = connect()?;
        stream.write_all(&serde_json::to_vec(&question)?)?;
        stream.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    };
    match talk().map_err(AskError::Silent)? {
        Answer::Standing(standing) => Ok(standing),
        Answer::Failed(text) => Err(AskError::Nothing(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_form_that_both_sides_agreed_on() {
        let report = Report::Applied {
            generation: 3,
            hash: "sha256:00".to_owned(),
        };
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"applied":{"generation":3,"hash":"sha256:00"}}"#
        );
        let failed = serde_json::to_string(&Report::Failed("no way".to_owned())).unwrap();
        assert_eq!(failed, r#"{"failed":"no way"}"#);
        let alive = serde_json::to_string(&Report::Alive).unwrap();
        assert_eq!(alive, r#""alive""#);
        assert_eq!(serde_json::to_string(&Order::Ping).unwrap(), r#""ping""#);

        let order = r#"{"apply":{"hash":"sha256:00","policy":{"project":"p","generation":3,"networks":{},"refused":[],"ranges":[]},"networks":{"selu_p_a_b_1":{"device":"eth1","index":7}},"outside":{"device":"eth0","index":2}}}"#;
        let Ok(Order::Apply(apply)) = serde_json::from_str(order) else {
            panic!("{order}");
        };
        assert_eq!(apply.networks["selu_p_a_b_1"].index, 7);
        assert_eq!(serde_json::to_string(&Order::Apply(apply)).unwrap(), order);
    }
}
