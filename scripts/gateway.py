"""Compile the gateway as one static program, and pack it: `make gateway`.

For x86-64 and aarch64, where there is a compiler, by the first of these routes:

- cargo's own rustc, if it has the target: `rustup target add x86_64-unknown-linux-musl`, likewise aarch64;
- for the machine's own processor, its C library, linked statically.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from gateway_package import pack
from web import has_target

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PROCESSORS = ("x86_64", "aarch64")
FLAGS = '--cfg poly1305_backend="soft"'
"""The tunnel's cipher is half as fast again without that of AVX2, whose helpers no compiler inlines."""
LIMIT = 8_000_000
"""The largest size of the program in bytes."""


class Route(NamedTuple):
    """How a program is compiled."""

    target: str
    environment: dict[str, str]


def main() -> None:
    """Compile the program for each processor, or say why not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    made = {processor: found for processor in PROCESSORS if (found := compiled(processor))}
    if not made:
        sys.exit("error: there is no Rust compiler for a static program\n" + (__doc__ or ""))
    own = made.get(platform.machine())
    if own is None:
        print("skipped: packages, whose manual page is what the program of this processor prints")
        return
    help_text = subprocess.run([own, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    for processor, program in made.items():
        for package in pack(program, help_text, processor, DIST):
            print(f"{package.relative_to(ROOT)}: {package.stat().st_size:,} bytes")


def compiled(processor: str) -> Path | None:
    """Compile the program for a processor, if there is a compiler."""
    found = route(processor)
    if found is None:
        print(f"skipped: there is no Rust compiler for {processor}: rustup target add {musl(processor)}")
        return None
    began = time.monotonic()
    target = ROOT / "target" / "gateway"
    line = ["cargo", "build", "--locked", "--package", "lasthop-gateway", "--bin", "lasthop-gateway"]
    line += ["--profile", "gateway", "--target", found.target, "--target-dir", str(target)]
    environment = os.environ | {"CARGO_INCREMENTAL": "0"} | found.environment
    subprocess.run(line, cwd=ROOT, env=environment, check=True)
    program = target / found.target / "gateway/lasthop-gateway"
    DIST.mkdir(exist_ok=True)
    copy = DIST / f"lasthop-gateway-{processor}-linux"
    shutil.copy2(program, copy)
    size = copy.stat().st_size
    seconds = time.monotonic() - began
    print(f"{copy.relative_to(ROOT)}: {size:,} bytes, for {found.target}, in {seconds:.0f} s")
    if size > LIMIT:
        sys.exit(f"error: {copy.relative_to(ROOT)} has {size:,} bytes, expected at most {LIMIT:,}")
    return copy


def musl(processor: str) -> str:
    """Return the target of static programs."""
    return f"{processor}-unknown-linux-musl"


def route(processor: str) -> Route | None:
    """Return the first available route, or None."""
    if has_target("rustc", target := musl(processor)):
        # Its libraries are with the target, so that no other linker and no C library are needed.
        return Route(target, {variable(target, "LINKER"): "rust-lld", variable(target, "RUSTFLAGS"): FLAGS})
    if processor == platform.machine() and has_target("rustc", target := f"{processor}-unknown-linux-gnu"):
        return Route(target, {variable(target, "RUSTFLAGS"): f"{FLAGS} -C target-feature=+crt-static"})
    return None


def variable(target: str, name: str) -> str:
    """Return the environment variable of cargo for a setting of a target."""
    return f"CARGO_TARGET_{target.upper().replace('-', '_')}_{name}"


if __name__ == "__main__":
    main()
