"""Checkpoints that no run has written: every field of real ones is changed, under a checksum that is right.

A run that goes on from such a file must end in a ProblemError of one line, or in a result whose certificate is true,
and whose message names the file if it is not solved; the saddle points of the problems here are known.
`python benchmarks/forged_checkpoints.py` tries all changes (about an hour) and prints how they ended; `--quick` tries a
part of them. The exit code is 1 if one ended in anything else.
"""

from __future__ import annotations

import copy
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from time_limit import TooLongError, time_limit

import saddlepoint as sp
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.local import LocalEngine
from saddlepoint.solving.checkpoint import file as store
from saddlepoint.uses.batch import Batch

TOL = 1e-6  # certified distance
CALLS_BEFORE = 60  # calls of each oracle until the checkpoint is written
CALLS_AFTER = 600  # calls of each oracle in the run that goes on from it
ENDLESS_AFTER = 60  # seconds after which a run counts as endless
ROUNDING = 1e-12  # error of the known saddle points, relative to their size
GOOD = ("refused", "solved, true", "unsolved, true")

Place = tuple[str | int, ...]


class Problem(NamedTuple):
    """A problem with its saddle point."""

    f: sp.Saddle
    x: Any
    y: Any


class Case(NamedTuple):
    """A run that writes the checkpoints which are then changed."""

    problem: Callable[[], Problem]
    method: Any = "dippa"
    storage: str | None = None


class Outcome(NamedTuple):
    """How a run on a forged file ended."""

    kind: str  # one of GOOD, or what went wrong
    what: str  # the change
    words: str  # the message


# -- problems ----------------------------------------------------------------------------------------------------------


def known(mu: float = 1.0, claimed: float | None = None, own: bool = True, size: float = 1.0) -> Problem:
    """A problem with a saddle point that is known, of functions of one's own or of ready ones.

    The gradients are phi(x) - phi(x*) - A y* and psi(y) - psi(y*) + A'x*, with the increasing functions phi and psi.
    They are flat far from 0, where a large ``size`` puts the saddle point; a wrong ``claimed`` mu matters there.
    """
    m, n, rng = 7, 5, np.random.default_rng(0)
    x, y, A = size * rng.standard_normal(m), rng.standard_normal(n), rng.standard_normal((m, n))
    if not own:
        P = np.geomspace(mu, 10.0, m)
        return Problem(sp.Saddle(sp.Quadratic(P, -P * x - A @ y), sp.Quadratic(1.0, A.T @ x - y), A), x, y)
    P = np.geomspace(mu, 1.0, m)

    def phi(v: Any) -> Any:
        return P * v + np.tanh(v)

    def psi(v: Any) -> Any:
        return v + np.arctan(v)

    b, c = phi(x) + A @ y, psi(y) - A.T @ x
    g = sp.Smooth(lambda v: phi(v) - b, mu=mu if claimed is None else claimed, L=3.0)
    h = sp.Smooth(lambda v: psi(v) - c, mu=1.0, L=2.0)
    return Problem(sp.Saddle(g, h, A), x, y)


def estimated() -> Problem:
    """A problem whose L is estimated, and corrected on the way, because its gradient is flat at the start."""
    n = 4
    x, y, A = np.full(n, 3.0), np.full(n, 0.5), 0.1 * np.eye(n)

    def phi(v: Any) -> Any:
        return 0.1 * v + 5.0 * np.tanh(8.0 * (v - 2.9))

    b = phi(x) + A @ y
    return Problem(sp.Saddle(sp.Smooth(lambda v: phi(v) - b, mu=0.1, L=None), sp.Quadratic(1.0, A.T @ x - y), A), x, y)


def batch() -> Problem:
    """Three problems as one, with functions of one's own."""
    rng = np.random.default_rng(1)
    B, m, n = 3, 4, 3
    x, y, A = rng.standard_normal((B, m)), rng.standard_normal((B, n)), rng.standard_normal((B, m, n))
    Ay, Atx = np.einsum("bij,bj->bi", A, y), np.einsum("bij,bi->bj", A, x)
    b, c = (x + np.tanh(x) + Ay).ravel(), (y - Atx).ravel()
    g = sp.Smooth(lambda v: v + np.tanh(v) - b, mu=1.0, L=2.0)
    return Problem(Batch(g, sp.Quadratic(1.0, -c), A).problem, x.ravel(), y.ravel())


def sharded() -> Problem:
    """A problem whose A is split by rows over threads."""
    f, x, y = known(own=False)
    return Problem(sp.Saddle(f.g, f.h, ShardedCoupling(LocalEngine(f.A.matrix(), shards=3))), x, y)


CASES = {
    "dippa": Case(known),
    "dippa, ready functions": Case(lambda: known(own=False)),
    "dippa, factorised": Case(known, sp.DIPPA(coupling="factor")),
    "auto": Case(known, "auto"),
    "anderson-lpd-gs": Case(known, "anderson-lpd-gs"),
    "catalyst-dippa": Case(lambda: known(0.01), "catalyst-dippa"),
    "restarted-apd": Case(known, sp.Restarted(sp.APD())),
    "krylov": Case(lambda: known(own=False), "krylov"),
    "refined": Case(lambda: known(own=False), "lpd-gs", "float32"),
    "estimated L": Case(estimated),
    "batch": Case(batch, "lpd-gs"),
    "sharded": Case(sharded, "lpd-gs"),
    "mu 30 times too large": Case(lambda: known(0.01, claimed=0.3, size=5.0)),
}

# -- changes -----------------------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 10**6, 10**15, 10**40, 1.5, "", "x", [], {}, {"float": "nan"}, {"float": "inf"},
    {"float": "-inf"}, {"float": "-0x1p+0"}, {"float": "0x0p+0"}, {"float": "0x1p-900"}, {"float": "0x1p+30"},
    {"float": "0x1p+900"}, {"float": "x"}, {"tuple": []}, {"list": [1]}, {"dict": []}, {"dict": [["g", 1]]},
    {"array": 0}, {"array": 1}, {"array": 10**6}, {"number": 0}, {"table": 0, "of": "x"}, {"function": "f"},
    {"foreign": 0}, {"rows": {"array": 0}, "most": 10**9}, {"random": "PCG64", "state": {"dict": []}},
    {"of": "saddlepoint.solving.state:Correction", "with": {}}, {"of": "os:system", "with": {}},
)  # fmt: skip


def correction(function: str, constant: str, used: float) -> Any:
    """A constant that a file says a run has replaced."""
    fields = {"function": function, "constant": constant, "given": {"float": "0x1p+0"}, "used": {"float": used.hex()}}
    return {"dict": [[f"{function}.{constant}", {"of": "saddlepoint.solving.state:Correction", "with": fields}]]}


CORRECTIONS = [
    correction(function, constant, used)
    for function, constants in (("g", ("mu", "L", "norm")), ("h", ("mu", "L")), ("A", ("norm", "mu")), ("f", ("mu",)))
    for constant in constants
    for used in (1e9, 1.5, 1e-9, 0.0, -1.0, float("inf"), float("nan"), 1e300, 1e-300)
]  # fmt: skip

ARRAYS: dict[str, Callable[[Any], Any]] = {
    "NaN": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, np.nan, a),
    "infinite": lambda a: a + np.inf,
    "zero": lambda a: 0.0 * a,
    "huge": lambda a: 1e300 * (a + 1.0),
    "larger": lambda a: 1e3 * a,
    "negative": lambda a: -a,
    "tiny": lambda a: 1e-300 * a,
    "random": lambda a: np.random.default_rng(0).standard_normal(a.shape),
    "float32": lambda a: a.astype(np.float32),
    "integers": lambda a: np.nan_to_num(a).astype(np.int64),
    "booleans": lambda a: a > 0.0,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "shorter": lambda a: a[:-1] if a.ndim else a,
    "twice": lambda a: np.concatenate([a, a]) if a.ndim else a,
    "a row": lambda a: a[None],
    "a column": lambda a: a[..., None],
    "empty": lambda a: a[:0] if a.ndim else a,
    "one number": lambda a: np.float64(1.0) * np.ones(()),
    "reversed columns": lambda a: a[..., ::-1].copy() if a.ndim else a,
}


DELETED = object()


def paths(value: Any, path: Place = ()) -> Iterator[Place]:
    """The places in a JSON value, from the outside in."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def at(value: Any, path: Place) -> Any:
    """What a path leads to."""
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: Place, new: Any) -> Any:
    """A copy of a JSON value with something else at one place, or without the place if that is DELETED."""
    if not path:
        return new
    changed = copy.copy(value)
    if new is DELETED and len(path) == 1:
        del changed[path[0]]
    else:
        changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


def changes(content: store.Content) -> Iterator[tuple[str, store.Content]]:
    """All changes of one place of a checkpoint, each with a name."""
    values, arrays = content
    for path in paths(values):
        name, old = "/".join(map(str, path)), at(values, path)
        for new in VALUES if path else ():
            if new != old:
                yield f"{name} = {new!r}", store.Content(put(values, path, new), arrays)
        if path:
            yield f"{name} deleted", store.Content(put(values, path, DELETED), arrays)
        if isinstance(old, dict):
            yield f"{name} with more", store.Content(put(values, path, old | {"examined": True}), arrays)
        if isinstance(old, list) and old:
            yield f"{name} twice", store.Content(put(values, path, old + old), arrays)
            yield f"{name} reversed", store.Content(put(values, path, old[::-1]), arrays)
        if isinstance(old, int) and not isinstance(old, bool):
            for new in (old + 1, old - 1, 2 * old, -old):
                yield f"{name} = {new}", store.Content(put(values, path, new), arrays)
        if isinstance(old, str) and path[-1] == "float":
            for factor in (0.5, 2.0, 1e6, -1.0):
                new = (factor * float.fromhex(old)).hex()
                yield f"{name} times {factor:g}", store.Content(put(values, path, new), arrays)
    where = ("run", "with", "learned", "with", "corrections")
    for new in CORRECTIONS:
        yield f"correction {new}", store.Content(put(values, where, new), arrays)
    for k, array in enumerate(arrays):
        for name, change in ARRAYS.items():
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = np.asarray(change(array))
            yield f"array {k} {name}", store.Content(values, [*arrays[:k], other, *arrays[k + 1 :]])


# -- runs --------------------------------------------------------------------------------------------------------------


def outcome(case: Case, problem: Problem, what: str, content: store.Content, file: Path) -> Outcome:
    """How the run of a case ends that goes on from a file of this content."""
    store.older(file).unlink(missing_ok=True)
    store.write(file, content, 1 << 30)
    limit = CALLS_BEFORE + CALLS_AFTER
    try:
        with time_limit(ENDLESS_AFTER), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = sp.solve(
                problem.f, method=case.method, tol=TOL, max_calls=limit, max_seconds=ENDLESS_AFTER / 2, checkpoint=file,
                checkpoint_every=1e9, storage=case.storage,
            )  # fmt: skip
    except sp.ProblemError as error:
        one_line = bool(str(error)) and "\n" not in str(error)
        return Outcome("refused" if one_line else "refused in several lines", what, str(error))
    except sp.AssumptionError as error:
        return Outcome("accused", what, str(error))
    except TooLongError:
        return Outcome("endless", what, "")
    except Exception as error:
        return Outcome(type(error).__name__, what, str(error))
    true = float(np.linalg.norm(result.x - problem.x) + np.linalg.norm(result.y - problem.y))
    known_to = ROUNDING * float(np.linalg.norm(problem.x) + np.linalg.norm(problem.y))
    proven = result.certificate.distance
    if true > proven + known_to or (result.solved and true > TOL + known_to):
        return Outcome("FALSE CERTIFICATE", what, f"certified {proven:.3g}, true {true:.3g}")
    if not result.solved and str(file) not in result.message:
        return Outcome("unsolved, file not named", what, result.message)
    return Outcome("solved, true" if result.solved else "unsolved, true", what, result.message)


def campaign(name: str, every: int = 1, first: int = 0) -> Iterator[Outcome]:
    """The outcomes of all changes of a checkpoint of one case, or of every so many of them from the ``first`` one on.

    Example:
        >>> {outcome.kind for outcome in campaign("dippa", every=1000)} <= set(GOOD)
        True
    """
    case, problem = CASES[name], CASES[name].problem()
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):  # when the disk has it does not matter
        file = Path(folder) / "run"
        with suppress(sp.AssumptionError):  # of the problem with a false claim; its run is written before that
            sp.solve(
                problem.f, method=case.method, tol=1e-13, max_calls=CALLS_BEFORE, checkpoint=file, storage=case.storage
            )
        content = store.read(file, 1 << 30)
        for k, (what, forged) in enumerate(changes(content)):
            if k % every == first % every:
                yield outcome(case, problem, what, forged, file)


def bad(name: str, found: Outcome) -> bool:
    """Whether an outcome is none that a forged file may have. A run with a false claim may say so."""
    return found.kind not in GOOD and not (found.kind == "accused" and "too large" in name)


def main(every: int = 1, names: tuple[str, ...] = tuple(CASES)) -> int:
    """Print the table, as Markdown, and what went wrong; return how often that was."""
    wrong: list[tuple[str, Outcome]] = []
    print("| run | changes | refused | solved, true | unsolved, true | false claim found | anything else | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        began, kinds = time.perf_counter(), Counter[str]()
        for found in campaign(name, every):
            kinds[found.kind] += 1
            if bad(name, found):
                wrong.append((name, found))
        good = [kinds[kind] for kind in GOOD]
        claims = kinds["accused"] if "too large" in name else 0
        row = [
            name,
            kinds.total(),
            *good,
            claims,
            kinds.total() - sum(good) - claims,
            f"{time.perf_counter() - began:.0f}",
        ]
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    for name, found in wrong:
        print(f"{name}: {found.what}: {found.kind}: {found.words}"[:400])
    return len(wrong)


if __name__ == "__main__":
    chosen = tuple(word for word in sys.argv[1:] if not word.startswith("-"))
    sys.exit(min(1, main(101 if "--quick" in sys.argv else 1, chosen or tuple(CASES))))
