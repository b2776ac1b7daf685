//! Sockets with addresses of other hosts, and TCP's settings of each.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{IpTransparent, Mark, TcpMaxSeg};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

use crate::config::Tcp;

/// Options of sockets, which nix does not define.
mod options {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    /// Of linux/tcp.h since Linux 6.15.
    const TCP_RTO_MIN_US: libc::c_int = 45;

    sockopt_impl!(
        /// As IP_TRANSPARENT, for IPv6.
        Ipv6Transparent, SetOnly, libc::SOL_IPV6, libc::IPV6_TRANSPARENT, bool
    );
    sockopt_impl!(
        /// The largest rate in bytes per second (socket(7)).
        MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64
    );
    sockopt_impl!(
        /// Unsent data above which a socket takes no more (tcp(7)).
        NotsentLowat, SetOnly, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, u32
    );
    sockopt_impl!(
        /// The least retransmission timeout in microseconds.
        RtoMin, SetOnly, libc::IPPROTO_TCP, TCP_RTO_MIN_US, u32
    );
}

/// A lasting idle connection is probed after this time, so that one whose ends are gone does not stay for ever; NATs keep
/// connections as long (RFC 5382).
const IDLE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);

/// A TCP socket that may have any address.
fn transparent(is_ipv4: bool) -> io::Result<OwnedFd> {
    let family = if is_ipv4 { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    if is_ipv4 {
        setsockopt(&socket, IpTransparent, &true)?;
    } else {
        setsockopt(&socket, options::Ipv6Transparent, &true)?;
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

/// The settings that both parts of each connection have, and those of its side.
pub(crate) fn configure(socket: &impl AsFd, is_ipv4: bool, tcp: &Tcp) -> io::Result<()> {
    // What an end sent in one piece is sent on as one.
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, IDLE)?;
    // An urgent byte that another one follows would be lost.
    sockopt::set_socket_oobinline(socket, true)?;
    // If the process dies, both ends learn it at once.
    sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
    if let Some(name) = &tcp.congestion {
        sockopt::set_tcp_congestion(socket, name).map_err(|error| {
            let remedy = "see net.ipv4.tcp_available_congestion_control, or load its module";
            io::Error::new(
                io::Error::from(error).kind(),
                format!("congestion control \"{name}\": {error}; {remedy}"),
            )
        })?;
    }
    if let Some(rate) = tcp.pacing_rate {
        setsockopt(socket, options::MaxPacingRate, &(rate.as_bps() / 8).max(1))?;
    }
    if let Some(size) = tcp.notsent_lowat {
        setsockopt(socket, options::NotsentLowat, &(size.0 as u32))?;
    }
    if let Some(rto) = tcp.rto_min {
        setsockopt(socket, options::RtoMin, &((rto.as_nanos() / 1000) as u32)).map_err(|error| {
            let remedy = match error {
                Errno::EINVAL => "it has at least two ticks of the kernel, such as 8 ms at 250 Hz",
                _ => "it needs Linux 6.15",
            };
            io::Error::new(io::Error::from(error).kind(), format!("rto_min: {error}; {remedy}"))
        })?;
    }
    if let Some(size) = tcp.packet_size {
        let headers = if is_ipv4 { 40 } else { 60 };
        setsockopt(socket, TcpMaxSeg, &((size.0 - headers) as u32))?;
    }
    Ok(())
}

/// A socket that listens at `port` for connections to all addresses. Those that it accepts have its settings.
pub(crate) fn listener(is_ipv4: bool, port: u16, mark: u32, tcp: &Tcp) -> io::Result<OwnedFd> {
    let socket = transparent(is_ipv4)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    setsockopt(&socket, Mark, &mark)?;
    configure(&socket, is_ipv4, tcp)?;
    let any: IpAddr = if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    rustix::net::bind(&socket, &SocketAddr::new(any, port))?;
    // As far as net.core.somaxconn allows.
    rustix::net::listen(&socket, 65_535)?;
    Ok(socket)
}

/// Accepts a connection; returns its socket, and the address of the client.
pub(crate) fn accept(listener: &impl AsFd) -> io::Result<(OwnedFd, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (socket, address) = rustix::net::acceptfrom_with(listener, flags)?;
    let address = address.ok_or(io::ErrorKind::NotConnected)?;
    Ok((socket, SocketAddr::try_from(address)?))
}

/// Begins a connection from `client`, the address of another host, to `server`, whose packets have this DSCP. If the port is
/// taken by an earlier connection that has just ended, another takes its place.
pub(crate) fn connect(
    client: SocketAddr,
    server: SocketAddr,
    dscp: u8,
    mark: u32,
    tcp: &Tcp,
) -> io::Result<OwnedFd> {
    let attempt = |client: SocketAddr| {
        let socket = transparent(client.is_ipv4())?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        setsockopt(&socket, Mark, &mark)?;
        configure(&socket, client.is_ipv4(), tcp)?;
        let tos = dscp << 2;
        match client.is_ipv4() {
            _ if dscp == 0 => {}
            true => sockopt::set_ip_tos(&socket, tos)?,
            false => sockopt::set_ipv6_tclass(&socket, tos.into())?,
        }
        rustix::net::bind(&socket, &client)?;
        match rustix::net::connect(&socket, &server) {
            Err(rustix::io::Errno::INPROGRESS) | Ok(()) => Ok(socket),
            Err(error) => Err(io::Error::from(error)),
        }
    };
    let is_taken = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse)
    };
    match attempt(client) {
        Err(error) if is_taken(&error) => attempt(SocketAddr::new(client.ip(), 0)),
        result => result,
    }
}

/// The outcome of a connection that was begun.
pub(crate) fn outcome(socket: impl AsFd) -> Result<(), Errno> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) | Err(error) => Err(Errno::from_raw(error.raw_os_error())),
    }
}
