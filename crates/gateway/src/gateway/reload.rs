//! Another file's settings, taken over by a running gateway.

use std::io;
use std::time::Duration;

use super::Gateway;
use super::firewall::has_firewall;
use crate::arms::{self, Arms};
use crate::config::Config;
use crate::doors::Doors;
use crate::policy::Policy;
use crate::setup::observer_of;

impl Gateway {
    /// Uses another file's settings, for connections that are opened from now on.
    pub(super) fn reload(&mut self, config: Config) -> io::Result<()> {
        if let Some(key) = self.config.fixed_difference(&config) {
            let remedy = "stop the gateway and start it again";
            return Err(io::Error::other(format!(
                "{key} has changed, which a running gateway cannot; {remedy}"
            )));
        }
        let was_observed = self.observer.is_some();
        if !was_observed {
            self.observer = observer_of(&config, self.is_observing, &self.evidence, &self.counters)?;
        }
        let before = std::mem::replace(&mut self.config, config);
        let reloaded = self.reload_parts(&before);
        if let Err(error) = reloaded.and_then(|()| self.configure()) {
            let refused = std::mem::replace(&mut self.config, before);
            let _ = self.reload_parts(&refused);
            // What was refused must not be left half done.
            if !was_observed && let Some(observer) = self.observer.take() {
                observer.end();
            }
            let _ = self.configure();
            return Err(error);
        }
        self.policy = Policy::new(&self.config);
        self.doors = Doors::new(has_firewall());
        self.look_at_firewall();
        if let Some(observer) = &self.observer {
            observer.reload(&self.config);
        }
        let limits = &self.config.gateway;
        let hold = Duration::from_nanos(limits.hold.as_nanos());
        self.openings.set_limits(limits.opening, limits.opening_per_host, hold);
        Ok(())
    }

    /// Takes over the settings of all parts that have threads of their own.
    fn reload_parts(&mut self, before: &Config) -> io::Result<()> {
        self.reload_agents(before)?;
        self.reload_tunnel(before)?;
        let about = |config: &Config| (config.shaper.clone(), config.gateway.radio.clone());
        if about(&self.config) != about(before) {
            self.shaper = None;
            self.shaper = self.new_shaper()?;
        }
        Ok(())
    }

    /// Takes over the settings of agents. If they differ from those `before`, or allow more flows than there is room for, flows
    /// that have agents go on without.
    fn reload_agents(&mut self, before: &Config) -> io::Result<()> {
        let about =
            |config: &Config| (config.gateway.radio.clone(), config.used_agents(), config.scheme.clone());
        let has_room = match &self.agents {
            Some(agents) => agents.has_room(&self.config),
            None => self.is_observing || !self.config.has_agents(),
        };
        if about(&self.config) != about(before) || !has_room {
            // The interfaces of both have the same names.
            self.agents = None;
            self.agents = self.new_agents()?;
        } else if let Some(agents) = &mut self.agents {
            agents.set_limits(&self.config);
        }
        Ok(())
    }

    /// Takes over the settings of the tunnel, if they or its key differ from those `before`: it starts anew.
    fn reload_tunnel(&mut self, before: &Config) -> io::Result<()> {
        let about = |config: &Config| {
            let share = config.gateway.unhelped_permille();
            (config.tunnel.clone(), config.tunnel_classes(), config.rules.clone(), share)
        };
        let key = arms::key_of(&self.config)?;
        self.arms = key.as_ref().map(Arms::new);
        // The file of the key may have another one.
        let has_key = self.tunnel.as_ref().is_some_and(|tunnel| Some(tunnel.key()) == key.as_ref());
        if about(&self.config) != about(before) || !has_key {
            self.tunnel = None;
            self.tunnel = self.new_tunnel()?;
        }
        Ok(())
    }
}
