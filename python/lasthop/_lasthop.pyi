"""The compiled part of Lasthop. Docstrings are in the extension itself: `help(lasthop.Scenario)`."""

from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "METRICS",
    "Point",
    "Pool",
    "Run",
    "Scenario",
    "ScenarioError",
    "Scheme",
    "__version__",
    "schemes",
]

METRICS: tuple[str, ...]
__version__: str

class ScenarioError(ValueError):
    message: str
    file: str
    line: int | None
    column: int | None

@final
class Scheme:
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def source(self) -> str: ...

def schemes() -> list[Scheme]: ...

@final
class Scenario:
    @staticmethod
    def load(path: str | PathLike[str], overrides: Sequence[str] = ()) -> Scenario: ...
    @staticmethod
    def parse(text: str, name: str = "<string>", overrides: Sequence[str] = ()) -> Scenario: ...
    def to_toml(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def schemes(self) -> list[str]: ...
    @property
    def sweep(self) -> dict[str, list[str]]: ...
    @property
    def hash(self) -> str: ...
    def points(self) -> list[Point]: ...
    def bad_periods(self, until: float, *, seed: int = 1, run: int = 0) -> list[tuple[float, float]]: ...
    def run(
        self,
        scheme: str | None = None,
        *,
        seed: int = 1,
        run: int = 0,
        trace: bool = False,
        series: bool = False,
        pcap: str | PathLike[str] | None = None,
    ) -> Run: ...
    def report(self, runs: Sequence[Run]) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Point:
    @property
    def parameters(self) -> dict[str, str]: ...
    @property
    def scenario(self) -> Scenario: ...

@final
class Run:
    @property
    def scheme(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def run(self) -> int: ...
    @property
    def ended(self) -> str: ...
    @property
    def metrics(self) -> dict[str, Any]: ...
    def events(self) -> dict[str, NDArray[Any]]: ...
    def series(self) -> dict[str, NDArray[np.float64]]: ...
    def to_json(self) -> str: ...

@final
class Pool:
    def __new__(cls, jobs: int | None = None) -> Self: ...
    def submit(
        self, key: int, scenario: Scenario, scheme: str, seed: int, first_run: int, runs: int
    ) -> None: ...
    def collect(
        self, timeout_s: float
    ) -> list[tuple[int, int, str, tuple[float | int | bool | None, ...]]]: ...
    @property
    def pending(self) -> int: ...
    def cancel(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
