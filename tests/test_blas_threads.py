"""The threads of BLAS during a solve. They are counted in a process of its own, where there is more than one."""

import os
import subprocess
import sys
from threading import Barrier, Thread

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.solving import blas_threads
from saddlepoint.solving.blas_threads import SMALL, ThreadLimit, has_small_matrices

pytest.importorskip("threadpoolctl")

COUNTED = """
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info

import saddlepoint as sp


def threads(result=None):
    return sorted({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})


def counted(f):
    during = []
    result = sp.solve(f, callback=lambda result: during.append(threads()))
    assert result.solved
    return during[0]


def interrupted(result):
    raise KeyError


rng = np.random.default_rng(0)
D, A = rng.standard_normal((60, 20)), rng.standard_normal((20, 10))
ready = sp.LogCosh(D, np.ones(60), l2=0.1)
small = sp.Saddle(ready, sp.Quadratic(1.0), A)
own = sp.Saddle(sp.Smooth(ready.grad, mu=ready.mu, L=ready.L), sp.Quadratic(1.0), A)
try:
    sp.solve(small, callback=interrupted)
except KeyError:
    pass
print(threads(), counted(small), threads(), counted(own), threads())
"""


def test_blas_has_one_thread_during_the_solve_of_a_small_problem_and_all_threads_after_it():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if done.stdout.startswith("[1]"):
        pytest.skip("BLAS has one thread here, whatever is asked for")
    assert done.stdout.split() == ["[2]", "[1]", "[2]", "[2]", "[2]"]


class Libraries:
    """Stands for what threadpoolctl controls: a number of threads that can be limited and restored."""

    def __init__(self):
        self.threads = 4

    def limit(self, limits):
        before, self.threads = self.threads, limits
        return Restored(self, before)


class Restored:
    """The number of threads as it was."""

    def __init__(self, libraries, before):
        self.libraries, self.before = libraries, before

    def restore_original_limits(self):
        self.libraries.threads = self.before


def test_solves_at_the_same_time_leave_the_number_of_threads_as_it_was(monkeypatch):
    libraries, limit = Libraries(), ThreadLimit()
    monkeypatch.setattr(blas_threads, "blas_libraries", lambda: libraries)
    all_are_in, seen = Barrier(3), []

    def solve():
        with limit.one_thread(True):
            all_are_in.wait(10.0)
            seen.append(libraries.threads)

    solves = [Thread(target=solve) for _ in range(3)]
    for thread in solves:
        thread.start()
    for thread in solves:
        thread.join()
    assert seen == [1, 1, 1]
    assert libraries.threads == 4
    with limit.one_thread(False):
        assert libraries.threads == 4


def test_only_problems_with_small_matrices_that_are_known_have_one_thread():
    n = 400
    A, P = np.ones((n, 20)), np.eye(n)
    ready, h = sp.Quadratic(1.0), sp.Quadratic(np.eye(20))
    assert has_small_matrices(sp.Saddle(ready, h, A))
    assert n * n > SMALL
    assert not has_small_matrices(sp.Saddle(sp.Quadratic(P), h, A))
    assert not has_small_matrices(sp.Saddle(ready, sp.LeastSquares(np.ones((SMALL, 20)), np.ones(SMALL), l2=1.0), A))
    assert not has_small_matrices(sp.Saddle(sp.Smooth(lambda x: x, mu=1.0, L=1.0), h, A))
    assert not has_small_matrices(sp.Saddle(ready, sp.Quadratic(1.0), np.ones((n, n))))
