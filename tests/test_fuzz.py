"""Random inputs from Hypothesis: a call succeeds or raises a ProblemError of one line, without warnings."""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import array_file
import checkpoint_file
import efg_file
import game_file
import numpy as np
import problem_file
import pytest
import result_file
from harness import LIMIT, read
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import saddlepoint as sp
from saddlepoint.problems.files import load_problem

pytestmark = pytest.mark.slow
FOLDER = Path(tempfile.mkdtemp())
EXAMPLES = int(os.environ.get("EXAMPLES", "25"))

# -- bytes -------------------------------------------------------------------------------------------------------------


@st.composite
def mutated(draw, seeds):
    """A seed with some of its bytes changed, dropped, doubled or cut off."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(1, 8))
        change = draw(st.sampled_from(["flip", "write", "drop", "double", "cut", "fill"]))
        if change == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif change == "write":
            data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
        elif change == "drop":
            del data[at : at + length]
        elif change == "double":
            data[at:at] = data[at : at + length]
        elif change == "cut":
            del data[at:]
        elif change == "fill":
            data[at : at + length] = draw(st.sampled_from([b"\xff", b"\0", b"9", b"-", b"["])) * length
    return bytes(data)


TARGETS = {
    "arrays": (array_file.check, array_file.SEEDS),
    "problems": (problem_file.check, problem_file.SEEDS),
    "games": (game_file.check, game_file.SEEDS),
    "Gambit's games": (efg_file.check, efg_file.SEEDS),
    "results": (result_file.check, result_file.seeds()),
    "checkpoints": (checkpoint_file.check, checkpoint_file.seeds()),
}


@pytest.mark.parametrize("name", TARGETS)
def test_files_of_random_bytes_are_read_or_refused(name):
    check, seeds = TARGETS[name]

    @settings(max_examples=10 * EXAMPLES)
    @given(mutated(seeds))
    def reads_or_refuses(data):
        check(data, FOLDER)

    for seed in seeds:
        assert check(seed, FOLDER)
    reads_or_refuses()


WILD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}), st.just([[1]]),
    st.just({"distance": "x"}), st.just({"grad_g": None}), st.just(10**400),
)  # fmt: skip


@settings(max_examples=8 * EXAMPLES)
@given(st.data())
def test_random_summaries_of_results_are_read_or_refused(data):
    saved = np.load(io.BytesIO(result_file.packed(result_file.members())))
    summary = json.loads(str(saved["summary"]))
    key = data.draw(st.sampled_from(sorted(summary)))
    value = data.draw(WILD)
    if isinstance(summary[key], dict) and summary[key] and data.draw(st.booleans()):
        summary[key] = summary[key] | {data.draw(st.sampled_from(sorted(summary[key]))): value}
    else:
        summary[key] = value
    arrays = {name: saved[name] for name in ("x", "y", "history")} | {"summary": np.array(json.dumps(summary))}
    np.savez(FOLDER / "summary.npz", **arrays)
    read(lambda: repr(sp.load_result(FOLDER / "summary.npz")))


# -- problem files, line by line ---------------------------------------------------------------------------------------

WORDS = [
    "1", "0", "-1", "1e400", "nan", "-inf", "9" * 400, "true", "'a'", "''", "[]", "[[]]", "[1]", "[[1, 2], [3, 4]]",
    "{}", "{a = 1}", "1979-05-27", "'A.npy'", "'../A.npy:x'", "'/dev/zero'", "[nan, 1]", "['a']", "[1, 'a']",
    "[[1], [2, 3]]", "1e-310", "1e300", "'dippa'", "'quadratic'", "-0.0", "0x10", "[[1e300, 1], [1, 1e300]]",
]  # fmt: skip


@st.composite
def documents(draw):
    """Lines of a problem file, dropped, doubled, swapped, or with another value or key."""
    lines = draw(st.sampled_from(problem_file.SEEDS)).decode().splitlines()
    for _ in range(draw(st.integers(1, 3))):
        i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        key, equals, _ = lines[i].partition("=")
        change = draw(st.sampled_from(["drop", "double", "swap", "value", "value", "value", "key"]))
        if change == "drop" and len(lines) > 1:
            del lines[i]
        elif change == "double":
            lines.insert(j, lines[i])
        elif change == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        elif change == "value" and equals:
            lines[i] = f"{key}= {draw(st.sampled_from(WORDS))}"
        elif change == "key" and equals:
            other = draw(st.sampled_from(["P", "b", "D", "l2", "tol", "kind", "A"]))
            lines[i] = lines[i].replace(key.strip(), other, 1)
    return "\n".join(lines)


@settings(max_examples=12 * EXAMPLES)
@given(documents())
def test_random_problem_files_are_solved_or_refused(text):
    """A problem that can be read can also be solved: there is a result, or an error about its numbers."""
    path = FOLDER / "problem.toml"
    path.write_text(text)

    def load_and_solve():
        f, options_of_file = load_problem(path, LIMIT)
        options = options_of_file.pop("options", {})
        if options and options_of_file.get("method", "auto") != "auto":
            options_of_file["method"] = sp.make_method(options_of_file["method"], **options)
        with contextlib.suppress(sp.AssumptionError):
            sp.solve(f, **(options_of_file | {"max_calls": 20, "max_seconds": 2.0}))

    read(load_and_solve)


# -- the library -------------------------------------------------------------------------------------------------------

DTYPES = ["f8", "f4", "f2", ">f8", "i1", "i8", "u8", "b1", "c16", "O", "U3", "S3", "M8[s]", "m8[D]", "g", "V4"]
NUMBERS = st.one_of(
    st.floats(), st.integers(), st.booleans(), st.none(), st.text(max_size=3), st.complex_numbers(),
    st.just(10**400), st.just([1.0]), st.just(np.ones(2)), st.floats(width=16), st.just(np.float32(2.0)),
)  # fmt: skip


@st.composite
def wild_arrays(draw):
    """An array of any dtype and shape, often a plausible one, or None."""
    kind = draw(st.sampled_from(["floats", "floats", "floats", "any", "list", "number", "sparse", "strided"]))
    shape = draw(st.sampled_from([(2, 2), (2, 2), (2,), (3, 2), (), (0,), (0, 2), (1, 1), (2, 2, 2)]))
    if kind == "any":
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        return np.zeros(shape, dtype) if dtype.kind in "OVMmUS" else np.ones(shape, dtype)
    if kind == "list":
        return draw(st.lists(st.lists(NUMBERS, max_size=2), max_size=2))
    if kind == "number":
        return draw(NUMBERS)
    numbers = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, -1.0, 2.0]))
    values = draw(arrays.arrays(np.float64, shape, elements=numbers))
    if kind == "sparse" and values.ndim == 2:
        return draw(st.sampled_from([sparse.csr_array, sparse.coo_array, sparse.csc_matrix]))(values)
    return np.repeat(values, 2, axis=0)[::2] if kind == "strided" and values.ndim else values


@settings(max_examples=12 * EXAMPLES)
@given(wild_arrays(), wild_arrays(), wild_arrays(), NUMBERS)
def test_functions_of_random_data_are_made_or_refused(first, second, third, number):
    for build in (
        lambda: sp.Quadratic(first, second, mu=number),
        lambda: sp.LeastSquares(first, second, number),
        lambda: sp.Logistic(first, second, 0.1),
        lambda: sp.SmoothedHinge(first, [1, -1], width=number),
        lambda: sp.Huber(first, second, number, 0.5),
        lambda: sp.LogCosh(first, second, 0.1),
        lambda: sp.LogSumExp(first, second, 0.1, number),
        lambda: sp.GroupHuber(second, number, 0.1),
        lambda: sp.Entropy(number),
        lambda: sp.Smooth(lambda x: x, mu=number, L=number),
        lambda: sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0), first),
        lambda: sp.predict(kx=number, ky=2.0, coupling=1.0),
    ):
        read(build)


@settings(max_examples=8 * EXAMPLES)
@given(wild_arrays(), wild_arrays(), NUMBERS, NUMBERS)
def test_random_arguments_of_solve_are_taken_or_refused(A, start, number, other):
    def solve():
        f = sp.Saddle(sp.Quadratic(1.0), sp.LogCosh(l2=0.5), A)
        sp.solve(f, start, tol=number, max_calls={"A": 30}, costs={"A": other})

    def certify():
        f = sp.Saddle(sp.Quadratic(1.0, [1.0, 1.0]), sp.Quadratic(2.0), np.eye(2))
        f.certificate(start, A)
        sp.solve(f, start, A, tol=1e-3, max_calls=30)

    read(solve)
    read(certify)
