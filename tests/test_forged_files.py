"""Files that are well-formed, with one place changed: each is refused in a sentence, or read to what is consistent."""

import io
import json
import math
import warnings
from itertools import product

import game_file
import harness
import numpy as np
import problem_file
import pytest
from forged_checkpoints import DELETED, at, paths, put

import saddlepoint as sp
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.game_file import read_game

VALUES = (
    None, True, False, -1, 0, 1, 2, 10**6, 10**400, 0.5, -0.5, 1e300, 1e-300, math.nan, math.inf, -math.inf, "", "x",
    "solved", "1e-9", [], [1], [[1]], {}, {"x": 1}, [None, "x"], "a\nb", "\0",
)  # fmt: skip
WORDS = (
    "1", "0", "-1", "1e400", "nan", "-inf", "true", "'a'", "''", "[]", "[[]]", "[1.0]", "[1.0, 2.0]", "{}", "{a = 1}",
    "[[1, 2], [3, 4]]", "1979-05-27", "'A.npy'", "'/dev/zero'", "[nan, 1.0]", "['a']", "[1, 'a']", "[[1], [2, 3]]",
    "1e-310", "1e300", "'dippa'", "'quadratic'", "-0.0", "[[1e300, 1], [1, 1e300]]", "{stream = 'A.npy'}", "'.'",
    "{stream = '/dev/zero'}", "'/dev/stdin:x'", "[{kind = 'quadratic', P = 1.0}]", "9223372036854775807",
)  # fmt: skip
ARRAYS = {
    "NaN": lambda a: a + np.nan,
    "infinite": lambda a: a + np.inf,
    "float32": lambda a: a.astype(np.float32),
    "integers": lambda a: a.astype(np.int64),
    "complex": lambda a: a.astype(complex),
    "texts": lambda a: a.astype("U8"),
    "empty": lambda a: a[:0],
    "twice": lambda a: np.concatenate([a, a]),
    "a row": lambda a: a[None],
    "a number": lambda a: a.sum(),
    "negative": lambda a: -1.0 - np.abs(a),
    "half": lambda a: a + 0.5,
    "huge": lambda a: a + 1e300,
}


def changed(value):
    """All JSON values that differ from the given one in one place, which is changed, removed or added."""
    for path in paths(value):
        for new in (*VALUES, DELETED, [at(value, path)] * 2) if path else ():
            yield put(value, path, new)


def read(action):
    """What the action returns; None if it ended in a ProblemError of one line. Nothing else may happen."""
    found = []
    return found[0] if harness.read(lambda: found.append(action())) else None


def some(items, every, first):
    return (item for k, item in enumerate(items) if k % every == first % every)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The arrays and the summary of a saved result."""
    f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
    file = tmp_path_factory.mktemp("result") / "r.npz"
    sp.solve(f, method="dippa", tol=1e-3).save(file)
    with np.load(file) as found:
        arrays = {name: found[name] for name in ("x", "y", "history")}
        return arrays, json.loads(str(found["summary"]))


def write_result(file, arrays, summary):
    content = io.BytesIO()
    np.savez(content, **arrays, summary=np.array(json.dumps(summary)))
    file.write_bytes(content.getvalue())


def consistent(result, folder):
    """A result that was read can be shown and saved, and does not contradict itself."""
    assert repr(result)
    result.save(folder / "again.npz")
    assert min(result.certificate[:9]) >= 0.0
    if result.solved:
        assert result.certificate.distance <= result.provenance["tol"]
        assert np.isfinite(result.x).all()
        assert np.isfinite(result.y).all()


@pytest.mark.parametrize("every", [97, pytest.param(11, marks=pytest.mark.slow)])
def test_forged_results_are_refused_or_consistent(saved, every, tmp_path):
    (arrays, summary), refused, accepted = saved, 0, 0
    for other in some(changed(summary), every, 3):
        write_result(tmp_path / "r.npz", arrays, other)
        result = read(lambda: sp.load_result(tmp_path / "r.npz"))
        refused, accepted = refused + (result is None), accepted + (result is not None)
        if result is not None:
            consistent(result, tmp_path)
    for name in arrays:
        for change in ARRAYS.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = arrays | {name: change(arrays[name])}
            write_result(tmp_path / "r.npz", other, summary)
            result = read(lambda: sp.load_result(tmp_path / "r.npz"))
            if result is not None:
                consistent(result, tmp_path)
    assert refused > 5
    assert accepted > 5


@pytest.mark.parametrize("every", [101, pytest.param(11, marks=pytest.mark.slow)])
def test_forged_games_are_refused(every, tmp_path):
    game = json.loads(game_file.SEEDS[0])
    refused = 0
    for other in some(changed(game), every, 5):
        (tmp_path / "game.json").write_text(json.dumps(other))
        refused += read(lambda: read_game(tmp_path / "game.json", harness.LIMIT)) is None
    assert refused > 5


@pytest.mark.parametrize("every", [67, pytest.param(11, marks=pytest.mark.slow)])
def test_forged_problem_files_are_refused_or_solved(every, tmp_path):
    """Each key of each problem file with each word; what is read can be solved, or refutes a constant."""
    np.save(tmp_path / "A.npy", np.eye(2))
    np.savez(tmp_path / "P.npz", P=np.array([1.0, 3.0]))
    texts = [seed.decode().splitlines() for seed in problem_file.SEEDS]
    keys = [(k, i) for k, lines in enumerate(texts) for i, line in enumerate(lines) if "=" in line]
    refused = 0
    for (k, i), word in some(product(keys, WORDS), every, 7):
        lines = texts[k][:]
        lines[i] = f"{lines[i].partition('=')[0]}= {word}"
        (tmp_path / "p.toml").write_text("\n".join(lines))
        refused += read(lambda: load_and_solve(tmp_path / "p.toml")) is None
    assert refused > 5


def load_and_solve(path):
    f, settings = load_problem(path, harness.LIMIT)
    settings.pop("options", None)
    try:
        return sp.solve(f, **(settings | {"max_calls": 10, "max_seconds": 2.0}))
    except sp.AssumptionError as error:
        return error
