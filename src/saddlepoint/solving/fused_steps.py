"""Steps on a GPU with few kernels: all vectors that a method sums up between two oracle calls are formed together.

A method's body keeps to ``+ - *`` and oracle calls, so all that it forms in between are linear combinations of vectors
that are there. Given symbolic vectors that only note their terms, the same ``step`` says which combinations it needs;
one Triton kernel forms all of one length that are asked for together. It is then known which results each call needs,
so that the two gradients run at the same time, and at the same time as a product with A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.arrays import namespace
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.coupling.triton_launch import jit, torch
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple
from saddlepoint.problems.saddle import Saddle

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

AVAILABLE = tl is not None  # whether Triton is installed
BLOCK = 256  # entries of a program

Tensor = Any


class Combination:
    """The linear combination c_1 v_1 + ... + c_k v_k, which is not computed yet."""

    def __init__(self, terms: Sequence[tuple[Tensor, float]]) -> None:
        self.terms: dict[int, tuple[Tensor, float]] = {}
        for vector, factor in terms:
            _, before = self.terms.get(id(vector), (vector, 0.0))
            self.terms[id(vector)] = (vector, before + factor)

    @property
    def shape(self) -> Any:
        """The shape of its vectors."""
        return next(iter(self.terms.values()))[0].shape

    def __array_namespace__(self) -> Any:
        return namespace(next(iter(self.terms.values()))[0])

    def __add__(self, other: Combination) -> Combination:
        if not isinstance(other, Combination):
            return NotImplemented
        return Combination([*self.terms.values(), *other.terms.values()])

    def __mul__(self, factor: float) -> Combination:
        if not isinstance(factor, int | float):
            return NotImplemented
        return Combination([(vector, factor * c) for vector, c in self.terms.values()])

    __rmul__ = __mul__

    def __neg__(self) -> Combination:
        return -1.0 * self

    def __sub__(self, other: Combination) -> Combination:
        return self + -1.0 * other if isinstance(other, Combination) else NotImplemented


class Evaluator:
    """Forms combinations. Their factors are kept on the GPU: within a graph that is captured, none can be sent there.

    So the factors are sent in the first steps, which must not be captured.
    """

    def __init__(self, aside: SideStreams | None = None) -> None:
        self.factors: dict[tuple[Any, ...], Tensor] = {}
        self.aside = aside

    def step(self, step: Callable[[list[Combination]], Sequence[Combination]], leaves: list[Tensor]) -> list[Tensor]:
        """One step from the arrays of a state to those of the next."""
        if self.aside is not None:
            self.aside.begin(leaves)
        found = self.all(step([term(leaf) for leaf in leaves]))
        if self.aside is not None:
            self.aside.end()
        return found

    def all(self, wanted: Sequence[Combination]) -> list[Tensor]:
        """Compute the vectors; one kernel computes all that have the same length."""
        if self.aside is not None:
            self.aside.join(vector for one in wanted for vector, _ in one.terms.values())
        found: dict[int, Tensor] = {}
        by_length: dict[int, list[Combination]] = {}
        for one in wanted:
            (vector, factor), *more = one.terms.values()
            if factor == 1.0 and not more:
                found[id(one)] = vector
            elif id(one) not in found:
                by_length.setdefault(vector.shape[0], []).append(one)
        for n, several in by_length.items():
            inputs = list({id(v): v for one in several for v, _ in one.terms.values()}.values())
            outputs = [torch.empty_like(inputs[0]) for _ in several]
            rows = [one.terms.get(id(v), (v, 0.0))[1] for one in several for v in inputs]
            grid = ((n + BLOCK - 1) // BLOCK, len(outputs))
            _combine[grid](tuple(inputs), tuple(outputs), self._on_gpu(rows, inputs[0]), n, BLOCK)
            self.note(outputs)
            found |= {id(one): output for one, output in zip(several, outputs, strict=True)}
        return [found[id(one)] for one in wanted]

    def note(self, vectors: Sequence[Tensor]) -> None:
        """Record that the present stream computes these vectors."""
        if self.aside is not None:
            self.aside.note(vectors)

    def one(self, wanted: Combination) -> Tensor:
        """Compute one vector."""
        return self.all([wanted])[0]

    def _on_gpu(self, rows: list[float], like: Tensor) -> Tensor:
        key = (like.dtype, *rows)
        if key not in self.factors:
            if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
                raise RuntimeError("the factors of a step changed")
            self.factors[key] = torch.tensor(rows, dtype=like.dtype, device=like.device)
        return self.factors[key]

    def problem(self, f: Saddle) -> Saddle:
        """The problem for symbolic vectors: they are computed before an oracle call, whose answer is a single term."""
        return Saddle.of(self._function(f.g, 0), self._function(f.h, 1), _Symbolic(f.A, self), f.space)

    def _function(self, f: Smooth, side: int) -> Smooth:
        def grad(x: Any) -> Any:
            def call() -> Tensor:
                return f.grad(self.one(x))

            return term(call() if self.aside is None else self.aside.call(side, call))

        def prox(v: Any, t: float) -> Any:
            found = f.prox(self.one(v), t)
            self.note([found])
            return term(found)

        # Only these two take symbolic vectors, and the prox of the simple term.
        known = {"grad": grad, "prox": prox if f.has_prox else None}
        return f.replace(**known, value=None, hessian=None, restrict=None, simple=self._simple(f.simple))

    def _simple(self, p: Simple | None) -> Simple | None:
        """The simple term for symbolic vectors, of which steps call the prox alone."""
        if p is None:
            return None

        def prox(v: Any, t: float) -> Any:
            found = p.prox(self.one(v), t)
            self.note([found])
            return term(found)

        return Simple(prox)


class SideStreams:
    """Streams beside the main one, for the gradients of g and of h and the points at which they are taken.

    A stream waits for what it uses, and no longer. At the end of a step the main stream waits for all, so that memory
    which is let go then is free.
    """

    def __init__(self) -> None:
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.made: dict[int, tuple[Any, Any]] = {}  # by the id of a vector: its stream, and the event of its making
        self.alive: list[Tensor] = []  # what these ids stand for

    def begin(self, leaves: list[Tensor]) -> None:
        """A step begins, and the arrays of its state have been computed."""
        self.made, self.alive = {}, []
        self.note(leaves)
        for stream in self.streams:
            stream.wait_stream(torch.cuda.current_stream())

    def note(self, vectors: Sequence[Tensor]) -> None:
        """Record that the present stream computes these vectors."""
        stream = torch.cuda.current_stream()
        made = stream, stream.record_event()
        self.alive += vectors
        self.made |= {id(vector): made for vector in vectors}

    def join(self, vectors: Iterable[Tensor]) -> None:
        """Let the present stream wait for the vectors that another stream computes."""
        present = torch.cuda.current_stream()
        for vector in vectors:
            stream, event = self.made.get(id(vector), (present, None))
            if stream != present:
                present.wait_event(event)

    def call(self, side: int, function: Callable[[], Tensor]) -> Tensor:
        """Call the function on a stream beside the present one."""
        with torch.cuda.stream(self.streams[side]):
            answer = function()
            self.note([answer])
        return answer

    def end(self) -> None:
        """Let the main stream wait for all others."""
        for stream in self.streams:
            torch.cuda.current_stream().wait_stream(stream)


def term(vector: Tensor) -> Combination:
    """A combination of one vector that has been computed."""
    return Combination([(vector, 1.0)])


class _Symbolic(ForwardingCoupling):
    """A coupling for symbolic vectors."""

    def __init__(self, A: Coupling, form: Evaluator) -> None:
        super().__init__(A)
        self.form = form

    def mul(self, y: Any) -> Any:
        return self._terms(self.A.mul(self.form.one(y)))[0]

    def tmul(self, x: Any) -> Any:
        return self._terms(self.A.tmul(self.form.one(x)))[0]

    def both(self, x: Any, y: Any) -> Any:
        return self._terms(*self.A.both(*self.form.all([x, y])))

    def through(self, y: Any, s: float = 1.0, e: Any = None) -> Any:
        given = self.form.all([y] if e is None else [y, e])
        return self._terms(*self.A.through(given[0], s, *given[1:]))

    def _terms(self, *products: Tensor) -> tuple[Combination, ...]:
        self.form.note(products)
        return tuple(map(term, products))

    def _transpose(self) -> Coupling:
        return _Symbolic(self.A.T, self.form)


@jit
def _combine(inputs: tl.tensor, outputs: tl.tensor, factors: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    """outputs[j] = sum over k of factors[j, k] inputs[k]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for j in tl.static_range(len(outputs)):
        if tl.program_id(1) == j:
            total = tl.zeros([BLOCK], factors.dtype.element_ty)
            for k in tl.static_range(len(inputs)):
                total += tl.load(factors + j * len(inputs) + k) * tl.load(inputs[k] + at, at < n, 0.0)
            tl.store(outputs[j] + at, total, at < n)
