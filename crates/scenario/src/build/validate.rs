//! Constraints that the schema's types cannot express: values that are invalid or do not go together.

use std::iter;

use lasthop_proto::arq;
use lasthop_proto::scheme::{LinkUse, Scheme};
use lasthop_proto::tcp::{Override, Settings};

use super::network::Network;
use crate::file::alternatives;
use crate::schema::{Radio, Scenario};

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Path of the value: keys, and indices of list elements.
    pub path: Vec<String>,
    /// What was found, what was expected, and how to fix it.
    pub problem: String,
}

impl Fault {
    pub(crate) fn new(path: &str, problem: impl Into<String>) -> Fault {
        Fault { path: path.split('.').map(str::to_owned).collect(), problem: problem.into() }
    }
}

impl Scenario {
    /// The errors that types cannot express; empty if the scenario can run. A scenario read from a file has
    /// none.
    pub fn faults(&self) -> Vec<Fault> {
        self.resolve().err().unwrap_or_default()
    }

    /// The network of the scenario.
    ///
    /// # Errors
    /// All errors of the scenario, at least one.
    pub(crate) fn resolve(&self) -> Result<Network, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, path: &str, problem: &dyn Fn() -> String| {
            if !holds {
                faults.push(Fault::new(path, problem()));
            }
        };
        check(!self.limit.is_zero(), "limit", &|| String::from("found \"0 s\", expected more than zero"));
        let (warmup, limit) = (self.warmup, self.limit);
        check(warmup < limit || limit.is_zero(), "warmup", &|| {
            format!("found \"{warmup}\", expected less than the limit, which is \"{limit}\"")
        });
        let faults_of_tcp = self.tcp.faults().into_iter();
        faults.extend(faults_of_tcp.map(|(key, problem)| Fault::new(&format!("tcp.{key}"), problem)));
        match self.network() {
            Ok(network) => {
                if faults.is_empty() {
                    faults.extend(self.faults_of_schemes(&network));
                }
                if faults.is_empty() { Ok(network) } else { Err(faults) }
            }
            Err(wrong) => Err([faults, wrong].concat()),
        }
    }

    /// The settings of the stated sender, or of `[tcp]` where they differ from its profile, that have no effect
    /// on any connection.
    pub(crate) fn unused_tcp(&self) -> Vec<Fault> {
        let keys: Vec<(String, &'static str)> = match &self.sender {
            Some(sender) => {
                let stated = self.senders.get(sender).into_iter().flat_map(Override::stated);
                stated.map(|key| (format!("senders.{sender}.{key}"), key)).collect()
            }
            None => self.tcp.own_keys().map(|key| (format!("tcp.{key}"), key)).collect(),
        };
        let mut unused = Vec::new();
        for (path, key) in keys {
            unused.extend(self.tcp.unused(key).map(|problem| (key, Fault::new(&path, problem))));
        }
        let (false, Ok(network)) = (unused.is_empty(), self.resolve()) else { return Vec::new() };
        // Split connections have settings of their own on the wireless part.
        let schemes = self.schemes.iter().filter_map(|name| self.scheme.get(name));
        let splits: Vec<_> = schemes
            .flat_map(|scheme| self.all_tcp(&network).filter_map(|tcp| scheme.split(tcp)))
            .map(|split| split.wireless)
            .collect();
        let is_used = |key| self.all_tcp(&network).chain(&splits).any(|tcp| tcp.unused(key).is_none());
        unused.into_iter().filter(|(key, _)| !is_used(key)).map(|(_, fault)| fault).collect()
    }

    /// `[tcp]`, and the TCP settings of each connection that differ from it.
    fn all_tcp<'a>(&'a self, network: &'a Network) -> impl Iterator<Item = &'a Settings> {
        iter::once(&self.tcp).chain(network.settings().filter(|tcp| **tcp != self.tcp))
    }

    fn faults_of_schemes(&self, network: &Network) -> Vec<Fault> {
        if self.schemes.is_empty() {
            return vec![Fault::new("schemes", "found an empty list, expected at least one scheme")];
        }
        let of_parameters = self.schemes.iter().filter_map(|name| self.scheme.get(name)).flat_map(|scheme| {
            let faults = self.all_tcp(network).flat_map(|tcp| scheme.faults(tcp));
            faults.map(|(key, problem)| Fault::new(&format!("scheme.{}.{key}", scheme.name()), problem))
        });
        let of_parameters: Vec<Fault> = of_parameters.collect();
        if !of_parameters.is_empty() {
            return of_parameters;
        }
        let wrong = self.schemes.iter().enumerate().filter_map(|(index, name)| {
            let repeated = self.schemes[..index].contains(name);
            let problem = match self.workable(name, network) {
                Ok(_) if repeated => format!("found \"{name}\" a second time, expected it once"),
                Ok(_) => return None,
                Err(problem) => problem,
            };
            Some(Fault::new(&format!("schemes.{index}"), problem))
        });
        wrong.collect()
    }

    /// Capabilities of the wireless links on connection paths that the scheme `name` disables: `"arq"` for
    /// loss recovery, `"fec"` for error correction.
    pub fn unused_by(&self, name: &str) -> Vec<&'static str> {
        let (Some(scheme), Ok(network)) = (self.scheme.get(name), self.resolve()) else { return Vec::new() };
        let LinkUse { recovers, protects } = scheme.link();
        let any = |has: fn(&Radio) -> bool| network.radios().any(has);
        let arq = !recovers && any(|radio| radio.arq != arq::Config::None);
        let fec = protects.is_none() && any(|radio| radio.fec.is_some());
        [(arq, "arq"), (fec, "fec")].into_iter().filter_map(|(unused, what)| unused.then_some(what)).collect()
    }

    /// The scheme called `name` if it supports the links of this scenario; otherwise the reason.
    pub(crate) fn workable(&self, name: &str, network: &Network) -> Result<&dyn Scheme, String> {
        let Some(scheme) = self.scheme.get(name) else {
            let names = self.scheme.all().map(Scheme::name);
            return Err(format!("found \"{name}\", {}", alternatives(name, names)));
        };
        let LinkUse { recovers, protects } = scheme.link();
        let any = |lacks: fn(&Radio) -> bool| network.radios().any(lacks);
        let ends = network.flows.iter().any(|flow| flow.ends());
        let splits: Vec<_> = self.all_tcp(network).filter_map(|tcp| scheme.split(tcp)).collect();
        if let Some((key, problem)) = self.all_tcp(network).flat_map(|tcp| scheme.faults(tcp)).next() {
            return Err(format!("\"{name}\" has a parameter {key}: {problem}"));
        }
        let problem = if recovers && network.radios().next().is_none() && !network.crosses_bss() {
            "needs a wireless link, and no connection crosses one; leave the scheme out"
        } else if recovers && any(|radio| radio.arq == arq::Config::None) {
            "needs a link that recovers its own losses, and this one has no ARQ; \
             add a table [radio.arq.stop-and-wait], or leave the scheme out"
        } else if protects.is_some() && network.crosses_bss() {
            "needs links with a code, and those of a cell have none; leave the scheme out"
        } else if protects.is_some() && any(|radio| radio.fec.is_none()) {
            "needs a link with a code, and this one has none; \
             add fec = \"bch-255-131-18\" to [radio], or leave the scheme out"
        } else if !splits.is_empty() && network.has_chained_radios() {
            "splits connections into wired and wireless parts, and one goes over two wireless links in a row; \
             leave the scheme out"
        } else if ends && !splits.is_empty() && network.settings().any(|tcp| !tcp.close) {
            "needs connections that are closed with FIN, and these are not; \
             add close = true to [tcp], or leave the scheme out"
        } else if ends && splits.iter().any(|split| !split.wireless.close) {
            "needs connections that are closed with FIN, and their wireless parts are not; \
             leave wireless.close out"
        } else {
            return Ok(scheme);
        };
        Err(format!("\"{name}\" {problem}"))
    }
}
