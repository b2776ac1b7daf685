//! The system calls that the process may use.

use std::io;

use super::CONFINED;

/// Confines this thread to the calls of the list; returns the state. Others fail with `EPERM`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn confine() -> io::Result<String> {
    use rustix::io::Errno;
    use seccompiler::{Error, apply_filter};

    for program in list::programs().map_err(|error| io::Error::other(format!("seccomp: {error}")))? {
        match apply_filter(&program) {
            Ok(()) => {}
            Err(Error::Seccomp(error)) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
                return Ok(String::from("not confined: this kernel has no seccomp"));
            }
            // As by the sandbox of a container.
            Err(error) => return Ok(format!("not confined: seccomp is refused ({error})")),
        }
    }
    Ok(CONFINED.to_owned())
}

/// There is no list for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn confine() -> io::Result<String> {
    Ok(String::from("not confined: there is no list for this processor"))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod list {
    use std::collections::BTreeMap;

    use nix::libc;
    use seccompiler::SeccompCmpArgLen::{Dword, Qword};
    use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch,
    };

    #[cfg(target_arch = "x86_64")]
    const ARCH: TargetArch = TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    const ARCH: TargetArch = TargetArch::aarch64;

    /// Calls with any arguments: of the allocator and threads, of the clock, of files, of sockets, and of waiting.
    const PLAIN: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_futex,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_openat,
        libc::SYS_close,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_lseek,
        libc::SYS_pread64,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_mkdirat,
        libc::SYS_unlinkat,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_pipe2,
        libc::SYS_splice,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept4,
        libc::SYS_connect,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_sendmmsg,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_recvmmsg,
        libc::SYS_setsockopt,
        libc::SYS_getsockopt,
        libc::SYS_shutdown,
        libc::SYS_eventfd2,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_ppoll,
    ];

    /// Those by which C libraries do the same on this processor alone.
    #[cfg(target_arch = "x86_64")]
    const LEGACY: &[libc::c_long] = &[
        libc::SYS_open,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_mkdir,
        libc::SYS_unlink,
        libc::SYS_rename,
        libc::SYS_epoll_wait,
        libc::SYS_poll,
    ];
    #[cfg(target_arch = "aarch64")]
    const LEGACY: &[libc::c_long] = &[];

    /// Requests of `ioctl`: TCGETS, FIONBIO, SIOCGIFINDEX, SIOCGIFNAME, TUNSETIFF and TUNSETOFFLOAD.
    const REQUESTS: [u64; 6] = [0x5401, 0x5421, 0x8933, 0x8910, 0x4004_54ca, 0x4004_54d0];

    const FAMILIES: [libc::c_int; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];

    /// The type among the flags of a socket.
    const SOCKET_TYPE: u64 = 0xf;

    /// A call is allowed if one of its arguments has a value.
    fn one_of(
        argument: u8,
        len: SeccompCmpArgLen,
        values: impl IntoIterator<Item = (SeccompCmpOp, u64)>,
    ) -> Result<Vec<SeccompRule>, BackendError> {
        let rule = |(operator, value)| {
            SeccompRule::new(vec![SeccompCondition::new(argument, len.clone(), operator, value)?])
        };
        values.into_iter().map(rule).collect()
    }

    /// Sockets of the families, and local ones of datagrams, by which C libraries ask for the numbers of interfaces. Those of streams
    /// would reach services of this host: Landlock does not refuse them.
    fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
        let local = vec![
            SeccompCondition::new(0, Dword, Eq, libc::AF_UNIX as u64)?,
            SeccompCondition::new(1, Dword, MaskedEq(SOCKET_TYPE), libc::SOCK_DGRAM as u64)?,
        ];
        let mut rules = one_of(0, Dword, FAMILIES.map(|family| (Eq, family as u64)))?;
        rules.push(SeccompRule::new(local)?);
        Ok(rules)
    }

    /// The filters. A call must pass them all.
    pub(super) fn programs() -> Result<[BpfProgram; 2], BackendError> {
        let equal = |value| (Eq, value);
        let executable = libc::PROT_EXEC as u64;
        let not_executable = || one_of(2, Dword, [(MaskedEq(executable), 0)]);
        let thread = libc::CLONE_THREAD as u64;
        let mut allowed: BTreeMap<i64, Vec<SeccompRule>> =
            PLAIN.iter().chain(LEGACY).map(|call| (*call, Vec::new())).collect();
        allowed.extend([
            (libc::SYS_mmap, not_executable()?),
            (libc::SYS_mprotect, not_executable()?),
            // Threads, and no processes.
            (libc::SYS_clone, one_of(0, Qword, [(MaskedEq(thread), thread)])?),
            (libc::SYS_clone3, Vec::new()),
            (libc::SYS_socket, sockets()?),
            (libc::SYS_ioctl, one_of(1, Dword, REQUESTS.map(equal))?),
            // The names of threads, and their limits.
            (libc::SYS_prctl, one_of(0, Dword, [equal(libc::PR_SET_NAME as u64)])?),
            (libc::SYS_prlimit64, one_of(2, Qword, [equal(0)])?),
            // The end by a failure.
            (libc::SYS_tgkill, one_of(2, Dword, [equal(libc::SIGABRT as u64)])?),
            (libc::SYS_tkill, one_of(1, Dword, [equal(libc::SIGABRT as u64)])?),
        ]);
        // Its arguments are in memory, which a filter does not see. C libraries go on with `clone`.
        let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let refused = |error: i32| SeccompAction::Errno(error as u32);
        Ok([
            SeccompFilter::new(absent, SeccompAction::Allow, refused(libc::ENOSYS), ARCH)?.try_into()?,
            SeccompFilter::new(allowed, refused(libc::EPERM), SeccompAction::Allow, ARCH)?.try_into()?,
        ])
    }
}
