"""Compile the simulator to WebAssembly for pages: python/lasthop/web/simulator.wasm.gz.

`make web` runs this script; `make test` with `--profile web-test`, which takes less than half of the time.
There are two routes, tried in this order:

- cargo's own rustc, if it has the target: `rustup target add wasm32-unknown-unknown`;
- Debian's rustc with the sources of the standard library, which is also compiled:
  `apt-get install rustc-web rust-web-src lld-22`.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = "wasm32-unknown-unknown"
MODULE = ROOT / "python/lasthop/web/simulator.wasm.gz"
DEBIAN_RUSTC = "/usr/bin/rustc"
QUICK = "web-test"

Route = tuple[list[str], dict[str, str]]
"""Additional arguments and environment variables of cargo."""


def main() -> None:
    """Compile the module, or fail with the reason."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only look for a route")
    parser.add_argument("--profile", choices=["web", QUICK], default="web")
    options = parser.parse_args()
    found = route()
    if found is None:
        sys.exit(
            f"error: there is no Rust compiler for {TARGET}\n{__doc__.partition('There are')[2]}".rstrip()
        )
    if options.check:
        return
    arguments, environment = found
    began = time.monotonic()
    # A separate directory, since a change of rustc would recompile all build scripts.
    target = ROOT / "target" / "web"
    line = ["cargo", "build", "--locked", "--package", "lasthop-web", "--lib", "--profile", options.profile]
    line += ["--target", TARGET, "--target-dir", str(target), *arguments]
    subprocess.run(line, cwd=ROOT, env=os.environ | environment, check=True)
    module = (target / TARGET / options.profile / "lasthop_web.wasm").read_bytes()
    # Without a timestamp, so that the same module gives the same file.
    packed = gzip.compress(module, mtime=0)
    MODULE.write_bytes(packed)
    if options.profile == QUICK:
        # Of the year 2000, so that `make web` replaces it.
        os.utime(MODULE, (946684800, 946684800))
    seconds = time.monotonic() - began
    print(f"{MODULE.relative_to(ROOT)}: {len(packed):,} bytes, {len(module):,} unpacked, in {seconds:.0f} s")


def route() -> Route | None:
    """Return the first available route."""
    if has_target("rustc", TARGET):
        return [], {}
    linker = next(
        filter(shutil.which, ("wasm-ld", "wasm-ld-22", "wasm-ld-21", "wasm-ld-20", "wasm-ld-19")), None
    )
    library = Path(sysroot(DEBIAN_RUSTC) or "/nowhere") / "lib/rustlib/src/rust/library"
    if linker is None or not library.is_dir() or version(DEBIAN_RUSTC) < needed_version():
        return None
    environment = {
        "RUSTC": DEBIAN_RUSTC,
        # Building the standard library is an unstable feature.
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": linker,
    }
    return ["-Zbuild-std=std,panic_abort"], environment


def has_target(rustc: str, target: str) -> bool:
    """Return whether a compiler has the standard library for the target."""
    root = sysroot(rustc)
    return root is not None and (Path(root) / "lib/rustlib" / target / "lib").is_dir()


def sysroot(rustc: str) -> str | None:
    """Return the sysroot of a compiler, or None if the compiler does not exist."""
    if shutil.which(rustc) is None:
        return None
    return subprocess.run(
        [rustc, "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def version(rustc: str) -> tuple[int, ...]:
    """Return the version of a compiler."""
    printed = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=True).stdout
    numbers = re.search(r"(\d+)\.(\d+)", printed)
    return tuple(int(number) for number in numbers.groups()) if numbers else ()


def needed_version() -> tuple[int, ...]:
    """Return the minimum version of the compiler."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        needed = tomllib.load(file)["workspace"]["package"]["rust-version"]
    return tuple(int(number) for number in needed.split("."))


if __name__ == "__main__":
    main()
