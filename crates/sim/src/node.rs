//! The components that the engine dispatches to.

use lasthop_base::Time;
use lasthop_proto::application::{Client, Server};
use lasthop_proto::split::Proxy;
use lasthop_proto::tcp::{Receiver, Sender};
use lasthop_proto::traffic::{Sink, Source};
use lasthop_proto::{
    Component, EndReport, FlowId, LinkOutcome, Out, Packet, Port, Probe, Signal, Tally, Usage,
};

use crate::link::{Link, SharedRadio};
use crate::network::Router;
use crate::wifi::WifiBss;
use crate::wlan::Bss;

/// A component in the engine. Frequently used kinds are variants, dispatched by a jump; all others, including
/// user-defined ones, by a virtual call. All are boxed, links by themselves: their sizes differ by a factor of a hundred.
#[allow(missing_debug_implementations)]
pub enum Node {
    /// The sending end of a TCP connection.
    Sender(Box<Sender>),
    /// The receiving end of a TCP connection.
    Receiver(Box<Receiver>),
    /// One direction of a link.
    Link(Link),
    /// A radio that several mobile hosts share.
    Shared(Box<SharedRadio>),
    /// An 802.11 access point and its stations.
    Bss(Box<Bss>),
    /// An access point of 802.11n, 802.11ac or 802.11ax, and its stations.
    Wifi(Box<WifiBss>),
    /// A source of background traffic.
    Source(Box<Source>),
    /// A sink of background traffic.
    Sink(Box<Sink>),
    /// The client of a request/response application over TCP.
    Client(Box<Client>),
    /// The server of a request/response application over TCP.
    Server(Box<Server>),
    /// A base station that splits connections.
    Proxy(Box<Proxy>),
    /// A router.
    Router(Box<Router>),
    /// Any other component.
    Custom(Box<dyn Component>),
}

macro_rules! dispatch {
    ($self:expr, $component:ident => $call:expr) => {
        dispatch!($self, $component => $call, $component => $call)
    };
    ($self:expr, $component:ident => $call:expr, $link:ident => $call_of_link:expr) => {
        match $self {
            Node::Sender($component) => $call,
            Node::Receiver($component) => $call,
            Node::Link($link) => $call_of_link,
            Node::Shared($component) => $call,
            Node::Bss($component) => $call,
            Node::Wifi($component) => $call,
            Node::Source($component) => $call,
            Node::Sink($component) => $call,
            Node::Client($component) => $call,
            Node::Server($component) => $call,
            Node::Proxy($component) => $call,
            Node::Router($component) => $call,
            Node::Custom($component) => $call,
        }
    };
}

/// The methods of [`Component`]. Those that may move the next deadline return it: the engine needs it after every call,
/// and so dispatches once.
impl Node {
    /// [`Component::receive`]; returns [`Component::next_wakeup`].
    // Most packets are for an end of a connection: the frame of a function that deals with all kinds costs as much as
    // what is done there.
    #[inline]
    pub fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) -> Time {
        match self {
            Node::Sender(sender) => {
                sender.receive(now, packet, port, out);
                sender.next_wakeup()
            }
            Node::Receiver(receiver) => {
                receiver.receive(now, packet, port, out);
                receiver.next_wakeup()
            }
            _ => self.receive_otherwise(now, packet, port, out),
        }
    }

    /// [`receive`](Node::receive) of any component.
    #[inline(never)]
    fn receive_otherwise(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) -> Time {
        dispatch!(self, component => {
            component.receive(now, packet, port, out);
            component.next_wakeup()
        })
    }

    /// [`Component::wake`]; returns [`Component::next_wakeup`].
    #[inline]
    pub fn wake(&mut self, now: Time, out: &mut Out) -> Time {
        match self {
            Node::Sender(sender) => {
                sender.wake(now, out);
                sender.next_wakeup()
            }
            _ => self.wake_otherwise(now, out),
        }
    }

    /// [`wake`](Node::wake) of any component.
    #[inline(never)]
    fn wake_otherwise(&mut self, now: Time, out: &mut Out) -> Time {
        dispatch!(self, component => {
            component.wake(now, out);
            component.next_wakeup()
        })
    }

    /// [`Component::on_signal`]; returns [`Component::next_wakeup`].
    pub fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) -> Time {
        dispatch!(self, component => {
            component.on_signal(now, signal, out);
            component.next_wakeup()
        })
    }

    /// [`Component::needs_outcome`].
    pub fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        dispatch!(self, component => component.needs_outcome(outcome))
    }

    /// [`Component::needs_corrupted`].
    pub fn needs_corrupted(&self) -> bool {
        dispatch!(self, component => component.needs_corrupted())
    }

    /// [`Component::next_wakeup`].
    pub fn next_wakeup(&self) -> Time {
        dispatch!(self, component => component.next_wakeup())
    }

    /// [`Component::kept`].
    pub fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        dispatch!(self, component => component.kept(visit));
    }

    /// [`Component::repaired`].
    pub fn repaired(&self, flow: FlowId) -> u64 {
        dispatch!(self, component => component.repaired(flow))
    }

    /// [`Component::report`].
    pub fn report(&self) -> Option<EndReport> {
        dispatch!(self, component => component.report())
    }

    /// [`Component::usage`].
    pub fn usage(&self, now: Time) -> Option<Usage> {
        dispatch!(self, component => component.usage(now))
    }

    /// [`Component::count`].
    pub fn count(&self, tally: &mut dyn Tally) {
        dispatch!(self, component => component.count(tally));
    }

    /// [`Component::show`].
    pub fn show(&self, probe: &mut dyn Probe) {
        dispatch!(self, component => component.show(probe));
    }

    /// The component, for an owner that embeds it.
    pub fn into_component(self) -> Box<dyn Component> {
        dispatch!(self, component => component, link => Box::new(link))
    }

    /// The link; panics if the component is something else.
    #[inline(always)]
    pub(crate) fn link_mut(&mut self) -> &mut Link {
        let Node::Link(link) = self else { unreachable!("the component is a link") };
        link
    }

    /// Packets queued or in flight, for links and BSSs.
    pub(crate) fn packets_held(&self) -> usize {
        match self {
            Node::Link(link) => link.held(),
            Node::Shared(radio) => radio.held(),
            Node::Bss(bss) => bss.held(),
            Node::Wifi(bss) => bss.held(),
            _ => 0,
        }
    }
}

macro_rules! from_component {
    ($($type:ty => $variant:ident,)*) => {
        $(impl From<$type> for Node {
            fn from(component: $type) -> Node {
                Node::$variant(Box::new(component))
            }
        })*
    };
}

impl From<Box<dyn Component>> for Node {
    fn from(component: Box<dyn Component>) -> Node {
        Node::Custom(component)
    }
}

impl From<Link> for Node {
    fn from(link: Link) -> Node {
        Node::Link(link)
    }
}

from_component! {
    Sender => Sender,
    Receiver => Receiver,
    SharedRadio => Shared,
    Bss => Bss,
    WifiBss => Wifi,
    Source => Source,
    Sink => Sink,
    Client => Client,
    Server => Server,
    Proxy => Proxy,
    Router => Router,
}
