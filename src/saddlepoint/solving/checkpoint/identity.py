"""Whether a checkpoint belongs to a run: the same version, method and problem, to rounding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.problems.saddle import Saddle

FORMAT = 4  # number of the format of the files; files of other formats are refused
LOOSE = 1e4  # units of rounding by which numbers of the same problem may differ on another machine
CONSTANTS = ("mu of g", "L of g", "mu of h", "L of h", "|A|")
SCALES = 1e-6, 1e-3, 1.0, 1e3, 1e6  # sizes of the points at which the prox of a simple term is compared
TERMS = tuple(f"prox of the simple term of {name}" for name in ("g", "h") for _ in SCALES)
NO_TERM = -1.0, 0.0  # in the place of the length and the product of a prox
PROBES = ("gradient of g", "gradient of h", "product with A", "product with A'", *TERMS)


class Identity(NamedTuple):
    """Which run a checkpoint belongs to."""

    format: int
    version: str
    label: str  # of the method that was asked for
    options: dict[str, Any] | None  # of it, in plain values
    storage: str | None
    space: str
    shape: tuple[int, int]
    constants: tuple[float, ...]
    probes: tuple[tuple[float, float], ...]
    eps: float

    @classmethod
    def of(cls, f: Saddle, label: str, options: dict[str, Any] | None, storage: str | None) -> Identity:
        """That of a run; it takes one call of every oracle."""
        from saddlepoint import __version__

        constants = (f.mu_x, f.L_x, f.mu_y, f.L_y, f.norm)
        numbers = probes(f)
        return cls(FORMAT, __version__, label, options, storage, str(f.space), f.shape, constants, numbers, f.space.eps)

    def to_json(self) -> dict[str, Any]:
        """The identity in values of JSON; hexadecimal numbers keep every bit."""
        return self._asdict() | {
            "shape": list(self.shape),
            "constants": [number.hex() for number in self.constants],
            "probes": [[number.hex() for number in pair] for pair in self.probes],
        }

    def refuse_unlike(self, saved: dict[str, Any], name: str) -> None:
        """Raise a ProblemError that says how the checkpoint called ``name`` differs from this."""
        for what, wrong in self._differences(saved):
            if wrong:
                raise ProblemError(f"{name} {what}")

    def _differences(self, saved: dict[str, Any]) -> Any:
        yield f"has format {saved['format']}; this version reads {FORMAT}", saved["format"] != FORMAT
        theirs, ours = (".".join(str(v).split(".")[:2]) for v in (saved["version"], self.version))
        yield f"was written by saddlepoint {saved['version']}, and this is {self.version}", theirs != ours
        yield f"is a run with storage {saved['storage']}, not {self.storage}", saved["storage"] != self.storage
        yield f"is a run of {saved['label']}, and {self.label} was asked for", saved["label"] != self.label
        yield f"is a run of {self.label} with other options", saved["options"] != self.options
        yield f"is of a problem in {saved['space']}, and this one is in {self.space}", saved["space"] != self.space
        (m, n), shape = self.shape, saved["shape"]
        yield f"is of a problem of shape {shape}, and this one is {m} x {n}", shape != [m, n]
        for constant, number, text in zip(CONSTANTS, self.constants, saved["constants"], strict=True):
            then = float.fromhex(text)
            alike = self._alike(number, then, abs(then))
            before, now = _told_apart(then, number)
            yield f"is of a problem with {constant} = {before}, and this one has {now}", not alike
        for probe, pair, texts in zip(PROBES, self.probes, saved["probes"], strict=True):
            was = [float.fromhex(text) for text in texts]
            alike = all(self._alike(number, then, was[0]) for number, then in zip(pair, was, strict=True))
            yield f"is of another problem: the {probe} at a probe differs", not alike

    def _alike(self, a: float, b: float, size: float) -> bool:
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= LOOSE * self.eps * size


def _told_apart(a: float, b: float) -> tuple[str, str]:
    """Two numbers with so many digits that they look different, if they are."""
    texts = ((f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in (6, 9, 12, 17))
    return next((pair for pair in texts if pair[0] != pair[1]), (f"{a:.6g}", f"{b:.6g}"))


def probes(f: Saddle) -> tuple[tuple[float, float], ...]:
    """The length of each oracle's answer at a random point, and its product with a random unit vector.

    The prox of a simple term is an oracle, too.
    """
    rng = np.random.default_rng(0)
    (x, u), (y, v) = (rng.standard_normal((2, size)) for size in f.shape)
    x, y = f.space.of_x.cast(x), f.space.of_y.cast(y)
    u, v = u / norm(u), v / norm(v)
    asked = (
        (lambda x: f.g.grad(f.g.inside(x)), x, u),
        (lambda y: f.h.grad(f.h.inside(y)), y, v),
        (f.A.mul, y, u),
        (f.A.tmul, x, v),
    )
    found = [_probe(oracle, point, along) for oracle, point, along in asked]
    for function, point, along in ((f.g, x, u), (f.h, y, v)):
        prox = function.simple_prox
        if function.simple is None:
            found += [NO_TERM] * len(SCALES)
        else:
            found += [_probe(lambda v, prox=prox: prox(v, 1.0), scale * point, along) for scale in SCALES]
    return tuple(found)


def _probe(oracle: Any, point: Array, along: Array) -> tuple[float, float]:
    try:
        with np.errstate(all="ignore"):
            answer = np.asarray(to_host(oracle(point)), np.float64)
            return float(np.linalg.norm(answer)), float(along @ answer)
    except Exception:  # a function that is not defined there says nothing
        return math.nan, math.nan
