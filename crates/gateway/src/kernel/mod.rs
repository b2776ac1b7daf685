//! What the kernel does for the gateway: packet filter, routes, the queue of opening connections, the log of headers,
//! transparent sockets.

pub(crate) mod datagrams;
pub(crate) mod filter;
pub(crate) mod heartbeat;
pub(crate) mod links;
pub(crate) mod log;
pub(crate) mod netlink;
pub(crate) mod nftables;
pub(crate) mod qdisc;
pub(crate) mod queue;
pub(crate) mod routes;
pub(crate) mod socket;
pub(crate) mod statements;
pub(crate) mod tunnel_routes;

/// The values of the three bits of packet marks that the gateway uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    shift: u32,
}

impl Marks {
    pub(crate) fn new(lower_bit: u32) -> Marks {
        Marks { shift: lower_bit }
    }

    /// The three bits.
    pub(crate) fn mask(self) -> u32 {
        7 << self.shift
    }

    /// Packets for a socket of the gateway, whatever their address.
    pub(crate) fn local(self) -> u32 {
        1 << self.shift
    }

    /// Packets that the gateway sends towards the client of a split connection.
    pub(crate) fn to_client(self) -> u32 {
        2 << self.shift
    }

    /// Packets that the gateway sends towards the server of a split connection.
    pub(crate) fn to_server(self) -> u32 {
        3 << self.shift
    }

    /// Packets that open flows with agents.
    pub(crate) fn for_agents(self) -> u32 {
        4 << self.shift
    }

    /// Datagrams of the tunnel.
    pub(crate) fn of_tunnel(self) -> u32 {
        6 << self.shift
    }

    /// Packets that agents have passed.
    pub(crate) fn passed_agents(self) -> u32 {
        5 << self.shift
    }

    /// Packets that tell the kernel that this process works.
    pub(crate) fn of_heartbeat(self) -> u32 {
        7 << self.shift
    }
}
