# The first process of a host that has a kernel of its own: makes its root and its network, and runs its program.
#
# The script that includes this one has set
#   directory, writable       where the program starts, and the directories of this machine that it may change
#   network                   commands that set up its network
#   program                   the command of its program; empty for a host that only answers
#   listens                   whether the other host waits until the program listens
# In the directory of the guest are the files stdout, stderr, console, and status for the exit code of the program.
#
# By this file of the kernel it tells the calendar that the host is ready, and that its program has ended.
calendar=/sys/kernel/um-ext-time/bc-message

# hostfs has its options as mount(2) passes them.
export LIBMOUNT_FORCE_MOUNT2=always
exec 0</dev/null 1>/dev/null 2>/dev/null
mount -t tmpfs tmpfs /run
mkdir /run/job /run/changes /run/work /run/more /run/work2 /run/root
# On this machine, the directory of the kernel: so no path of a job is on the kernel's command line, which would seed its
# random numbers.
mount -t hostfs -o /proc/self/cwd hostfs /run/job
exec 2>>/run/job/console 3>>/run/job/stdout 4>>/run/job/stderr 5>>/run/job/status
set -e

# A root of this machine's files whose changes stay in memory, but for those in the writable directories.
mount -t overlay -o lowerdir=/,upperdir=/run/changes,workdir=/run/work overlay /run/root
cd /run/root
mount -t proc -o nosuid,noexec proc proc
mount -t sysfs -o nosuid,noexec sysfs sys
mount -t devtmpfs devtmpfs dev
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o ptmxmode=666 devpts dev/pts
ln -s /proc/self/fd dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${stream%:*}" "dev/${stream#*:}"; done
case $directory in /dev/shm/*)
    mkdir -p ".$directory"
    mount -t overlay -o "lowerdir=$directory,upperdir=/run/more,workdir=/run/work2" overlay ".$directory"
esac
for path in $writable; do
    path=$(printf '%b' "$path")
    mkdir -p ".$path"
    mount -t hostfs -o "$path" hostfs ".$path"
done
pivot_root . .
umount -l .
cd "$directory"

# What kernels with more memory set (tcp(7)).
echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem
echo 4096 16384 4194304 >/proc/sys/net/ipv4/tcp_wmem
echo 8388608 >/proc/sys/net/core/rmem_max
echo 8388608 >/proc/sys/net/core/wmem_max
eval "$network"

# Whether any socket listens, or any of UDP is open.
listening() {
    for table in tcp:0A tcp6:0A udp:07 udp6:07; do
        [ -r "/proc/net/${table%:*}" ] || continue
        while read -r _ _ _ state _; do
            [ "$state" != "${table#*:}" ] || return 0
        done <"/proc/net/${table%:*}"
    done
    return 1
}

if [ -n "$program" ]; then
    (eval "$program") <&0 >&3 2>&4 3>&- 4>&- 5>&- &
    if [ -n "$listens" ]; then
        tries=500
        while ! listening && kill -0 $! && [ $tries -gt 0 ]; do
            sleep 0.01
            tries=$((tries - 1))
        done
    fi
    echo 1 >$calendar
    code=0
    wait $! || code=$?
    read -r _ user nice system _ </proc/stat
    echo "$code $((user + nice + system))" >&5
fi
echo 2 >$calendar
# The host goes on to answer. Its process is ended from outside.
exec sleep infinity
