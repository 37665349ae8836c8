//! What parent and worker say to each other: one JSON line a message. Orders go to the worker's standard input, reports
//! come from its standard output.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::policy::Policy;

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

        let order = r#"{"apply":{"hash":"sha256:00","policy":{"project":"p","generation":3,"networks":{},"refused":[],"ranges":[]},"networks":{"selu_p_a_b_1":{"device":"eth1","index":7}},"outside":{"device":"eth0","index":2}}}"#;
        let Order::Apply(apply) = serde_json::from_str(order).unwrap();
        assert_eq!(apply.networks["selu_p_a_b_1"].index, 7);
        assert_eq!(serde_json::to_string(&Order::Apply(apply)).unwrap(), order);
    }
}
