//! Orders carried out: what is served becomes what the policy says, and connections that stay allowed stay.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use selu_compiler::plan::GatewayRule;
use tokio_util::task::TaskTracker;

use super::addresses::{self, Addresses, AddressesError};
use super::context::Parts;
use super::dial::{Dialer, Internet, Outside};
use super::limits::{Everyone, Limits};
use super::listen::Sockets;
use super::reach::Reach;
use super::rules::Rules;
use super::{GoingBy, NetworkContext};
use crate::egress::control::{Apply, Device};
use crate::egress::record::Recorder;

/// Everything that is served.
pub(super) struct Networks {
    folder: PathBuf,
    resolv_conf: PathBuf,
    recorder: Recorder,
    all: Everyone,
    outside: Option<(Device, Arc<dyn Outside>)>,
    served: HashMap<String, Served>,
}

/// One network that is served.
struct Served {
    context: Arc<NetworkContext>,
    device: Device,
    rule: GatewayRule,
    tasks: TaskTracker,
}

/// Why a policy is not gone by. Nothing is carried then.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error("network {network}: {message}")]
    Rules { network: String, message: String },
    #[error("network {network} has no virtual addresses")]
    Addresses {
        network: String,
        source: AddressesError,
    },
    #[error("network {network}: cannot listen on {device}")]
    Listen {
        network: String,
        device: String,
        source: io::Error,
    },
    #[error("network {0}: a connection that is no longer allowed did not end")]
    Stuck(String),
    #[error("cannot read the gateway's resolvers")]
    Resolvers(#[source] io::Error),
    #[error("cannot forget the addresses of networks that are gone")]
    Forget(#[source] io::Error),
}

impl Networks {
    /// Serves nothing yet. `folder` keeps the virtual addresses.
    pub(super) fn new(
        folder: impl Into<PathBuf>,
        resolv_conf: impl Into<PathBuf>,
        recorder: Recorder,
    ) -> Self {
        Self {
            folder: folder.into(),
            resolv_conf: resolv_conf.into(),
            recorder,
            all: Everyone::new(),
            outside: None,
            served: HashMap::new(),
        }
    }

    /// Goes by a policy. When this returns, whatever it does not allow is cut.
    pub(super) async fn apply(&mut self, apply: &Apply) -> Result<(), ApplyError> {
        let Apply {
            hash: _,
            policy,
            networks,
            outside,
        } = apply;
        // Everything is read before anything is touched.
        let reach = Reach::new(&policy.refused, &policy.ranges);
        let outside = self.outside(outside.as_ref())?;
        let dialer = Arc::new(Dialer::new(reach, outside));
        let mut wanted = Vec::new();
        for (network, rule) in &policy.networks {
            let Some(device) = networks.get(network).filter(|_| rule.is_open()) else {
                continue;
            };
            let rules = Rules::new(rule).map_err(|message| ApplyError::Rules {
                network: network.clone(),
                message,
            })?;
            let going_by = GoingBy {
                rules,
                dialer: Arc::clone(&dialer),
            };
            wanted.push((network, rule, device, going_by));
        }

        // Who the capability is and where it lives cannot change under a network's connections.
        let stays = |name: &str, served: &Served| {
            wanted.iter().any(|(network, rule, device, _)| {
                *network == name
                    && **device == served.device
                    && rule.instance == served.rule.instance
                    && rule.subnet == served.rule.subnet
                    && rule.capability == served.rule.capability
            })
        };
        let gone: Vec<String> = self
            .served
            .iter()
            .filter(|(name, served)| !stays(name, served))
            .map(|(name, _)| name.clone())
            .collect();
        let gone = gone
            .iter()
            .filter_map(|network| self.served.remove(network));
        stop(gone.collect()).await;
        for (network, rule, device, going_by) in wanted {
            match self.served.get_mut(network) {
                Some(served) => {
                    served.rule = rule.clone();
                    let changed = served.context.go_by(going_by).await;
                    let cut = changed.map_err(|source| ApplyError::Addresses {
                        network: network.clone(),
                        source,
                    })?;
                    if !cut {
                        return Err(ApplyError::Stuck(network.clone()));
                    }
                }
                None => {
                    // A device that has just gone is no fault: the parent orders again without it.
                    if let Some(served) = self.start(network, rule, device, going_by)? {
                        self.served.insert(network.clone(), served);
                    }
                }
            }
        }
        addresses::forget(&self.folder, |network| {
            policy.networks.contains_key(network)
        })
        .map_err(ApplyError::Forget)
    }

    /// Serves nothing any more.
    pub(super) async fn stop_all(&mut self) {
        stop(self.served.drain().map(|(_, served)| served).collect()).await;
    }

    fn outside(&mut self, device: Option<&Device>) -> Result<Option<Arc<dyn Outside>>, ApplyError> {
        let Some(device) = device else {
            self.outside = None;
            return Ok(None);
        };
        if let Some((present, outside)) = &self.outside
            && present == device
        {
            return Ok(Some(Arc::clone(outside)));
        }
        let internet = Internet::new(device.device.clone(), &self.resolv_conf)
            .map_err(ApplyError::Resolvers)?;
        let outside: Arc<dyn Outside> = Arc::new(internet);
        self.outside = Some((device.clone(), Arc::clone(&outside)));
        Ok(Some(outside))
    }

    fn start(
        &self,
        network: &str,
        rule: &GatewayRule,
        device: &Device,
        going_by: GoingBy,
    ) -> Result<Option<Served>, ApplyError> {
        let planned = rule.network(network);
        let failed = |source| ApplyError::Addresses {
            network: network.to_owned(),
            source,
        };
        let addresses = Addresses::open(Path::new(&self.folder), network, planned.virtual_range())
            .map_err(failed)?;
        let context = NetworkContext::new(Parts {
            network: network.to_owned(),
            instance: rule.instance.clone(),
            device: Some(device.device.clone()),
            gateway: planned.gateway,
            recorder: self.recorder.clone(),
            limits: Limits::new(&self.all),
            addresses,
            going_by,
        });
        let context = Arc::new(context.map_err(failed)?);
        let sockets = match Sockets::bind(&context) {
            Ok(sockets) => sockets,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(source) => {
                return Err(ApplyError::Listen {
                    network: network.to_owned(),
                    device: device.device.clone(),
                    source,
                });
            }
        };
        let tasks = TaskTracker::new();
        sockets.serve(&context, rule.capability, &tasks);
        Ok(Some(Served {
            context,
            device: device.clone(),
            rule: rule.clone(),
            tasks,
        }))
    }
}

/// Whether the device, or the address on it, was taken away meanwhile.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NODEV, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| gone.contains(&code))
}

/// Closes the listeners and cuts every connection of these networks; returns when that is so.
async fn stop(gone: Vec<Served>) {
    for served in &gone {
        served.context.cancelled.cancel();
        served.tasks.close();
    }
    for served in gone {
        served.tasks.wait().await;
    }
}
