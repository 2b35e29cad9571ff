"""`prepare`: keep what does not change between many related problems, and solve them one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import FLOAT64, Array, all_finite, copied
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_vector
from saddlepoint.methods.base import Method
from saddlepoint.methods.direct import Direct
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.source_data import sources_of_coupling
from saddlepoint.problems.examined_points import Examined
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.auto import choose
from saddlepoint.solving.options import SolveOptions, starting_point
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.solving.target import NAMES, Target
from saddlepoint.uses.direct_result import direct_result, matrix_calls
from saddlepoint.uses.prepared.kept_factors import KeptFactors

NOTE = "direct, with factors that are kept"  # what the message of such a result says


def prepare(
    f: Saddle,
    x0: Any = None,
    y0: Any = None,
    *,
    method: str | Method = "auto",
    tol: float | None = None,
    rtol: float | None = None,
    gap: float | None = None,
    costs: Mapping[str, float] | None = None,
    max_calls: int | Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    history: bool = True,
    on_violation: str = "raise",
) -> Prepared:
    """Prepare ``f`` to be solved many times, with other data each time.

    Norms, factorisations, examinations and the checks of the arguments are made once, as far as they do not depend on
    what changes. ``update`` replaces data, and ``solve`` starts from the last answer.

    Args:
        f: the problem.
        x0, y0: where the first ``solve`` starts; zero if left out.
        method, tol, rtol, gap, costs, max_calls, max_seconds, history, on_violation: as in ``solve``, for every
            ``solve``. A game, or another problem with mu = 0, is prepared with ``gap``.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic([1.0, 3.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
        >>> prepared = sp.prepare(f, tol=1e-9)
        >>> for b in ([1.0, 1.0], [1.0, 2.0]):
        ...     result = prepared.update(b=b).solve()
        ...     print(result.solved, result.x.round(6))
        True [-0.222222 -0.222222]
        True [-0.133333 -0.533333]
    """
    return Prepared(
        f,
        x0,
        y0,
        method=method,
        tol=tol,
        rtol=rtol,
        gap=gap,
        costs=costs,
        max_calls=max_calls,
        max_seconds=max_seconds,
        history=history,
        on_violation=on_violation,
    )


class Prepared:
    """A problem whose data can be replaced between solves; ``sp.prepare`` makes it.

    Nothing that was given is changed or written into. Vectors b and c are copied. Matrices and functions are not: give
    a new one to ``update`` instead of writing into the old one, which ``solve`` refuses where mu was computed from it.

    Attributes:
        result: the last result; None before the first ``solve``.
    """

    def __init__(self, f: Saddle, x0: Any, y0: Any, **options: Any) -> None:
        unused = {"callback": None, "progress": False, "storage": None, "checkpoint": None, "checkpoint_every": 60.0}
        asked = {name: options[name] for name in NAMES}
        others = {name: value for name, value in options.items() if name not in NAMES}
        checked = SolveOptions.checked(f, target=Target.checked(**asked), **others, **unused)
        checked.target.check(f)
        self._options, self._target = options, checked.target
        limited = options["max_calls"] is not None or options["max_seconds"] is not None
        self._by_distance = checked.target.argument == "tol" and not limited  # kept factors serve such runs only
        self._method, self._costs = checked.method, checked.costs
        self._start = starting_point(f, x0, y0)
        self.result: Result | None = None
        self._base, self._linear = f, dict[str, Array]()
        self._problem: Saddle | None = None  # the problem with the linear terms, made when it is first needed
        self._kept: _Kept | None = None
        self._may_keep = False
        self._given: dict[str, Any] = {}  # the parts as they were given
        self._take(f, {"g", "h", "A"})

    # -- data ----------------------------------------------------------------------------------------------------------

    @property
    def problem(self) -> Saddle:
        """The problem that the next ``solve`` solves."""
        if self._problem is None:
            self._problem = self._base.replace(g=self._with_linear("g"), h=self._with_linear("h"))
        return self._problem

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of variables of x and of y."""
        return self._base.shape

    def update(
        self,
        f: Saddle | None = None,
        *,
        g: Smooth | None = None,
        h: Smooth | None = None,
        A: Any = None,
        b: Any = None,
        c: Any = None,
    ) -> Prepared:
        """Replace data of the problem; what is left out stays as it is.

        If anything is wrong with the new data there is a ProblemError, and nothing is replaced.

        Args:
            f: a whole problem in the place of the present one. What is known of parts that are the same objects as
                before is kept; an array counts as the same if its entries are the same too. Other parts take as much
                work as if they had been given as g, h and A.
            g, h: new functions. Each is checked as by ``Saddle``, and what is claimed of it is examined at the next
                solve. A factorisation that is kept is made anew.
            A: a new matrix of the same shape. Its norm is estimated at the next solve that needs it, and a
                factorisation that is kept is made anew. Examinations of g and h stay valid.
            b, c: the linear terms of g and of h, one number for each variable. The b of a ``Quadratic`` is replaced. To
                any other function, <b, x> is added, in the place of the last such term. This costs a copy: a linear
                term changes neither mu nor L, and factorisations and examinations stay valid.

        Returns:
            This object, so that ``prepared.update(b=b).solve()`` can be written.
        """
        linear = {name: self._vector(name, v) for name, v in (("b", b), ("c", c)) if v is not None}
        new = {name for name, part in (("g", g), ("h", h), ("A", A)) if part is not None}
        if f is not None:
            if new:
                raise ProblemError(f"f and {' and '.join(sorted(new))} were given; expected a whole problem or parts")
            self._replace(f)
        elif new:
            base = self._base
            coupling = base.A if A is None else self._coupling(A)
            problem = Saddle(base.g if g is None else g, base.h if h is None else h, coupling)
            self._target.check(problem)
            self._take(problem, new)
        for name, vector in linear.items():
            self._linear["g" if name == "b" else "h"] = vector
            self._problem = None
            if self._kept is not None:
                m = self.shape[0]
                self._kept.q[slice(0, m) if name == "b" else slice(m, None)] = vector
        return self

    def _replace(self, f: Any) -> None:
        """Use f from now on, and keep what is known of the parts that are the same."""
        if not isinstance(f, Saddle):
            raise ProblemError(f"f is a {type(f).__name__}; expected a Saddle(g, h, A)")
        if f.shape != self.shape:
            raise ProblemError(f"f is {f.shape[0]} x {f.shape[1]}; expected {self.shape}, as before")
        self._target.check(f)
        self._check_space(f)
        if self._linear:  # f has its own
            self._linear, self._problem, self._kept = {}, None, None
        given, base = self._given, self._base
        new = {name for name in ("g", "h", "A") if getattr(f, name) is not given[name]}
        if "A" in new and _is_unchanged(f.A, given["A"]):
            new.remove("A")
        if new:
            g, h, A = (getattr(f if name in new else base, name) for name in ("g", "h", "A"))
            self._take(f.replace(g=g, h=h, A=A), new)

    def _check_space(self, f: Saddle) -> None:
        if f.space != self._base.space:
            raise ProblemError(f"the new data are {f.space}; expected {self._base.space}, as before")

    def _vector(self, name: str, given: Any) -> Array:
        """A linear term as a vector of the problem, which is a copy."""
        base, size = self._base, self.shape[0 if name == "b" else 1]
        plain = type(given) is np.ndarray and given.dtype is FLOAT64 and given.shape == (size,)
        if plain and base.space.dtype is FLOAT64 and base.space.sides is None and np.isfinite(given).all():
            vector: Array = given.copy()
            return vector
        if name == "b" and base.space.of_x.is_sharded:
            raise ProblemError("b was given, but x is over shards; give a new g that has this linear term")
        space = base.space.of_x if name == "b" else base.space.of_y
        return space.placed(copied(as_vector(given, name, size)))

    def _coupling(self, A: Any) -> Coupling:
        coupling = as_coupling(A)
        if coupling.shape != self.shape:
            raise ProblemError(
                f"A has shape {coupling.shape}; expected {self.shape}, that of the prepared problem: "
                "prepare a problem of another shape anew"
            )
        return coupling

    def _take(self, f: Saddle, new: set[str]) -> None:
        """Use f from now on, whose parts in ``new`` are others than before."""
        self._check_space(f)
        for name in new:
            self._given[name] = getattr(f, name)
        if "A" in new:
            sources_of_coupling(f.A)
        g, h = f.g if "g" not in new else _own(f.g), f.h if "h" not in new else _own(f.h)
        kept = {name: calls for name, calls in self._base.estimated.items() if name not in new}
        self._base = f.replace(g=g, h=h)
        self._base.estimated = kept | f.estimated  # functions whose L a run may correct
        self._linear = {name: vector for name, vector in self._linear.items() if name not in new}
        self._problem = self._kept = None
        # A new A does not change the method: to choose it again would take an estimate of |A|.
        self._may_keep = self._by_distance and KeptFactors.fits(self._base) and (self._may_keep or self._is_direct())

    def _is_direct(self) -> bool:
        """Whether the problem is to be solved by a factorisation."""
        if self._method is not None:
            return self._method == Direct()
        return isinstance(choose(self._base, self._costs).methods[0], Direct)

    def _with_linear(self, name: str) -> Smooth:
        function: Smooth = getattr(self._base, name)
        b = self._linear.get(name)
        if b is None:
            return function
        other = function.with_linear(b) if isinstance(function, Quadratic) else affine(function, linear=b)
        other.examined = function.examined
        return other

    # -- solving -------------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # infinities and NaN are found by later checks
    def solve(self) -> Result:
        """Solve the present problem from the last answer, and certify the new one.

        Returns:
            A ``Result`` as that of ``sp.solve``. The certificate is computed anew at the new point. A function whose
            claims were examined is not examined again while it is the same, but for a linear term, and the answer is
            near one at which it was examined.
        """
        began = time.perf_counter()
        self._base.refuse_changes()
        result = self._by_factors(began) if self._may_keep else None
        if result is None:
            x, y = self._start
            result = solve(self.problem, x, y, **self._options)
            if all_finite(result.x) and all_finite(result.y):
                self._start = copied(result.x), copied(result.y)
                if self._kept is not None:
                    self._kept.z = np.concatenate(self._start)
        self.result = result
        return result

    def _by_factors(self, began: float) -> Result | None:
        """The result by the factors that are kept; None where they do not reach the tolerance."""
        kept = self._kept
        if kept is None:
            kept = self._kept = self._factorised()
        elif not kept.factors.is_regular:
            return None
        found = kept.factors.solve(kept.z, kept.q, self._target.most) if kept.factors.is_regular else None
        if found is None:
            return None
        z, certificate, steps, seconds = found
        m = self.shape[0]
        kept.z = z
        x, y = z[:m].copy(), z[m:].copy()
        self._start = z[:m], z[m:]
        uncounted, kept.uncounted = kept.uncounted, {}
        return direct_result(
            self._base,
            x,
            y,
            certificate,
            steps=steps,
            factorised=uncounted,
            began=began,
            method_seconds=seconds,
            tol=self._target.most,
            history=self._options["history"],
            note=NOTE,
        )

    def _factorised(self) -> _Kept:
        q = np.zeros(sum(self.shape))
        m = self.shape[0]
        for part, function in ((q[:m], self.problem.g), (q[m:], self.problem.h)):
            assert isinstance(function, Quadratic)
            if function.b is not None:
                part[:] = function.b
        calls = matrix_calls(self.problem.g, self.problem.h, self.shape)  # type: ignore[arg-type]
        return _Kept(KeptFactors(self._base), q, np.concatenate(self._start), calls)

    def __repr__(self) -> str:
        how = "the factors of its matrix are kept" if self._may_keep else "each run starts from the last answer"
        return f"Prepared({self._base!r}, {self._target.argument}={self._target.most:g}; {how})"


def _is_unchanged(A: Coupling, before: Coupling) -> bool:
    """Whether A has the same arrays as an earlier coupling, and no entry of them has changed since then."""
    sources = sources_of_coupling(before)
    same = type(A) is type(before) and len(A.arrays) == len(sources) > 0
    return same and all(
        array is source.entries and not source.is_changed for array, source in zip(A.arrays, sources, strict=True)
    )


class _Kept:
    """The factors, the linear terms and the last answer of a small quadratic problem."""

    def __init__(self, factors: KeptFactors, q: Array, z: Array, calls: dict[str, int]) -> None:
        self.factors, self.q, self.z = factors, q, z
        self.uncounted = calls  # the calls for which the factorised matrices count; empty once a result includes them


def _own(f: Smooth) -> Smooth:
    """A copy of the function that remembers where it was examined; the object of the caller is not changed."""
    other = copy(f)
    other.examined = None if f.trusted else Examined()
    return other
