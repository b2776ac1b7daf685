"""Schemes written in Python: the same results as in Rust, and what goes wrong."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from python_schemes import (
    AcksFirst,
    DelayedDupacks,
    Eln,
    Failing,
    Jitter,
    JitterScheme,
    QuenchAgent,
    SourceQuench,
)

import lasthop
from lasthop import PythonScheme, PythonSchemeError, Scenario, ScenarioError
from lasthop.python_scheme import (
    MILLISECOND,
    SECOND,
    Installer,
    Notice,
    Out,
    Packet,
    Port,
    Receiver,
    Segment,
    SenderState,
    SeqNum,
    Signal,
    Site,
    Tally,
)
from lasthop.race import Arm, Race
from lasthop.study import Study, StudyError

LOSSY = """
    limit = "30 s"
    [transfer]
    size = "300 KB"
    [wired]
    rate = "10 Mbps"
    delay = "20 ms"
    queue = "20 packets"
    [radio]
    rate = "2 Mbps"
    delay = "1 ms"
    channel.iid = {ber = 5e-6}
"""
ARQ = LOSSY + "    arq.selective-repeat = {retransmissions = 1, feedback_delay = '5 ms'}\n"
UPLOAD = (
    LOSSY
    + """    queue = "30 KB"
    [connection.down]
    [connection.up]
    from = "mobile"
    to = "fixed"
"""
)
SCENARIOS = {
    # Some losses remain after one retransmission.
    "residual": ARQ.replace("5e-6", "3e-5"),
    "lossy": LOSSY,
    "upload": UPLOAD,
    "arq": ARQ,
    "ebsn": "ebsn-example",
    "wide": "ebsn-wide-area",
}
PLAIN = 'schemes=["basic"]'


def scenario(name: str, *overrides: str) -> Scenario:
    text = SCENARIOS[name]
    if "\n" in text:
        return Scenario.parse(text, overrides=list(overrides))
    return lasthop.load(text, [PLAIN, *overrides])


def as_called(run: lasthop.Run, name: str) -> dict[str, Any]:
    """Return the metrics of a run, with its scheme under another name."""
    return {key.replace(f"{run.scheme}.", f"{name}."): value for key, value in run.metrics.items()}


# -- The same results as in Rust -----------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["tahoe", "newreno", "sack", "prr"])
@pytest.mark.parametrize(
    ("python", "rust", "name", "overrides"),
    [
        (SourceQuench(), "source-quench", "ebsn", ()),
        (SourceQuench(), "source-quench", "arq", ()),
        (SourceQuench(), "source-quench", "wide", ()),
        (DelayedDupacks(), "delayed-dupacks", "residual", ()),
        (
            DelayedDupacks(30 * MILLISECOND),
            "delayed-dupacks",
            "residual",
            ("scheme.delayed-dupacks.delay=30 ms",),
        ),
        (AcksFirst(), "acks-first", "upload", ()),
        (Eln(), "eln", "lossy", ()),
        (Eln(early=True), "eln", "lossy", ("scheme.eln.early=true",)),
    ],
)
def test_a_scheme_gives_the_same_run_in_both_languages(
    python: PythonScheme, rust: str, name: str, overrides: tuple[str, ...], flavour: str
) -> None:
    if flavour == "prr" and name in ("ebsn", "wide"):
        flavour = "reno"  # They are those of ns-2.
    world = scenario(name, f"tcp.flavour={flavour}", *overrides)
    differs = False
    for seed in range(1, 6):
        ours = lasthop.run(world, python, seed=seed, trace=True, series=True)
        theirs = lasthop.run(world, rust, seed=seed, trace=True, series=True)
        assert as_called(ours, rust) == theirs.metrics
        assert ours.ended == theirs.ended
        events = ours.events()
        # What an agent sends of its own has the name of its scheme.
        events["reason"] = np.where(events["reason"] == python.name, rust, events["reason"])
        for one, other in ((events, theirs.events()), (ours.series(), theirs.series())):
            assert one.keys() == other.keys()
            assert all((one[key] == other[key]).all() | (one[key] != one[key]).any() for key in one)
        differs |= (
            theirs.metrics["completion_time_s"] != world.run("basic", seed=seed).metrics["completion_time_s"]
        )
    # Otherwise the scheme does nothing here, and the test shows nothing.
    assert differs


def test_schemes_combine_as_in_rust() -> None:
    world = scenario("lossy", "tcp.flavour=reno").with_schemes(["basic"], [Eln(), SourceQuench()])
    for ours, theirs in [
        ("my-eln + smart", "eln + smart"),
        ("my-source-quench+arq", "source-quench + arq"),
        ("arq + my-source-quench", "arq + source-quench"),
        ("my-source-quench + arq + my-eln", "source-quench + arq + eln"),
    ]:
        for seed in (1, 2):
            run = world.run(ours, seed=seed)
            metrics = {key.removeprefix("my-"): value for key, value in run.metrics.items()}
            assert metrics == world.run(theirs, seed=seed).metrics
    with pytest.raises(ScenarioError, match='"eln" and "my-eln" use the same bit'):
        world.run("eln + my-eln")
    with pytest.raises(ScenarioError, match='"my-source-quench" needs a link that recovers its own losses'):
        world.run("my-source-quench")


class TakesDuplicates(lasthop.python_scheme.Reaction):
    """Takes repeated acknowledgements for itself."""

    def __init__(self) -> None:
        self.acks: set[SeqNum] = set()

    def takes(self, now: int, segment: Segment, sender: SenderState) -> bool:
        return segment.ack in self.acks

    def on_segment(self, now: int, segment: Segment, sender: SenderState) -> None:
        assert segment.ack not in self.acks
        self.acks.add(segment.ack)


class WithoutDuplicates(PythonScheme):
    name = "without-duplicates"
    summary = "The source never sees a duplicate ACK"

    def install(self, installer: Installer) -> None:
        installer.at_sender(TakesDuplicates)


def test_a_reaction_takes_messages_of_its_scheme() -> None:
    """What it takes is no duplicate ACK: only the timer is left to detect losses."""
    world = scenario("lossy", "tcp.flavour=reno")
    plain, without = lasthop.run(world, "basic").metrics, lasthop.run(world, WithoutDuplicates()).metrics
    assert plain["fast_retransmits"] > 0 == without["fast_retransmits"]
    assert without["timeouts"] > plain["timeouts"]


def test_the_same_seed_gives_the_same_run() -> None:
    world = scenario("lossy")
    runs = [lasthop.run(world, JitterScheme(), seed=seed).metrics for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert runs[0]["jitter.held_packets_peak"] > 1
    # The channel is that of every other scheme.
    assert world.bad_periods(10.0) == world.with_schemes([JitterScheme()]).bad_periods(10.0)


# -- Studies, comparisons and plots --------------------------------------------------------------------


def test_studies_and_comparisons_take_them(tmp_path: Path) -> None:
    world = scenario("arq").with_schemes(["basic", SourceQuench(), "source-quench", "my-source-quench + eln"])
    counter = "my-source-quench.quenches_sent"
    study = Study(world, runs=(20, 20), metrics=[counter], store=tmp_path / "study.sqlite")
    assert study.run(jobs=2) == 80
    means = study.summary().set_index("scheme")["mean"]
    assert means["my-source-quench"] == means["source-quench"] != means["basic"]
    assert study.summary(counter).set_index("scheme")["mean"]["my-source-quench"] > 0
    study.close()
    with Study.open(tmp_path / "study.sqlite", python_schemes=[SourceQuench()]) as opened:
        assert opened.run() == 0
    with pytest.raises(ScenarioError, match="my-source-quench"):
        Study.open(tmp_path / "study.sqlite")
    comparison = Race(
        scenario("arq").with_schemes([SourceQuench()]),
        [Arm(None, "basic"), Arm(None, "my-source-quench"), Arm(None, "source-quench")],
        runs=(20, 20),
    )
    comparison.run()
    assert len(comparison.arms) == 3
    _, ours = lasthop.run_each(scenario("arq"), ["basic", SourceQuench()], series=True)
    assert lasthop.plots.cwnd(ours).axes
    assert ours.label == "my-source-quench"


def test_points_of_a_sweep_know_them() -> None:
    swept = scenario("arq", 'sweep.radio.rate=["1 Mbps", "2 Mbps"]').with_schemes(["basic", SourceQuench()])
    assert [point.scenario.schemes for point in swept.points()] == [["basic", "my-source-quench"]] * 2
    study = Study(swept, runs=(3, 3))
    assert study.run() == 12


def test_processes_import_them(tmp_path: Path) -> None:
    world = scenario("arq").with_schemes([DelayedDupacks(30 * MILLISECOND)])
    study = Study(world, runs=(20, 20))
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        assert study.run(executor=executor) == 20
        threads = Study(world, runs=(20, 20))
        threads.run()
        assert study.summary().equals(threads.summary())
        failing = Study(scenario("arq").with_schemes([Failing()]), runs=(20, 20))
        with pytest.raises(PythonSchemeError, match="LookupError: on purpose") as error:
            failing.run(executor=executor)
        # The traceback comes with it.
        assert "python_schemes.py" in str(error.value.__cause__)

        class Local(SourceQuench):
            pass

        # Also says what to do.
        with pytest.raises(StudyError, match=r"cannot be sent to the workers .* top of a module"):
            Study(scenario("arq").with_schemes([Local()]), runs=(20, 20)).run(executor=executor)
        # A module that only this process has.
        module = ModuleType("of_this_process")
        sys.modules["of_this_process"] = module
        module.Elsewhere = type("Elsewhere", (SourceQuench,), {"__module__": "of_this_process"})  # type: ignore[attr-defined]
        try:
            with pytest.raises(StudyError, match=r"a worker cannot import a scheme .*of_this_process"):
                Study(scenario("arq").with_schemes([module.Elsewhere()]), runs=(20, 20)).run(
                    executor=executor
                )
        finally:
            del sys.modules["of_this_process"]


def test_the_hash_tells_them_apart(tmp_path: Path) -> None:
    def hashed(*schemes: PythonScheme) -> str:
        return scenario("arq").with_schemes(["basic", *schemes]).hash

    assert hashed(DelayedDupacks()) == hashed(DelayedDupacks())
    assert len({hashed(), hashed(DelayedDupacks()), hashed(DelayedDupacks(1)), hashed(SourceQuench())}) == 4
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec("import lasthop\nclass Typed(lasthop.PythonScheme):\n    name = 'typed'", namespace)
    typed = namespace["Typed"]()
    assert typed.fingerprint() is None
    world = scenario("arq").with_schemes([typed])
    with pytest.raises(StudyError, match="store: the source of scheme 'typed' is not known"):
        Study(world, store=tmp_path / "study.sqlite")
    assert Study(world, runs=(2, 2)).run() == 2


# -- What goes wrong -----------------------------------------------------------------------------------


def test_an_exception_ends_the_run_with_its_traceback_and_the_time() -> None:
    world = scenario("lossy")
    for observed in ({}, {"trace": True, "series": True, "delays": True}):
        with pytest.raises(PythonSchemeError) as error:
            lasthop.run(world, Failing(), seed=3, run=2, **observed)  # type: ignore[arg-type]
        text = str(error.value)
        assert text.startswith('scheme "failing" failed at 1.')
        assert text.endswith("on purpose (seed 3, run 2)")
        cause = error.value.__cause__
        assert isinstance(cause, LookupError)
        assert cause.__traceback__ is not None
        assert cause.__traceback__.tb_frame.f_code.co_name == "on_segment"
    # Nothing is left for the next run on this thread.
    assert lasthop.run(world, Nothing()).metrics["finished"]
    with pytest.raises(PythonSchemeError, match=r"on purpose \(run \d+ of scenario"):
        Study(world.with_schemes(["basic", Failing()]), runs=(20, 20)).run()


class Nothing(PythonScheme):
    name = "nothing"


HOOKS: list[tuple[type, str, str]] = [
    (lasthop.Agent, "__init__", "base"),
    (lasthop.Agent, "receive", "base"),
    (lasthop.Agent, "on_signal", "base"),
    (lasthop.Agent, "needs_outcome", "base"),
    (lasthop.Agent, "needs_corrupted", "base"),
    (lasthop.Agent, "next_wakeup", "base"),
    (lasthop.Agent, "wake", "base"),
    (lasthop.Agent, "count", "mobile"),
    (lasthop.Reaction, "__init__", "sender"),
    (lasthop.Reaction, "on_start", "sender"),
    (lasthop.Reaction, "on_segment", "sender"),
    (lasthop.Reaction, "dscp", "sender"),
    (lasthop.Reaction, "on_sent", "sender"),
    (lasthop.Reaction, "dupthresh", "sender"),
    (lasthop.Reaction, "judge", "sender"),
    (lasthop.Reaction, "next_wakeup", "sender"),
    (lasthop.Reaction, "on_timer", "sender"),
    (lasthop.ReceiverReaction, "__init__", "receiver"),
    (lasthop.ReceiverReaction, "on_segment", "receiver"),
    (lasthop.ReceiverReaction, "on_ack", "receiver"),
    (lasthop.ReceiverReaction, "next_wakeup", "receiver"),
    (lasthop.ReceiverReaction, "on_timer", "receiver"),
]


class Installing(PythonScheme):
    """Installs a class at one place."""

    name = "installing"

    def __init__(self, part: Any, place: str) -> None:
        self.part, self.place = part, place

    def install(self, installer: Installer) -> None:
        if self.place in ("base", "mobile"):
            place = installer.at_base_station if self.place == "base" else installer.at_mobile_host
            place(self.part)
            installer.watch_signal()
        elif self.place == "sender":
            installer.at_sender(self.part)
        else:
            installer.at_receiver(self.part)


@pytest.mark.parametrize(("base", "hook", "place"), HOOKS)
@pytest.mark.parametrize("observed", [False, True])
def test_every_hook_may_fail(base: type, hook: str, place: str, observed: bool) -> None:
    def fail(self: Any, *arguments: Any) -> Any:
        raise ValueError(f"in {hook}")

    hooks: dict[str, Any] = {hook: fail}
    if hook in ("needs_outcome", "needs_corrupted"):
        hooks["on_signal"] = lambda self, now, signal, out: None
    if hook in ("wake", "on_timer"):
        hooks["next_wakeup"] = lambda self: 500 * MILLISECOND
    scheme = Installing(type("Part", (base,), hooks), place)
    with pytest.raises(PythonSchemeError, match=rf"ValueError: in {hook} \(seed") as error:
        # A flavour that asks for the threshold.
        lasthop.run(
            scenario("residual", "tcp.flavour=newreno", "warmup=500 ms"),
            scheme,
            trace=observed,
            series=observed,
        )
    assert isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("base", "hook", "place", "answer", "problem"),
    [
        (lasthop.Agent, "next_wakeup", "base", -1, "OverflowError"),
        (lasthop.Agent, "next_wakeup", "base", 1.5, "TypeError"),
        (lasthop.Agent, "next_wakeup", "base", 5, "next_wakeup returned 5 after wake at 5"),
        (lasthop.Reaction, "next_wakeup", "sender", 5, "next_wakeup returned 5 after on_timer at"),
        (lasthop.Reaction, "dscp", "sender", 64, "dscp: found 64, expected a number from 0 to 63"),
        (lasthop.Reaction, "dupthresh", "sender", "3", "TypeError"),
        (lasthop.Reaction, "judge", "sender", 1.5, r"judge: found 1.5, expected .* in \(0, 1\]"),
        (lasthop.Reaction, "judge", "sender", "bad luck", "judge: found 'bad luck', expected"),
        (lasthop.Reaction, "judge", "sender", [], r"judge: found \[\], expected"),
        (
            lasthop.ReceiverReaction,
            "on_ack",
            "receiver",
            "hold",
            "on_ack: found 'hold', expected None, a Segment or",
        ),
        (
            lasthop.ReceiverReaction,
            "next_wakeup",
            "receiver",
            5,
            "next_wakeup returned 5 at",
        ),
    ],
)
def test_wrong_answers_are_refused(base: type, hook: str, place: str, answer: Any, problem: str) -> None:
    scheme = Installing(type("Part", (base,), {hook: lambda self, *arguments: answer}), place)
    with pytest.raises(PythonSchemeError, match=problem):
        lasthop.run(scenario("lossy", "tcp.flavour=newreno"), scheme)


def test_counters_stay_the_same() -> None:
    class Growing(lasthop.Agent):
        def __init__(self, site: Site) -> None:
            self.packets = 0

        def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
            self.packets += 1
            out.send(port.across(), packet)

        def count(self, tally: Tally) -> None:
            if self.packets:
                tally.total("packets", self.packets)

    class Wrong(lasthop.Agent):
        def count(self, tally: Tally) -> None:
            tally.total("Packets", 1)

    class Twice(lasthop.Agent):
        def count(self, tally: Tally) -> None:
            tally.total("packets", 1)
            tally.level("packets", 1)

    for part, problem in [
        (Growing, r"count: found the counters \[packets\], expected the same at every call: \[\]"),
        (Wrong, 'counter: found "Packets", expected lower-case words'),
        (Twice, 'counter: found "packets" a second time'),
    ]:
        for overrides in ((), ("warmup=1 s",)):
            with pytest.raises(PythonSchemeError, match=problem):
                lasthop.run(scenario("lossy", *overrides), Installing(part, "base"), series=True)

    class Kinds(PythonScheme):
        name = "kinds"

        def install(self, installer: Installer) -> None:
            for kind in ("total", "level"):
                count: dict[str, Any] = {
                    "count": lambda self, tally, kind=kind: getattr(tally, kind)("packets", 1)
                }
                part: Any = type(kind, (lasthop.Agent,), count)
                installer.at_base_station(part)

    with pytest.raises(PythonSchemeError, match='"packets" is of two kinds'):
        lasthop.run(scenario("lossy"), Kinds())


def test_what_is_lent_returns_after_the_callback() -> None:
    kept: dict[str, Any] = {}

    class Keep(lasthop.Reaction):
        def on_start(self, now: int, sender: SenderState) -> None:
            kept["sender"] = sender
            assert sender.cwnd > 0
            assert not sender.resend(sender.snd_una)

        def dupthresh(self, set: int, sender: SenderState) -> int:  # noqa: A002
            assert sender.mss > 0
            with pytest.raises(RuntimeError, match="cannot be changed in this callback"):
                sender.set_mss(100)
            return set

    class KeepReceiver(lasthop.ReceiverReaction):
        def on_segment(self, now: int, segment: Segment, receiver: Receiver) -> None:
            kept["receiver"] = receiver

    class KeepOut(lasthop.Agent):
        def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
            kept.update(out=out, packet=packet)
            out.send(port.across(), packet)

    class Keeping(PythonScheme):
        name = "keeping"

        def install(self, installer: Installer) -> None:
            kept["installer"] = installer
            installer.at_sender(Keep)
            installer.at_receiver(KeepReceiver)
            installer.at_base_station(KeepOut)

    world = scenario("lossy", "tcp.flavour=newreno")
    assert lasthop.run(world, Keeping()).metrics["finished"]
    uses: list[Callable[[], object]] = [
        lambda: kept["sender"].cwnd,
        lambda: kept["sender"].set_window(1),
        lambda: kept["receiver"].rcv_nxt,
        lambda: kept["out"].send(Port.WIRED, kept["packet"]),
        lambda: kept["installer"].use_flags(1),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="is used after"):
            use()
    # A class that only listens changes nothing.
    assert lasthop.run(world, Keeping()).metrics == world.run("basic").metrics


def test_a_reaction_may_pace() -> None:
    """A segment of 1460 B each 100 ms."""

    class Pace(lasthop.Reaction):
        def on_start(self, now: int, sender: SenderState) -> None:
            for wrong in (0.0, -1.0, float("nan"), float("inf")):
                with pytest.raises(ValueError, match="expected more than 0 bytes per second"):
                    sender.set_pacing_rate(wrong)
            sender.set_pacing_rate(14_600.0)

    class Pacing(PythonScheme):
        name = "pacing"

        def install(self, installer: Installer) -> None:
            installer.at_sender(Pace)

    world = scenario("lossy", "radio.channel=perfect", "transfer.size=29200 B")
    run = lasthop.run(world, Pacing(), trace=True)
    events = run.events()
    sent = events["time_s"][(events["event"] == "sent") & (events["packet"] >= 0)]
    gaps = np.diff(sent)[-15:]
    assert gaps == pytest.approx(0.1, rel=0.02)


def test_objects_that_are_no_schemes_are_refused() -> None:
    world = scenario("lossy")

    class Named(PythonScheme):
        pass

    def named(name: Any) -> PythonScheme:
        scheme = Named()
        scheme.name = name  # type: ignore[misc]
        return scheme

    with pytest.raises(TypeError, match=r"write SourceQuench\(\) for a scheme of this class"):
        lasthop.run(world, SourceQuench)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scheme: found 3, expected a name or an object"):
        lasthop.run(world, 3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="name"):
        lasthop.run(world, Named())
    with pytest.raises(ValueError, match='"ebsn", which is the name of a scheme of Lasthop'):
        lasthop.run(world, named("ebsn"))
    for name in ("My Snoop", "a + b", "", "a--b"):
        with pytest.raises(ValueError, match="expected lower-case words joined by hyphens"):
            lasthop.run(world, named(name))
    with pytest.raises(TypeError, match="expected a string"):
        lasthop.run(world, named(7))
    with pytest.raises(TypeError, match="python_schemes: found"):
        Scenario.parse(LOSSY, python_schemes=["arq"])  # type: ignore[list-item]
    with pytest.raises(PythonSchemeError, match="found an object of class int, expected one of a subclass"):
        lasthop.run(world, Installing(lambda site: 3, "base"))
    with pytest.raises(
        TypeError, match=r"found an object of class int, expected a subclass of lasthop\.Agent"
    ):
        lasthop.run(world, Installing(3, "base"))
    with pytest.raises(ScenarioError, match='found "my-source-quench", expected'):
        lasthop.run(world, "my-source-quench")

    class Boom(PythonScheme):
        name = "boom"

        def install(self, installer: Installer) -> None:
            raise KeyError("in install")

    with pytest.raises(KeyError, match="in install"):
        world.with_schemes([Boom()])


def test_ctrl_c_stops_a_callback() -> None:
    class Forever(lasthop.Agent):
        def receive(self, now: int, packet: Packet, port: Port, out: Out) -> None:
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
            while True:
                time.sleep(0.01)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lasthop.run(scenario("lossy"), Installing(Forever, "base"))
    assert time.monotonic() - began < 5.0

    with pytest.raises(SystemExit):
        lasthop.run(scenario("lossy"), Installing(lambda site: sys.exit(3), "base"))


def test_runs_leave_nothing_behind() -> None:
    living: weakref.WeakSet[Any] = weakref.WeakSet()

    class Counted(Jitter):
        def __init__(self, site: Site) -> None:
            super().__init__(site)
            living.add(self)

    class Part(PythonScheme):
        name = "part"

        def install(self, installer: Installer) -> None:
            installer.at_base_station(Counted)

    world = scenario("lossy", "transfer.size=10 KB").with_schemes([Part()])
    for _ in range(3):
        for run in range(20):
            world.run("part", run=run)
        gc.collect()
    # The last agents are released when Python is next called.
    world.run("part")
    assert len(living) <= 4


# -- Values --------------------------------------------------------------------------------------------


def test_sequence_numbers_are_modular() -> None:
    last = SeqNum(2**32 - 1)
    first = last + 1
    assert (int(first), first > last, first - last, last - first) == (0, True, 1, -1)
    assert (1 + last, 5 - SeqNum(7)) == (first, -2)
    assert first - 1 == last == 2**32 - 1 != SeqNum(5)
    assert {SeqNum(5): "five"}[SeqNum(5)] == "five"
    assert max(last, first) == first
    assert [1, 2, 3][SeqNum(1)] == 2


def test_packets_are_values() -> None:
    segment = Segment(100, 5, len=536, flags=0x18, sack=[(1, 2)], timestamps=(7, 8))
    packet = Packet.tcp(0, 2, 0, 576, segment)
    changed = packet.replace(dscp=46, segment=segment.replace(ack=9, sack=[]))
    assert changed.segment is not None
    assert packet.segment is not None
    assert (changed.dscp, int(changed.segment.ack), changed.segment.sack) == (46, 9, [])
    assert (packet.dscp, int(packet.segment.ack), packet.segment.timestamps) == (0, 5, (7, 8))
    assert packet == Packet.tcp(0, 2, 0, 576, segment) != changed
    assert (segment.seq_len, segment.has(0x10), segment.has(0x01)) == (536, True, False)
    with pytest.raises(AttributeError):
        packet.size = 40  # type: ignore[misc]
    notice = Notice.about(packet, (41, 2), 40)
    assert notice is not None
    assert notice.notice is not None
    assert (notice.src, notice.dst, notice.size, notice.protocol) == (2, 0, 40, "notice")
    assert (notice.notice.code, int(notice.notice.seq)) == ((41, 2), 100)
    assert notice.segment is None
    assert Notice.about(notice, (41, 2), 40) is None
    with pytest.raises(TypeError, match="the packet is a notice, expected tcp"):
        notice.replace(segment=segment)
    with pytest.raises(ValueError, match="sack: found 5 blocks, expected at most 4"):
        segment.replace(sack=[(1, 2)] * 5)
    with pytest.raises(ValueError, match="dscp: found 64"):
        packet.replace(dscp=64)
    assert [port.across() for port in (Port.WIRED, Port.RADIO)] == [Port.RADIO, Port.WIRED]


def test_an_agent_may_be_at_a_router() -> None:
    sites: list[Site] = []

    class Look(lasthop.Agent):
        def __init__(self, site: Site) -> None:
            sites.append(site)

        def needs_outcome(self, outcome: str) -> bool:
            return False

    class Looking(PythonScheme):
        name = "looking"

        def install(self, installer: Installer) -> None:
            installer.at_base_station(Look)

    routed = Scenario.parse(
        LOSSY.replace("[transfer]", "[topology.path]\n    routers = 2\n    [transfer]")
    ).with_schemes(["looking@R1", "looking"], [Looking()])
    lasthop.run(routed, "looking@R1", seed=4)
    router = sites[-1]
    assert (router.end, router.is_router, router.node, router.link) == ("base-station", True, "R1", "R1-R2")
    # The way to the mobile host is as slow as its wireless link.
    assert (router.rate_bps, router.delay_ns) == (2_000_000, 21_000_000)
    lasthop.run(routed, "looking", seed=4)
    assert (sites[-1].is_router, sites[-1].node) == (False, "R2")


def test_an_agent_knows_its_site() -> None:
    sites: list[Site] = []

    class Look(lasthop.Agent):
        def __init__(self, site: Site) -> None:
            sites.append(site)

    class Looking(PythonScheme):
        name = "looking"

        def install(self, installer: Installer) -> None:
            installer.at_base_station(Look)
            installer.at_mobile_host(Look)

    lasthop.run(scenario("lossy"), Looking(), seed=4)
    base, mobile = sites[-2:]
    assert (base.end, base.rate_bps, base.delay_ns, base.hosts) == (
        "base-station",
        2_000_000,
        1_000_000,
        None,
    )
    assert (mobile.end, len(mobile.hosts or ())) == ("mobile-host", 1)
    assert base.link == mobile.link
    assert base.node != mobile.node
    assert base.station is None
    draws = [[site.stream(name).uniform() for _ in range(3)] for site in sites[-2:] for name in ("", "", "x")]
    assert draws[0] == draws[1]
    assert len({draw[0] for draw in draws}) == 4
    stream = base.stream()
    assert {stream.below(3) for _ in range(100)} == {0, 1, 2}
    assert isinstance(stream.normal(), float)
    assert [stream.bernoulli(p) for p in (0.0, 1.0)] == [False, True]
    with pytest.raises(ValueError, match="expected a probability"):
        stream.bernoulli(1.5)
    with pytest.raises(ValueError, match="expected at least 1"):
        stream.below(0)


def test_signals_say_what_happens() -> None:
    seen: dict[str, Signal] = {}

    class Listen(QuenchAgent):
        def needs_outcome(self, outcome: str) -> bool:
            return True

        def on_signal(self, now: int, signal: Signal, out: Out) -> None:
            assert now < 30 * SECOND
            seen[f"{signal.kind} {signal.outcome}"] = signal

    lasthop.run(scenario("arq"), Installing(Listen, "base"))
    failed = seen["link attempt-failed"]
    assert failed.packet is not None
    assert failed.packet.protocol == "tcp"
    assert failed.attempt is not None
    assert failed.attempt >= 1
    assert "link delivered" in seen
    assert [failed.reach, failed.host, failed.station] == [None] * 3
