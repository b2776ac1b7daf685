//! Which flows are helped, and how: a pure function of the file and of the packet that opens a flow.

use crate::config::{Config, Match, SchemeName};
use crate::flow::Opening;

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// It passes, and is left alone for good.
    None(Reason),
    /// The connection is split between two sockets of the kernel.
    Split,
    /// It passes; in the tunnel its packets have help, each by its own rule.
    Tunnel,
    /// Agents of the scheme with this number in [`AGENTS`](crate::config::AGENTS) see its packets.
    Agents(usize),
}

/// Why a flow is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its rule says so.
    Rule,
    /// Its SYN has what a split could not carry over, and agents do not know.
    Obstacle,
}

/// The rules in the order of the file, and the scheme of other flows.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Match>,
    otherwise: SchemeName,
}

impl Policy {
    /// The policy of a file.
    pub fn new(config: &Config) -> Policy {
        Policy { rules: config.rules.clone(), otherwise: config.gateway.scheme }
    }

    /// The index of the rule that the flow matches, if any.
    fn rule(&self, opening: &Opening) -> Option<usize> {
        let (client, server) = (opening.flow.client.ip(), opening.flow.server);
        self.rules.iter().position(|rule| rule.matches(client, server.ip(), server.port(), opening.dscp))
    }

    /// The name of the flows with which the flow is compared: its rule, or the port of its server.
    pub(crate) fn class(&self, opening: &Opening) -> String {
        match self.rule(opening) {
            Some(index) => format!("match[{index}]"),
            None => format!("port {}", opening.flow.server.port()),
        }
    }

    /// What becomes of the flow that `opening` opens.
    pub fn help(&self, opening: &Opening) -> Help {
        let rule = self.rule(opening).map(|index| &self.rules[index]);
        match rule.map_or(self.otherwise, |rule| rule.scheme) {
            SchemeName::Basic => Help::None(Reason::Rule),
            // What neither splits nor agents could carry over, a tunnel does.
            SchemeName::Tunnel(_) => Help::Tunnel,
            _ if opening.obstacle.is_some() => Help::None(Reason::Obstacle),
            SchemeName::ITcp => Help::Split,
            SchemeName::Agents(number) => Help::Agents(number),
        }
    }
}
