"""The coupling for an array of PyTorch, JAX, CuPy or another library: on one device or on a mesh of devices."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import space_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.array import ArrayCoupling


def array_coupling(A: Any) -> ArrayCoupling:
    """The coupling for an array of another library than NumPy; on an NVIDIA GPU it has fused products."""
    sharding = getattr(A, "sharding", None)  # JAX's
    if hasattr(sharding, "mesh"):
        from saddlepoint.parts.coupling.mesh import MeshCoupling

        return MeshCoupling(A)
    if sharding is not None and len(sharding.device_set) > 1:
        raise ProblemError(
            f"A is split over {len(sharding.device_set)} devices by a {type(sharding).__name__}; expected a "
            "NamedSharding: jax.device_put(A, NamedSharding(mesh, PartitionSpec('rows', None)))"
        )
    if "cuda" in str(space_of(A).device).lower() or type(A).__module__.startswith("cupy"):
        from saddlepoint.parts.coupling import triton_launch

        if triton_launch.available():
            from saddlepoint.parts.coupling.gpu import CudaCoupling

            return CudaCoupling(A)
    return ArrayCoupling(A)
