"""Compile the gateway as one static program: `make gateway`.

For x86-64 and aarch64, where there is a compiler, by the first of these routes:

- cargo's own rustc, if it has the target: `rustup target add x86_64-unknown-linux-musl`, likewise aarch64;
- for x86-64, Debian's rustc with the sources of the standard library, which is also compiled:
  `apt-get install rustc-web rust-web-src musl-tools`;
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from web import DEBIAN_RUSTC, has_target, needed_version, sysroot, version

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PROCESSORS = ("x86_64", "aarch64")
LIMIT = 8_000_000
"""The largest size of the program in bytes."""


class Route(NamedTuple):
    """How a program is compiled."""

    target: str
    arguments: list[str]
    environment: dict[str, str]


def main() -> None:
    """Compile the program for each processor, or say why not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    made = [compiled(processor) for processor in PROCESSORS]
    if not any(made):
        sys.exit("error: there is no Rust compiler for a static program\n" + (__doc__ or ""))


def compiled(processor: str) -> bool:
    """Compile the program for a processor, if there is a compiler."""
    with route(processor) as found:
        if found is None:
            print(f"skipped: there is no Rust compiler for {processor}: rustup target add {musl(processor)}")
            return False
        began = time.monotonic()
        target = ROOT / "target" / "gateway"
        line = ["cargo", "build", "--locked", "--package", "lasthop-gateway", "--bin", "lasthop-gateway"]
        line += ["--profile", "gateway", "--target", found.target, "--target-dir", str(target)]
        environment = os.environ | {"CARGO_INCREMENTAL": "0"} | found.environment
        subprocess.run([*line, *found.arguments], cwd=ROOT, env=environment, check=True)
        program = target / found.target / "gateway/lasthop-gateway"
    DIST.mkdir(exist_ok=True)
    copy = DIST / f"lasthop-gateway-{processor}-linux"
    shutil.copy2(program, copy)
    size = copy.stat().st_size
    seconds = time.monotonic() - began
    print(f"{copy.relative_to(ROOT)}: {size:,} bytes, for {found.target}, in {seconds:.0f} s")
    if size > LIMIT:
        sys.exit(f"error: {copy.relative_to(ROOT)} has {size:,} bytes, expected at most {LIMIT:,}")
    return True


def musl(processor: str) -> str:
    """Return the target of static programs."""
    return f"{processor}-unknown-linux-musl"


@contextmanager
def route(processor: str) -> Iterator[Route | None]:
    """Return the first available route, or None."""
    target = musl(processor)
    flags = variable(target, "RUSTFLAGS")
    if has_target("rustc", target):
        yield Route(target, [], {variable(target, "LINKER"): "rust-lld"})
    elif processor == "x86_64" and has_debian():
        with TemporaryDirectory() as directory:
            unwinder(Path(directory))
            environment = {
                "RUSTC": DEBIAN_RUSTC,
                # Building the standard library is an unstable feature.
                "RUSTC_BOOTSTRAP": "1",
                variable(target, "LINKER"): "musl-gcc",
                flags: "-C target-feature=+crt-static -C relocation-model=static "
                f"-C link-self-contained=no -L {directory}",
            }
            yield Route(target, ["-Zbuild-std=std,panic_abort"], environment)
    elif processor == platform.machine() and has_target("rustc", target := f"{processor}-unknown-linux-gnu"):
        yield Route(target, [], {variable(target, "RUSTFLAGS"): "-C target-feature=+crt-static"})
    else:
        yield None


def unwinder(directory: Path) -> None:
    """Make the libunwind that the standard library asks for, of GCC's library, whose functions are the same.

    GCC's asks the C library for tables, by a function that musl lacks. Nothing is unwound, since a panic ends
    the process.
    """
    found = subprocess.run(
        ["gcc", "-print-file-name=libgcc_eh.a"], capture_output=True, text=True, check=True
    )
    library = directory / "libunwind.a"
    shutil.copy(found.stdout.strip(), library)
    source, made = directory / "find.c", directory / "find.o"
    source.write_text("int _dl_find_object(void *pc, void *found) { return -1; }\n", encoding="ascii")
    subprocess.run(["gcc", "-c", source, "-o", made], check=True)
    subprocess.run(["ar", "r", library, made], check=True)


def variable(target: str, name: str) -> str:
    """Return the environment variable of cargo for a setting of a target."""
    return f"CARGO_TARGET_{target.upper().replace('-', '_')}_{name}"


def has_debian() -> bool:
    """Return whether Debian's packages are there, and not too old."""
    library = Path(sysroot(DEBIAN_RUSTC) or "/nowhere") / "lib/rustlib/src/rust/library"
    return (
        library.is_dir()
        and shutil.which("musl-gcc") is not None
        and version(DEBIAN_RUSTC) >= needed_version()
    )


if __name__ == "__main__":
    main()
