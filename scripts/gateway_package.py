"""Pack the gateway: a Debian package, and an archive for OpenWrt.

`make gateway` calls it. Both have the program, its file, its manual page and how it is started; nothing is
started before the file names the radio. Needs dpkg-deb for the first.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ROOT / "crates/gateway/package"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of processors."""

MAINTAINER = "Lasthop maintainers <maintainers@lasthop.example>"
CONTROL = """\
Package: lasthop-gateway
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Section: net
Priority: optional
Installed-Size: {kilobytes}
Suggests: nftables
Description: remedies on the connections of a wireless link
 Splits the TCP connections that cross a radio, on the router before it, and
 shows what this gains over a share of flows that it leaves alone.
"""
AFTER = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = configure ] && [ -z "$2" ]; then
    echo "State the radio's interface in /etc/lasthop/gateway.toml; then:"
    echo "systemctl enable --now lasthop-gateway"
fi
"""
BEFORE = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now lasthop-gateway; fi
"""
REMOVED = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
# What the gateway has written; dpkg purges its settings, and leaves the keys of tunnels.
if [ "$1" = purge ]; then rm -rf /var/lib/lasthop; fi
"""
CHANGELOG = """\
lasthop-gateway ({version}) unstable; urgency=medium

  * See the file CHANGELOG.md of Lasthop.

 -- {maintainer}  Sun, 29 Nov 2026 00:00:00 +0000
"""


def version() -> str:
    """Return the version in Cargo.toml."""
    found = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def pack(program: Path, help_text: str, processor: str, directory: Path) -> list[Path]:
    """Pack a program for a processor; return the packages."""
    made = [_archive(program, directory / f"lasthop-gateway-{processor}-openwrt.tar.gz")]
    if shutil.which("dpkg-deb") is None:
        print("skipped: there is no dpkg-deb for a Debian package")
        return made
    architecture = ARCHITECTURES[processor]
    package = directory / f"lasthop-gateway_{version()}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        contents = {
            "usr/sbin/lasthop-gateway": (program.read_bytes(), 0o755),
            "etc/lasthop/gateway.toml": (FILES.joinpath("gateway.toml").read_bytes(), 0o644),
            "usr/lib/systemd/system/lasthop-gateway.service": (
                FILES.joinpath("lasthop-gateway.service").read_bytes(),
                0o644,
            ),
            "usr/share/man/man8/lasthop-gateway.8.gz": (
                gzip.compress(manual(help_text).encode(), mtime=0),
                0o644,
            ),
            "usr/share/doc/lasthop-gateway/copyright": (ROOT.joinpath("LICENSE").read_bytes(), 0o644),
            "usr/share/doc/lasthop-gateway/changelog.gz": (
                gzip.compress(CHANGELOG.format(version=version(), maintainer=MAINTAINER).encode(), mtime=0),
                0o644,
            ),
            # One program for all releases, without libraries of any.
            "usr/share/lintian/overrides/lasthop-gateway": (
                b"lasthop-gateway: statically-linked-binary [usr/sbin/lasthop-gateway]\n",
                0o644,
            ),
            "DEBIAN/conffiles": (b"/etc/lasthop/gateway.toml\n", 0o644),
            "DEBIAN/postinst": (AFTER.encode(), 0o755),
            "DEBIAN/prerm": (BEFORE.encode(), 0o755),
            "DEBIAN/postrm": (REMOVED.encode(), 0o755),
        }
        sums = [
            f"{hashlib.md5(data, usedforsecurity=False).hexdigest()}  {name}\n"
            for name, (data, _) in contents.items()
            if not name.startswith("DEBIAN/")
        ]
        contents["DEBIAN/md5sums"] = ("".join(sums).encode(), 0o644)
        size = sum(len(data) for data, _ in contents.values())
        control = CONTROL.format(
            version=version(),
            maintainer=MAINTAINER,
            architecture=architecture,
            kilobytes=size // 1024,
        )
        contents["DEBIAN/control"] = (control.encode(), 0o644)
        tree.chmod(0o755)
        for name, (data, mode) in contents.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        line = ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(package)]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return [*made, package]


def manual(help_text: str) -> str:
    """Return the manual page, in the language of man(7)."""
    usage, _, rest = help_text.partition("\n\n")
    lines = rest.replace("\\", "\\e").replace("-", "\\-").splitlines()
    # A line must not begin as a request.
    body = "\n".join(f"\\&{line}" for line in lines)
    synopsis = usage.removeprefix("Usage: ").replace("-", "\\-")
    return f""".TH LASTHOP\\-GATEWAY 8 "" "Lasthop {version()}" "System administration"
.SH NAME
lasthop\\-gateway \\- remedies on the connections of a wireless link
.SH SYNOPSIS
{synopsis}
.SH DESCRIPTION
.nf
{body}
.fi
.SH FILES
.I /etc/lasthop/gateway.toml
has the settings;
.B lasthop\\-gateway schema
says what each key means.
"""


def example() -> bytes:
    """Return the settings for a router, whose /var is memory: without a file of flows."""
    lines = FILES.joinpath("gateway.toml").read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"flows ="))


def _archive(program: Path, path: Path) -> Path:
    """Pack what OpenWrt needs, to be unpacked in the root of the router, whose settings it leaves alone."""
    contents = {
        "usr/sbin/lasthop-gateway": (program.read_bytes(), 0o755),
        "etc/lasthop/gateway.toml.example": (example(), 0o644),
        "usr/share/nftables.d/chain-pre/input/lasthop-gateway.nft": (
            FILES.joinpath("lasthop-gateway.nft").read_bytes(),
            0o644,
        ),
        "etc/init.d/lasthop-gateway": (FILES.joinpath("lasthop-gateway.init").read_bytes(), 0o755),
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, (data, mode) in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return path
