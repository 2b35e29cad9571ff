"""How a pass over A is divided among the programs of a GPU, and when one pass is faster than two products."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.triton_launch import Tensor, torch

NARROW = 1024  # columns of a tile up to which several threads share a column
TILE = 64 << 10  # bytes of A in a tile
REGISTERS = 192 << 10  # bytes of registers for the tiles, the slice of y and the sum; the compiler uses the rest
SPARE = 16 << 10  # bytes of shared memory that are reserved for reductions
BY_COLUMNS = 512  # columns of a slice of a column-major A
BUSY = 0.95  # least share of the multiprocessors that the teams must use
# Bytes of A from which one pass takes less time than two products of PyTorch (benchmarks/fused_gpu.py, NVIDIA H200). At
# 128 MiB it is 1.4 times as fast or more in a loop of calls. At 64 MiB it is slower (0.85 times as fast), because the
# host takes longer to launch the kernels. In a CUDA graph it is still 1.5 times as fast: fuse=True selects it there.
FUSE_BYTES = 128 << 20


Kind = Literal["both", "through"]


class Plan(NamedTuple):
    """How A is divided: teams take tiles of ``rows`` rows in turn, and each member a slice of ``width`` columns."""

    rows: int
    width: int
    members: int
    teams: int
    stages: int  # number of tiles in use or being loaded
    waits: bool  # whether members exchange dot products

    @property
    def span(self) -> int:
        """The columns of a tile: ``width`` rounded up to a power of two."""
        return ceil_power_of_two(self.width)

    @property
    def narrow(self) -> bool:
        """Whether several threads share a column."""
        return not self.waits and self.span <= NARROW

    @property
    def warps(self) -> int:
        """Number of warps of a program."""
        return 8 if self.narrow else 16


def ceil_power_of_two(k: int, least: int = 16) -> int:
    """The smallest power of two that is at least k and ``least``."""
    return max(least, 1 << (k - 1).bit_length())


def floor_power_of_two(k: int) -> int:
    """The largest power of two that is at most k."""
    return 1 << (k.bit_length() - 1)


@cache
def tile_plan(
    kind: str, m: int, n: int, size: int, sum_size: int, by_rows: bool, processors: int, shared: int
) -> Plan | None:
    """A plan for an m x n matrix with entries of ``size`` bytes, or None if one pass is not possible."""
    if by_rows:
        # In registers are a row, y and the sum; with teams, two rows, the two before, y and the sum.
        most_independent = floor_power_of_two(REGISTERS // (3 * sum_size))
        most_cooperative = floor_power_of_two(REGISTERS // (2 * (size + sum_size) + 2 * sum_size))
    else:
        most_independent, most_cooperative = 2 * BY_COLUMNS, BY_COLUMNS
    waits = kind == "through" and n > most_independent
    least = math.ceil(n / (most_cooperative if waits else most_independent))
    members = next((k for k in range(least, processors + 1) if processors // k * k >= BUSY * processors), least)
    if waits and members > processors:
        return None
    width = n if members == 1 else 16 * math.ceil(n / members / 16)
    draft = Plan(1, width, members, max(1, processors // members), 1, waits)
    entry = sum_size + waits * size + draft.narrow * sum_size  # bytes of registers for an entry of a tile
    held = REGISTERS - 2 * draft.span * sum_size
    rows = floor_power_of_two(min(TILE // (draft.span * size), held // (draft.span * entry)))
    while rows > 1 and math.ceil(m / rows) < draft.teams:
        rows //= 2
    stages = min(4, 1 + (shared - SPARE) // (rows * draft.span * size))
    return draft._replace(rows=rows, teams=min(draft.teams, math.ceil(m / rows)), stages=stages)


@cache
def resources(device: int) -> tuple[int, int]:
    """The number of multiprocessors, and the bytes of shared memory that a program can use."""
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count, getattr(found, "shared_memory_per_block_optin", 99 << 10)


def is_row_major(shape: tuple[int, int], strides: tuple[int, int]) -> bool | None:
    """True for a row-major matrix, False for a column-major one, None for neither."""
    if strides[1] == 1 or shape[1] == 1:
        return True
    return False if strides[0] == 1 or shape[0] == 1 else None


@cache
def chosen_plan(
    kind: str,
    shape: tuple[int, int],
    strides: tuple[int, int],
    type_: Any,
    sum_type: Any,
    device: int,
    fuse: bool | None,
) -> Plan | None:
    """The plan for one pass; None if two products are as fast, were requested, or are the only possibility."""
    m, n = shape
    by_rows = is_row_major(shape, strides)
    if kind == "both" and by_rows is False:
        return chosen_plan(kind, (n, m), (strides[1], strides[0]), type_, sum_type, device, fuse)
    found = None
    if by_rows is not None:
        found = tile_plan(kind, m, n, type_.itemsize, sum_type.itemsize, by_rows, *resources(device))
    if fuse and found is None:
        raise ProblemError(
            f"{kind} in one pass is impossible for A of shape {m} x {n}, strides {strides}; omit fuse=True"
        )
    if found is None or fuse is not None:
        return found if fuse else None
    if found.waits and not by_rows and not (type_ == sum_type == torch.float32):
        return None  # column-major teams are 1.1 to 1.4 times as fast in float32, otherwise 0.7 to 1.0 times
    mixed = type_ != sum_type  # PyTorch has no product of two dtypes
    return found if mixed or m * n * type_.itemsize >= FUSE_BYTES else None


def plan_for(A: Tensor, kind: str, sum_type: Any, fuse: bool | None) -> Plan | None:
    """The plan for one pass over A with sums of this dtype; None for two products."""
    return chosen_plan(kind, A.shape, A.stride(), A.dtype, sum_type, A.device.index, fuse)
