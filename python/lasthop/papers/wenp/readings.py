"""Ambiguities of the paper, and the possible readings of each."""

from lasthop.papers.paper import Choice, Reading
from lasthop.papers.wenp.network import STATIONS, drops

_STATIONS = tuple(f"{row}-{station}" for row in ("standard", "wenp") for station in STATIONS[1:])

READINGS = (
    Reading(
        "divisor",
        "How many segments are lost of those that a MAC is said to drop? The lossy rows of table IV follow "
        "the inverse square root of the drop rate up to 20 %, which no TCP with a timeout of a second does.",
        (
            Choice("8", "one in eight: both rows then come out (figure divisor)"),
            Choice("7", "one in seven", {"": drops(7)}),
            Choice("10", "one in ten", {"": drops(10)}),
            Choice("1", "all of them, as table I says: the worst station then gets a tenth", {"": drops(1)}),
        ),
        fitted=_STATIONS,
    ),
    Reading(
        "ack",
        "How many segments does an acknowledgement cover? Table II says two, or 0.2 s.",
        (
            Choice("1", "one: then the cell carries the 4.3 Mb/s of table IV's rows"),
            Choice(
                "2", "two: it carries 4.9 Mb/s, which the first station takes", {"": ("tcp.ack_every=2",)}
            ),
        ),
        fitted=("sum-standard", "sum-wenp"),
    ),
    Reading(
        "recovery",
        "How is a window with several losses repaired? Section II has recovery end with the next "
        "acknowledgement of new data, and table II names TCP Reno.",
        (
            Choice(
                "reno",
                "recovery ends with the first new acknowledgement, as section II has it; the ratios of table "
                "IV are then nearer to the printed ones than with newreno",
            ),
            Choice("newreno", "one recovery repairs every hole", {"": ("tcp.flavour=newreno",)}),
            Choice(
                "sack", "selective acknowledgements, which table II disables", {"": ("tcp.flavour=sack",)}
            ),
        ),
    ),
    Reading(
        "queue",
        "How do packets for different stations wait at the access point?",
        (
            Choice("shared", "in one queue: its waiting time is everyone's round trip"),
            Choice(
                "own",
                "each station's in its own, in turns: the station without losses then shares with nobody",
                {"": ("cell.shared_queue=false",)},
            ),
        ),
        fitted=("standard-1", "first-loses"),
    ),
    Reading(
        "control-rate",
        "At which rate are control frames sent?",
        (
            Choice("1Mbps", "1 Mb/s, which every station understands"),
            Choice("2Mbps", "2 Mb/s", {"": ("cell.phy.dsss.control_rate=2 Mbps",)}),
        ),
    ),
)
