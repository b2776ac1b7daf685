//! Socket options.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::tcp::Congestion;
use libc::{
    IPPROTO_TCP, SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_RCVBUF, SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF,
    SO_TYPE, SOL_SOCKET, TCP_CONGESTION, TCP_INFO, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_MAXSEG,
    TCP_NODELAY, TCP_USER_TIMEOUT, c_int,
};
use nix::errno::Errno;

use crate::info::tcp_info;
use crate::socket::{Kind, Socket};

/// Missing from `libc` on some platforms.
const TCP_CC_INFO: c_int = 26;
const SO_MEMINFO: c_int = 55;

/// Size of `SO_MEMINFO` in bytes.
const MEMINFO: usize = 9 * 4;

/// Header bytes of a segment without options.
const HEADER_V4: u64 = 40;
const HEADER_V6: u64 = 60;

/// The congestion control with this name in Linux.
fn congestion(name: &str) -> Option<Congestion> {
    Congestion::named(name).filter(|congestion| congestion.control().linux == Some(name))
}

fn congestion_name(congestion: Congestion) -> &'static str {
    let control = congestion.control();
    control.linux.unwrap_or(control.name)
}

fn integer(value: &[u8]) -> Result<u32, Errno> {
    let bytes = value.first_chunk().ok_or(Errno::EINVAL)?;
    u32::try_from(i32::from_ne_bytes(*bytes)).map_err(|_| Errno::EINVAL)
}

fn encoded(value: u32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

impl Socket {
    /// Sets a socket option. Options that a connection needs at its start must be set before, or on the
    /// listening socket; afterwards they return `EOPNOTSUPP`.
    pub(crate) fn set_option(
        &mut self,
        now: Time,
        level: c_int,
        name: c_int,
        value: &[u8],
    ) -> Result<(), Errno> {
        match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR | SO_REUSEPORT) => integer(value).map(drop),
            (SOL_SOCKET, SO_LINGER) => {
                let seconds = integer(value.get(4..).unwrap_or_default())?;
                let is_on = integer(value)? != 0;
                if is_on && seconds > 0 {
                    return Err(Errno::EOPNOTSUPP);
                }
                self.resets_on_close = is_on;
                Ok(())
            }
            (SOL_SOCKET, SO_SNDBUF) => {
                let bytes = 2 * integer(value)? as usize;
                self.config.send_buffer = bytes;
                match &mut self.kind {
                    Kind::Stream(endpoint) => endpoint.set_send_buffer(bytes),
                    Kind::Listening(listener) => listener.config_mut().send_buffer = bytes,
                    Kind::Fresh => {}
                }
                Ok(())
            }
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                let timeout = Duration::from_millis(integer(value)?.into());
                let timeout = (!timeout.is_zero()).then_some(timeout);
                self.config.settings.user_timeout = timeout;
                match &mut self.kind {
                    Kind::Stream(endpoint) => endpoint.set_user_timeout(timeout),
                    Kind::Listening(listener) => listener.config_mut().settings.user_timeout = timeout,
                    Kind::Fresh => {}
                }
                Ok(())
            }
            (IPPROTO_TCP, TCP_NODELAY) => {
                let nagle = integer(value)? == 0;
                self.config.nagle = nagle;
                match &mut self.kind {
                    Kind::Stream(endpoint) => endpoint.set_nagle(now, nagle),
                    Kind::Listening(listener) => listener.config_mut().nagle = nagle,
                    Kind::Fresh => {}
                }
                Ok(())
            }
            _ => self.set_before(level, name, value),
        }
    }

    /// Sets an option of future connections.
    fn set_before(&mut self, level: c_int, name: c_int, value: &[u8]) -> Result<(), Errno> {
        if let Kind::Stream(endpoint) = &self.kind {
            // No change.
            let is_same = (level, name) == (IPPROTO_TCP, TCP_CONGESTION)
                && endpoint.end().is_none()
                && value.starts_with(congestion_name(self.config.settings.congestion).as_bytes());
            return if is_same { Ok(()) } else { Err(Errno::EOPNOTSUPP) };
        }
        let is_v4 = self.bound.is_none_or(|local| local.is_ipv4());
        let settings = &mut self.config.settings;
        match (level, name) {
            (SOL_SOCKET, SO_RCVBUF) => settings.window = Bytes(integer(value)?.into()).into(),
            (SOL_SOCKET, SO_KEEPALIVE) => {
                self.config.keep_alive = (integer(value)? != 0).then_some(self.probes);
            }
            (IPPROTO_TCP, TCP_MAXSEG) => {
                let header = if is_v4 { HEADER_V4 } else { HEADER_V6 };
                let mss = integer(value)?;
                if !(88..=32_767).contains(&mss) {
                    return Err(Errno::EINVAL);
                }
                settings.packet_size = Bytes(u64::from(mss) + header);
            }
            (IPPROTO_TCP, TCP_CONGESTION) => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                let name = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
                settings.congestion = congestion(name).ok_or(Errno::ENOENT)?;
            }
            (IPPROTO_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                let number = integer(value)?;
                let span = Duration::from_secs(number.into());
                match name {
                    TCP_KEEPIDLE => self.probes.idle = span,
                    TCP_KEEPINTVL => self.probes.interval = span,
                    _ => self.probes.probes = number,
                }
                self.config.keep_alive = self.config.keep_alive.map(|_| self.probes);
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }
        if let Kind::Listening(listener) = &mut self.kind {
            *listener.config_mut() = self.config.clone();
        }
        Ok(())
    }

    /// The value of a socket option.
    pub(crate) fn option(&mut self, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
        let is_v4 = self.bound.or(self.endpoint().map(|end| end.local())).is_none_or(|local| local.is_ipv4());
        let header = if is_v4 { HEADER_V4 } else { HEADER_V6 };
        let largest = self.config.settings.packet_size.0.saturating_sub(header) as u32;
        let value = match (level, name) {
            (SOL_SOCKET, SO_ERROR) => self.take_error().map_or(0, |error| error as u32),
            (SOL_SOCKET, SO_TYPE) => libc::SOCK_STREAM as u32,
            (SOL_SOCKET, SO_SNDBUF) => self.config.send_buffer as u32,
            (SOL_SOCKET, SO_RCVBUF) => 2 * self.config.settings.window_payload(),
            (SOL_SOCKET, SO_KEEPALIVE) => self.config.keep_alive.is_some().into(),
            (SOL_SOCKET, SO_MEMINFO) => return Ok(vec![0; MEMINFO]),
            (IPPROTO_TCP, TCP_NODELAY) => (!self.config.nagle).into(),
            (IPPROTO_TCP, TCP_MAXSEG) => {
                self.endpoint().and_then(|endpoint| endpoint.mss()).unwrap_or(largest)
            }
            (IPPROTO_TCP, TCP_CONGESTION) => {
                return Ok(congestion_name(self.config.settings.congestion).into());
            }
            (IPPROTO_TCP, TCP_INFO) => {
                return Ok(self.endpoint().map_or_else(Vec::new, |endpoint| tcp_info(endpoint, largest)));
            }
            (IPPROTO_TCP, TCP_CC_INFO) => return Ok(Vec::new()),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(encoded(value))
    }
}
