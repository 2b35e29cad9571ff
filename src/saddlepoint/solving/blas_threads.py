"""One thread of BLAS for problems whose matrices are small.

OpenBLAS, which comes with NumPy and SciPy, divides even small matrix products among all cores and waits for the last of
them. That gains nothing at these sizes; and where another program is using a core, each product waits until the
operating system lets its thread on, which can take a thousand times as long as the product. The number of threads is
changed by threadpoolctl, if it is installed (scikit-learn brings it along), and is as before when no solve needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.factoring import data_entries, entries, has_ready_matrices, hessian_entries

SMALL = 100_000  # entries of a matrix up to which more threads gain nothing


def has_small_matrices(f: Saddle) -> bool:
    """Whether all matrices of a problem are known, and are small; those in gradients of one's own are not known."""
    if not has_ready_matrices(f):
        return False
    return max(entries(f.A), *(max(data_entries(p), hessian_entries(p)) for p in (f.g, f.h))) <= SMALL


class ThreadLimit:
    """The number of threads of BLAS, which is 1 while at least one solve wants that.

    Solves may run in several threads of Python at the same time. The last one that ends restores the number.
    """

    def __init__(self) -> None:
        self.lock, self.users = Lock(), 0
        self.limited: Any = None  # what threadpoolctl needs to restore the number

    @contextmanager
    def one_thread(self, wanted: bool) -> Iterator[None]:
        """Use one thread, if that is ``wanted``."""
        libraries = blas_libraries() if wanted else None
        if libraries is None:
            yield
            return
        with self.lock:
            if self.users == 0:
                self.limited = libraries.limit(limits=1)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    self.limited.restore_original_limits()


@cache
def blas_libraries() -> Any:
    """The libraries whose threads can be limited; None if there are none, or if all have one thread anyway."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    import scipy.linalg  # noqa: F401 - SciPy has a BLAS of its own, which it loads here

    found = ThreadpoolController().select(user_api="blas")
    return found if any(library.num_threads > 1 for library in found.lib_controllers) else None


LIMIT = ThreadLimit()
