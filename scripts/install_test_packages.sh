#!/usr/bin/env bash
# Installs what tests use beside Python, Rust, a C compiler and make, where this user may: with rustup, and with apt as
# root. Tests whose program is not installed are skipped, and say so.
set -euo pipefail

packages=(
    bash zsh fish man-db            # completion; the manual page
    chromium nodejs                 # pages
    irtt iputils-ping iperf3 tshark # measurements and captures, beside the programs that make and read them
    iproute2 util-linux             # network namespaces
    nftables                        # a firewall beside the gateway
    valgrind                        # instruction counts
)

# The simulator as WebAssembly.
target=wasm32-unknown-unknown
if command -v rustup >/dev/null && rustup --quiet target add "$target"; then
    echo "target of Rust for tests: $target"
else
    packages+=(rustc-web rust-web-src lld-22)
fi

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "packages for tests: not installed, which needs apt and root: ${packages[*]}"
    exit
fi
missing=()
for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
    echo "packages for tests: all installed"
    exit
fi
echo "packages for tests: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2 || echo "packages for tests: the lists of packages are not up to date"
for package in "${missing[@]}"; do
    # One that this distribution lacks costs its own tests alone.
    apt-get install --quiet=2 --no-install-recommends "$package" >/dev/null || echo "packages for tests: no $package"
done
