"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading
from lasthop.papers.wenp.network import DIVISOR, STATIONS, drops, uploads

_STATIONS = tuple(f"{row}-{station}" for row in ("standard", "wenp") for station in STATIONS[1:])

READINGS = (
    Reading(
        "divisor",
        (
            "How many of the segments dropped by a MAC are lost? The lossy rows of table IV follow "
            "the inverse square root of the drop rate up to 20 %, which is impossible for TCP with a "
            "timeout of a second."
        ),
        (
            Choice("8", "one in eight: this reproduces both rows (figure divisor)"),
            Choice("7", "one in seven", {"": drops(7)}),
            Choice("10", "one in ten", {"": drops(10)}),
            Choice("1", "all of them, as in table I: the worst station then gets a tenth", {"": drops(1)}),
        ),
        fitted=_STATIONS,
    ),
    Reading(
        "ack",
        "How many segments does an acknowledgement cover? Table II says two, or 0.2 s.",
        (
            Choice("1", "one: then the cell carries the 4.3 Mb/s of table IV's rows"),
            Choice(
                "2", "two: it carries 4.9 Mb/s, which the first station takes", {"": {"tcp.ack_every": 2}}
            ),
        ),
        fitted=("sum-standard", "sum-wenp"),
    ),
    Reading(
        "window",
        "How large is the receive window of the stations, to which the data go? Table II has 65,535 B for "
        'the server and "Default" for the stations.',
        (
            Choice("65535", "65,535 B, as of the server"),
            Choice(
                "8760",
                "8,760 B, OPNET's default: MH 1 then gets 649 kb/s and MH 8 361, for 1480 and 214",
                {"": {"tcp.window": "8760 B"}},
            ),
        ),
        fitted=("standard-1",),
    ),
    Reading(
        "halving",
        'What is halved at a loss? By section II the threshold becomes "half of the current cwnd".',
        (
            Choice("flight", "the data in flight, as in RFC 5681"),
            Choice(
                "window",
                "the congestion window, as worded: no station changes by over 4 % (2 runs)",
                {"": {"tcp.rules": "ns2"}},
            ),
        ),
    ),
    Reading(
        "recovery",
        (
            "How are several losses of a window repaired? In section II recovery ends with the next "
            "acknowledgement of new data, and table II names TCP Reno."
        ),
        (
            Choice(
                "reno",
                (
                    "recovery ends with the first new acknowledgement, as in section II; the ratios of table "
                    "IV are then closer to the printed ones than with newreno"
                ),
            ),
            Choice("newreno", "one recovery repairs all holes", {"": {"tcp.flavour": "newreno"}}),
            Choice(
                "sack", "selective acknowledgements, which table II disables", {"": {"tcp.flavour": "sack"}}
            ),
        ),
    ),
    Reading(
        "careful",
        (
            "May a window have several fast retransmits? In section II recovery ends with the next new "
            "acknowledgement, and any three duplicates start one; the formula of section V-B counts the "
            "duplicates of a second loss."
        ),
        (
            Choice("false", "yes, as in both sections"),
            Choice(
                "true",
                (
                    "one per window of data, as in later TCPs (RFC 6582): a second loss waits for the timer, "
                    "and WENP, whose windows stay larger, has more timeouts than standard TCP"
                ),
                {"": {"tcp.careful": True}},
            ),
        ),
    ),
    Reading(
        "direction",
        "Do the stations download, as in section VI, or upload, as in the captions of figures 4 and 5?",
        (
            Choice("download", "download: packets from the server are dropped at the stations"),
            Choice(
                "upload",
                "upload: data are lost on the way to the access point, where WENP cannot tell",
                {"": uploads(DIVISOR)},
            ),
        ),
    ),
    Reading(
        "queue",
        "How does the access point queue packets for different stations?",
        (
            Choice("shared", "in one queue, whose delay affects all stations"),
            Choice(
                "own",
                ("in a queue per station, served in turn: the station without losses then has its own queue"),
                {"": {"cell.shared_queue": False}},
            ),
        ),
        fitted=("standard-1", "first-loses"),
    ),
    Reading(
        "control-rate",
        "At which rate are control frames sent?",
        (
            Choice("1Mbps", "1 Mb/s, which every station understands"),
            Choice("2Mbps", "2 Mb/s", {"": {"cell.phy.dsss.control_rate": 2e6}}),
        ),
    ),
)
