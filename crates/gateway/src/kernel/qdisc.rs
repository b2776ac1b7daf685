//! The queueing discipline of an interface (tc(8), rtnetlink(7)).

use std::io;

use nix::sys::socket::SockProtocol;

use super::netlink::{ACK, Attributes, CREATE, EXCLUSIVE, Message, Netlink};
use crate::config::{QueueDiscipline, Shaper};

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const NEW_CLASS: u16 = 40;

/// The parent of the discipline of a whole interface.
const ROOT: u32 = u32::MAX;

/// A burst of HTB lasts so long, and has at least a packet.
const BURST_NS: u64 = 1_000_000;
const BURST_BYTES: u64 = 1600;

/// A shaper of interfaces, which its handle tells from those of others.
#[derive(Clone, Debug)]
pub(crate) struct Qdisc {
    handle: u32,
    shaper: Shaper,
}

impl Qdisc {
    pub(crate) fn new(shaper: &Shaper, number: u16) -> Qdisc {
        Qdisc { handle: u32::from(number) << 16, shaper: shaper.clone() }
    }

    /// Shapes the interface with this number.
    ///
    /// # Errors
    /// If the kernel lacks the discipline, or somebody else shapes the interface.
    pub(crate) fn install(&self, index: u32) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        // That of a killed gateway.
        let _ = netlink.request(self.deletion(index));
        for (module, message) in self.messages(index) {
            if let Err(error) = netlink.request(message) {
                let _ = netlink.request(self.deletion(index));
                let problem = match error.kind() {
                    io::ErrorKind::NotFound => format!(
                        "this kernel has no {module}; load its module, or state shaper.queue = \"drop-tail\", which needs \
                         sch_htb alone"
                    ),
                    io::ErrorKind::AlreadyExists => String::from(
                        "the interface has a queueing discipline already; `tc qdisc delete dev INTERFACE root` removes it",
                    ),
                    _ => format!("{module}: {error}"),
                };
                return Err(io::Error::new(error.kind(), problem));
            }
        }
        Ok(())
    }

    /// Removes it, if it is there.
    pub(crate) fn remove(&self, index: u32) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        // Whoever removed it before has done our work.
        let _ = netlink.request(self.deletion(index));
        Ok(())
    }

    fn deletion(&self, index: u32) -> Message {
        Message::new(DELETE_QDISC, ACK, &place(index, self.handle, ROOT))
    }

    /// What is told to the kernel, and the module that each message needs.
    fn messages(&self, index: u32) -> Vec<(&'static str, Message)> {
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        let Qdisc { handle, shaper } = self;
        let new = |kind, place: [u8; 20], name: &str, options: &Attributes| {
            Message::new(kind, ACK | CREATE | EXCLUSIVE, &place)
                .text(KIND, name)
                .put(OPTIONS, options.bytes())
        };
        let rate = (shaper.rate.as_bps() / 8).max(1);
        let root = place(index, *handle, ROOT);
        if shaper.queue == QueueDiscipline::Cake {
            const RATE: u16 = 2;
            const ACK_FILTER: u16 = 16;
            let options = Attributes::default()
                .put(RATE, &rate.to_ne_bytes())
                .put(ACK_FILTER, &u32::from(shaper.ack_filter).to_ne_bytes());
            return vec![("sch_cake", new(NEW_QDISC, root, "cake", &options))];
        }
        const INIT: u16 = 2;
        const PARAMETERS: u16 = 1;
        const ECN: u16 = 4;
        let init = [3u32, 10, 1, 0, 0].map(u32::to_ne_bytes).concat();
        let init = Attributes::default().put(INIT, &init);
        let class = Attributes::default().put(PARAMETERS, &htb_parameters(rate));
        let mut messages = vec![
            ("sch_htb", new(NEW_QDISC, root, "htb", &init)),
            ("sch_htb", new(NEW_CLASS, place(index, handle | 1, *handle), "htb", &class)),
        ];
        if shaper.queue == QueueDiscipline::FqCodel {
            let ecn = Attributes::default().put(ECN, &1u32.to_ne_bytes());
            messages.push(("sch_fq_codel", new(NEW_QDISC, place(index, 0, handle | 1), "fq_codel", &ecn)));
        }
        messages
    }
}

/// The fixed header of messages about disciplines and classes.
fn place(index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut place = [0; 20];
    for (at, word) in [(4, index), (8, handle), (12, parent)] {
        place[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    place
}

/// The kernel's `struct tc_htb_opt`, of a class with this rate in bytes per second.
fn htb_parameters(rate: u64) -> Vec<u8> {
    // Of Ethernet, by which the kernel needs no table of times.
    let mut specification = vec![3, 1, 0, 0, 0xff, 0xff, 0, 0];
    specification.extend((rate as u32).to_ne_bytes());
    // In units of 64 ns.
    let burst = (BURST_NS.max(BURST_BYTES * 1_000_000_000 / rate) / 64).min(u32::MAX.into()) as u32;
    let mut bytes = specification.repeat(2);
    bytes.extend([burst, burst, 0, 0, 0].map(u32::to_ne_bytes).concat());
    bytes
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use lasthop_base::BitRate;
    use lasthop_testing::namespace;

    use super::*;

    fn qdisc(queue: QueueDiscipline) -> Qdisc {
        let rate = BitRate::from_bps(20_000_000).expect("not zero");
        let shaper = Shaper { rate, queue, ack_filter: queue == QueueDiscipline::Cake };
        Qdisc { handle: 1 << 16, shaper }
    }

    /// As tc(8) of iproute2 6.1 writes them for the commands above each, without the length of tables that it adds to classes.
    #[test]
    fn messages_are_those_of_tc() {
        let hex = |message: &Message| {
            let bytes = message.clone().finished(0);
            bytes[16..].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        // tc qdisc add dev lo root handle 1: htb default 1
        // tc class add dev lo parent 1: classid 1:1 htb rate 20mbit
        // tc qdisc add dev lo parent 1:1 fq_codel ecn
        let [root, class, leaf] = qdisc(QueueDiscipline::FqCodel).messages(1).try_into().expect("three");
        assert_eq!(
            hex(&root.1),
            "000000000100000000000100ffffffff00000000080001006874620\
             01c00020018000200030000000a000000010000000000000000000000"
        );
        let class = hex(&class.1);
        assert!(class.starts_with("0000000001000000010001000000010000000000080001006874620"), "{class}");
        assert!(class.contains("3000010003010000ffff0000a025260003010000ffff0000a0252600"), "{class}");
        assert_eq!(
            hex(&leaf.1),
            "000000000100000000000000010001000000000\
             00d00010066715f636f64656c000000000c0002000800040001000000"
        );
        // tc qdisc add dev lo root handle 1: cake bandwidth 20mbit ack-filter, without what tc states of defaults.
        let [cake] = qdisc(QueueDiscipline::Cake).messages(1).try_into().expect("one");
        assert_eq!(
            hex(&cake.1),
            "000000000100000000000100ffffffff00000000090001006\
             3616b650000000018000200\
             0c000200a025260000000000\
             0800100001000000"
        );
    }

    /// Those that this kernel has: many have some of them.
    #[test]
    fn kernels_take_and_return_them() {
        if !namespace::is_inside("kernel::qdisc::tests::kernels_take_and_return_them") {
            return;
        }
        let run = |program: &str, arguments: &str| {
            let output = Command::new(program).args(arguments.split(' ')).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        run("ip", "link set lo up").expect("ip runs");
        for (queue, expected) in [
            (QueueDiscipline::DropTail, &["htb 1: root", "default 0x1"][..]),
            (QueueDiscipline::FqCodel, &["htb 1: root", "fq_codel", "parent 1:1", "ecn"]),
            (QueueDiscipline::Cake, &["cake 1: root", "bandwidth 20Mbit", "ack-filter"]),
        ] {
            match qdisc(queue).install(1) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    println!("skipped: {error}");
                    continue;
                }
                Err(error) => panic!("{queue:?}: {error}"),
            }
            let Some(shown) = run("tc", "qdisc show dev lo") else {
                return println!("skipped: there is no tc here");
            };
            assert!(expected.iter().all(|part| shown.contains(part)), "{shown}");
            println!("{queue:?}: {shown}");
            qdisc(queue).remove(1).expect("a socket");
            let left = run("tc", "qdisc show dev lo").expect("tc runs");
            assert!(!left.contains(" 1: root"), "{left}");
        }
    }
}
