"""Loops that Numba compiles, and the threads that run them.

Numba is an optional dependency: without it ``AVAILABLE`` is False, and the loops are not used. They release the
interpreter's lock and run in a few Python threads, and calls from several threads are independent. Importing this
module imports Numba, so couplings import it only for an A that is large enough.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from saddlepoint.ground.arrays import Array

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _njit() -> Any:
    try:
        from numba import njit
    except ImportError:  # not installed, or not for this NumPy
        return None
    return njit


NJIT = _njit()
AVAILABLE = NJIT is not None


def compiled(loop: Loop) -> Loop:
    """The loop as machine code in which sums may be reordered and fused; NaN and infinity keep their meaning."""
    return _compiled(loop, fastmath={"contract", "reassoc", "nsz"})


def compiled_as_written(loop: Loop) -> Loop:
    """The loop as machine code that does every operation as it is written."""
    return _compiled(loop)


def _compiled(loop: Loop, **more: Any) -> Loop:
    """The loop, compiled at its first call and cached on disk if a folder can be written."""
    if not AVAILABLE:
        return loop
    options = {"nogil": True, "error_model": "numpy", **more}
    try:
        return cast(Loop, NJIT(cache=True, **options)(loop))
    except RuntimeError:  # no folder can be written
        return cast(Loop, NJIT(**options)(loop))


def threads() -> int:
    """The number of threads to use: the setting of Numba, BLAS or OpenMP in the environment, or one for each core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        setting = os.environ.get(name, "").partition(",")[0].strip()
        if setting.isdecimal() and int(setting) > 0:
            return min(int(setting), cores)
    return cores


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="saddlepoint")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_parts(part: Callable[[int], None], parts: int) -> None:
    """Call ``part(0)``, ``part(1)``, ... on all threads, this one included; each free thread takes the next number."""
    todo = deque(range(parts))

    def work() -> None:
        while True:
            try:
                k = todo.popleft()
            except IndexError:
                return
            part(k)

    futures = [_pool().submit(work) for _ in range(min(threads(), parts) - 1)]
    try:
        work()
    finally:
        for future in futures:
            if not future.cancel():  # a thread that has not started has nothing left to do
                future.result()


def matching_vectors(dtype: np.dtype[Any], *vectors: tuple[Array | None, int]) -> list[Any] | None:
    """The vectors in one dtype, float32 or float64, as the loops need them; None if a vector has not the given size."""
    given = [(v, size) for v, size in vectors if v is not None]
    common = np.result_type(dtype, *(v.dtype for v, _ in given))
    if common not in (np.float32, np.float64) or any(v.shape != (size,) for v, size in given):
        return None
    return [None if v is None else np.require(v, common, ["C", "A", "W", "E"]) for v, _ in vectors]


def read_only(array: Array) -> Array:
    """A read-only view of the array, so that Numba compiles one version for writeable and read-only arrays."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view
