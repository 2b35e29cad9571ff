"""Invalid input: one sentence says what was given, what was expected and what to do.

The tables below contain (name, what is given, the message). Unusual input that must work comes after them.
"""

# ruff: noqa: E501 - the tables have one line for an input

import contextlib
import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from file_bytes import Bomb, npy, npy_of, npz, pickled_npy
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddlepoint as sp
from saddlepoint.apps import ExtensiveGame
from saddlepoint.commands import app as commands
from saddlepoint.commands import run as cli
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array
from saddlepoint.problems.generators import chain, random_quadratic

A = np.array([[1.0, 2.0], [0.0, 1.0]])
HUGE = 10**400
NAN, INF = float("nan"), float("inf")


def matrix(rows):
    """NumPy's own matrix, which it does not recommend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(rows)


def problem():
    return sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0), A)


def saddle(A):
    return sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0), A)


def solve(*start, **options):
    return sp.solve(problem(), *start, **options)


def smooth(grad=lambda x: 1.0 * x, mu=1.0, L=1.0, **more):
    return sp.Smooth(grad, mu=mu, L=L, **more)


def with_gradient(grad, L=1.0):
    return sp.solve(sp.Saddle(sp.Smooth(grad, mu=1.0, L=L), sp.Quadratic(2.0), A))


class Odd:
    """An object with the methods of an array and of a number, which all raise an error."""

    shape = (2, 2)
    T = None

    def __array__(self, *_, **__):
        raise RuntimeError("not today")

    def __float__(self):
        raise RuntimeError("not today")

    def __repr__(self):
        raise RuntimeError("not today")


class Product:
    """An operator of a given shape that is its own transpose and whose products are all the same."""

    def __init__(self, shape, result):
        self.shape, self.result = shape, result

    @property
    def T(self):
        return self

    def __matmul__(self, other):
        return self.result


endless = []
endless.append(endless)
beyond = sparse.csr_array(A)
beyond.indices = np.array([0, 1, 7], dtype=beyond.indices.dtype)
STRUCTURED = np.zeros((2, 2), dtype=[("a", "f8")])

API = [
    # -- A: dtypes, shapes, entries
    ("A of objects", lambda: saddle(np.array([[1, None], [2, 3]], dtype=object)), "A has dtype object and holds None; expected real numbers"),
    ("A complex", lambda: saddle(A + 1j), "A has dtype complex128; expected real numbers"),
    ("A of texts", lambda: saddle([["a", "b"], ["c", "d"]]), "A has dtype <U1; expected real numbers"),
    ("A of numbers as texts", lambda: saddle([["1", "2"], ["3", "4"]]), "A has dtype <U1; expected real numbers"),
    ("A structured", lambda: saddle(STRUCTURED), r"A has dtype \[\('a', '<f8'\)\]; expected real numbers"),
    ("A of dates", lambda: saddle(np.ones((2, 2), dtype="M8[D]")), r"A has dtype datetime64\[D\]"),
    ("A of raw bytes", lambda: saddle(np.zeros((2, 2), dtype="V8")), r"A has dtype \|V8"),
    ("A with NaN", lambda: saddle([[NAN, 1.0], [1.0, 1.0]]), r"A has a nan at index \(0, 0\); all entries must be finite"),
    ("A with infinity", lambda: saddle([[1.0, 1.0], [1.0, -INF]]), r"A has a -inf at index \(1, 1\)"),
    ("A beyond float64", lambda: saddle(np.full((2, 2), np.longdouble("1e400"))), "A has a inf at index"),
    ("A of integers that are rounded", lambda: saddle([[2**53 + 1, 1], [1, 1]]), r"the integer 9007199254740993, which float64 rounds to 9007199254740992; .* up to 2\*\*53"),
    ("A of huge integers", lambda: saddle([[HUGE, 1], [1, 1]]), "A holds an integer of 1329 bits, which no array can"),
    ("A empty", lambda: saddle(np.zeros((0, 2))), r"A has shape \(0, 2\); expected a matrix with at least one row"),
    ("A 0-dimensional", lambda: saddle(np.array(3.0)), r"A has shape \(\); expected a matrix"),
    ("A a number", lambda: saddle(3.0), r"A has shape \(\); expected a matrix"),
    ("A a vector", lambda: saddle(np.ones(2)), r"A has shape \(2,\); expected a matrix"),
    ("A of three dimensions", lambda: saddle(np.ones((2, 2, 2))), r"A has shape \(2, 2, 2\); expected a matrix"),
    ("A ragged", lambda: saddle([[1.0, 2.0], [3.0]]), "A is not an array of numbers: setting an array element"),
    ("A that contains itself", lambda: saddle(endless), "A is not an array of numbers"),
    ("A masked", lambda: saddle(np.ma.masked_array(A, mask=[[1, 0], [0, 0]])), "A has masked entries; expected a number in every entry: fill them first"),
    ("A None", lambda: saddle(None), "A has dtype object and holds None"),
    ("A a text", lambda: saddle("A.npy"), "A has dtype <U5; expected real numbers"),
    ("A a dict", lambda: saddle({}), "A has dtype object and holds {}"),
    ("A a function", lambda: saddle(len), "A has dtype object and holds <built-in function len>"),
    ("A a class", lambda: saddle(np.ndarray), "A has dtype object and holds <class 'numpy.ndarray'>"),
    ("A odd", lambda: saddle(Odd()), "A is not an array of numbers: not today"),
    ("A sparse, complex", lambda: saddle(sparse.csr_array(A + 1j)), "the data of A has dtype complex128"),
    ("A sparse with NaN", lambda: saddle(sparse.csr_array([[NAN, 1.0], [0.0, 1.0]])), "the data of A has a nan at index 0"),
    ("A sparse without rows", lambda: saddle(sparse.csr_array((0, 2))), r"A has shape \(0, 2\); expected a matrix"),
    ("A sparse, a vector", lambda: saddle(sparse.coo_array(np.ones(2))), r"A has shape \(2,\); expected a matrix"),
    ("A sparse, damaged", lambda: saddle(beyond), "A is a damaged sparse array: .*; expected indices within its shape"),
    ("operator without transpose", lambda: saddle(LinearOperator((2, 2), matvec=lambda v: v, dtype=float)), "A has no product with its transpose; give the LinearOperator an rmatvec"),
    ("operator, complex", lambda: saddle(aslinearoperator(A + 1j)), "A @ y is not a vector of finite real numbers"),
    ("operator with NaN", lambda: saddle(LinearOperator((2, 2), matvec=lambda v: v * NAN, rmatvec=lambda v: v, dtype=float)), "A @ y is not a vector of finite"),
    ("operator that raises", lambda: saddle(LinearOperator((2, 2), matvec=lambda v: 1 / 0, rmatvec=lambda v: v, dtype=float)), r"a product with A fails \(ZeroDivisionError: division by zero\); expected A @ y of 2 and A.T @ x of 2 numbers"),
    ("operator of no shape", lambda: saddle(Product(5, A)), "A has shape 5; expected a matrix"),
    ("operator of odd shape", lambda: saddle(Product((2.5, 2), A)), r"A has shape \(2.5, 2\); expected a matrix"),
    ("operator of wrong products", lambda: saddle(Product((2, 2), np.ones(3))), r"A @ y has shape \(3,\); expected \(2,\), since A is 2 x 2"),
    # -- functions
    ("g missing", lambda: sp.Saddle(None, sp.Quadratic(1.0), A), "g is a NoneType; expected a Smooth, such as Quadratic"),
    ("g a function of Python", lambda: sp.Saddle(lambda x: x, sp.Quadratic(1.0), A), "g is a function; expected a Smooth"),
    ("dimensions differ", lambda: sp.Saddle(sp.Quadratic([1.0] * 3), sp.Quadratic(1.0), A), "g has 3 variables but A has 2 rows"),
    ("P negative", lambda: sp.Quadratic(-1.0), "P of Quadratic is -1; expected a finite number that is not negative"),
    ("P NaN", lambda: sp.Quadratic(NAN), "P of Quadratic is nan; expected a finite number"),
    ("P complex", lambda: sp.Quadratic(1j), "P of Quadratic has dtype complex128; expected real numbers"),
    ("P a complex scalar", lambda: sp.Quadratic(np.complex128(1j)), "P of Quadratic is .*1j.*; expected a number"),
    ("P not square", lambda: sp.Quadratic(np.ones((2, 3))), r"P of Quadratic has shape \(2, 3\); expected a square matrix"),
    ("P not symmetric", lambda: sp.Quadratic(A), r"P of Quadratic is not symmetric .*; use \(P \+ P.T\)/2"),
    ("P indefinite", lambda: sp.Quadratic([[0.0, 1.0], [1.0, 0.0]]), "P is not positive semidefinite: its smallest eigenvalue is at most -1"),
    ("P an empty diagonal", lambda: sp.Quadratic([]), "P of Quadratic is an empty diagonal or has a negative entry"),
    ("b a matrix", lambda: sp.Quadratic(1.0, matrix([[1.0, 2.0]])), r"b of Quadratic has shape \(1, 2\); expected a vector"),
    ("b of another size", lambda: sp.Quadratic([1.0, 2.0], [1.0]), "b of Quadratic has 1 entries; expected 2"),
    ("b empty", lambda: sp.Quadratic(1.0, []), "b of Quadratic is empty; expected one entry at least"),
    ("mu of Quadratic a text", lambda: sp.Quadratic([1.0, 2.0], mu="1"), "mu of Quadratic is '1'; expected a number"),
    ("L below mu", lambda: smooth(mu=2.0, L=1.0), "L = 1 of Smooth is below mu = 2; expected mu <= L"),
    ("mu negative", lambda: smooth(mu=-1.0), "mu of Smooth is -1; expected a finite number that is not negative, or None"),
    ("mu NaN", lambda: smooth(mu=NAN), "mu of Smooth is nan; expected a finite number that is not negative, or None if it is unknown"),
    ("L NaN", lambda: smooth(L=NAN), "L of Smooth is nan; expected a finite number"),
    ("L infinite", lambda: smooth(L=INF), "L of Smooth is inf; expected a finite number"),
    ("L huge", lambda: smooth(L=HUGE), "L of Smooth is 1000.*; expected a number"),
    ("L of many digits", lambda: smooth(L=10**5000), "L of Smooth is a int; expected a number"),
    ("mu an array", lambda: smooth(mu=np.ones(2)), r"mu of Smooth is array\(\[1., 1.\]\); expected a number"),
    ("mu a boolean", lambda: smooth(mu=True), "mu of Smooth is True; expected a number"),
    ("mu odd", lambda: smooth(mu=Odd()), "mu of Smooth is a Odd; expected a number"),
    ("no gradient", lambda: smooth(grad=3.0), "grad of Smooth is 3.0; expected a function"),
    ("dim a fraction", lambda: smooth(dim=1.5), "dim of Smooth is 1.5; expected a whole number"),
    ("dtype unknown", lambda: smooth(dtype="float63"), "dtype of Smooth is 'float63'; expected float32 or float64"),
    ("dtype of integers", lambda: smooth(dtype=np.int8), "dtype of Smooth is .*int8.*; expected float32 or float64"),
    ("a negative factor", lambda: -2.0 * sp.Quadratic(1.0), "the factor of a function is -2; expected a finite number"),
    ("a factor of nothing", lambda: 0 * sp.Quadratic(1.0), "a function can only be multiplied by a positive number; got 0"),
    ("a sum of two sizes", lambda: sp.Quadratic([1.0]) + sp.Quadratic([1.0, 2.0]), "cannot add a function of 1 variables and one of 2"),
    ("D missing", lambda: sp.Logistic(None, [1.0]), "Logistic needs data D, one row a sample"),
    ("D too large", lambda: sp.Huber(np.full((2, 2), 1e300), l2=1.0), "the entries of D are so large that D'D overflows; scale D"),
    ("labels 0 and 1", lambda: sp.Logistic(A, [0, 1]), r"labels of Logistic hold 0; expected \+1 and -1 \(2 \* label - 1"),
    ("labels too few", lambda: sp.Logistic(A, [1]), "labels of Logistic has 1 entries; expected 2"),
    ("labels huge", lambda: sp.Logistic(A, [1, 2**70]), "labels of Logistic holds an integer of 71 bits"),
    ("labels of the least integer", lambda: sp.Logistic(A, np.array([1, -(2**63)])), r"labels of Logistic hold -9.22337e\+18; expected"),
    ("labels NaN", lambda: sp.SmoothedHinge(A, [1.0, NAN]), "labels of SmoothedHinge has a nan at index 1"),
    ("l2 negative", lambda: sp.Logistic(A, [1, -1], -0.1), "l2 of Logistic is -0.1; expected a finite number"),
    ("delta 0", lambda: sp.Huber(delta=0), "delta of Huber is 0; expected a positive number"),
    ("tau 0", lambda: sp.LogSumExp(tau=0.0), "tau of LogSumExp is 0; expected a positive number"),
    ("t infinite", lambda: sp.LeastSquares(A, [INF, 0.0]), "t of LeastSquares has a inf at index 0"),
    ("low above high", lambda: sp.Entropy(2.0, 1.0), "low = 2 and high = 1 of Entropy; expected 0 < low < high"),
    ("groups empty", lambda: sp.GroupHuber([]), "groups of GroupHuber is empty"),
    ("not strongly convex", lambda: sp.solve(sp.Saddle(sp.Huber(), sp.Quadratic(1.0), np.ones((2, 2)))), r"g is not strongly convex \(mu = 0\).*; give its mu"),
    ("not bounded", lambda: sp.solve(sp.Saddle(sp.Huber(), sp.Quadratic(1.0), A), gap=1e-3), r"g is not strongly convex \(mu = 0\) and its variables are not bounded"),
    # -- solve
    ("f no problem", lambda: sp.solve(A), r"f is a ndarray; expected a Saddle\(g, h, A\)"),
    ("x0 of another size", lambda: solve([1.0]), "x0 has 1 entries; expected 2"),
    ("x0 with NaN", lambda: solve([1.0, NAN]), "x0 has a nan at index 1; all entries must be finite"),
    ("x0 of objects", lambda: solve([None, 1.0]), "x0 has dtype object and holds None"),
    ("x0 a matrix", lambda: solve(A), r"x0 has shape \(2, 2\); expected a vector"),
    ("y0 complex", lambda: solve(None, [1j, 0.0]), "y0 has dtype complex128; expected real numbers"),
    ("y0 masked", lambda: solve(None, np.ma.masked_array([1.0, 2.0], mask=[0, 1])), "y0 has masked entries"),
    ("tol 0", lambda: solve(tol=0), "tol is 0.0; expected a positive number"),
    ("tol NaN", lambda: solve(tol=NAN), "tol is nan; expected a positive number"),
    ("tol infinite", lambda: solve(tol=INF), "tol is inf; expected a positive number"),
    ("tol a text", lambda: solve(tol="small"), "tol is 'small'; expected a positive number"),
    ("tol huge", lambda: solve(tol=HUGE), "tol is 1000.*; expected a positive number"),
    ("max_seconds negative", lambda: solve(max_seconds=-1), "max_seconds is -1.0; expected a positive number"),
    ("max_calls a fraction", lambda: solve(max_calls=1.5), "max_calls is 1.5; expected a whole number >= 0"),
    ("max_calls NaN", lambda: solve(max_calls=NAN), "max_calls is nan; expected a whole number >= 0"),
    ("max_calls of an unknown oracle", lambda: solve(max_calls={"B": 3}), "max_calls names the oracle 'B'; expected one of grad_g"),
    ("costs no dict", lambda: solve(costs=3), "costs is 3; expected a dict by oracle"),
    ("costs infinite", lambda: solve(costs={"A": INF}), "costs of A is inf; expected a positive number"),
    ("costs of an unknown oracle", lambda: solve(costs={"B": 1.0}), "costs names the oracle 'B'; expected one of A, At"),
    ("method unknown", lambda: solve(method="dipa"), "unknown method 'dipa'; the known ones are auto, .*; did you mean 'dippa'?"),
    ("method a class", lambda: solve(method=sp.DIPPA), r"method is the class DIPPA; give an object, DIPPA\(\)"),
    ("method a list", lambda: solve(method=["dippa"]), r"method is \['dippa'\]; expected a name or a Method object"),
    ("option of a method", lambda: sp.make_method("extragradient", eta=-1.0), "eta of extragradient is -1.0; expected a number from 1e-100 to 1e\\+100"),
    ("option 0", lambda: sp.PDHG(weight=0.0), "weight of pdhg is 0.0; expected a number from 1e-100 to"),
    ("option infinite", lambda: sp.AdaPDM(ratio=INF), "ratio of adapdm is inf; expected a number from"),
    ("option of very many digits", lambda: sp.Anderson("dippa", window=HUGE), "window of anderson is 1000.*; expected a whole number from 1 to"),
    ("option NaN", lambda: sp.make_method("extragradient", eta=NAN), "eta of extragradient is nan; expected a number"),
    ("callback no function", lambda: solve(callback=3), "callback is 3; expected a function of a Result"),
    ("storage unknown", lambda: solve(storage="float8"), "storage is 'float8'; expected float32 or bfloat16"),
    ("gradient None", lambda: with_gradient(lambda x: None), r"the gradient of g returned a NoneType for a point of shape \(2,\)"),
    ("gradient of another shape", lambda: with_gradient(lambda x: np.ones(3)), r"returned an array of shape \(3,\) for a point of shape \(2,\); expected an array of the same shape"),
    ("gradient None, L unknown", lambda: with_gradient(lambda x: None, L=None), r"the gradient of g returned None for a point of shape \(2,\)"),
    ("gradient complex", lambda: with_gradient(lambda x: x + 0j), "the gradient of g has dtype complex128; expected float32 or float64"),
    ("gradient NaN", lambda: with_gradient(lambda x: x * NAN), "the gradient of g is not finite at the start"),
    ("point of a certificate", lambda: problem().certificate([1.0, 2.0, 3.0], np.zeros(2)), "x has 3 entries; expected 2"),
    ("tol of a certificate", lambda: problem().certificate(np.ones(2), np.zeros(2), "small"), "tol is 'small'; expected a number"),
    ("gap of a certificate", lambda: problem().certificate(np.ones(2), np.zeros(2), gap=[1.0]), r"gap is \[1.0\]; expected a number"),
    ("trusted a text", lambda: smooth(trusted="no"), "trusted of Smooth is 'no'; expected True or False"),
    ("separable a number", lambda: sp.Simple(lambda v, t: v, separable=1), "separable of Simple is 1; expected True or False"),
    ("real_columns a text", lambda: sp.real_view(A, real_columns="no"), "real_columns is 'no'; expected True or False"),
    ("least no count", lambda: sp.as_coupling(A, least="all"), "least is 'all'; expected a whole number from 0"),
    ("costs of many no dict", lambda: sp.solve_many([problem(), problem()], costs=3), "costs is 3; expected a dict by oracle"),
    ("method of many unknown", lambda: sp.solve_many([problem(), problem()], method=["dippa"]), r"method is \['dippa'\]; expected a name"),
    ("time of many no number", lambda: sp.solve_many([problem(), problem()], max_seconds="long"), "max_seconds is 'long'; expected a positive number"),
    ("no value", lambda: smooth()(np.ones(2)), "this Smooth was given no value; pass value= to have one"),
    # -- predictions and generators
    ("predict nothing", lambda: sp.predict(A), r"f is array\(.*\); expected a Saddle\(g, h, A\), or kx, ky and coupling"),
    ("predict a problem and a number", lambda: sp.predict(problem(), kx=3.0), "both f and kx are given; expected a problem, or its three numbers"),
    ("predict a mapping and a number", lambda: sp.predict({"kx": 1.0}, coupling=3.0), "both f and coupling are given"),
    ("predict unknown numbers", lambda: sp.predict({"k": 1.0}), "f has the key 'k'; expected kx, ky, coupling"),
    ("kx a text", lambda: sp.predict(kx="large", ky=1, coupling=1), "kx is 'large'; expected a number"),
    ("no variables", lambda: random_quadratic(0, 3, 10, 10, 1), "m is 0; expected a whole number from 1 to"),
    ("half a variable", lambda: chain(2.5, 10, 10, 1), "n is 2.5; expected a whole number from 1 to"),
    ("kx below 1", lambda: random_quadratic(3, 3, 0.5, 10, 1), "kx is 0.5; expected a number >= 1, because L is not below mu"),
    ("coupling NaN", lambda: chain(4, 10, 10, NAN), "coupling is nan; expected a finite number that is not negative"),
    ("seed negative", lambda: random_quadratic(3, 3, 10, 10, 1, seed=-1), "seed is -1; expected a whole number from 0 to"),
    # -- paths
    ("path a number", lambda: load_problem(3), "the path of a file is 3; expected a text or a Path"),
    ("path with NUL", lambda: load_problem("a\0b"), "is not a valid file name: .*embedded null"),
    ("path too long", lambda: load_problem("a" * 5000), "cannot be read: File name too long"),
    ("memory limit negative", lambda: load_problem("p.toml", -1), "memory_limit is -1; expected a positive number of bytes"),
    ("memory limit a text", lambda: load_problem("p.toml", "4GB"), "memory_limit is '4GB'; expected a number of bytes"),
    ("no game", lambda: ExtensiveGame.load(None), "the path of a file is None; expected a text or a Path"),
    ("result a number", lambda: sp.load_result(3), "the path of a result is 3; expected a file name"),
]  # fmt: skip


@pytest.mark.parametrize(("give", "sentence"), [row[1:] for row in API], ids=[row[0] for row in API])
def test_the_library_refuses(give, sentence):
    with pytest.raises(sp.ProblemError, match=sentence) as refused:
        give()
    assert "\n" not in str(refused.value)


# -- files --------------------------------------------------------------------------------------------------------------


def damaged(content, *changes):
    changed = bytearray(content)
    for where, byte in changes:
        changed[where] ^= byte
    return bytes(changed)


NUMBERS = np.arange(4.0).reshape(2, 2).tobytes()
MATRIX = b"%%MatrixMarket matrix coordinate real general\n"

ARRAYS = [
    ("petabytes", "A.npy", npy((10**8, 10**8)), r"of shape \(100000000, 100000000\) needs 7.45e\+07 GiB, above the memory limit of 16 MiB"),
    ("more than all numbers", "A.npy", npy((2**62, 2**62, 2**62)), "above the memory limit"),
    ("integers that grow to floats", "A.npy", npy((1 << 12, 1 << 9), "|i1", bytes(1 << 21)), "needs 18 MiB, above the memory limit of 16 MiB"),
    ("a negative shape", "A.npy", npy((-2, 2), data=NUMBERS), "declares -32 bytes of data"),
    ("a shape that is none", "A.npy", npy("wide"), "not a valid .npy file"),
    ("too many dimensions", "A.npy", npy((1,) * 70, data=b"\0" * 8), "not a valid .npy file"),
    ("too few numbers", "A.npy", npy((2, 2), data=NUMBERS[:-1]), r"declares 32 bytes of data \(shape \(2, 2\)\) but holds 31"),
    ("too many numbers", "A.npy", npy((2, 2), data=NUMBERS + b"!"), "declares 32 bytes .* but holds 33"),
    ("a header of code", "A.npy", npy_of(b"__import__('os').abort()"), "not a valid .npy file"),
    ("a header without end", "A.npy", npy_of(b"{'descr': (((((((((" + b"(" * 5000), "not a valid .npy file"),
    ("a header of gigabytes", "A.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{}", "damaged: it declares 2147483648 bytes"),
    ("a dtype that is none", "A.npy", npy((2,), "<q9"), "not a valid .npy file"),
    ("a later version", "A.npy", b"\x93NUMPY\x09\x00" + npy((2, 2))[8:], "not a valid .npy file: .*9, 0"),
    ("objects", "A.npy", pickled_npy(), "holds pickled Python objects, which are never loaded; save plain numbers"),
    ("a bare pickle", "A.npy", pickle.dumps(Bomb()), "not a valid .npy file"),
    ("complex numbers", "A.npy", npy((1, 1), "<c16", b"\0" * 16), "has dtype complex128; expected real numbers"),
    ("records", "A.npy", npy((1,), [("a", "<f8")], b"\0" * 8), "expected real numbers"),
    ("times", "A.npy", npy((1, 1), "<M8[s]", b"\0" * 8), "expected real numbers"),
    ("an array of no dimension", "A.npy", npy((), data=b"\0" * 8), r"A has shape \(\); expected a matrix"),
    ("NaN in a file", "A.npy", npy((1, 1), data=struct.pack("<d", NAN)), r"A has a nan at index \(0, 0\)"),
    ("a bomb", "A.npz", npz(("A.npy", npy((1 << 12, 1 << 12), data=bytes(1 << 27)))), "needs 128 MiB, above the memory limit"),
    ("a bomb with a wrong size", "A.npz", npz(("A.npy", npy((2, 2), data=bytes(1 << 24)))), "declares 32 bytes of data .* but holds 16777216"),
    ("objects in an archive", "A.npz", npz(("A.npy", pickled_npy())), "holds pickled Python objects"),
    ("no archive", "A.npz", b"PK\x03\x04 and so on", "not a valid .npz file"),
    ("half an archive", "A.npz", npz(("A.npy", npy((2, 2), data=NUMBERS)))[:90], "not a valid .npz file"),
    ("a flipped bit", "A.npz", damaged(npz(("A.npy", npy((2, 2), data=NUMBERS)), method=zipfile.ZIP_STORED), (180, 1)), "Bad CRC-32 for file 'A.npy'"),
    ("an archive of LZMA", "A.npz", npz(("A.npy", npy((2, 2), data=NUMBERS)), method=zipfile.ZIP_LZMA), "compressed in a way that NumPy does not write"),
    ("an archive of nothing", "A.npz", npz(), "holds several arrays; name one as FILE:NAME; it has none"),
    ("an unknown member", "A.npz:AA", npz(("A.npy", b""), ("B.npy", b"")), "has no array 'AA'; it has A, B; did you mean 'A'?"),
    ("a member that climbs", "A.npz", npz(("../../etc/A.npy", b"no array")), "not a valid .npy file"),
    ("Matrix Market of 1e12 rows", "A.mtx", MATRIX + b"1000000000000 2 1\n1 1 1.0\n", r"of shape \(1000000000000, 2\) with 1 entries needs 1.49e\+04 GiB, above"),
    ("Matrix Market of 1e30 rows", "A.mtx", MATRIX + b"1" + b"0" * 30 + b" 2 1\n1 1 1.0\n", "not a valid Matrix Market file"),
    ("Matrix Market with too many entries", "A.mtx", MATRIX + b"9 9 80\n1 1 1.0\n", "declares 80 entries, more than its"),
    ("Matrix Market of negative size", "A.mtx", MATRIX + b"-2 2 1\n1 1 1.0\n", "its sizes are '-2 2 1'; expected rows, columns and entries"),
    ("Matrix Market beyond its shape", "A.mtx", MATRIX + b"2 2 1\n3 1 1.0\n", "an entry after entry 0 has no place within 2 x 2; expected 'row column value'"),
    ("Matrix Market at half a place", "A.mtx", MATRIX + b"2 2 1\n1.5 1 1.0\n", "has no place within 2 x 2"),
    ("Matrix Market without numbers", "A.mtx", MATRIX + b"2 2 1\n", "declares 1 entries of 3 numbers, and holds others than these"),
    ("Matrix Market with more numbers", "A.mtx", MATRIX + b"2 2 1\n1 1 1.0\n2 2 1.0\n", "declares 1 entries of 3 numbers, and holds others"),
    ("Matrix Market without sizes", "A.mtx", MATRIX, "it ends, or has a very long line, before its numbers"),
    ("Matrix Market with a word", "A.mtx", MATRIX + b"2 2 1\n1 one 1.0\n", "something else than a number after entry 0"),
    ("Matrix Market with a zero byte", "A.mtx", MATRIX.replace(b"coordinate", b"array") + b"2 2\n1\n2\n3\0\n4\n", "it has a zero byte after entry 0; expected a text"),
    ("Matrix Market of a symmetric rectangle", "A.mtx", MATRIX.replace(b"general", b"symmetric") + b"2 3 1\n1 1 1.0\n", "it is symmetric and 2 x 3; expected a square matrix"),
    ("Matrix Market of words", "A.mtx", b"%%MatrixMarket matrix heap real general\n", "it has the word 'heap'; expected one of coordinate, array"),
    ("Matrix Market in UTF-16", "A.mtx", MATRIX.decode().encode("utf-16"), "expected '%%MatrixMarket matrix' and three words more"),
    ("Matrix Market with NaN", "A.mtx", MATRIX + b"2 2 1\n1 1 nan\n", "the data of A has a nan"),
    ("LIBSVM with index 1e18", "A.svm:features", b"1 1000000000000000000:1\n", r"with 1000000000000000000 features needs 7.45e\+09 GiB, above the memory limit"),
    ("LIBSVM with index 1e30", "A.svm:features", b"1 1" + b"0" * 30 + b":1\n", "line 1: expected 'label index:value ...'"),
    ("LIBSVM with index 0", "A.svm:features", b"1 1:1\n1 0:1\n", "line 2: an index is below 1"),
    ("LIBSVM with an index twice", "A.svm:features", b"1 3:1 3:2\n", "line 1: an index appears twice; expected distinct ones"),
    ("LIBSVM of binary", "A.svm:features", b"\xff\xfe\x00\x01\x02", "line 1: expected 'label index:value ...'"),
    ("LIBSVM in UTF-16", "A.svm:features", "1 1:1\n".encode("utf-16"), "line 1: expected 'label index:value ...'"),
    ("LIBSVM of one long line", "A.svm:features", b"1 " + b"1:1 " * (1 << 18), "line 1: this needs more than what is left of the memory limit; raise it"),
    ("LIBSVM with an infinite value", "A.svm:features", b"1 1:inf\n", "the data of A has a inf"),
]  # fmt: skip


def document(A='"A.npy"', extra=""):
    return f'A = {A}\ng = {{kind = "quadratic", P = 1}}\nh = {{kind = "quadratic", P = 2}}\n{extra}'


def write(folder, text):
    path = folder / "problem.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(("name", "content", "sentence"), [row[1:] for row in ARRAYS], ids=[row[0] for row in ARRAYS])
def test_array_files_are_refused(tmp_path, monkeypatch, name, content, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name.partition(":")[0]).write_bytes(content)
    with pytest.raises(sp.ProblemError, match=sentence) as refused:
        load_problem(write(tmp_path, document(f'"{name}"')), 1 << 24)
    assert "\n" not in str(refused.value)
    assert "problem.toml" in str(refused.value)
    assert not Path("the-pickle-ran").exists()


G = 'A = [[1, 2], [0, 1]]\nh = {kind = "quadratic", P = 2}\n[g]\n'
FULL = document("[[1, 2], [0, 1]]", "[solve]\n")

TEXTS = [
    ("nothing", "", "key 'A' is missing"),
    ("no TOML", "A == 3", r"is not valid TOML: .* \(at line 1, column 4\)"),
    ("a key twice", "A = 1\nA = 2\n", "is not valid TOML: Cannot overwrite a value"),
    ("a table twice", G + "[g]\n", "is not valid TOML: Cannot declare"),
    ("NUL", "A = 1\0", "is not valid TOML"),
    ("UTF-16", FULL.encode("utf-16"), "is not a text file in UTF-8, as is expected, but in UTF-16; save it again as UTF-8"),
    ("Latin-1", "A = 'é'".encode("latin-1"), r"is not a text file \(UTF-8 is expected; byte 5 is not\)"),
    ("lists in lists", "A = " + "[" * 100_000, "is nested too deeply for a problem"),
    ("tables in tables", "A = " + "{a = " * 100_000, "is nested too deeply for a problem"),
    ("a key of 100000 parts", "a" + ".a" * 100_000 + " = 1", "is nested too deeply for a problem"),
    ("a table of 100000 parts", "[a" + ".a" * 100_000 + "]", "is nested too deeply for a problem"),
    ("an integer of 5000 digits", "A = " + "9" * 5000, "is not valid TOML: Exceeds the limit"),
    ("an integer of 400 digits", FULL + "tol = " + "9" * 400, "key 'solve.tol' is 99999.*; expected a number"),
    ("a date for A", document("2026-01-01"), r"key 'A' is 2026-01-01; expected a file name or numbers"),
    ("a table for A", document("{a = 1}"), r"key 'A.a' is unknown; expected stream, norm"),
    ("truth for A", document("true"), "key 'A' is true; expected a file name or numbers"),
    ("texts for A", document('["a", "b"]'), "key 'A' has 'a' as entry 1; expected numbers"),
    ("nothing for A", document("[]"), r"A has shape \(0,\); expected a matrix"),
    ("nothing in nothing for A", document("[[], []]"), r"A has shape \(2, 0\); expected a matrix"),
    ("a huge integer in A", document(f"[[{HUGE}]]"), "A holds an integer of 1329 bits"),
    ("infinity in A", document("[[inf]]"), "A has a inf at index"),
    ("an unknown key", FULL.replace("g =", "gg = 1\ng ="), "key 'gg' is unknown; expected A, g, h, solve; did you mean 'g'?"),
    ("an unknown key of g", G + 'kind = "logistic"\nlables = [1]', "key 'g.lables' is unknown; expected kind, weight, simple, D, labels, l2; did you mean 'labels'?"),
    ("an unknown key of solve", FULL + "tolerance = 1", "key 'solve.tolerance' is unknown; expected method, options, tol"),
    ("an unknown kind", G + 'kind = "quadratics"', "key 'g.kind' is 'quadratics'; expected one of quadratic, .*; did you mean 'quadratic'?"),
    ("a list for a kind", G + "kind = [1]", r"key 'g.kind' is \[1\]; expected one of quadratic"),
    ("g a number", FULL.replace('{kind = "quadratic", P = 1}', "3"), r"key 'g' is 3; expected a table \[g\]"),
    ("g an empty list", FULL.replace('{kind = "quadratic", P = 1}', "[]"), r"key 'g' is \[\]; expected a table \[g\]"),
    ("terms that do not fit", G.replace("[g]", '[[g]]\nkind="quadratic"\nP=[1]\n[[g]]\nkind="quadratic"\nP=[1,2]\n'), "key 'g': cannot add a function of 1 variables and one of 2"),
    ("a weight that is none", G + 'kind = "quadratic"\nP = 1\nweight = "much"', "key 'g.weight' is 'much'; expected a number"),
    ("a text for a number", G + 'kind = "huber"\ndelta = "1"', "key 'g.delta' is '1'; expected a number"),
    ("a method that is a number", FULL + "method = 3", "key 'solve.method' is 3; expected a method's name"),
    ("options in a list", FULL + "options = [1]", r"key 'solve.options' is \[1\]; expected a table of options"),
    ("a text for tol", FULL + 'tol = "small"', "key 'solve.tol' is 'small'; expected a number"),
    ("truth for max_seconds", FULL + "max_seconds = true", "key 'solve.max_seconds' is True; expected a number"),
    ("a fraction for max_calls", FULL + "max_calls = 1.5", "key 'solve.max_calls' is 1.5; expected a whole number"),
    ("a text among max_calls", FULL + 'max_calls = {A = "x"}', "key 'solve.max_calls.A' is 'x'; expected a whole number"),
    ("a folder for A", document('"."'), "expected blocks of .npy, .parquet or .mtx alone"),
    ("a device for A", document('"/dev/zero"'), "is not a file; expected a regular one"),
    ("no file for A", document('"A.npy"'), "file .*A.npy does not exist"),
    ("NUL in a name", document('"A\\u0000.npy"'), "is not a valid file name: .*embedded null"),
    ("a name too long", document(f'"{"a" * 5000}.npy"'), "cannot be read: File name too long"),
    ("an absolute name", document('"/nowhere/A.npy"'), "file /nowhere/A.npy does not exist"),
    ("a name that climbs", document('"../nowhere/A.npy"'), "file .*/../nowhere/A.npy does not exist"),
    ("an unknown ending", document('"problem.toml"'), "has an unknown ending; expected .npy, .npz, .mtx"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_problem_files_are_refused(tmp_path, text, sentence):
    path = write(tmp_path, text)
    with pytest.raises(sp.ProblemError, match=sentence) as refused:
        load_problem(path, 1 << 30)
    assert "\n" not in str(refused.value)
    assert "problem.toml" in str(refused.value)


GAME = {"format": "saddlepoint-game", "version": 1, "title": "", "first": [], "second": [], "payoffs": [[0, 0, 1]]}


def game(**changes):
    return json.dumps(GAME | changes)


GAMES = [
    ("a key twice", '{"format": 1, "format": 2}', "key 'format' appears twice"),
    ("lists in lists", "[" * 100_000, "lists or objects are nested too deeply"),
    ("objects in objects", '{"a":' * 100_000, "lists or objects are nested too deeply"),
    ("deep but complete", "[" * 900 + "]" * 900, "the document is .*; expected an object"),
    ("an integer of 5000 digits", game().replace("[[0, 0, 1]]", f"[[0, 0, {'9' * 5000}]]"), "not valid JSON: Exceeds the limit"),
    ("NaN", game(payoffs=[[0, 0, NAN]]), r"payoffs\[0\] has the payoff nan; expected a finite number"),
    ("a huge payoff", game(payoffs=[[0, 0, HUGE]]), r"payoffs\[0\] has the payoff 1000.*; expected a finite number"),
    ("a huge sequence", game(payoffs=[[HUGE, 0, 1]]), "expected 0 to 0"),
    ("unpaired surrogate", game(title="\ud800"), "key 'title' is .*, which holds an unpaired surrogate; expected a text"),
    ("UTF-16", game().encode("utf-16"), "in UTF-16; save it again as UTF-8"),
    ("an unknown key", game(titel=""), "has the unknown key 'titel'; expected format, .*; did you mean 'title'?"),
    ("a list", "[]", r"the document is \[\]; expected an object with the keys format"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), [row[1:] for row in GAMES], ids=[row[0] for row in GAMES])
def test_game_files_are_refused(tmp_path, text, sentence):
    path = tmp_path / "game.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(sp.ProblemError, match=sentence) as refused:
        ExtensiveGame.from_file(path)
    assert "\n" not in str(refused.value)
    assert "game.json" in str(refused.value)


def test_the_tables_hold_more_than_250_distinct_inputs():
    assert len({name for name, *_ in API}) + len({name for name, *_ in ARRAYS}) == len(API) + len(ARRAYS)
    assert len(API) + len(ARRAYS) + len(TEXTS) + len(GAMES) + len(LINES) > 250


def test_links_are_followed_and_circles_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "here").mkdir()
    np.save(tmp_path / "data/A.npy", A)
    (tmp_path / "here/A.npy").symlink_to(tmp_path / "data/A.npy")
    (tmp_path / "here/loop.npy").symlink_to(tmp_path / "here/loop.npy")
    (tmp_path / "here/gone.npy").symlink_to(tmp_path / "data/gone.npy")
    for name in ("A.npy", "../data/A.npy", str(tmp_path / "data/A.npy")):
        np.testing.assert_array_equal(load_problem(write(tmp_path / "here", document(f'"{name}"'))).problem.A.A, A)
    with pytest.raises(sp.ProblemError, match="cannot be read: Too many levels of symbolic links"):
        load_problem(write(tmp_path / "here", document('"loop.npy"')))
    with pytest.raises(sp.ProblemError, match=r"file .*gone.npy does not exist"):
        load_problem(write(tmp_path / "here", document('"gone.npy"')))


def test_pipes_do_not_hang(tmp_path):
    for name in ("p.toml", "A.npy", "A.npz", "A.mtx", "A.svm", "g.json", "r.npz"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(sp.ProblemError, match="is not a file"):
        load_problem(tmp_path / "p.toml")
    for name in ("A.npy", "A.npz", "A.mtx", "A.svm:labels"):
        with pytest.raises(sp.ProblemError, match="is not a file"):
            read_array(name, tmp_path)
    with pytest.raises(sp.ProblemError, match="is not a file"):
        ExtensiveGame.from_file(tmp_path / "g.json")
    with pytest.raises(sp.ProblemError, match="is not a file"):
        sp.load_result(tmp_path / "r.npz")


def test_the_limit_is_on_all_arrays_together(tmp_path):
    np.save(tmp_path / "A.npy", np.ones((100, 100)))
    np.save(tmp_path / "b.npy", np.ones(100))
    text = 'A = "A.npy"\ng = {kind = "quadratic", P = 1, b = "b.npy"}\nh = {kind = "quadratic", P = 2, b = "b.npy"}\n'
    path = write(tmp_path, text)
    needed = 320 * len(text) + 80_000 + 800 + 800
    assert load_problem(path, needed).problem.shape == (100, 100)
    with pytest.raises(sp.ProblemError, match=r"key 'h.b': .* needs 800 bytes, above the memory limit of .* is taken"):
        load_problem(path, needed - 1)


def test_a_mark_of_byte_order_is_no_reason_to_refuse(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbf" + FULL.encode())
    assert load_problem(path).problem.shape == (2, 2)
    (tmp_path / "game.json").write_bytes(b"\xef\xbb\xbf" + game().encode())
    assert ExtensiveGame.from_file(tmp_path / "game.json").shape == (1, 1)


@pytest.mark.slow
def test_a_sum_of_very_many_terms_is_read(tmp_path):
    text = 'A = [[1]]\nh = {kind = "quadratic", P = 2}\n' + '[[g]]\nkind = "quadratic"\nP = 1\n' * 3000
    f = load_problem(write(tmp_path, text), 1 << 30).problem
    assert f.mu_x == 3000.0
    assert sp.solve(f).solved


def test_the_weight_of_a_group_huber_counts_once(tmp_path):
    text = 'A = [[1]]\nh = {kind = "quadratic", P = 2}\ng = {kind = "group-huber", weight = 3, width = 1, l2 = 1}\n'
    assert load_problem(write(tmp_path, text)).problem.L_x == 4.0


# -- memory -------------------------------------------------------------------------------------------------------------

MIB = 1 << 20
MEASURE = """
import resource, sys
from pathlib import Path
import numpy as np, scipy.sparse, saddlepoint as sp
from saddlepoint.apps import ExtensiveGame
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array

limit, room, *names = sys.argv[1:]
limit, readers = int(limit), {
    ".toml": lambda name: load_problem(name, limit),
    ".json": lambda name: ExtensiveGame.from_file(name, limit),
    ".efg": lambda name: ExtensiveGame.from_file(name, limit),
}
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + int(room), -1))
for name in names:
    try:
        readers.get(Path(name).suffix, lambda name: read_array(name, Path("."), limit))(name)
        print("read")
    except sp.ProblemError as error:
        print(error)
"""


def measured(folder, limit, room, *names):
    """The outcome of reading files in a process that may use ``room`` more bytes than it does."""
    words = [sys.executable, "-c", MEASURE, str(limit), str(room), *names]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(names, done.stdout.splitlines(), strict=True))


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


@pytest.mark.slow
@needs_proc
def test_files_are_read_within_the_limit(tmp_path):
    """Files that are just within the limit, in a process that has little more memory than that."""
    limit, slack = 32 * MIB, 16 * MIB
    rng = np.random.default_rng(0)
    np.save(tmp_path / "wide.npy", rng.standard_normal(limit // 8))
    np.save(tmp_path / "narrow.npy", rng.integers(-9, 9, limit // 9).astype(np.int8))
    np.savez_compressed(tmp_path / "packed.npz", np.zeros(limit // 8))
    (tmp_path / "A.svm").write_text(f"1 {' '.join(f'{j}:{j}' for j in range(1, 49))}\n" * (limit // 1600))
    entries = limit // 48 - 500
    (tmp_path / "A.mtx").write_bytes(MATRIX + f"700 700 {entries}\n".encode() + b"7 8 1.25\n" * entries)
    entries = limit // 144 - 500
    symmetric = MATRIX.replace(b"general", b"symmetric")
    (tmp_path / "S.mtx").write_bytes(symmetric + f"700 700 {entries}\n".encode() + b"8 7 1.25\n" * entries)
    n = int((limit / 9) ** 0.5)
    dense = MATRIX.replace(b"coordinate", b"array")
    (tmp_path / "D.mtx").write_bytes(dense + f"{n} {n}\n".encode() + b"1.5\n" * n**2)
    names = ("wide.npy", "narrow.npy", "packed.npz", "A.svm:features", "A.mtx", "S.mtx", "D.mtx")
    assert measured(tmp_path, limit, limit + slack, *names) == dict.fromkeys(names, "read")
    for name, refused in measured(tmp_path, limit // 2, limit // 2 + slack, *names).items():
        assert re.search("above the memory limit|what is left of the memory limit", refused), name


@pytest.mark.slow
@needs_proc
def test_files_that_ask_for_much_memory_are_refused_before_they_get_it(tmp_path):
    """Small files that ask for much memory are refused before they get it; the process may use 48 MiB."""
    (tmp_path / "A.npy").write_bytes(npy((10**7, 10**7)))
    (tmp_path / "A.npz").write_bytes(npz(("A.npy", npy((1 << 12, 1 << 12), data=bytes(1 << 27)))))
    (tmp_path / "A.mtx").write_bytes(MATRIX + b"1000000000 1000000000 1\n1 1 1.0\n")
    (tmp_path / "A.svm").write_bytes(b"1 1:1\n1 99999999999:1\n")
    (tmp_path / "lists.toml").write_text("a = [" + "{}," * 400_000 + "]")
    (tmp_path / "dots.toml").write_text("a" + ".a" * 40_000 + " = 1")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 90_000)
    (tmp_path / "deep.json").write_text("[" * 400_000)
    (tmp_path / "text.efg").write_text('EFG 2 R "' + "\\a" * 150_000)
    expected = dict.fromkeys(("A.npy", "A.npz", "A.mtx", "A.svm:features", "lists.toml"), "above the memory limit")
    expected |= dict.fromkeys(("dots.toml", "deep.toml", "deep.json"), "nested too deeply")
    expected |= {"text.efg": "is not closed"}
    for name, refused in measured(tmp_path, 32 * MIB, 48 * MIB, *expected).items():
        assert expected[name] in refused, name


# -- unusual input that must work without changes -----------------------------------------------------------------------

ARRANGED = {
    "list": A.tolist(),
    "matrix": matrix(A),
    "columns": np.asfortranarray(A),
    "every other": np.repeat(np.repeat(A, 2, 0), 3, 1)[::2, ::3],
    "backwards": A[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": A.T.copy().T,
    "other order of bytes": A.astype(">f8"),
    "int8": A.astype(np.int8),
    "uint64": A.astype(np.uint64),
    "float16": A.astype(np.float16),
    "extended": A.astype(np.longdouble),
    "masked without a mask": np.ma.masked_array(A),
    "broadcast": np.broadcast_to(A, (2, 2)),
    "sparse matrix": sparse.csr_matrix(A),
    "coordinates": sparse.coo_array(A),
    "dictionary of keys": sparse.dok_array(A),
    "lists of lists": sparse.lil_array(A),
    "diagonals": sparse.dia_array(A),
    "sparse integers": sparse.csc_array(A.astype(np.int32)),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_arrays_of_any_arrangement_in_memory_are_taken(name):
    given = ARRANGED[name]
    before = given.copy() if not isinstance(given, list) else [row.copy() for row in given]
    if isinstance(given, np.ndarray) and given.flags.owndata:
        given.setflags(write=False)
    b = np.array([1.0, 9.0, -1.0])[::2]
    b.setflags(write=False)
    f = sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(2.0), given)
    x0 = np.array([0.5, 9.0, 0.5])[::-2]
    x0.setflags(write=False)
    result = sp.solve(f, x0, tol=1e-4)
    assert result.solved
    x = np.linalg.solve(np.eye(2) + A @ A.T / 2, -b)
    assert np.linalg.norm(result.x - x) <= 1e-4
    dense = given.toarray() if sparse.issparse(given) else np.asarray(given)
    np.testing.assert_array_equal(dense, before.toarray() if sparse.issparse(given) else np.asarray(before))
    np.testing.assert_array_equal(x0, [0.5, 0.5])
    np.testing.assert_array_equal(b, [1.0, -1.0])


def test_truth_values_are_numbers_in_arrays():
    f = sp.Saddle(sp.Quadratic(1.0, [True, False]), sp.Quadratic(2.0), A > 0.0)
    assert f.A.A.dtype == np.float64
    assert sp.solve(f).solved


@pytest.mark.parametrize("entry", [-0.0, 5e-324, 1e-310])
def test_zeros_with_a_sign_and_subnormal_numbers_are_taken(entry):
    f = sp.Saddle(sp.Quadratic(1.0, [1.0, entry]), sp.Quadratic(2.0), [[1.0, entry], [entry, 1.0]])
    result = sp.solve(f, [entry, entry], tol=1e-6)
    assert result.solved
    np.testing.assert_allclose(result.x, [-2 / 3, 0.0], atol=1e-6)


def test_constants_and_limits_may_be_numbers_of_numpy():
    f = sp.Saddle(sp.Smooth(lambda x: 2.0 * x + 1.0, mu=np.float32(2), L=np.array(2)), sp.Quadratic(np.int64(1)), A)
    assert sp.solve(f, tol=np.float32(1e-3), max_calls=np.int64(1000), max_seconds=np.array(60)).solved


# -- the command line ---------------------------------------------------------------------------------------------------

LINES = [
    ("no such command", ["slove"], "No such command 'slove'"),
    ("tol NaN", ["solve", "p.toml", "--tol", "nan"], "tol is nan; expected a positive number"),
    ("tol infinite", ["solve", "p.toml", "--tol", "1e999"], "tol is inf; expected a positive number"),
    ("max-calls huge", ["solve", "p.toml", "--max-calls", "x" * 9], "Invalid value for '--max-calls'"),
    ("memory limit 0", ["solve", "p.toml", "--memory-limit", "0"], "--memory-limit is 0 bytes; expected a positive size such as 2GB"),
    ("memory limit 1e400", ["solve", "p.toml", "--memory-limit", "1e400"], "--memory-limit is '1e400'; expected a size"),
    ("memory limit beyond 64 bits", ["solve", "p.toml", "--memory-limit", "9" * 400], "--memory-limit is inf bytes; expected a positive size such as 2GB"),
    ("memory limit small", ["solve", "p.toml", "--memory-limit", "1kB"], "p.toml needs .*, above the memory limit of 1000 bytes"),
    ("a picture of no format", ["solve", "p.toml", "--plot", "run.xyz"], "run.xyz has an unknown ending; expected .png"),
    ("a picture without ending", ["game", "kuhn", "--plot", "run"], "run has an unknown ending"),
    ("a target in a file", ["solve", "p.toml", "--out", "p.toml/r.npz"], "p.toml is not a folder"),
    ("a target that is a pipe", ["solve", "p.toml", "--out", "pipe"], "pipe is a pipe; expected a file name"),
    ("a target in no folder", ["solve", "p.toml", "--out", "/proc/none/r.npz"], "/proc/none: No such file"),
    ("a problem that is a pipe", ["solve", "pipe"], "pipe is not a file"),
    ("a problem that is a device", ["solve", "/dev/zero"], "/dev/zero is not a file"),
    ("a problem of letters that move the cursor", ["solve", "\x1b[2J.toml"], r"file \\x1b\[2J.toml does not exist"),
    ("a problem of a name that is no text", ["solve", "\udcff.toml"], r"file \\udcff.toml does not exist"),
    ("a problem in UTF-16", ["solve", "utf16.toml"], "in UTF-16; save it again as UTF-8"),
    ("a problem nested deeply", ["predict", "deep.toml"], "nested too deeply"),
    ("a game nested deeply", ["game", "deep.json"], "nested too deeply"),
    ("a game of a name too long", ["game", "a" * 500], "does not exist, and it is not the name of a game"),
    ("an option without a name", ["solve", "p.toml", "--method", "dippa", "--option", "=3"], "it knows inner, coupling"),
    ("an option that is no number", ["solve", "p.toml", "--method", "extragradient", "--option", "eta=nan"], "eta of extragradient is nan; expected a number"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(FULL)
    (tmp_path / "utf16.toml").write_text(FULL, encoding="utf-16")
    (tmp_path / "deep.toml").write_text("A = " + "[" * 100_000)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["saddlepoint", *words])
    code = cli.run()
    return code, *capsys.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "sentence"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_the_command_line_says_it_in_one_line(folder, monkeypatch, capsys, words, sentence):
    code, out, err = run(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert re.search(sentence, err), err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MemoryError(), 2, "there is not enough memory for this"),
        (RecursionError("too deep"), 3, "a mistake in saddlepoint .*RecursionError in .*: too deep; please report it"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), 3, "a mistake in saddlepoint .*UnicodeDecodeError"),
        (KeyError("speed"), 3, "a mistake in saddlepoint .*KeyError in .*: 'speed'; please report it"),
        (OSError(28, "No space left on device"), 2, "the output: No space left on device"),
        (PermissionError(13, "Permission denied", "r.npz"), 2, "r.npz: Permission denied"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_error_ends_in_a_traceback(folder, monkeypatch, capsys, error, code, sentence):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(commands, "load_problem", fail)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)  # the test's own output
    found, out, err = run(monkeypatch, capsys, "solve", "p.toml")
    assert (found, out) == (code, "")
    assert re.fullmatch(f"error: .*{sentence}.*\n", err), err


def test_an_interruption_is_no_traceback(folder, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "load_problem", interrupt)
    code, out, err = run(monkeypatch, capsys, "solve", "p.toml")
    assert (code, out) == (130, "")
    assert err in ("", "error: interrupted\n")  # which one depends on the version of typer


PROGRAM = [sys.executable, "-c", "from saddlepoint.commands import main; main()"]


def started(folder, *words, **streams):
    return subprocess.Popen([*PROGRAM, *words], cwd=folder, **streams)


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_early_causes_no_traceback(folder):
    """`saddlepoint methods | head -1`: the reader closes the pipe before all is written."""
    for words in (["methods"], ["methods", "--json"], ["solve", "p.toml"]):
        reading, writing = os.pipe()
        process = started(folder, *words, stdout=writing, stderr=subprocess.PIPE, text=True)
        os.close(writing)
        os.close(reading)
        assert process.communicate(timeout=300)[1] == ""
        assert process.returncode == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_ends_in_a_line(folder):
    for words in (["methods", "--json"], ["solve", "p.toml"]):
        with open("/dev/full", "w") as full:
            process = started(folder, *words, stdout=full, stderr=subprocess.PIPE, text=True)
            assert process.communicate(timeout=300)[1] == "error: the output: No space left on device\n"
            assert process.returncode == 2
    process = started(folder, "solve", "p.toml", "--out", "/dev/full", stderr=subprocess.PIPE, text=True)
    assert re.fullmatch("error: .*No space left on device\n", process.communicate(timeout=300)[1])


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_command_with_closed_streams_writes_its_result(folder, closed):
    line = f"exec {' '.join(map(json.dumps, PROGRAM))} solve p.toml --out r.npz {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sp.load_result(folder / "r.npz").solved


@pytest.mark.slow
def test_streams_in_ascii_are_written_to(folder):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = started(folder, "methods", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, b"")
    assert b"catalyst-dippa" in out


@pytest.mark.slow
@needs_proc
def test_a_problem_that_does_not_fit_into_memory_ends_in_a_line(folder):
    """A problem that does not fit into memory ends with one line on stderr, too."""
    np.save(folder / "P.npy", np.zeros((2500, 2500)))
    (folder / "p.toml").write_text(document("[[1, 2]]").replace("P = 1", 'P = "P.npy"'))
    code = """
import resource, sys
from pathlib import Path
from saddlepoint.commands.run import run
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 80 * 2**20, -1))
sys.exit(run())
"""
    words = [sys.executable, "-c", code, "solve", "p.toml"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 2, done.stderr
    assert re.fullmatch("error: there is not enough memory for this.*\n", done.stderr), done.stderr


@pytest.mark.slow
def test_an_interruption_in_the_middle_ends_in_a_line(folder):
    (folder / "slow.toml").write_text(
        'A = [[1, 2], [0, 1]]\ng = {kind = "quadratic", P = 1e-9, b = [1, 1]}\nh = {kind = "quadratic", P = 2}\n'
        '[solve]\nmethod = "extragradient"\ntol = 1e-300\n'
    )
    code = "import sys; from saddlepoint.commands.run import run; print('ready', flush=True); sys.exit(run())"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    for wait in (0.05, 1.0):
        process = subprocess.Popen([sys.executable, "-c", code, "solve", "slow.toml"], cwd=folder, **streams)
        assert process.stdout.readline() == "ready\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
        assert "Traceback" not in err
        assert process.returncode in (1, 130)
