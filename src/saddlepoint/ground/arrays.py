"""The library, dtype and device of arrays, for NumPy and for every library of the array API standard.

NumPy arrays are handled directly. Arrays of PyTorch, JAX, CuPy and array-api-strict go through array-api-compat, which
is imported when the first such array is met.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from saddlepoint.ground.device_mesh import compatible, devices_of, mesh_of, on_mesh, put
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording

Array: TypeAlias = npt.NDArray[Any]  # a NumPy array, or an array of another library

FLOAT64 = np.dtype(np.float64)  # NumPy has one object for this dtype, so that ``is`` tells it from others
EPS64 = 2.0**-52  # the machine epsilon of float64


class Space(NamedTuple):
    """A library (its namespace), a real dtype of it, and a device.

    If A is split over several devices, ``device`` places a copy on each of them, and ``sides`` says how the vectors of
    x and of y are split. If the vectors of x are kept elsewhere than those of y, ``sides`` holds two spaces.
    """

    xp: Any
    dtype: Any
    device: Any = None
    sides: tuple[Any, Any] | None = None

    @property
    def of_x(self) -> Space:
        """The space of the vectors of x."""
        return self._side(0)

    @property
    def of_y(self) -> Space:
        """The space of the vectors of y."""
        return self._side(1)

    def _side(self, which: int) -> Space:
        if self.sides is None:
            return self
        side = self.sides[which]
        return side._replace(dtype=self.dtype) if isinstance(side, Space) else self._replace(device=side)

    @property
    def library(self) -> str:
        """The name of the library of the arrays, such as "numpy" or "torch"."""
        return str(self.xp.__name__).removeprefix("array_api_compat.").partition(".")[0]

    @property
    def is_numpy(self) -> bool:
        """Whether the arrays are NumPy's."""
        return self.xp is np

    @property
    def is_torch(self) -> bool:
        """Whether the arrays are PyTorch's."""
        return "torch" in self.xp.__name__

    @property
    def is_jax(self) -> bool:
        """Whether the arrays are JAX's."""
        return is_jax(self.xp)

    @property
    def is_sharded(self) -> bool:
        """Whether the arrays are split over the shards of an engine: reading an entry costs a communication round."""
        return bool(self.xp.__name__ == "sharded")

    @property
    def on_host(self) -> bool:
        """Whether reading an entry of these arrays is cheap: NumPy, and other libraries on the CPU."""
        return self.is_numpy or "cpu" in str(devices_of(self.device)).lower()

    @property
    def eps(self) -> float:
        """The machine epsilon of the dtype."""
        return float(self.xp.finfo(self.dtype).eps)

    @property
    def is_float64(self) -> bool:
        """Whether the dtype is float64."""
        return self.eps <= EPS64

    @property
    def largest(self) -> float:
        """The largest finite number of the dtype."""
        return float(self.xp.finfo(self.dtype).max)

    @property
    def exponent(self) -> int:
        """An e for which 2^e and 2^-e are well within the normal numbers of the dtype: 1000 in float64."""
        return math.frexp(self.largest)[1] - 24

    @property
    def wide(self) -> Space:
        """The same space with the dtype float64, in which certificates are computed."""
        if self.is_numpy:
            return self if self.dtype is FLOAT64 else self._replace(dtype=FLOAT64)
        return self._replace(dtype=self.xp.float64)

    def zeros(self, n: int) -> Array:
        """A vector of n zeros."""
        return self.full(n, 0.0)

    def full(self, n: int, value: float) -> Array:
        """A vector of n entries that are all ``value``."""
        array: Array = self.xp.full(n, value, dtype=self.dtype, **self.device_keyword())
        return array

    def cast(self, array: Any) -> Array:
        """The array in this dtype, without a copy if it has it. A NumPy array is moved to this library and device."""
        if self.is_numpy:
            return np.asarray(array, dtype=self.dtype)
        if isinstance(array, np.ndarray):
            name = str(self.dtype).rpartition(".")[2]
            if array.dtype == FLOAT64 and name == "float32":  # PyTorch would start all its threads for that
                array = array.astype(np.float32)
            moved: Array = self.xp.asarray(array, dtype=self.dtype, **self.device_keyword())
            return moved
        same: Array = array if array.dtype == self.dtype else self.xp.astype(array, self.dtype)
        return same

    def placed(self, array: Any) -> Array:
        """The array as ``cast`` returns it, split over the devices where there are several."""
        found = self.cast(array)
        return found if mesh_of(self.device) is None else put(found, self.device)

    @property
    def foreign(self) -> Space:
        """The space of the arrays of a run that are not NumPy's: over shards, or in another library."""
        return self.of_x if self.is_numpy else self

    @property
    def compiles(self) -> bool:
        """Whether many steps on these arrays can be compiled into one call: JAX, and PyTorch on a GPU."""
        return self.is_jax or self.is_cuda

    @property
    def is_cuda(self) -> bool:
        """Whether the arrays are PyTorch's on an NVIDIA GPU."""
        return self.is_torch and "cuda" in str(self.device)

    def wait(self, array: Array) -> None:
        """Return when the computation of the array is finished: GPUs and JAX compute asynchronously.

        For a vector over shards there is nothing to wait for: it is computed in the round that needs it.
        """
        if hasattr(array, "block_until_ready"):  # JAX
            array.block_until_ready()
        elif not self.on_host:
            float(array[0])

    def collected(self, array: Array) -> Array:
        """A vector over shards as one NumPy array in this process; any other array is returned unchanged."""
        return to_host(array) if self.is_sharded else array

    def exact_products(self) -> AbstractContextManager[Any]:
        """A context in which products have the precision of the dtype; JAX on a GPU otherwise uses fewer bits."""
        if self.is_jax:
            exact: AbstractContextManager[Any] = import_module("jax").default_matmul_precision("highest")
            return exact
        return nullcontext()

    def device_keyword(self) -> dict[str, Any]:
        """The keyword that makes functions of the library create arrays on this device; empty if it takes none."""
        return {} if self.device is None else {"device": self.device}

    def __reduce__(self) -> Any:
        return _space, (self.xp.__name__, *self[1:])  # modules cannot be pickled, so the name of the library is sent

    def __str__(self) -> str:
        mesh = mesh_of(self.device)
        where = self.device if mesh is None else f"a mesh of {mesh.size} ({devices_of(self.device)[0].platform})"
        place = "" if self.device is None else f" on {where}"
        if self.is_numpy and self.sides is not None:
            place = " in shards"
        return f"{self.library} {str(self.dtype).rpartition('.')[2]}{place}"


def _space(library: str, *where: Any) -> Space:
    return Space(import_module(library), *where)


NUMPY64 = Space(np, FLOAT64)  # the space of NumPy's vectors of float64

# The types that ``is_foreign`` meets most often; none of them is an array of another library than NumPy.
NEVER_FOREIGN = np.ndarray, np.generic, type, int, float, type(None), str, tuple


def is_array(value: Any) -> bool:
    """Whether ``value`` is an array of a library that is supported."""
    return isinstance(value, np.ndarray) or is_foreign(value)


def is_foreign(value: Any) -> bool:
    """Whether ``value`` is an array, but not NumPy's."""
    if isinstance(value, NEVER_FOREIGN):
        return False
    return hasattr(value, "__array_namespace__") or type(value).__module__.partition(".")[0] in ("torch", "cupy")


def namespace(array: Any) -> Any:
    """The functions of the array's library, under their standard names."""
    if isinstance(array, np.ndarray):
        return np
    return _compat().array_namespace(array)


def is_jax(xp: Any) -> bool:
    """Whether a namespace is JAX's."""
    return str(xp.__name__).startswith("jax")


def space_of(array: Any) -> Space:
    """The library, dtype and device of an array."""
    if isinstance(array, np.ndarray):
        return Space(np, array.dtype)
    if is_recording():  # symbols are on no device
        return Space(namespace(array), array.dtype)
    device = _compat().device(array)
    return Space(namespace(array), array.dtype, device if mesh_of(device) is None else on_mesh(device))


def common_space(parts: dict[str, Any]) -> Space | None:
    """The space that named arrays, couplings or functions share, with the widest of their dtypes; None if all are None.

    A part is None, a ``Space``, an array, or an object with an attribute ``space``. Arrays of two libraries or devices
    are refused.
    """
    found: Space | None = None
    first = ""
    for name, part in parts.items():
        space = part if isinstance(part, Space) else part.space if hasattr(part, "space") else part
        space = space_of(space) if is_array(space) else space
        if space is None:
            continue
        if found is None:
            found, first = space, name
            continue
        if space.xp is not found.xp or not compatible(space.device, found.device):
            raise ProblemError(
                f"{first} is {found} and {name} is {space}; expected arrays of one library on one device: convert one"
            )
        wider = found.xp.result_type(found.dtype, space.dtype)
        found = (found if found.sides or mesh_of(found.device) is not None else space)._replace(dtype=wider)
    return found


def rows_like(vector: Array, count: int) -> Array:
    """A matrix of ``count`` rows of zeros; a row has the length, dtype and placement of the vector."""
    space = space_of(vector)
    zeros: Array = space.xp.zeros((count, vector.shape[0]), dtype=space.dtype, **space.device_keyword())
    device: Any = getattr(vector, "sharding", None)
    if mesh_of(device) is not None:
        zeros = put(zeros, on_mesh(device, None, *device.spec))
    return zeros


def eps_of(array: Array) -> float:
    """The machine epsilon of an array's dtype."""
    return _numpy_limits(array.dtype)[0] if isinstance(array, np.ndarray) else float(_limits(array).eps)


def is_float64(array: Array) -> bool:
    """Whether an array is of float64."""
    return eps_of(array) <= EPS64


def smallest_of(array: Array) -> float:
    """The smallest positive number of an array's dtype.

    It is subnormal for NumPy. It is normal for other libraries, because they may replace subnormal numbers by zero.
    """
    if isinstance(array, np.ndarray):
        return _numpy_limits(array.dtype)[1]
    return float(_limits(array).smallest_normal)


@cache
def _numpy_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The machine epsilon and the smallest positive number of a dtype of NumPy; kept, because `finfo` is slow."""
    info = np.finfo(dtype)
    return float(info.eps), float(info.smallest_subnormal)


def _limits(array: Array) -> Any:
    return namespace(array).finfo(array.dtype)


def copied(array: Array) -> Array:
    """A copy of an array, of its own library."""
    if isinstance(array, np.ndarray):
        return array.copy()
    copy: Array = namespace(array).asarray(array, copy=True)
    return copy


def detached(array: Any) -> Any:
    """The array without the record from which PyTorch computes gradients; anything else is returned unchanged.

    The steps of a run are not meant to be differentiated: ``backward()`` through them would be slow and wrong. Within
    ``recording()`` it is returned unchanged, too.
    """
    keep = is_recording() or not getattr(array, "requires_grad", False)
    return array if keep else array.detach()


def frozen_copy(array: Array) -> Array:
    """A copy of an array; read-only where the library has read-only arrays (NumPy, and JAX by nature)."""
    copy = copied(array)
    if isinstance(copy, np.ndarray):
        copy.setflags(write=False)
    return copy


def is_constant(array: Any) -> bool:
    """Whether this is an array of NumPy that cannot be written into, by this name or by that of another array."""
    return type(array) is np.ndarray and not array.flags.writeable and array.base is None


def to_host(array: Any) -> Array:
    """An array of any library as one of NumPy's."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # PyTorch
        return np.asarray(array.detach().cpu().numpy())
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    return np.asarray(array) if hasattr(array, "__array__") else np.from_dlpack(array)


def dense(matrix: Any) -> Array:
    """A matrix or a vector as a NumPy array; SciPy's sparse arrays are written out."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def read_numbers(few: Any) -> Array:
    """A few numbers as a NumPy array: copied together, or one by one where the library copies no arrays to NumPy."""
    try:
        return to_host(few)
    except RuntimeError:
        rows = [few[k, :] for k in range(few.shape[0])] if len(few.shape) == 2 else [few]
        read = np.array([[float(row[k]) for k in range(row.shape[0])] for row in rows])
        return read if len(few.shape) == 2 else read[0]


def concat(arrays: Any) -> Array:
    """The vectors joined into one, in their order."""
    parts = list(arrays)
    xp = namespace(next((part for part in parts if not isinstance(part, np.ndarray)), parts[0]))
    joined: Array = np.concatenate(parts) if xp is np else xp.concat(parts)
    return joined


def all_finite(array: Array) -> bool:
    """Whether all entries are finite, neither NaN nor infinite."""
    xp = namespace(array)
    return bool(xp.all(xp.isfinite(array)))


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise ProblemError(
            "arrays of other libraries than NumPy need array-api-compat: pip install array-api-compat"
        ) from None
    return array_api_compat
