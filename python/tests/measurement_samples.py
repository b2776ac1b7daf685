"""Small files of each format that `lasthop.measurement` reads, written here and not by their programs."""

# ruff: noqa: RUF001 - translations have letters of other alphabets

from __future__ import annotations

import json
import random
from typing import Any

T0 = 1_700_000_000


def irtt(lost: str = "", count: int = 100, *, offset_ns: int = 0, ip: str = "IPv4") -> dict[str, Any]:
    """Return what irtt writes; `lost` has u, d, ? (unknown) or anything else for each packet."""
    names = {"u": "true_up", "d": "true_down", "?": "true"}
    trips: list[dict[str, Any]] = []
    for seq in range(count):
        fate = names.get(lost[seq : seq + 1], "false")
        sent = seq * 20_000_000
        trip: dict[str, Any] = {
            "seqno": seq,
            "lost": fate,
            "timestamps": {
                "client": {
                    "receive": {},
                    "send": {"wall": T0 * 10**9 + sent, "monotonic": 5_000_000_000 + sent},
                },
                "server": {"receive": {}, "send": {}},
            },
            "delay": {},
            "ipdv": {},
        }
        if fate == "false":
            rtt = 40_000_000 + (seq % 7) * 1_000_000
            trip["delay"] = {
                "receive": rtt // 2 - offset_ns,
                "rtt": rtt,
                "send": rtt // 2 + offset_ns,
            }
        trips.append(trip)
    return {
        "version": {"irtt": "0.9.0", "protocol": 1, "json_format": 1},
        "config": {"ip_version": ip, "params": {"length": 72, "interval": 20_000_000}},
        "stats": {"bytes_sent": 72 * count, "packets_sent": count, "duplicates": 0},
        "round_trips": trips,
    }


LANGUAGES = {
    # The header, "64 bytes from %s:", "icmp_seq=", "time=%s ms", "no answer yet", an ICMP error and the last
    # lines, as iputils translates them.
    "en": (
        "bytes of data.",
        "64 bytes from {}:",
        "icmp_seq",
        "time={} ms",
        "no answer yet for icmp_seq={}",
        "From {} icmp_seq={} Destination Host Unreachable",
        "{} packets transmitted, {} received, {}% packet loss, time {}ms",
    ),
    "cs": (
        "datových bajtů.",
        "64 bajtů z\xa0{}:",
        "pořadí",
        "čas={} ms",
        "žádná odpověď pro pořadí={}",
        "Od {} pořadí={} Cílový počítač je nedostupný",
        "{} paketů odesláno, {} přijato, {}% ztráta paketů, čas {} ms",
    ),
    "fi": (
        "tavua dataa.",
        "64 tavua {}:lta:",
        "icmp_seq",
        "aika={} ms",
        "ei vielä vastausta icmp_seq={}:lle",
        "Lähettäjä {} icmp_seq={} Kohdekonetta ei tavoiteta",
        "{} paketteja lähetetty, {} otettu vastaan, {} % pakettihäviö, aika {} ms",
    ),
    "fr": (
        "octets de données.",
        "64 octets de {} :",
        "icmp_seq",
        "temps={}\xa0ms",
        "encore aucune réponse pour icmp_seq={}",
        "De {} icmp_seq={} Hôte de destination injoignable",
        "{}\xa0paquets transmis, {} reçus, {}\xa0% paquets perdus, temps {}\xa0ms",
    ),
    "ja": (
        "バイトのデータ",
        "64 バイト 送信元 {}:",
        "icmp_seq",
        "時間={} ミリ秒",
        "icmp_seq={} が未応答です",
        "送信元 {} icmp_seq={} 宛先ホストに到達できません",
        "送信パケット数 {}, 受信パケット数 {}, パケット損失 {}%, 時間 {}ミリ秒",
    ),
    "ka": (
        "ბაიტი მონაცემები.",
        "64 ბაიტი {}-დან:",
        "icmp_seq ",
        "დრო={} მწმ",
        "პასუხის გარეშე. icmp_sql={}",
        "{}-დან icmp_seq={} სამიზნე ჰოსტი მიუწვდომელია",
        "გადაცემულია {} პაკეტი, მიღებულია {}, {}% პაკეტი დაიკარგა, დრო {}მწმ",
    ),
    "ko": (
        "바이트.",
        "64 바이트 {} 에서:",
        "icmp_seq",
        "시간={} ms",
        "아직 응답이 없습니다(icmp_seq={})",
        "{} 에서 icmp_seq={} 대상 호스트에 도달할 수 없습니다",
        "{} 패킷이 전송됨, {} 수신됨, {}% 패킷 손실, 시간 {}ms",
    ),
    "tr": (
        "bayt veri.",
        "64 bayt veri {}'den:",
        "icmp_seq",
        "zaman={} ms",
        "icmp_seq={} için henüz cevap yok",
        "Gönderen {} icmp_seq={} Hedef Makine Erişilemez",
        "{} paket iletildi, {} alındı, %{} paket kaybı, zaman {}ms",
    ),
    "uk": (
        "байтів даних.",
        "64 байтів від {}:",
        "icmp_seq",
        "час={} мс",
        "відповідь для icmp_seq={} ще не отримано",
        "Від {} icmp_seq={} Вузол призначення недоступний",
        "Надіслано {} пакетів, отримано {}, втрачено {}% пакетів, час {} мс",
    ),
    "zh": (
        "字节的数据。",
        "64 字节，来自 {}:",
        "icmp_seq",
        "时间={} 毫秒",
        "icmp_seq={} 未响应",
        "来自 {} icmp_seq={} 目标主机不可达",
        "已发送 {} 个包， 已接收 {} 个包, {}% 包丢失, 耗时 {} 毫秒",
    ),
}


def ping_in(language: str, *, stamps: bool = True) -> str:
    """Return what `ping -O -i 0.02 -c 600` prints: one packet in 40 lost, one of these refused."""
    data, reply, key, time, silent, error, totals = LANGUAGES[language]
    text = f"PING host.example (192.0.2.1) 56(84) {data}\n"
    for seq in range(1, 601):
        line = f"{reply.format('192.0.2.1')} {key}={seq} ttl=57 {time.format(f'{30 + seq % 7 * 0.3:.1f}')}"
        if seq % 40 == 0:
            line = error.format("192.0.2.254", seq) if seq == 400 else silent.format(seq)
        heard_s = T0 + seq * 0.02 + (0.0 if seq % 40 == 0 else 0.03)
        text += f"[{heard_s:.6f}] {line}\n" if stamps else f"{line}\n"
    return f"{text}\n--- host.example ping 統計 ---\n{totals.format(600, 585, 2.5, 11980)}\n"


def ping(
    lost: frozenset[int] = frozenset(),
    count: int = 50,
    *,
    stamps: bool = True,
    outstanding: bool = True,
    rtt_ms: float = 30.0,
    interval_s: float = 0.02,
    summary: bool = True,
    late: frozenset[int] = frozenset(),
) -> str:
    """Return what `ping` of iputils prints."""
    lines: list[tuple[float, str]] = []
    for seq in range(1, count + 1):
        sent = T0 + (seq - 1) * interval_s
        ms = rtt_ms + (seq % 5) * 0.5 + (1000 * interval_s if seq in late else 0)
        if outstanding and (seq in lost or ms / 1e3 > interval_s):
            lines.append((sent + interval_s, f"no answer yet for icmp_seq={seq % 65536}"))
        if seq not in lost:
            answer = f"64 bytes from 192.0.2.1: icmp_seq={seq % 65536} ttl=57 time={ms:.3g} ms"
            lines.append((sent + ms / 1e3, answer))
    lines.sort(key=lambda line: line[0])
    text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"
    for time_s, line in lines:
        text += f"[{time_s:.6f}] {line}\n" if stamps else f"{line}\n"
    if summary:
        text += (
            f"\n--- 192.0.2.1 ping statistics ---\n"
            f"{count} packets transmitted, {count - len(lost)} received, "
            f"{100 * len(lost) / count:.3g}% packet loss, time {(count - 1) * interval_s * 1e3:.0f}ms\n"
            "rtt min/avg/max/mdev = 30.0/31.0/32.0/0.7 ms\n"
        )
    return text


def ping_json(lost: frozenset[int] = frozenset(), count: int = 50) -> str:
    """Return what `ping -j` of iputils prints."""
    replies = [
        {"bytes": 64, "host": "192.0.2.1", "seq": seq, "ttl": 57, "time": f"{30 + seq % 5 * 0.5:.3g}"}
        for seq in range(1, count + 1)
        if seq not in lost
    ]
    totals = {
        "host": "192.0.2.1",
        "transmitted": count,
        "received": count - len(lost),
        "time": (count - 1) * 20,
    }
    return "\n".join(json.dumps(entry) for entry in [*replies, totals]) + "\n"


def fping(lost: frozenset[int] = frozenset(), count: int = 50, *, stamps: bool = True) -> str:
    """Return what `fping -D -l -p 20` prints."""
    text = ""
    for seq in range(count):
        ms = 30 + seq % 5 * 0.5
        heard_s = T0 + seq * 0.02 + (0.5 if seq in lost else ms / 1e3)
        outcome = "timed out" if seq in lost else f"64 bytes, {ms:.3g} ms"
        stamp = f"[{heard_s:.5f}] " if stamps else ""
        text += f"{stamp}192.0.2.1 : [{seq}], {outcome} (31.0 avg, 6% loss)\n"
    share = 100 * len(lost) // count
    totals = f"{count}/{count - len(lost)}/{share}%, min/avg/max = 30.0/31.0/32.0"
    text += f"\n192.0.2.1 : xmt/rcv/%loss = {totals}\n"
    return text


def fping_json(lost: frozenset[int] = frozenset(), count: int = 50) -> str:
    """Return what `fping -D -J` prints."""
    packets: list[dict[str, Any]] = []
    for seq in range(count):
        packet = {"timestamp": f"{T0 + seq * 0.02 + 0.03:.5f}", "host": "192.0.2.1", "seq": seq}
        if seq in lost:
            packets.append({"timeout": packet})
        else:
            packets.append({"resp": packet | {"size": 64, "rtt": 30 + seq % 5 * 0.5}})
    total = {"host": "192.0.2.1", "xmt": count, "rcv": count - len(lost), "loss": 100 * len(lost) // count}
    return "\n".join(json.dumps(packet) for packet in [*packets, {"summary": total}]) + "\n"


def iperf3(
    protocol: str = "TCP",
    *,
    reverse: bool = False,
    bidir: bool = False,
    server_output: bool = False,
    client: bool = True,
    lost: tuple[int, ...] = (0, 3, 0, 1, 0),
    target: int = 0,
) -> dict[str, Any]:
    """Return what `iperf3 -J` prints."""

    def stream(second: int, sender: bool) -> dict[str, Any]:
        row: dict[str, Any] = {
            "socket": 5,
            "start": second + 1e-5 * second,
            "end": second + 1 + 1e-5 * second,
            "seconds": 1.0,
            "bytes": 1_250_000 if sender else 1_000_000,
            "omitted": False,
            "sender": sender,
        }
        if protocol == "TCP" and sender:
            row |= {"retransmits": 2, "snd_cwnd": 14480, "rtt": 45_000 + second, "rttvar": 500}
        if protocol == "UDP":
            row["packets"] = 1000
            if not sender:
                row |= {"jitter_ms": 0.5, "lost_packets": lost[second], "lost_percent": lost[second] / 10}
        return row

    def intervals(senders: list[bool]) -> list[dict[str, Any]]:
        return [
            {"streams": [stream(second, sender) for sender in senders], "sum": {}}
            for second in range(len(lost))
        ]

    own = [True, False] if bidir else [client != reverse]
    peer = "connecting_to" if client else "accepted_connection"
    document: dict[str, Any] = {
        "start": {
            "version": "iperf 3.12",
            peer: {"host": "192.0.2.1", "port": 5201},
            "test_start": {
                "protocol": protocol,
                "num_streams": 1,
                "blksize": 1448,
                "omit": 0,
                "duration": 5,
                "reverse": int(reverse),
                "bidir": int(bidir),
                "target_bitrate": target,
            },
        },
        "intervals": intervals(own),
        "end": {},
    }
    if protocol == "UDP":
        total = {"packets": 1000 * len(lost), "lost_packets": sum(lost), "jitter_ms": 0.5}
        document["end"] = {"streams": [{"udp": total}], "sum": total}
    if server_output:
        document["server_output_json"] = {
            "start": {"accepted_connection": {}},
            "intervals": intervals([not sender for sender in own]),
        }
    return document


def ss(
    samples: int = 30, *, spurious: int = 0, lost_at: tuple[int, ...] = (10, 11), upload: bool = True
) -> str:
    """Return what a loop of `date` and `ss -tinmoH` prints."""
    text, again = "", 0
    ports = "192.168.1.2:48730 198.51.100.7:443" if upload else "198.51.100.7:443 192.168.1.2:48730"
    for sample in range(samples):
        again += sample in lost_at
        dsacks = spurious if sample > 12 else 0
        text += f"{T0 + sample * 0.1:.9f}\n"
        text += f"ESTAB 0 {2580480 - sample} {ports} timer:(on,204ms,0)\n"
        text += (
            "\t skmem:(r0,rb131072,t0,tb2626560,f0,w0,o0,bl0,d0) ts sack cubic wscale:7,7 rto:244 "
            f"rtt:{40 + sample % 3}.5/2.2 mss:1448 pmtu:1500 cwnd:30 bytes_sent:{sample * 144800} "
            f"bytes_retrans:{again * 1448} bytes_acked:{sample * 143352 + 1} segs_out:{sample * 100} "
            f"data_segs_out:{sample * 100 + again} send 8.6Mbps delivery_rate 11.4Mbps busy:100ms unacked:30 "
            f"retrans:0/{again} dsack_dups:{dsacks} rcv_space:14480 minrtt:38.1\n"
        )
    return text


def flent(lost: frozenset[int] = frozenset({7, 8}), *, irtt_like: bool = False) -> dict[str, Any]:
    """Return what is in a Flent data file."""
    raw: list[dict[str, Any]] = []
    for seq in range(100):
        sent = T0 + seq * 0.2
        if seq not in lost:
            point = {"seq": float(seq), "t": sent + 0.03, "val": 30.0}
            raw.append(point)
        elif irtt_like:
            raw.append({"seq": seq, "t": sent, "lost": True, "lost_dir": "down" if seq % 2 else "up"})
    return {
        "version": 4,
        "metadata": {"NAME": "tcp_download", "STEP_SIZE": 0.2, "LENGTH": 20},
        "x_values": [step * 0.2 for step in range(100)],
        "results": {
            "Ping (ms) ICMP": [30.0 if step not in lost else None for step in range(100)],
            "TCP download": [8.0 + step % 3 for step in range(100)],
            "TCP download::tcp_rtt": [31.0] * 100,
        },
        "raw_values": {"Ping (ms) ICMP": raw, "TCP download": [{"t": T0 + 1.0, "val": 8e6}]},
    }


CSV = "time_s,lost,rtt_ms,size_bytes,note\n" + "".join(
    f"{seq * 0.02:.2f},{int(seq in (5, 6, 20))},{'' if seq in (5, 6, 20) else 40 + seq % 3},84,x\n"
    for seq in range(60)
)

MAHIMAHI_TRACE = "".join(f"{ms}\n" for ms in range(1, 2001, 2))


def mahimahi_log() -> str:
    """Return a log of mm-link, with packets of 1504 bytes and drops."""
    text = (
        "# mahimahi mm-link (uplink) [trace.up] > up.log\n# command line: mm-link trace.up trace.down\n"
        "# queue: droptail (packets=10)\n# init timestamp: 1700000000000\n# base timestamp: 0\n"
    )
    for ms in range(0, 3000, 10):
        text += f"{ms} + 1504\n"
        text += f"{ms} # 1504\n"
        text += f"{ms + 4} d 1 1504\n" if ms % 500 == 0 else f"{ms + 5} - 1504 5\n"
    return text


IPERF_TEXT = """Server listening on 5201
Accepted connection from 192.0.2.2, port 40000
[  5] local 192.0.2.1 port 5201 connected to 192.0.2.2 port 40001
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec  1.16 MBytes  9.77 Mbits/sec  0.041 ms  2/843 (0.24%)
[  5]   1.00-2.00   sec  1.19 MBytes  9.98 Mbits/sec  0.051 ms  7/863 (0.81%)
[  5]   2.00-2.04   sec  48.1 KBytes  9.98 Mbits/sec  0.051 ms  1/35 (2.9%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-2.04   sec  2.40 MBytes  9.88 Mbits/sec  0.051 ms  10/1741 (0.57%)  receiver
"""

MTR = """Start: 2026-11-29T21:09:15+0000
HOST: laptop                      Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 192.168.1.1                0.0%   300    1.2   1.5   0.9   9.2   1.1
  2.|-- ???                       100.0   300    0.0   0.0   0.0   0.0   0.0
  3.|-- 198.51.100.1              40.0%   300   11.1  12.2  10.0  29.0   5.0
  4.|-- 192.0.2.1                  2.0%   300   41.1  41.2  40.0  99.0   5.0
"""

MTR_CSV = """Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,
MTR.0.95,1700000000,OK,192.0.2.1,1,192.168.1.1,0.00,300,0,1.20,1.50,0.90,9.20,1.10
MTR.0.95,1700000000,OK,192.0.2.1,2,192.0.2.1,2.00,300,6,41.10,41.20,40.00,99.00,5.00
"""


def iperf_text_tcp(streams: int = 1) -> str:
    """Return what `iperf3 -c` prints: 40 Mb/s fill the socket's buffer at first, 10 Mb/s arrive."""
    head = "Connecting to host 192.0.2.1, port 5201\n[ ID] Interval Transfer Bitrate Retr  Cwnd\n"
    rows = [(0, 1, "5.00 MBytes  41.9"), (1, 2, "1.25 MBytes  10.5"), (2, 3, "1.25 MBytes  10.5")]
    lines = [
        f"[{stream:3}]   {start}.00-{end}.00   sec  {size} Mbits/sec    3    226 KBytes"
        for start, end, size in rows
        for stream in [*range(5, 5 + streams), *(["SUM"] if streams > 1 else [])]
    ]
    lines += [
        line
        for stream in range(5, 5 + streams)
        for line in (
            f"[{stream:3}]   0.00-3.00   sec  7.50 MBytes  21.0 Mbits/sec    4             sender",
            f"[{stream:3}]   0.00-3.04   sec  3.60 MBytes  9.94 Mbits/sec                  receiver",
        )
    ]
    return head + "\n".join(lines) + "\n\niperf Done.\n"


def iperf_csv() -> str:
    """Return what `iperf -s -u -y C -i 1` of version 2 prints, with its total."""
    ends = "192.0.2.1,5001,192.0.2.2,40000,3"
    rows = [(second, second + 1, 89, second % 3) for second in range(10)] + [(0, 10, 890, 9)]
    return "".join(
        f"202601020300{end:02},{ends},{start}.0-{end}.0,{sent * 1470},1046640,0.19,{lost},{sent},1.2,0\n"
        for start, end, sent, lost in rows
    )


def starlink() -> dict[str, Any]:
    """Return the history of a dish: of 900 seconds, the oldest at the place 400, one lost and one half."""
    drops: list[float] = [0.0] * 900
    drops[400], drops[402] = 1, 0.5
    series = {"downlinkThroughputBps": [1e6] * 900, "uplinkThroughputBps": [1e5] * 900}
    history = {"current": "1300", "popPingDropRate": drops, "popPingLatencyMs": [30.0] * 900}
    return {"apiVersion": "9", "dishGetHistory": history | series}


def atlas(probe: int = 7) -> list[dict[str, Any]]:
    """Return results of RIPE Atlas: three packets every four minutes, one of 30 lost."""
    return [
        {
            "type": "ping",
            "prb_id": probe,
            "msm_id": 1,
            "dst_addr": "192.0.2.1",
            "timestamp": T0 + 240 * place,
            "sent": 3,
            "rcvd": 3 - (place % 10 == 4),
            "result": [{"rtt": 30.5}, {"rtt": 31.1}, {"x": "*"} if place % 10 == 4 else {"rtt": 33.0}],
        }
        for place in range(100)
    ]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Return a damaged copy: bytes changed, pieces cut, doubled or exchanged, numbers made extreme."""
    extremes = (
        b"-1",
        b"1e999",
        b"NaN",
        b"99999999999999999999",
        b"null",
        b'"x"',
        b"[]",
        b"{}",
        b"\xff\xff\xff\xff",
    )
    copy = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5, 20))):
        if not copy:
            break
        start = dice.randrange(len(copy))
        length = min(dice.choice((1, 2, 4, 8, 30, 200)), len(copy) - start)
        match dice.randrange(8):
            case 0:
                copy[start] = dice.randrange(256)
            case 1:
                del copy[start : start + length]
            case 2:
                copy[start:start] = copy[start : start + length]
            case 3:
                del copy[start:]
            case 4:
                other = dice.randrange(len(copy))
                copy[start : start + length] = copy[other : other + length]
            case 5:
                copy[start : start + length] = dice.choice(extremes)
            case 6:
                copy[start] ^= 1 << dice.randrange(8)
            case 7:
                # A number in a text becomes another one.
                digits = [
                    place for place in range(start, min(start + 200, len(copy))) if 48 <= copy[place] < 58
                ]
                if digits:
                    copy[digits[0] : digits[0] + 1] = dice.choice(extremes)
    return bytes(copy)


def measured() -> dict[str, Any]:
    """Return what `lasthop measure` writes: two phases without load, and one of a load down."""

    def series(lost: tuple[int, ...], lost_up: tuple[int, ...], known: int) -> dict[str, Any]:
        return {
            "size_bytes": 200,
            "sent_s": [round(place * 0.02, 6) for place in range(50)],
            "rtt_s": [None if place in lost else 0.04 for place in range(50)],
            "directions_of": known,
            "lost_up": [*lost_up],
        }

    quiet = {"load": None, "commands": ["irtt"], "throughput": None}
    near = series((3,), (), 0)
    return {
        "format": "lasthop measure",
        "version": 1,
        "host": "host.example",
        "last_hop": "192.0.2.1",
        "started": "2026-01-02T03:04:05Z",
        "interrupted": False,
        "notes": ["A note."],
        "phases": [
            quiet | {"begins_s": 0.0, "far": series((3, 7, 8), (7,), 50), "last_hop": near},
            quiet | {"begins_s": 60.0, "far": series((5, 49), (), 49), "last_hop": None},
            {
                "begins_s": 70.0,
                "load": "down",
                "commands": ["irtt", "iperf3"],
                "far": series((1,), (), 50),
                "last_hop": None,
                "throughput": {
                    "time_s": [0.0, 1.0],
                    "interval_s": [1.0, 1.0],
                    "rate_bps": [8e6, 9e6],
                    "saturated": True,
                },
            },
        ],
    }


def gateway_flows() -> list[dict[str, Any]]:
    """Return what the gateway writes of downloads over its radio, with a packet of 40 retransmitted."""
    settings = {"time_s": 1.8e9, "scheme": "i-tcp", "is_helping": True, "keys": ""}
    lines: list[dict[str, Any]] = [{"line": "start", **settings}]
    for number in range(60):
        began_s, packets = 1.8e9 + 1.5 * number, 40 * (1 + number % 3)
        lines.append(
            {
                "line": "flow",
                "began_s": began_s,
                "ended_s": began_s + 1.2,
                "client": f"10.0.0.{number % 4}:{40_000 + number}",
                "server": "192.0.2.1:443",
                "class": "port 443",
                "arm": ("helped", "unhelped")[number % 2],
                "unhelped": 0.5,
                "coin": number % 3 == 0,
                "outcome": "closed",
                "first_byte_s": 0.09,
                "active_s": 0.4 + 0.1 * (number % 7),
                "bytes_to_client": 1448 * packets,
                "bytes_to_server": 100,
                "behind": "client",
                "wired_rtt_s": 0.04,
                "radio_rtt_s": 0.02 + 0.001 * (number % 5),
                "sent_bytes": 1448 * (packets + packets // 40),
                "retransmitted_bytes": 1448 * (packets // 40),
                "repaired_bytes": 0,
            }
        )
    return lines


def texts() -> dict[str, bytes]:
    """Return a sample of each format but captures."""
    stream = iperf3("UDP", reverse=True)
    events = [{"event": "start", "data": stream["start"]}]
    events += [{"event": "interval", "data": interval} for interval in stream["intervals"]]
    samples: dict[str, str] = {
        "irtt": json.dumps(irtt("..uuu.d..", 40)),
        "ping": ping(frozenset({4, 9, 10})),
        "ping-plain": ping(frozenset({4, 9, 10}), stamps=False, outstanding=False),
        "ping-json": ping_json(frozenset({4, 9, 10})),
        "ping-quiet": "\n".join(ping(frozenset({4, 9, 10})).splitlines()[:1] + ping().splitlines()[-3:]),
        "fping": fping(frozenset({4, 9, 10})),
        "fping-json": fping_json(frozenset({4, 9, 10})),
        "iperf3-text": IPERF_TEXT,
        "iperf3-text-tcp": iperf_text_tcp(),
        "iperf2-csv": iperf_csv(),
        "mtr": MTR,
        "mtr-csv": MTR_CSV,
        "starlink": json.dumps(starlink()),
        "atlas": json.dumps(atlas()),
        "iperf3-tcp": json.dumps(iperf3("TCP", bidir=True, server_output=True)),
        "iperf3-udp": json.dumps(iperf3("UDP", reverse=True)),
        "iperf3-stream": "\n".join(json.dumps(event) for event in events),
        "lasthop": json.dumps(measured()),
        "gateway": "\n".join(map(json.dumps, gateway_flows())),
        "ss": ss(spurious=1),
        "flent": json.dumps(flent()),
        "flent-irtt": json.dumps(flent(irtt_like=True)),
        "csv": CSV,
        "csv-counts": "time_s,sent,lost,rate_mbps,delay_ms\n0,100,3,1.5,20\n1,100,0,2.5,30\n2,50,50,0,\n",
        "csv-loss": "time_ms,loss_percent,direction\n0,1.5,up\n1000,100,down\n2000,0,up\n",
        "mahimahi-trace": MAHIMAHI_TRACE,
        "mahimahi-log": mahimahi_log(),
    }
    return {name: text.encode() for name, text in samples.items()}


def misshapen(document: Any, dice: random.Random) -> Any:
    """Return a JSON document in which some values are of another kind."""
    odd: tuple[Any, ...] = (
        None,
        True,
        -1,
        0,
        1e308,
        10**40,
        "x",
        "",
        [],
        {},
        [None],
        {"a": 1},
        -1e-300,
        2**63,
    )
    if dice.random() < 0.01:
        return dice.choice(odd)
    if isinstance(document, dict):
        return {key: misshapen(value, dice) for key, value in document.items() if dice.random() > 0.002}
    if isinstance(document, list):
        return [misshapen(value, dice) for value in document]
    return document
