//! Access to memory passed by C, with checks for null pointers and lengths.
#![allow(unsafe_code, reason = "memory of C")]

use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};
use std::{ptr, slice};

use libc::{AF_INET, AF_INET6, iovec, sockaddr, socklen_t};
use nix::errno::Errno;

/// Offset and length of the parts of `sockaddr_in` and `sockaddr_in6` (RFC 3493 section 3.3).
const FAMILY: usize = 2;
const PORT: usize = 2;
const V4: (usize, usize, usize) = (4, 4, 16);
const V6: (usize, usize, usize) = (8, 16, 28);

/// Maximum length of a message, as in Linux.
const LONGEST: usize = 0x7fff_f000;

/// # Safety
/// `bytes` is null, or points to `len` bytes that are not modified during `'a`.
pub(super) unsafe fn read<'a>(bytes: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if len > LONGEST {
        return Err(Errno::EINVAL);
    }
    match (bytes.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: by the contract of this function.
        (false, _) => Ok(unsafe { slice::from_raw_parts(bytes.cast(), len) }),
    }
}

/// # Safety
/// `bytes` is null, or points to `len` initialised bytes that are not accessed otherwise during `'a`.
pub(super) unsafe fn write<'a>(bytes: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if len > LONGEST {
        return Err(Errno::EINVAL);
    }
    match (bytes.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: by the contract of this function.
        (false, _) => Ok(unsafe { slice::from_raw_parts_mut(bytes.cast(), len) }),
    }
}

/// # Safety
/// `place` is null or points to a `T`.
pub(super) unsafe fn get<T: Copy>(place: *const T) -> Result<T, Errno> {
    // SAFETY: by the contract of this function; an unaligned value is allowed.
    if place.is_null() { Err(Errno::EFAULT) } else { Ok(unsafe { ptr::read_unaligned(place) }) }
}

/// # Safety
/// `place` is null, or points to writable memory for a `T`.
pub(super) unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Errno> {
    if place.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: by the contract of this function; an unaligned place is allowed.
    unsafe { ptr::write_unaligned(place, value) };
    Ok(())
}

/// # Safety
/// `address` is null or points to `len` bytes.
pub(super) unsafe fn address(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    // SAFETY: by the contract of this function.
    let bytes = unsafe { read(address.cast(), len as usize) }?;
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk().ok_or(Errno::EINVAL)?));
    let part = |(at, len, size): (usize, usize, usize)| bytes.get(..size).map(|bytes| &bytes[at..at + len]);
    let ip: IpAddr = match family {
        AF_INET => {
            let octets: [u8; 4] = part(V4).and_then(|octets| octets.try_into().ok()).ok_or(Errno::EINVAL)?;
            octets.into()
        }
        AF_INET6 => {
            let octets: [u8; 16] = part(V6).and_then(|octets| octets.try_into().ok()).ok_or(Errno::EINVAL)?;
            octets.into()
        }
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    // IPv4-mapped addresses select IPv4, whatever the family of the socket.
    Ok(SocketAddr::new(ip.to_canonical(), u16::from_be_bytes([bytes[PORT], bytes[PORT + 1]])))
}

/// Writes an address, truncated to the buffer, and its full length. Writes nothing if the pointer is null.
///
/// # Safety
/// `place` is null, or `len` is null or points to the number of bytes at `place`.
pub(super) unsafe fn put_address(
    value: SocketAddr,
    place: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    if place.is_null() {
        return Ok(());
    }
    let (family, (at, _, size)) = if value.is_ipv4() { (AF_INET, V4) } else { (AF_INET6, V6) };
    let mut bytes = vec![0; size];
    bytes[..FAMILY].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes[PORT..PORT + 2].copy_from_slice(&value.port().to_be_bytes());
    match value.ip() {
        IpAddr::V4(ip) => bytes[at..at + 4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[at..at + 16].copy_from_slice(&ip.octets()),
    }
    // SAFETY: by the contract of this function.
    unsafe {
        let room = get(len)? as usize;
        write(place.cast(), room.min(size))?.copy_from_slice(&bytes[..room.min(size)]);
        put(len, size as socklen_t)
    }
}

/// The buffers of an `iovec` array.
///
/// # Safety
/// `vectors` is null, or points to `count` elements.
pub(super) unsafe fn vectors<'a>(vectors: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    const MOST: usize = 1024;
    match (vectors.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        (false, count) if count > MOST => Err(Errno::EMSGSIZE),
        // SAFETY: by the contract of this function.
        (false, count) => Ok(unsafe { slice::from_raw_parts(vectors, count) }),
    }
}
