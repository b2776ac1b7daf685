//! What C may do wrong is answered by errors.
#![allow(unsafe_code, reason = "calls of functions for C")]

use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr::{null, null_mut};

use lasthop_packetdrill::packetdrill_interface_init;
use nix::errno::Errno;

/// Pointers in `struct packetdrill_interface`.
const LEN: usize = 33;

type Call = unsafe extern "C" fn(*mut c_void, usize, usize, usize, usize, usize, usize) -> isize;

/// The table as an array: user data, then functions.
fn table() -> [usize; LEN] {
    let mut table = MaybeUninit::<[usize; LEN]>::uninit();
    // SAFETY: there is room for the table, which has as many pointers.
    unsafe {
        packetdrill_interface_init(null(), table.as_mut_ptr().cast());
        table.assume_init()
    }
}

/// Calls a function with integers and null pointers.
fn call(table: &[usize; LEN], index: usize, user: *mut c_void, arguments: [usize; 6]) -> (i32, Errno) {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the functions take up to seven integers and pointers, which are passed alike on the platforms of
    // packetdrill, and leave the others alone.
    let result = unsafe {
        let function: Call = transmute(table[index]);
        function(user, a, b, c, d, e, f)
    };
    (result as c_int, Errno::last())
}

#[test]
fn null_pointers_and_unknown_descriptors_are_errors() {
    let table = table();
    assert!(table.iter().all(|&pointer| pointer != 0));
    let user = table[0] as *mut c_void;
    // Without user data; the second is `free`, which has no result.
    for index in 2..LEN {
        let (result, errno) = call(&table, index, null_mut(), [0; 6]);
        assert_eq!(result, -1, "{index}");
        assert!(matches!(errno, Errno::EFAULT | Errno::ENOSYS), "{index}: {errno}");
    }
    let missing = -1_isize as usize;
    // All that take a descriptor: none is -1, and all pointers are null.
    let with_fd = (3..=22).filter(|&index| index != 17);
    for index in with_fd {
        let (result, errno) = call(&table, index, user, [missing, 0, 0, 0, 0, 0]);
        assert_eq!(result, -1, "{index}");
        assert!(
            matches!(errno, Errno::EBADF | Errno::EINVAL | Errno::EFAULT | Errno::ENOTTY),
            "{index}: {errno}"
        );
        let (result, _) = call(&table, index, user, [missing, 0, 100, 0, 0, 0]);
        assert_eq!(result, -1, "{index}");
    }
    let (fd, _) = call(&table, 2, user, [libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0, 0, 0, 0]);
    assert!(fd >= 0);
    for (index, arguments, expected) in [
        (3, [fd as usize, 0, 16, 0, 0, 0], Errno::EFAULT),
        (6, [fd as usize, 0, 16, 0, 0, 0], Errno::EFAULT),
        (7, [fd as usize, 0, 16, 0, 0, 0], Errno::EFAULT),
        (8, [fd as usize, 0, 3, 0, 0, 0], Errno::EFAULT),
        (11, [fd as usize, 0, 0, 0, 0, 0], Errno::EFAULT),
        (12, [fd as usize, 0, 16, 0, 0, 0], Errno::EFAULT),
        (14, [fd as usize, 0, 16, libc::MSG_OOB as usize, 0, 0], Errno::EFAULT),
        (16, [fd as usize, 0, 0, 0, 0, 0], Errno::EFAULT),
        (21, [fd as usize, 1, 2, 0, 0, 0], Errno::EFAULT),
        (22, [fd as usize, 1, 2, 0, 4, 0], Errno::EFAULT),
        (23, [0, 1, 0, 0, 0, 0], Errno::EFAULT),
        (24, [0, 100, 0, 0, 0, 0], Errno::EFAULT),
        (27, [0, 0, 0, 0, 0, 0], Errno::EFAULT),
    ] {
        assert_eq!(call(&table, index, user, arguments), (-1, expected), "{index}");
    }
    // A packet that is none is dropped.
    let junk = [0xff_u8; 60];
    assert_eq!(call(&table, 24, user, [junk.as_ptr() as usize, junk.len(), 0, 0, 0, 0]).0, 0);
    assert_eq!(call(&table, 19, user, [fd as usize, 0, 0, 0, 0, 0]).0, 0);
    call(&table, 1, user, [0; 6]);
}
