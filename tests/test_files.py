"""Problems from files: every format, and a one-line error for every kind of damaged file."""

import pickle

import numpy as np
import pytest
from file_bytes import Bomb, npy, npz, pickled_npy
from scipy import sparse
from scipy.io import mmwrite

import saddlepoint as sp
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array

RNG = np.random.default_rng(0)
D, A = RNG.standard_normal((12, 4)), RNG.standard_normal((4, 3))
LABELS = np.where(RNG.random(12) < 0.5, -1.0, 1.0)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "A.npy", A)
    np.savez(tmp_path / "data.npz", D=D, labels=LABELS)
    np.savez_compressed(tmp_path / "one.npz", b=np.ones(3))
    mmwrite(tmp_path / "A.mtx", sparse.coo_array(A))
    mmwrite(tmp_path / "dense.mtx", A)
    lines = [
        f"{int(s)} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for s, row in zip(LABELS, D.tolist(), strict=True)
    ]
    (tmp_path / "train.libsvm").write_text("# a comment\n" + "\n".join(lines) + "\n\n")
    return tmp_path


GOOD = """
A = "A.npy"

[g]
kind = "logistic"
D = "data.npz:D"
labels = "data.npz:labels"
l2 = 0.1

[h]
kind = "quadratic"
P = 2.0
b = "one.npz"

[solve]
method = "dippa"
options = { inner = "certified" }
tol = 1e-7
max_calls = 100000
x0 = [0.0, 0.0, 0.0, 0.0]
"""


def write(folder, text):
    (folder / "problem.toml").write_text(text)
    return folder / "problem.toml"


def test_a_complete_file_is_read(folder):
    f, settings = load_problem(write(folder, GOOD))
    assert f.shape == (4, 3)
    assert isinstance(f.g, sp.Logistic)
    assert f.mu_x == 0.1
    np.testing.assert_array_equal(f.h.b, np.ones(3))
    assert settings["method"] == "dippa"
    assert settings["options"] == {"inner": "certified"}
    assert settings["tol"] == 1e-7


@pytest.mark.parametrize("reference", ["A.npy", "A.mtx", "dense.mtx"])
def test_every_format_of_A_is_read(folder, reference):
    f, _ = load_problem(write(folder, GOOD.replace("A.npy", reference)))
    y = np.arange(3.0)
    np.testing.assert_allclose(f.A.mul(y), A @ y, rtol=1e-12)


def test_libsvm_files_are_read(folder):
    text = GOOD.replace("data.npz:D", "train.libsvm:features").replace("data.npz:labels", "train.libsvm:labels")
    f, _ = load_problem(write(folder, text))
    np.testing.assert_allclose(f.g.D.A.toarray(), D)
    np.testing.assert_array_equal(f.g.labels, LABELS)


def test_every_kind_of_function_and_their_sums_are_read(folder):
    text = """
        A = [[1.0, 0.0], [0.5, 2.0]]
        [[g]]
        kind = "least-squares"
        D = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        t = [1, 2, 3]
        l2 = 0.1
        [[g]]
        kind = "huber"
        delta = 0.5
        weight = 0.3
        [[h]]
        kind = "log-cosh"
        t = [1.0, -1.0]
        l2 = 0.5
        [[h]]
        kind = "log-sum-exp"
        tau = 0.5
        [[h]]
        kind = "quadratic"
        P = [1.0, 2.0]
        mu = 0.5
    """
    f, settings = load_problem(write(folder, text))
    x = np.array([0.3, -0.2])
    g = sp.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], 0.1) + 0.3 * sp.Huber(delta=0.5)
    np.testing.assert_allclose(f.g.grad(x), g.grad(x))
    assert f.mu_y == 1.0
    assert settings == {}
    assert sp.solve(f).solved


BAD_FILES = [
    ("A.npy", b"", "not a valid .npy file"),
    ("A.npy", b"hello world, not numpy", "not a valid .npy file"),
    ("A.npy", npy((4, 3))[:20], "not a valid .npy file"),
    ("A.npy", pickled_npy(), "holds pickled Python objects, which are never loaded"),
    ("A.npy", npy((40000, 40000)), r"of shape \(40000, 40000\) needs 11.9 GiB, above the memory limit of 4 GiB"),
    ("A.npy", npy((10**9, 10**9, 10**9)), "above the memory limit"),
    ("A.npy", npy((4, 3), data=b"\0" * 8), r"declares 96 bytes of data \(shape \(4, 3\)\) but holds 8"),
    ("A.npy", npy((1, 1), "<c16", b"\0" * 16), "dtype complex128; expected real numbers"),
    ("A.npy", npy((1, 1), "<U1", b"a\0\0\0"), "dtype <U1; expected real numbers"),
    ("A.npz", b"no zip", "not a valid .npz file"),
    ("A.npz", npz(("A.npy", npy((40000, 40000)))), "above the memory limit"),
    ("A.npz", npz(("A.npy", npy((4, 3)))), "declares 96 bytes"),
    ("A.npz", npz(("A.npy", pickled_npy())), "pickled"),
    ("A.mtx", b"nonsense", "not a valid Matrix Market file"),
    ("A.mtx", b"%%MatrixMarket matrix coordinate real general\n4 3 1000000\n1 1 1.0\n", "declares 1000000 entries"),
    ("A.mtx", b"%%MatrixMarket matrix array real general\n100000 100000\n1.0\n", "above the memory limit"),
    ("A.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1.0 2.0\n", "complex numbers"),
    ("A.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n5 5 1.0\n", "not a valid Matrix Market file"),
    ("A.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1.0\n", "not a valid Matrix Market file"),
    ("A.libsvm:features", b"1 1:2 two\n", "line 1: expected 'label index:value ...'"),
    ("A.libsvm:features", b"1 0:2\n", "line 1: an index is below 1"),
    ("A.libsvm:features", b"1 99999999999:2\n", "above the memory limit"),
    ("A.libsvm:features", b"\n", "holds no samples"),
    ("A.libsvm:widths", b"1 1:1\n", "name one as FILE:features or FILE:labels"),
    ("A.csv", b"1,2\n", "unknown ending; expected .npy, .npz, .mtx"),
    ("A.npy:part", npy((1, 1), data=b"\0" * 8), "holds one array; drop ':part'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "sentence"), BAD_FILES, ids=[f"{n}: {s}" for n, _, s in BAD_FILES])
def test_bad_array_files_are_refused_in_a_sentence(folder, name, content, sentence, capsys):
    path = folder / name.partition(":")[0]
    path.write_bytes(content)
    with pytest.raises(sp.ProblemError, match=sentence) as caught:
        load_problem(write(folder, GOOD.replace("A.npy", name)))
    message = str(caught.value)
    assert str(path) in message
    assert "key 'A'" in message
    assert "\n" not in message
    assert "a pickle ran" not in capsys.readouterr().out


BAD_TEXTS = [
    ("", "key 'A' is missing; expected the matrix"),
    ("A = [1", "not valid TOML"),
    ("\x00", "not valid TOML"),
    ('A = "A.npy"\n[g]\nkind = "quadratic"\nP = 1.0', "key 'h' is missing; expected a table"),
    (GOOD + "[extra]\n", "key 'extra' is unknown; expected A, g, h, solve"),
    (GOOD.replace("l2 = 0.1", "l2 = 0.1\nl1 = 0.1"), "key 'g.l1' is unknown; expected kind, weight, simple"),
    (GOOD.replace("logistic", "logistik"), "key 'g.kind' is 'logistik'; expected one of quadratic, least-squares"),
    (GOOD.replace('kind = "logistic"', ""), "key 'g.kind' is missing; expected one of quadratic"),
    (GOOD.replace('labels = "data.npz:labels"', ""), "key 'g.labels' is missing; logistic needs it"),
    (GOOD.replace("l2 = 0.1", 'l2 = "much"'), "key 'g.l2' is 'much'; expected a number"),
    (GOOD.replace("l2 = 0.1", "l2 = -0.1"), "key 'g': l2 of Logistic is -0.1"),
    (GOOD.replace("l2 = 0.1", "l2 = nan"), "l2 of Logistic is nan"),
    (GOOD.replace("P = 2.0", 'P = "gone.npy"'), "key 'h.P': file .*gone.npy does not exist"),
    (GOOD.replace("P = 2.0", "P = true"), "key 'h.P' is true; expected a file name or numbers"),
    (GOOD.replace("P = 2.0", "P = [[1.0, 2.0], [3.0]]"), "key 'h.P' has rows of 2 and 1 numbers; expected rows"),
    (GOOD.replace("P = 2.0", 'P = ["a", "b"]'), "key 'h.P' has 'a' as entry 1; expected numbers"),
    (GOOD.replace("P = 2.0", "P = [1.0, [2.0]]"), "key 'h.P' has 1.0 as row 1; expected a list of numbers"),
    (GOOD.replace("P = 2.0", "P = [[1.0, true]]"), "key 'h.P' has true as entry of row 1, 2; expected numbers"),
    (GOOD.replace("P = 2.0", "P = 1979-05-27"), "key 'h.P' is 1979-05-27; expected a file name or numbers"),
    (GOOD.replace("P = 2.0", "P = [1.0, nan, 1.0]"), "P of Quadratic has a nan at index 1"),
    (GOOD.replace("P = 2.0", "P = 2.0\nweight = 0"), "key 'h': a function can only be multiplied by a positive number"),
    (GOOD.replace('b = "one.npz"', "b = [1.0, 2.0]"), "h has 2 variables but A has 3 columns"),
    (GOOD.replace("data.npz:D", "data.npz:E"), "has no array 'E'; it has D, labels"),
    (GOOD.replace("data.npz:D", "data.npz"), "holds several arrays; name one as FILE:NAME; it has D, labels"),
    (GOOD.replace("A.npy", "."), "expected blocks of .npy, .parquet or .mtx alone"),
    (GOOD.replace("data.npz:D", "."), "is not a file"),
    (GOOD.replace("[g]", "[[f]]\n[g]"), "key 'f' is unknown"),
    ("A = 3\ng = 1\nh = 2\n", "key 'g' is 1; expected a table"),
    (GOOD.replace("[solve]", "[solve]\nspeed = 3"), "key 'solve.speed' is unknown"),
    (GOOD.replace('method = "dippa"', "method = 3"), "key 'solve.method' is 3; expected a method's name"),
    (GOOD.replace("x0 = [0.0, 0.0, 0.0, 0.0]", 'x0 = "none.npy"'), "key 'solve.x0': file"),
    (GOOD.partition("[solve]")[0].replace("\nA =", "\nsolve = 3\nA ="), "key 'solve' is 3; expected a table"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD_TEXTS, ids=[s for _, s in BAD_TEXTS])
def test_bad_problem_files_are_refused_in_a_sentence(folder, text, sentence):
    path = write(folder, text)
    with pytest.raises(sp.ProblemError, match=sentence) as caught:
        load_problem(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_binary_and_unreadable_problem_files_are_refused(tmp_path):
    with pytest.raises(sp.ProblemError, match="does not exist"):
        load_problem(tmp_path / "gone.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(sp.ProblemError, match="not a text file"):
        load_problem(tmp_path / "binary.toml")
    with pytest.raises(sp.ProblemError, match="is not a file"):
        load_problem(tmp_path)


def test_the_memory_limit_can_be_set(folder):
    with pytest.raises(sp.ProblemError, match="above the memory limit"):
        load_problem(write(folder, GOOD), memory_limit=50)
    np.testing.assert_array_equal(read_array("A.npy", folder, 96), A)


def test_nothing_is_unpickled(tmp_path):
    (tmp_path / "evil.npy").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(sp.ProblemError, match=r"not a valid \.npy file"):
        read_array("evil.npy", tmp_path)
