//! Blocking calls, and scatter-gather buffers.
#![allow(unsafe_code, reason = "memory of C")]

use std::ffi::c_int;

use libc::{iovec, ssize_t};
use nix::errno::Errno;

use super::Interface;
use super::pointers::{read, write};
use crate::host::Host;
use crate::socket::{Fd, Wait};

/// Performs a call that blocks if the socket and `flags` allow it.
pub(super) fn wait<T>(
    interface: &Interface,
    fd: Fd,
    flags: c_int,
    wait: &Wait,
    act: impl FnMut(&mut Host) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let blocks = flags & libc::MSG_DONTWAIT == 0 && interface.blocks(fd);
    if blocks { interface.call_blocking(wait, act) } else { interface.call(act) }
}

pub(super) fn receive(
    interface: &Interface,
    fd: c_int,
    buffer: &mut [u8],
    flags: c_int,
) -> Result<ssize_t, Errno> {
    if flags & !libc::MSG_DONTWAIT != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let fd = Fd(fd);
    wait(interface, fd, flags, &Wait::Read(fd), |host| host.read(fd, buffer)).map(|len| len as ssize_t)
}

/// Sends; a blocking call returns once everything is in the send buffer.
pub(super) fn transmit(
    interface: &Interface,
    fd: c_int,
    bytes: &[u8],
    flags: c_int,
) -> Result<ssize_t, Errno> {
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let fd = Fd(fd);
    let blocks = flags & libc::MSG_DONTWAIT == 0 && interface.blocks(fd);
    let mut done = 0;
    let result = wait(interface, fd, flags, &Wait::Write(fd), |host| {
        done += host.write(fd, &bytes[done..])?;
        if blocks && done < bytes.len() { Err(Errno::EAGAIN) } else { Ok(()) }
    });
    match result {
        Err(error) if done == 0 => Err(error),
        _ => Ok(done as ssize_t),
    }
}

/// Reads into buffers, in order.
///
/// # Safety
/// Each buffer is null or has its stated length.
pub(super) unsafe fn scatter(
    interface: &Interface,
    fd: c_int,
    into: &[iovec],
    flags: c_int,
) -> Result<ssize_t, Errno> {
    if into.is_empty() {
        return receive(interface, fd, &mut [], flags | libc::MSG_DONTWAIT);
    }
    let mut total = 0;
    for vector in into {
        // SAFETY: by the contract of this function.
        let buffer = unsafe { write(vector.iov_base, vector.iov_len) }?;
        // Only the first read may block.
        let flags = if total > 0 { flags | libc::MSG_DONTWAIT } else { flags };
        match receive(interface, fd, buffer, flags) {
            Err(_) if total > 0 => break,
            Err(error) => return Err(error),
            Ok(len) => total += len,
        }
    }
    Ok(total)
}

/// The concatenated contents of buffers.
///
/// # Safety
/// Each buffer is null or has its stated length.
pub(super) unsafe fn gather(from: &[iovec]) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    for vector in from {
        // SAFETY: by the contract of this function.
        bytes.extend_from_slice(unsafe { read(vector.iov_base, vector.iov_len) }?);
    }
    Ok(bytes)
}
