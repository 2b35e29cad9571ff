"""Arrays of JAX that are split over a mesh of several devices."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from saddlepoint.ground.errors import ProblemError


def mesh_of(device: Any) -> Any:
    """The mesh over which arrays are split; None for a single device."""
    return getattr(device, "mesh", None)


def devices_of(device: Any) -> list[Any]:
    """All devices of a mesh; of a single device, itself."""
    mesh = mesh_of(device)
    return [device] if mesh is None else list(mesh.devices.flat)


def compatible(a: Any, b: Any) -> bool:
    """Whether arrays on a and b can be combined: on one device, on one mesh, or on a device of the other's mesh."""
    if mesh_of(a) is None and mesh_of(b) is None:
        return bool(a == b)
    if mesh_of(a) is not None and mesh_of(b) is not None:
        return bool(mesh_of(a) == mesh_of(b))
    return bool({*devices_of(a)} & {*devices_of(b)})  # JAX moves arrays that were not placed explicitly


def on_mesh(device: Any, *axes: Any) -> Any:
    """A placement on the mesh of ``device``: each dimension of an array is split along an axis, or copied for None."""
    sharding = import_module("jax.sharding")
    return sharding.NamedSharding(device.mesh, sharding.PartitionSpec(*axes))


def is_on_mesh(array: Any) -> bool:
    """Whether an array is split over a mesh, or has a copy on each of its devices."""
    return mesh_of(getattr(array, "sharding", None)) is not None


def blocks_of(A: Any) -> Iterator[tuple[tuple[slice, ...], Any]]:
    """The blocks into which an array is split over a mesh, each with the indices of its entries."""
    return ((shard.index, shard.data) for shard in A.addressable_shards if shard.replica_id == 0)


def side_of(A: Any, side: int) -> Any:
    """The placement of a vector that is split as the rows (side 0) or columns (side 1) of a matrix on a mesh are."""
    return on_mesh(A.sharding, (*A.sharding.spec, None, None)[side])


def split_sides(A: Any) -> tuple[Any, tuple[Any, Any]] | None:
    """The placement of copies of a vector, and of vectors split like the rows and columns of a matrix on a mesh."""
    device: Any = getattr(A, "sharding", None)
    if mesh_of(device) is None:
        return None
    return on_mesh(device), (side_of(A, 0), side_of(A, 1))


def split_like(array: Any, other: Any) -> Any:
    """The array, split over devices like ``other``."""
    device: Any = getattr(other, "sharding", None)
    return array if mesh_of(device) is None else put(array, device)


def put(array: Any, device: Any) -> Any:
    """The array, placed on a device or split over a mesh."""
    return import_module("jax").device_put(array, device)


def with_automatic_axes(array: Any) -> Any:
    """The same array; if its mesh has axes of JAX's type Explicit, they become automatic ones.

    With explicit axes, JAX requires the placement of the result wherever a sum runs over several devices.
    """
    device: Any = getattr(array, "sharding", None)
    if mesh_of(device) is None:
        return array
    sharding: Any = import_module("jax.sharding")
    if _explicit(sharding.get_abstract_mesh()):
        raise ProblemError(
            "jax.set_mesh has set a mesh with explicit axes; call solve outside of it: the mesh of A is used"
        )
    if not _explicit(device.mesh):
        return array
    mesh = sharding.Mesh(device.mesh.devices, device.mesh.axis_names)
    return put(array, sharding.NamedSharding(mesh, device.spec))


def _explicit(mesh: Any) -> bool:
    return any("Explicit" in str(kind) for kind in mesh.axis_types)
