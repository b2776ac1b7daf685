//! What the service manager is told (sd_notify(3)): that the gateway has started, and that it works.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of the service manager, if one has started this process.
#[derive(Debug, Default)]
pub(crate) struct Manager(Option<UnixDatagram>);

impl Manager {
    /// That of the environment. A confined process can open no such socket any more.
    ///
    /// # Errors
    /// If the socket that the environment states cannot be reached.
    pub(crate) fn of_environment() -> io::Result<Manager> {
        let Ok(name) = env::var("NOTIFY_SOCKET") else { return Ok(Manager::default()) };
        let connected = UnixDatagram::unbound().and_then(|socket| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(&name)?,
            };
            socket.connect_addr(&address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let wrong = |error: io::Error| io::Error::new(error.kind(), format!("NOTIFY_SOCKET {name}: {error}"));
        connected.map(|socket| Manager(Some(socket))).map_err(wrong)
    }

    /// Flows are helped from now on.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// The gateway works.
    pub(crate) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// From now on it is not told that the gateway works, since a successor does.
    pub(crate) fn succeeded(&self) {
        self.tell("WATCHDOG_USEC=0");
    }

    fn tell(&self, state: &str) {
        // If it is busy, it is told again before it is impatient.
        let _ = self.0.as_ref().map(|socket| socket.send(state.as_bytes()));
    }
}
