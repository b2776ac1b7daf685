//! The function table `struct packetdrill_interface`.
#![allow(unsafe_code, reason = "functions that C calls")]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use lasthop_base::Duration;
use libc::{
    iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, timezone,
    useconds_t,
};
use nix::errno::Errno;

use super::Interface;
use super::pointers::{address, get, put, put_address, read, vectors, write};
use super::transfer::{gather, receive, scatter, transmit, wait};
use crate::flags::Flags;
use crate::socket::{Fd, Wait};

type User = *mut c_void;
type Call2<A> = unsafe extern "C" fn(User, A) -> c_int;
type Call3<A, B> = unsafe extern "C" fn(User, A, B) -> c_int;
type Call4<A, B, C> = unsafe extern "C" fn(User, A, B, C) -> c_int;
type Transfer<A, B> = unsafe extern "C" fn(User, c_int, A, B) -> ssize_t;

/// The function table, with the field order of `packetdrill.h`.
#[repr(C)]
pub(super) struct Table {
    userdata: User,
    free: unsafe extern "C" fn(User),
    socket: Call4<c_int, c_int, c_int>,
    bind: Call4<c_int, *const sockaddr, socklen_t>,
    listen: Call3<c_int, c_int>,
    accept: Call4<c_int, *mut sockaddr, *mut socklen_t>,
    connect: Call4<c_int, *const sockaddr, socklen_t>,
    read: Transfer<*mut c_void, size_t>,
    readv: Transfer<*const iovec, c_int>,
    recv: unsafe extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    recvfrom: unsafe extern "C" fn(
        User,
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    recvmsg: Transfer<*mut msghdr, c_int>,
    write: Transfer<*const c_void, size_t>,
    writev: Transfer<*const iovec, c_int>,
    send: unsafe extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t,
    sendto: unsafe extern "C" fn(
        User,
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    sendmsg: Transfer<*const msghdr, c_int>,
    fcntl: Call4<c_int, c_int, c_long>,
    ioctl: Call4<c_int, c_ulong, *mut c_int>,
    close: Call2<c_int>,
    shutdown: Call3<c_int, c_int>,
    getsockopt: unsafe extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: unsafe extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    poll: Call4<*mut pollfd, nfds_t, c_int>,
    netdev_send: Call3<*const c_void, size_t>,
    netdev_receive: Call4<*mut c_void, *mut size_t, *mut c_longlong>,
    usleep: Call2<useconds_t>,
    gettimeofday: Call3<*mut timeval, *mut timezone>,
    epoll_create: Call2<c_int>,
    epoll_ctl: unsafe extern "C" fn(User, c_int, c_int, c_int, *mut c_void) -> c_int,
    epoll_wait: unsafe extern "C" fn(User, c_int, *mut c_void, c_int, c_int) -> c_int,
    pipe: Call2<*mut c_int>,
    splice: unsafe extern "C" fn(User, c_int, *mut loff_t, c_int, *mut loff_t, size_t, c_uint) -> ssize_t,
}

/// The interface for preloaded functions.
static CURRENT: Mutex<Option<Arc<Interface>>> = Mutex::new(None);

fn current() -> Option<Arc<Interface>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Calls `act`; an error becomes -1 and `errno`. A panic, already reported by the panic hook, becomes `EIO`.
fn to_c<T: From<i8>>(act: impl FnOnce() -> Result<T, Errno>) -> T {
    let result = catch_unwind(AssertUnwindSafe(act)).unwrap_or(Err(Errno::EIO));
    result.unwrap_or_else(|error| {
        error.set();
        T::from(-1)
    })
}

/// Like [`to_c`], with the interface behind `user`.
fn with<T: From<i8>>(user: User, act: impl FnOnce(&Interface) -> Result<T, Errno>) -> T {
    to_c(|| {
        // SAFETY: null, or a pointer from `Arc::into_raw` in `packetdrill_interface_init`, valid until
        // `free`.
        let interface = unsafe { user.cast::<Interface>().as_ref() }.ok_or(Errno::EFAULT)?;
        act(interface)
    })
}

fn unsupported<T>() -> Result<T, Errno> {
    Err(Errno::ENOSYS)
}

// Pointers are null or satisfy the contracts of the functions of the same names (POSIX, Linux); `user` is
// that of the table.

unsafe extern "C" fn free(user: User) {
    let _: c_int = to_c(|| {
        CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
        if !user.is_null() {
            // SAFETY: made by `Arc::into_raw`, and freed only here.
            unsafe { Arc::from_raw(user.cast::<Interface>()) }.shut();
        }
        Ok(0)
    });
}

unsafe extern "C" fn socket(user: User, family: c_int, kind: c_int, protocol: c_int) -> c_int {
    with(user, |interface| interface.call(|host| host.socket(family, kind, protocol)).map(|fd| fd.0))
}

unsafe extern "C" fn bind(user: User, fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: as above.
    let local = unsafe { address(at, len) };
    with(user, |interface| interface.call(|host| host.bind(Fd(fd), local?)).map(|()| 0))
}

unsafe extern "C" fn listen(user: User, fd: c_int, backlog: c_int) -> c_int {
    with(user, |interface| interface.call(|host| host.listen(Fd(fd), backlog)).map(|()| 0))
}

unsafe extern "C" fn accept(user: User, fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    with(user, |interface| {
        let fd = Fd(fd);
        let (accepted, remote) = wait(interface, fd, 0, &Wait::Accept(fd), |host| host.accept(fd))?;
        // SAFETY: as above.
        unsafe { put_address(remote, at, len) }?;
        Ok(accepted.0)
    })
}

unsafe extern "C" fn connect(user: User, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: as above.
    let remote = unsafe { address(to, len) };
    with(user, |interface| {
        let (fd, remote) = (Fd(fd), remote?);
        if interface.blocks(fd) {
            let mut has_begun = false;
            let connected = interface.call_blocking(&Wait::Connect(fd), |host| {
                let result = if has_begun { host.connected(fd) } else { host.connect(fd, remote) };
                has_begun = true;
                result
            });
            return connected.map(|()| 0);
        }
        match interface.call(|host| host.connect(fd, remote)) {
            Err(Errno::EAGAIN) => Err(Errno::EINPROGRESS),
            result => result.map(|()| 0),
        }
    })
}

unsafe extern "C" fn do_read(user: User, fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { recv(user, fd, into, len, 0) }
}

unsafe extern "C" fn readv(user: User, fd: c_int, into: *const iovec, count: c_int) -> ssize_t {
    with(user, |interface| {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        // SAFETY: as above.
        unsafe { scatter(interface, fd, vectors(into, count)?, 0) }
    })
}

unsafe extern "C" fn recv(user: User, fd: c_int, into: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    with(user, |interface| receive(interface, fd, unsafe { write(into, len) }?, flags))
}

unsafe extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
    _from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    let result = unsafe { recv(user, fd, into, len, flags) };
    if result >= 0 && !from_len.is_null() {
        // SAFETY: as above. A stream has no addresses.
        let _ = unsafe { put(from_len, 0) };
    }
    result
}

unsafe extern "C" fn recvmsg(user: User, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    with(user, |interface| {
        // SAFETY: as above.
        unsafe {
            let mut header = get(message)?;
            let len = scatter(interface, fd, vectors(header.msg_iov, header.msg_iovlen)?, flags)?;
            (header.msg_namelen, header.msg_controllen, header.msg_flags) = (0, 0, 0);
            put(message, header)?;
            Ok(len)
        }
    })
}

unsafe extern "C" fn do_write(user: User, fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { send(user, fd, from, len, 0) }
}

unsafe extern "C" fn writev(user: User, fd: c_int, from: *const iovec, count: c_int) -> ssize_t {
    with(user, |interface| {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        // SAFETY: as above.
        let bytes = unsafe { gather(vectors(from, count)?) }?;
        transmit(interface, fd, &bytes, 0)
    })
}

unsafe extern "C" fn send(user: User, fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    with(user, |interface| transmit(interface, fd, unsafe { read(from, len) }?, flags))
}

unsafe extern "C" fn sendto(
    user: User,
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    _to: *const sockaddr,
    _to_len: socklen_t,
) -> ssize_t {
    // A stream socket ignores the address.
    // SAFETY: as above.
    unsafe { send(user, fd, from, len, flags) }
}

unsafe extern "C" fn sendmsg(user: User, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    with(user, |interface| {
        // SAFETY: as above.
        let bytes = unsafe {
            let header = get(message)?;
            gather(vectors(header.msg_iov, header.msg_iovlen)?)?
        };
        transmit(interface, fd, &bytes, flags)
    })
}

/// With one argument in place of varargs: the same calling convention on x86-64 and AArch64 Linux.
unsafe extern "C" fn fcntl(user: User, fd: c_int, command: c_int, value: c_long) -> c_int {
    with(user, |interface| {
        let fd = Fd(fd);
        if !interface.owns(fd) {
            return Err(Errno::EBADF);
        }
        match command {
            libc::F_GETFL if interface.blocks(fd) => Ok(libc::O_RDWR),
            libc::F_GETFL => Ok(libc::O_RDWR | libc::O_NONBLOCK),
            libc::F_SETFL => {
                let is_nonblocking = value as c_int & libc::O_NONBLOCK != 0;
                interface.call(|host| host.set_nonblocking(fd, is_nonblocking)).map(|()| 0)
            }
            _ => Err(Errno::EINVAL),
        }
    })
}

/// With one argument in place of varargs, like [`fcntl`].
unsafe extern "C" fn ioctl(user: User, fd: c_int, request: c_ulong, place: *mut c_int) -> c_int {
    with(user, |interface| {
        let is_input = match request {
            libc::FIONREAD => true,
            libc::TIOCOUTQ => false,
            _ => return Err(Errno::ENOTTY),
        };
        let bytes = interface.call(|host| host.queued(Fd(fd), is_input))?;
        // SAFETY: as above.
        unsafe { put(place, bytes as c_int) }.map(|()| 0)
    })
}

unsafe extern "C" fn close(user: User, fd: c_int) -> c_int {
    with(user, |interface| interface.call(|host| host.close(Fd(fd))).map(|()| 0))
}

unsafe extern "C" fn shutdown(user: User, fd: c_int, how: c_int) -> c_int {
    with(user, |interface| interface.call(|host| host.shutdown(Fd(fd), how)).map(|()| 0))
}

/// Writes the value of an option, truncated to the buffer.
///
/// # Safety
/// The pointers are null or valid for `getsockopt`.
unsafe fn put_option(
    interface: &Interface,
    (fd, level, name): (c_int, c_int, c_int),
    place: *mut c_void,
    len: *mut socklen_t,
) -> Result<c_int, Errno> {
    // SAFETY: by the contract of this function.
    unsafe {
        let room = i32::try_from(get(len)?).map_err(|_| Errno::EINVAL)? as usize;
        let value = interface.call(|host| host.option(Fd(fd), level, name))?;
        let cut = value.len().min(room);
        // packetdrill requires the full TCP_INFO; fields that the endpoint does not have are zero.
        let is_info = (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO);
        let filled = if is_info { room } else { cut };
        let bytes = write(place, filled)?;
        bytes.fill(0);
        bytes[..cut].copy_from_slice(&value[..cut]);
        put(len, filled as socklen_t)?;
    }
    Ok(0)
}

unsafe extern "C" fn get_option(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    place: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    with(user, |interface| unsafe { put_option(interface, (fd, level, name), place, len) })
}

unsafe extern "C" fn set_option(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    with(user, |interface| {
        // SAFETY: as above.
        let value = unsafe { read(value, len as usize) }?;
        interface.call(|host| host.set_option(Fd(fd), level, name, value)).map(|()| 0)
    })
}

unsafe extern "C" fn poll(user: User, fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    with(user, |interface| {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        let asked: Vec<pollfd> =
            // SAFETY: as above.
            (0..count).map(|index| unsafe { get(fds.wrapping_add(index)) }).collect::<Result<_, _>>()?;
        let wanted: Vec<(Fd, c_short)> = asked.iter().map(|each| (Fd(each.fd), each.events)).collect();
        let until = interface.call(|host| {
            Ok(match u64::try_from(timeout) {
                Ok(milliseconds) => host.after(Duration::from_millis(milliseconds)),
                Err(_) => lasthop_base::Time::NEVER,
            })
        })?;
        let wait = Wait::Poll(wanted.clone(), until);
        let found = interface.call_blocking(&wait, |host| {
            if !host.is_ready(&wait) {
                return Err(Errno::EAGAIN);
            }
            Ok(wanted.iter().map(|&(fd, events)| host.events(fd, events)).collect::<Vec<_>>())
        })?;
        for (index, (&revents, &asked)) in found.iter().zip(&asked).enumerate() {
            // SAFETY: as above.
            unsafe { put(fds.wrapping_add(index), pollfd { revents, ..asked }) }?;
        }
        Ok(found.iter().filter(|&&revents| revents != 0).count() as c_int)
    })
}

unsafe extern "C" fn netdev_send(user: User, packet: *const c_void, len: size_t) -> c_int {
    with(user, |interface| {
        // SAFETY: as above.
        interface.inject(unsafe { read(packet, len) }?);
        Ok(0)
    })
}

unsafe extern "C" fn netdev_receive(
    user: User,
    packet: *mut c_void,
    len: *mut size_t,
    time_us: *mut c_longlong,
) -> c_int {
    with(user, |interface| {
        // SAFETY: as above.
        unsafe {
            // Without a packet the length is zero, since packetdrill retries forever after an error.
            let (time, bytes) = interface.sniff().unwrap_or_default();
            let cut = bytes.len().min(get(len)?);
            write(packet, cut)?.copy_from_slice(&bytes[..cut]);
            put(len, cut)?;
            put(time_us, (time.as_nanos() / 1_000) as c_longlong)?;
        }
        Ok(0)
    })
}

unsafe extern "C" fn usleep(user: User, span_us: useconds_t) -> c_int {
    with(user, |interface| {
        interface.sleep(Duration::from_micros(span_us.into()));
        Ok(0)
    })
}

unsafe extern "C" fn gettimeofday(user: User, place: *mut timeval, _zone: *mut timezone) -> c_int {
    with(user, |interface| {
        let micros = (interface.read_clock().as_nanos() / 1_000) as i64;
        let value = timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
        // SAFETY: as above.
        unsafe { put(place, value) }.map(|()| 0)
    })
}

unsafe extern "C" fn epoll_create(_: User, _: c_int) -> c_int {
    to_c(unsupported)
}

unsafe extern "C" fn epoll_ctl(_: User, _: c_int, _: c_int, _: c_int, _: *mut c_void) -> c_int {
    to_c(unsupported)
}

unsafe extern "C" fn epoll_wait(_: User, _: c_int, _: *mut c_void, _: c_int, _: c_int) -> c_int {
    to_c(unsupported)
}

unsafe extern "C" fn pipe(_: User, _: *mut c_int) -> c_int {
    to_c(unsupported)
}

unsafe extern "C" fn splice(
    _: User,
    _: c_int,
    _: *mut loff_t,
    _: c_int,
    _: *mut loff_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    to_c(unsupported)
}

/// Fills in the table. Invalid flags exit the process with a message, since the interface has no error
/// return.
///
/// # Safety
/// `flags` is null or a C string; `table` is null or points to memory for a `struct packetdrill_interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, table: *mut c_void) {
    let text = match flags.is_null() {
        true => "".into(),
        // SAFETY: by the contract of this function.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy(),
    };
    let flags = Flags::parse(&text).unwrap_or_else(|error| fail(&error.to_string()));
    let faults = flags.faults();
    if !faults.is_empty() {
        fail(&faults.join(", "));
    }
    let interface = Arc::new(Interface::new(&flags));
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&interface));
    let filled = Table {
        userdata: Arc::into_raw(interface).cast_mut().cast(),
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read: do_read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write: do_write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt: get_option,
        setsockopt: set_option,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    };
    // SAFETY: by the contract of this function.
    if unsafe { put(table.cast(), filled) }.is_err() {
        fail("no table");
    }
}

fn fail(problem: &str) -> ! {
    eprintln!("lasthop: --so_flags: {problem}");
    process::exit(2)
}

/// `getsockopt` for programs that preload this library: packetdrill reads TCP_INFO with it.
///
/// # Safety
/// As `getsockopt`.
#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    place: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    match current().filter(|interface| interface.owns(Fd(fd))) {
        // SAFETY: by the contract of this function.
        Some(interface) => to_c(|| unsafe { put_option(&interface, (fd, level, name), place, len) }),
        // SAFETY: by the contract of this function.
        None => unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, place, len) as c_int },
    }
}
