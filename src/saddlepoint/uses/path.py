"""`path`: a family of problems solved along a parameter, each from the answer of the one before."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_flag, as_vector, short_repr
from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.target import Target
from saddlepoint.uses.prepared import Prepared, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = 1.0  # seconds between two lines about the progress, where there is no bar


def path(
    f: Callable[[float], Saddle] | Saddle,
    parameters: Sequence[float] | Array,
    x0: Any = None,
    y0: Any = None,
    *,
    update: Callable[[float], Mapping[str, Any]] | None = None,
    method: str | Method = "auto",
    tol: float | None = None,
    rtol: float | None = None,
    gap: float | None = None,
    costs: Mapping[str, float] | None = None,
    max_calls: int | Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    history: bool = False,
    on_violation: str = "raise",
    progress: bool = False,
) -> SolutionPath:
    """Solve a family of problems along a parameter, each from the answer of the one before.

    What the problems share is computed once: the norm of an A that stays the same, and the examination of functions
    that are the same objects for several parameters, as long as the answers are near each other.

    Args:
        f: a function parameter -> ``Saddle``; or one ``Saddle``, of which ``update`` replaces parts.
        parameters: the parameters, in the order in which they are solved.
        x0, y0: where the first run starts; zero if left out.
        update: a function parameter -> arguments of ``Prepared.update``, such as ``lambda t: {"b": t * b}``.
        method, tol, rtol, gap, costs, max_calls, max_seconds, history, on_violation: as in ``solve``, for every
            parameter.
        progress: show a progress bar.

    Returns:
        A ``SolutionPath`` with one ``Result`` for each parameter. After Ctrl-C it has the results up to then.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> A, h = np.eye(2), sp.Quadratic(1.0)
        >>> family = sp.path(lambda t: sp.Saddle(sp.Quadratic(t, [1.0, 2.0]), h, A), [1.0, 2.0, 4.0])
        >>> family.solved, family.x.round(3).tolist()
        (True, [[-0.5, -1.0], [-0.333, -0.667], [-0.2, -0.4]])
    """
    values = as_vector(parameters, "parameters")
    make = _maker(f, update)
    target = Target.checked(tol, rtol, gap)
    options = {"method": method, target.argument: target.most, "costs": costs, "max_calls": max_calls}
    options |= {"max_seconds": max_seconds, "history": history, "on_violation": on_violation}
    began, results = time.perf_counter(), list[Result]()
    prepared: Prepared | None = None
    with _make_bar(as_flag(progress, "progress"), len(values), target) as bar, suppress(KeyboardInterrupt):
        for value in map(float, values):
            try:
                problem, changes = make(value)
                if prepared is None:
                    prepared = prepare(problem, x0, y0, **options)  # type: ignore[arg-type]
                elif update is None:
                    prepared.update(problem)
                results.append(prepared.update(**changes).solve())
            except Exception as error:
                error.add_note(f"saddlepoint: this happened at the parameter {value:.6g} of a path")
                raise
            bar.show(len(results), value, results[-1])
            if results[-1].status is Status.INTERRUPTED:
                break
    return SolutionPath(values[: len(results)], results, time.perf_counter() - began, target)


def _maker(f: Any, update: Any) -> Callable[[float], tuple[Saddle, dict[str, Any]]]:
    """A function parameter -> (problem, arguments of ``Prepared.update``)."""
    if isinstance(f, Saddle):
        if not callable(update):
            raise ProblemError(
                f"f is one Saddle and update is {short_repr(update)}; expected a function parameter -> arguments of "
                "Prepared.update, such as lambda t: {'b': t * b}; or give a function parameter -> Saddle as f"
            )

        def changed(value: float) -> tuple[Saddle, dict[str, Any]]:
            changes = update(value)
            if not isinstance(changes, Mapping):
                raise ProblemError(f"update returned {short_repr(changes)}; expected a dict, such as {{'b': b}}")
            return f, dict(changes)

        return changed
    if not callable(f) or update is not None:
        raise ProblemError(
            f"f is {short_repr(f)}{' and update was given' if update is not None else ''}; expected a function "
            "parameter -> Saddle, or a Saddle and update="
        )

    def made(value: float) -> tuple[Saddle, dict[str, Any]]:
        problem = f(value)
        if not isinstance(problem, Saddle):
            raise ProblemError(f"f returned a {type(problem).__name__}; expected a Saddle(g, h, A)")
        return problem, {}

    return made


class SolutionPath(Sequence[Result]):
    """The results of a family of problems; ``family[k]`` is the one of the k-th parameter.

    Attributes:
        parameters: the parameters, as an array.
        results: one result for each of them.
        seconds: wall-clock time of the whole path.
        target: what every result was to prove: ``target.argument`` is "tol", "rtol" or "gap", and ``target.most`` the
            number that was asked for.
    """

    def __init__(self, parameters: Array, results: Sequence[Result], seconds: float, target: Target) -> None:
        self.parameters, self.results, self.seconds, self.target = parameters, list(results), seconds, target

    @property
    def solved(self) -> bool:
        """Whether every result is solved."""
        return all(result.solved for result in self.results)

    @property
    def x(self) -> Array:
        """The x of all results, one row for each parameter, as a NumPy array."""
        return np.stack([to_host(result.x) for result in self.results])

    @property
    def y(self) -> Array:
        """The y of all results, one row for each parameter, as a NumPy array."""
        return np.stack([to_host(result.y) for result in self.results])

    @property
    def distances(self) -> Array:
        """The certified distance of each result."""
        return np.array([result.certificate.distance for result in self.results])

    @property
    def gaps(self) -> Array:
        """The certified duality gap of each result."""
        return np.array([result.certificate.gap for result in self.results])

    @property
    def proven(self) -> Array:
        """What is proven of each result: the distance, the relative distance or the gap, as it was asked for."""
        return np.array([self.target.reached(result.certificate, result.x, result.y) for result in self.results])

    @property
    def calls(self) -> Array:
        """The calls of all oracles that each result took."""
        return np.array([sum(result.calls.values()) for result in self.results])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Coordinates of x, certified distances (or gaps) and calls against the parameter (needs matplotlib)."""
        from saddlepoint.uses.plots.path import plot_path

        return plot_path(self, path)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __repr__(self) -> str:
        if not self.results:
            return "SolutionPath(no results)"
        ends = f"{self.parameters[0]:.6g} to {self.parameters[-1]:.6g}"
        solved = sum(result.solved for result in self.results)
        return (
            f"SolutionPath({len(self)} parameters from {ends}; {solved} solved, largest certified {self.target.what} "
            f"{self.proven.max():.3g}, {self.calls.sum()} calls, {self.seconds:.3g} s)"
        )


# -- progress ----------------------------------------------------------------------------------------------------------


class _Bar:
    """Shows nothing; the base class of those that show something."""

    def show(self, done: int, value: float, result: Result) -> None:
        """Show that ``done`` parameters are solved, and the result of the last one, which has this value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class _Lines(_Bar):
    """A line on stderr every second, where Rich is not installed."""

    def __init__(self, count: int, target: Target) -> None:
        self.count, self.target, self.printed = count, target, 0.0

    def show(self, done: int, value: float, result: Result) -> None:
        """Print a line if the last one is a second old, or if all is done."""
        now = time.perf_counter()
        if now - self.printed > SECONDS or done == self.count:
            self.printed = now
            with suppress(OSError):
                proven = self.target.reached(result.certificate, result.x, result.y)
                text = f"path: {done} of {self.count}, parameter {value:.6g}, certified {proven:.2e}"
                print(text, file=sys.stderr)


class _RichBar(_Bar):
    """A bar on the terminal."""

    def __init__(self, count: int, target: Target) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        words = TextColumn("parameter {task.fields[value]:.4g}, certified {task.fields[proven]:.1e}")
        columns = (TextColumn("path"), BarColumn(), MofNCompleteColumn(), words, TimeElapsedColumn())
        self.target = target
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task("path", total=count, value=float("nan"), proven=float("inf"))

    def show(self, done: int, value: float, result: Result) -> None:
        """Move the bar."""
        with suppress(OSError):  # a terminal that is gone is no reason to lose a path
            proven = self.target.reached(result.certificate, result.x, result.y)
            self.bar.update(self.task, completed=done, value=value, proven=proven)

    def __enter__(self) -> Self:
        with suppress(OSError):
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self.bar.stop()


def _make_bar(wanted: bool, count: int, target: Target) -> _Bar:
    """The best bar that is installed, or none if none is wanted."""
    if not wanted:
        return _Bar()
    try:
        return _RichBar(count, target)
    except ImportError:
        return _Lines(count, target)
