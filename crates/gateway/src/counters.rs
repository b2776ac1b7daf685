//! What the gateway counts, in total since its process began.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Defines [`Counters`]: each counter with its meaning, and the gauges, which also decrease.
macro_rules! counters {
    (
        totals { $(#[doc = $total_doc:literal] $total:ident,)* }
        gauges { $(#[doc = $gauge_doc:literal] $gauge:ident,)* }
    ) => {
        /// The counters of all threads.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(#[doc = $total_doc] pub(crate) $total: Counter,)*
            $(#[doc = $gauge_doc] pub(crate) $gauge: Counter,)*
            /// The totals of agents, as `SCHEME.COUNTER`.
            schemes: Mutex<BTreeMap<String, u64>>,
        }

        impl Counters {
            /// Name, meaning and value of each counter, and whether it only increases.
            pub(crate) fn all(&self) -> Vec<(&'static str, &'static str, u64, bool)> {
                vec![
                    $((stringify!($total), $total_doc.trim_ascii(), self.$total.get(), true),)*
                    $((stringify!($gauge), $gauge_doc.trim_ascii(), self.$gauge.get(), false),)*
                ]
            }

            /// The totals of agents.
            pub(crate) fn schemes(&self) -> BTreeMap<String, u64> {
                self.schemes.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }

            /// Adds what agents have counted since `before`.
            pub(crate) fn add_schemes(&self, before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) {
                let mut schemes = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
                for (name, value) in now {
                    *schemes.entry(name.clone()).or_default() += value - before.get(name).unwrap_or(&0);
                }
            }
        }
    };
}

counters! {
    totals {
        /// Flows across the radio that asked for help: those of the share that is left alone are not among them.
        flows,
        /// Flows that were split.
        split,
        /// Flows that got agents.
        given_agents,
        /// Flows whose packets have help in the tunnel, as far as they enter it.
        tunnelled,
        /// Flows left alone to compare with, chosen by the tunnel's key. Without a tunnel the kernel counts them.
        unhelped,
        /// Packets that agents saw.
        agent_packets,
        /// Packets that agents kept back or discarded.
        suppressed,
        /// Packets that reached agents without a flow, and were dropped.
        strays,
        /// Flows that the rules leave alone.
        passed_by_rule,
        /// Flows with data or unknown options in the SYN, left alone.
        passed_by_obstacle,
        /// Flows left alone since there were as many as the limits allow.
        passed_by_limit,
        /// Flows whose server refused or could not be reached; it or its router answered the client itself.
        refused,
        /// Flows whose server did not answer in time, left alone.
        passed_by_silence,
        /// Flows left alone since a firewall of this host stops their clients or its answers, or a split would pass it by.
        passed_by_firewall,
        /// Flows left alone since this process stood still; one whose client asked again counts twice.
        passed_by_stall,
        /// Flows left alone since the rules changed while they opened.
        passed_by_reload,
        /// Flows of the share that would have asked for help, while only observing.
        observed,
        /// Connections that the client gave up before it had an answer.
        abandoned,
        /// Split connections that one end reset.
        reset,
        /// Split connections that both ends have closed.
        closed,
        /// Bytes from clients to servers.
        bytes_to_servers,
        /// Bytes from servers to clients.
        bytes_to_clients,
        /// Flows left alone since harm was found.
        passed_by_harm,
        /// Flows whose headers were observed, of both arms.
        watched,
        /// Flows that were not observed since there were as many as the observer has room for.
        unwatched,
        /// Packets of which the kernel's report was lost; flows that were under way then are left out.
        unreported,
        /// Failures of system calls that cost a flow.
        failures,
    }
    gauges {
        /// Split connections.
        open,
        /// Flows that have agents.
        with_agents,
        /// Connections that are being opened.
        opening,
        /// Flows that are being observed.
        watching,
    }
}

/// A number that all threads may change.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Its value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn less_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
