"""Programs whose output is known and not read: what a file is, what it does not tell, and the remedy."""

from __future__ import annotations

import re

from lasthop.measurement.source import Source, mapping

_PING = "measure with `ping -D -O -i 0.02 HOST`"

_SUMMARY = "a summary without packets, which tells no bursts"

_STATE = "state its rate: `lasthop advise --loss 1% --rate 45Mbps --rtt 60ms`"

_CAPTURE = "expected the capture itself, such as that of `tcpdump -i wlan0 -s 128 -w capture.pcap`"

_NO_PATH = "which tell no losses of a path"

_PACKETS = re.compile(
    # tcpdump, tshark, and what Wireshark exports as CSV.
    r"^(?:[\d-]{10} )?\d\d:\d\d:\d\d\.\d{6,9} (?:\S{1,16} (?:In|Out|[BMP]) +)?(?:IP6?|ARP,) |"
    r"^ *\d{1,9} +\d{1,9}\.\d{6,9} +\S{2,45} +(?:->|\u2192) +\S{2,45} +[A-Z]|"
    r'\A"No\.","Time","|\A.{0,30}"Source","Destination","Protocol"|'
    # The fields of tshark.
    r"\A\W?(?:frame|eth|ip|tcp|udp)\.\w+(?:\.\w+)?\W",
    re.MULTILINE,
)
"""Lists of packets, of which other readers know some lines."""

FIRST: tuple[tuple[re.Pattern[str], str], ...] = (
    (_PACKETS, f"packets as text, which lacks a part of each; {_CAPTURE}"),
    (
        re.compile(r'\A"?server (?:id|name)"?,"?(?:sponsor|server)', re.IGNORECASE),
        f"the table of a speed test, {_SUMMARY}; {_STATE}",
    ),
)
"""Output of which the readers know some lines, so that it is named before they are asked."""

_OTHERS: tuple[tuple[str, str], ...] = (
    (
        r"My traceroute|WinMTR|^x \d{1,2} \d{4,6}\s+^[hpx] ",
        f"output of mtr that lacks columns: its screen, or what `--raw` prints; {_PING}, or `mtr --report`",
    ),
    (r"^ +\d{1,4}/ *\d{1,4} = +\d{1,3}% ", f"the output of pathping, {_SUMMARY}; {_PING} in WSL"),
    (
        r"^Tracing route to |^traceroute6? to |^ +\d+ +(?:(?:<?[\d.]+ ms|\*) +){3}|^ ?\d+\?: \[LOCALHOST\]",
        f"the output of traceroute, which sends too few packets for losses; {_PING}",
    ),
    (
        r"^ *Speedtest by Ookla|^Retrieving speedtest\.net configuration|"
        r"^ *Download: +[\d.]+ .bit/s|^\s*\d+(?:\.\d+)? [KMG]bps\s*\Z|^==== SUMMARY ====",
        f"the output of a speed test, {_SUMMARY}; {_STATE}",
    ),
    (
        r"^Sending \d+, \d+-byte ICMP Echos to |^Success rate is \d+ percent",
        f"the output of ping of a Cisco router, which has no times; {_PING}",
    ),
    (r"^ *SEQ HOST +SIZE TTL TIME", f"the output of ping of RouterOS, which is not supported; {_PING}"),
    (
        r"^ *(?:Ping )?Source +(?:Destination|Address) +.*\b(?:Latency|Bytes|BufferSize)",
        f"the output of PowerShell's Test-Connection, which sends a packet per second; {_PING} in WSL",
    ),
    (
        r"^ARPING |^Starting Nping |^Probing \S+:\d+/tcp|^PsPing v|^Connected to \S+: time=|"
        r"^connected to .{1,80}seq=\d+ ",
        "the output of a program that is not supported (arping, nping, httping, tcping, paping or PsPing); "
        f"{_PING}",
    ),
    (
        r"^--- (?:ow|tw)ping statistics|^ITGDec version|^Flow number: \d|^Ethr: |"
        r"^\[ *ID\] +Protocol +Interval|^sockperf: |^(?:tcp|udp)_(?:bw|lat):",
        "the output of a program that is not supported (owping, D-ITG, ethr, sockperf or qperf); "
        "`irtt client -i 20ms -d 5m -o irtt.json.gz SERVER` measures each direction",
    ),
    (
        r"^ *% Total +% Received % Xferd|^[^\n]{1,80} \d{1,3}%\[[=+>]{0,80} *\] ",
        "the output of a download, the rate of one transfer, which tells no losses; measure with "
        "`lasthop measure HOST --url URL`",
    ),
    (
        r"^(?:MIGRATED )?(?:TCP|UDP|OMNI)\S* .{0,40}TEST (?:from|to) |MB / +[\d.]+ sec = ",
        f"the output of netperf or nuttcp, {_SUMMARY}; print intervals: `netperf -D 1` or `nuttcp -i 1`",
    ),
    (
        r"^Station (?:[\da-f]{2}:){5}[\da-f]{2} \(on |^#kernel$|^NIC statistics:$|^(?:Ip|Tcp|TcpExt|Udp):$|"
        r"^qdisc \w+ [\da-f]+: |^\d+: \S+: <[A-Z_,-]+> mtu |^ +RX packets[: ]\d+|^Inter-\| |"
        r"^Connected to [\da-f:]{17} \(on |^Linux \S+ \(.{1,60}\) .{1,60}_\(\d+ CPU\)",
        f"counters of a host or its interface, {_NO_PATH}; {_PING}",
    ),
    (
        r"^\+C(?:SQ|ESQ|OPS): |^ *Signal +\|  *|RSR[PQ] *[:=] *-\d|CTRL-EVENT-[A-Z]|^mSignalStrength=",
        f"levels or events of a radio, {_NO_PATH}; {_PING} beside them",
    ),
    (
        r"^TCP connection \d+:|^\d+ args? remaining, starting with|^File name: .{1,200}\s+^File type: ",
        f"what a program says of a capture; {_CAPTURE}",
    ),
    (
        r"^[A-Za-z_]\w{0,40}(?:,\w+=[^ ,]{1,80})+ \w+=\S{1,300} \d{19}$",
        "lines for InfluxDB (Telegraf); export them as CSV with the columns time, sent and "
        "received, or time and rtt_ms",
    ),
    (r"\A<\?xml|\A<!DOCTYPE|\A<html|\A<rrd>", f"a page or XML and not the output of a measurement; {_PING}"),
    (
        r"\A\s*(?:[-+\d.]+[ \t;,]+)+[-+\d.]+\s*$",
        "columns of numbers without names; put their names into a first line, such as time_s,rate_mbps, and "
        "commas between the numbers",
    ),
)
"""How known programs begin whose output cannot be read, and what to say of it."""

_PATTERNS = tuple((re.compile(pattern, re.MULTILINE), what) for pattern, what in _OTHERS)

_OTHER_JSON: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"_source"}), f"packets as JSON; {_CAPTURE}"),
    (frozenset({"start", "intervals"}), "a list of tests of iperf3; put each into its own file"),
    (frozenset({"dishGetStatus"}), f"the state of a Starlink dish at one instant; {_PING}"),
    (frozenset({"report"}), f"the JSON of mtr without hops; {_PING}"),
    *(
        (frozenset(found), f"the JSON of a speed test, {_SUMMARY}; {_STATE}")
        for found in (
            {"download", "upload", "ping"},
            {"downloadSpeed", "latency"},
            {"dl_throughput", "ul_throughput"},
            {"Key", "Value"},
            {"ServerFQDN", "Download"},
        )
    ),
    (
        frozenset({"log"}),
        f"a browser's record of a page (HAR), with times of requests and no packets; {_PING}",
    ),
    *(
        (
            frozenset({key}),
            "a log of QUIC (qlog), the view of one end; "
            "`irtt client -i 20ms -d 5m -o irtt.json.gz SERVER` measures both directions",
        )
        for key in ("qlog_version", "qlog_format")
    ),
    (
        frozenset({"status", "data"}),
        "the answer of Prometheus; export it as CSV with the columns time, sent and received, or time and "
        "rtt_ms",
    ),
    (frozenset({"msm_id"}), f"results of RIPE Atlas that are not of ping; {_PING}"),
)
"""The keys of the JSON of known programs that cannot be read, and what to say of it."""


def keys(source: Source) -> tuple[list[str], bool]:
    """Return the keys of the first JSON object of a file, and whether it is in a list."""
    document = source.documents[0]
    listed = isinstance(document, list)
    return [str(key) for key in mapping(document[0] if listed and document else document)], listed


def named(source: Source) -> str | None:
    """Return what a file is that no reader reads; None if it is unknown."""
    for pattern, what in _PATTERNS:
        if pattern.search(source.text[:4000]):
            return what
    if source.is_json:
        found = set(keys(source)[0])
        return next((what for wanted, what in _OTHER_JSON if wanted <= found), None)
    return None
