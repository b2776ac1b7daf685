"""The claims of the paper's text, each with its section."""

from __future__ import annotations

from functools import partial

from lasthop.papers.claims import Contradiction, CustomClaim
from lasthop.papers.paper import Claim
from lasthop.papers.verdicts import above, below
from lasthop.papers.vstcp.figures import NAMES
from lasthop.papers.vstcp.findings import (
    LOST,
    MEAN_SIZE,
    NOCON,
    ONE,
    SENT,
    THROUGHPUT,
    TWO,
    VS_1,
    VS_2,
    above_real,
    effects_of,
    error_duration,
    gain_by_growth,
    gap_narrows,
    hundred_packets,
    is_ahead,
    is_optimal,
    long_recovery,
    low_pass,
    may_increase,
    moves_left,
    range_of_losses,
    size_is_best,
    smaller_segments,
    ten_percent,
    thirty_percent,
    throughput_falls,
    typical_gain,
    works_well,
)
from lasthop.papers.vstcp.network import TABLE_3, TABLE_4, sweep_of

_WHY = {
    "largest_size": (
        "the best fixed sizes of table 4 are 256 to 448 B, and above 512 B more is lost than headers take; "
        "1024 B is not the best either with the readings growth=per-ack, window=8 and window=10"
    ),
    "smallest_size": (
        "only for method 2 at 11 %, which sends over half of its segments with the smallest size (figure "
        "8-2), where 256 B is the best fixed size (table 4); with growth=per-ack no other is clearly better"
    ),
    "step": (
        "only for method 1 at 3 %: with 64 B segments have 345 B on average in place of 479 B, near the best "
        "fixed size of 384 B (table 4), and 17 % more than the payload is sent in place of 23 %"
    ),
}

CLAIMS: tuple[Claim, ...] = (
    Contradiction(
        id="bit-error-rate",
        section="V-A.2",
        statement="P_EG 0.1 to 0.4, P_GE 0.5 to 0.9 and a bit error rate of 0.003 to 0.01 lose 1 % to 13 %",
        printed="1 % to 13 %",
        experiment="trace-3",
        fails_if="the printed ranges lose 1 % to 13 % with e per bit",
        evaluate=range_of_losses,
    ),
    CustomClaim(
        id="duration",
        section="V-A.2",
        statement="the average duration of the error state is τ_E/P_EG",
        printed="τ_E/P_EG",
        experiment="trace-3",
        fails_if="the mean duration is more than 5 % away",
        definition=True,
        evaluate=error_duration,
    ),
    CustomClaim(
        id="long-recovery",
        section="II-B.1",
        statement="after wrongly invoked congestion control, normal TCP takes long to recover its rate",
        printed="-",
        experiment="normal",
        fails_if="normal TCP takes at most twice as long to recover its rate",
        further=("uncontrolled",),
        evaluate=long_recovery,
    ),
    CustomClaim(
        id="split-is-faster",
        section="III-A.1",
        statement="split, losses are repaired and the window is restored faster: two is ahead of one",
        printed="-",
        experiment="rate",
        fails_if="one is ahead of two at a loss rate",
        evaluate=partial(is_ahead, (TWO,), (ONE,), 0.0, above(), ""),
    ),
    CustomClaim(
        id="without-control",
        section="V-B",
        statement="schemes without congestion control outperform those that have it",
        printed="-",
        experiment="rate",
        fails_if="a scheme with congestion control is ahead at a loss rate",
        further=("method-2",),
        evaluate=partial(
            is_ahead,
            (NOCON, VS_1, VS_2),
            (ONE, TWO),
            0.0,
            above(),
            "with a least timeout of 200 ms two comes near nocon at 1 % (reading rto-min)",
        ),
    ),
    CustomClaim(
        id="all-fall",
        section="V-B",
        statement="the throughputs of all schemes decrease as the loss rate increases",
        printed="-",
        experiment="rate",
        fails_if="a scheme has more at a higher loss rate",
        further=("method-2",),
        evaluate=throughput_falls,
    ),
    CustomClaim(
        id="above-1",
        section="V-B",
        statement="when over 1 % are lost, VS-TCP 1 is better than nocon",
        printed="-",
        experiment="rate",
        fails_if="nocon is ahead at a loss rate above 1 %",
        evaluate=partial(is_ahead, (VS_1,), (NOCON,), 1.0001, above(), ""),
    ),
    CustomClaim(
        id="typical",
        section="V-B",
        statement="VS-TCP outperforms nocon where 3 % (wave-LAN) or 5 % (CDPD) are lost",
        printed="-",
        experiment="rate",
        fails_if="nocon is ahead at 3 % or 5 %",
        evaluate=typical_gain,
    ),
    CustomClaim(
        id="may-increase",
        section="V-B",
        statement="the normalised throughput of VS-TCP may increase with the loss rate",
        printed="-",
        experiment="rate",
        fails_if="the gain over nocon is not larger at 13 % than at 1 %",
        evaluate=may_increase,
    ),
    CustomClaim(
        id="ten-percent",
        section="VI",
        statement="VS-TCP outperforms others by about 10 % on average",
        printed="10 %",
        experiment="rate",
        fails_if="the average gain over nocon is outside 8 % to 12 %",
        evaluate=ten_percent,
    ),
    CustomClaim(
        id="thirty-percent",
        section="VI",
        statement="VS-TCP outperforms others by up to 30 %",
        printed="30 %",
        experiment="rate",
        fails_if="the largest gain over nocon is outside 24 % to 36 %",
        evaluate=thirty_percent,
    ),
    CustomClaim(
        id="method-1-better",
        section="V-B",
        statement="VS-TCP 1 performs better than VS-TCP 2",
        printed="-",
        experiment="rate",
        fails_if="VS-TCP 2 is ahead at a loss rate",
        further=("method-2",),
        evaluate=partial(
            is_ahead,
            (VS_1,),
            (VS_2,),
            0.0,
            above(),
            "with growth per acknowledgement, as printed, the opposite holds",
        ),
    ),
    CustomClaim(
        id="gap-narrows",
        section="V-B",
        statement="the gap between VS-TCP 1 and 2 decreases as the loss rate increases",
        printed="-",
        experiment="rate",
        fails_if="the gap is larger at 13 % than at 1 %",
        why=(
            "with L_w = 5 and e_w = 0.1, one loss keeps e_c above e_w for five packets, so method 2 "
            "reduces the size up to five times: with rare losses it has time to recover, with "
            "frequent ones the size stays small. With growth per acknowledgement, method 2 is ahead "
            "(figure growth)"
        ),
        further=("method-2",),
        evaluate=gap_narrows,
    ),
    CustomClaim(
        id="works-well",
        section="VI",
        statement="VS-TCP 2 works well when over 10 % are lost",
        printed="-",
        experiment="rate",
        fails_if="nocon is ahead of it at 11 % or 13 %",
        further=("method-2",),
        evaluate=works_well,
    ),
    *(
        CustomClaim(
            id=f"table-4-{rate:g}".replace(".", "-"),
            section="V-B, table 4",
            statement=f"the optimal segment size of nocon where {rate:g} % are lost",
            printed=f"{size} B",
            experiment="sizes",
            fails_if="another size is more than 1 % better",
            why=(
                "the curve is jagged (figure 3), high at sizes of which a window fits into the shortest "
                "error-free state of 22.4 ms, and the paper does not state the window: with the readings "
                "window=10 and local-rto-min=1s the printed sizes are up to 14 % behind"
            ),
            evaluate=partial(size_is_best, rate),
        )
        for rate, size in TABLE_4.items()
    ),
    CustomClaim(
        id="moves-left",
        section="III-B, figure 3",
        statement="if the error rate is high a small frame has advantages, if it is low a large one",
        printed="-",
        experiment="sizes",
        fails_if="where 11 % are lost 256 B is no better than 448 B, or 448 B no better where 1 % are",
        evaluate=moves_left,
    ),
    CustomClaim(
        id="smaller",
        section="IV-B",
        statement="VS-TCP decreases the segment size when packets are frequently lost",
        printed="-",
        experiment="trace-3",
        fails_if="the mean size is not smaller at 11 % than at 3 %",
        further=("trace-11",),
        evaluate=partial(smaller_segments, "trace"),
    ),
    CustomClaim(
        id="smaller-2",
        section="IV-B",
        statement="VS-TCP 2 decreases the segment size when packets are frequently lost",
        printed="-",
        experiment="trace-2-3",
        fails_if="the mean size is not smaller at 11 % than at 3 %",
        further=("trace-2-11",),
        evaluate=partial(smaller_segments, "trace-2"),
    ),
    CustomClaim(
        id="loss-window-5",
        section="V-B",
        statement="the optimal value of L_w is 5",
        printed="5",
        experiment="loss-window",
        fails_if="another L_w is more than 1 % better at 3 % or 11 %",
        why=(
            "with e_w = 0.1, any L_w up to 5 reduces the size at each loss, and a smaller L_w "
            "recovers sooner; an error state ends within a packet, so a loss says little about the "
            "next packets"
        ),
        evaluate=partial(is_optimal, "loss-window", "loss_window", "5"),
    ),
    CustomClaim(
        id="loss-window-100",
        section="V-B",
        statement="with a large L_w, such as 100, VS-TCP 2 may fail to follow the loss rate in time",
        printed="-",
        experiment="loss-window",
        fails_if="100 is no worse than 5 at 3 % or 11 %",
        evaluate=hundred_packets,
    ),
    CustomClaim(
        id="above-real",
        section="IV-B.1",
        statement="e_w is to be higher than the real loss rate",
        printed="-",
        experiment="wanted-loss",
        fails_if="an e_w below the loss rate is better than the next one above it",
        evaluate=above_real,
    ),
    CustomClaim(
        id="wanted-loss-0-1",
        section="V-B, table 3",
        statement="e_w is selected for the largest throughput: 0.1",
        printed="0.1",
        experiment="wanted-loss",
        fails_if="another e_w is more than 1 % better at 3 % or 11 %",
        evaluate=partial(is_optimal, "wanted-loss", "wanted_loss", "0.1"),
    ),
    CustomClaim(
        id="wanted-loss-overheads",
        section="IV-B.1",
        statement="a small e_w decreases the mean segment size; a large one increases what is retransmitted",
        printed="-",
        experiment="wanted-loss",
        fails_if="with e_w = 0 the mean size, or the payload sent for that delivered, is no less than with 1",
        evaluate=partial(
            effects_of,
            "wanted-loss",
            "wanted_loss",
            "0.0",
            "1.0",
            (
                ("mean size", MEAN_SIZE, below(text="smaller segments, so more header")),
                ("payload sent", SENT, below(text="less payload sent per payload delivered")),
            ),
        ),
    ),
    *(
        CustomClaim(
            id=f"{key.removesuffix('_size')}-{size}",
            section="V-B, table 3",
            statement=f"the {NAMES[key]} is selected to perform the best: {size} B",
            printed=f"{size} B",
            experiment=sweep_of(key),
            fails_if="another value is more than 1 % better with a method at 3 % or 11 %",
            why=_WHY.get(key, ""),
            evaluate=partial(is_optimal, sweep_of(key), key, f"{size} B"),
        )
        for key, size in TABLE_3.items()
    ),
    CustomClaim(
        id="larger-maximum",
        section="IV-B.1",
        statement="a larger s_mx may increase the packet loss rate, and decrease the header overhead",
        printed="-",
        experiment="largest-size",
        fails_if="from 512 B to 1536 B packets are lost no more often, or segments are no larger",
        evaluate=partial(
            effects_of,
            "largest-size",
            "largest_size",
            "1536 B",
            "512 B",
            (
                ("loss rate", LOST, above(text="a higher packet loss rate")),
                ("mean size", MEAN_SIZE, above(text="larger segments, so less header")),
            ),
        ),
    ),
    CustomClaim(
        id="too-high-minimum",
        section="IV-B.1",
        statement="too high an s_mn decreases the effectiveness of VS-TCP",
        printed="-",
        experiment="smallest-size",
        fails_if="512 B gives no less throughput than 128 B",
        evaluate=partial(
            effects_of,
            "smallest-size",
            "smallest_size",
            "512 B",
            "128 B",
            (("throughput", THROUGHPUT, below(text="less throughput")),),
        ),
    ),
    CustomClaim(
        id="smaller-minimum",
        section="IV-B.1",
        statement="a smaller s_mn increases the header overhead",
        printed="-",
        experiment="smallest-size",
        fails_if="with 64 B segments are no smaller on average than with 128 B",
        evaluate=partial(
            effects_of,
            "smallest-size",
            "smallest_size",
            "64 B",
            "128 B",
            (("mean size", MEAN_SIZE, below(text="smaller segments, so more header")),),
        ),
    ),
    CustomClaim(
        id="averaging",
        section="IV-B.1",
        statement="to measure the loss rate averaging is enough; a low-pass filter can be used instead",
        printed="-",
        experiment="filter",
        fails_if="at a loss rate the filter gives over 5 % more throughput",
        evaluate=low_pass,
    ),
    Contradiction(
        id="growth",
        section="IV-B.1",
        statement="the size grows by a step with each acknowledgement, and method 1 is better",
        printed="128 B per ACK",
        experiment="readings",
        fails_if="as printed, method 1 gains more than method 2",
        evaluate=gain_by_growth,
    ),
)
