"""Fused products within a program that JAX compiles: the same Triton kernels, called through jax-triton.

Only kernels whose programs never wait for one another are used, because JAX does not guarantee that all programs run at
the same time.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import triton_products as products
from saddlepoint.parts.coupling.triton_kernels import independent
from saddlepoint.parts.coupling.triton_launch import as_torch, torch
from saddlepoint.parts.coupling.triton_plans import Kind, Plan


@cache
def available() -> bool:
    """Whether jax-triton is installed and works with the installed JAX and Triton."""
    folder = os.environ.get("TRITON_CACHE_DIR")
    try:
        return bool(import_module("jax_triton").triton_lib.CAN_USE_TRITON)
    except (ImportError, AttributeError):
        return False
    finally:  # the import disables the cache on disk, which Triton itself needs
        os.environ.pop("TRITON_CACHE_DIR", None)
        if folder is not None:
            os.environ["TRITON_CACHE_DIR"] = folder


def fuses(A: Any, kind: Kind, vectors: Any = None) -> bool:
    """Whether ``both`` or ``through`` reads A, a JAX array on a GPU, once; ``vectors`` as in ``triton_products``."""
    return available() and _plan(A, kind, vectors) is not None


def both(A: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x)."""
    return _run(A, "both", y, x, 1.0)


def through(A: Any, y: Array, s: float, e: Array | None) -> tuple[Array, Array]:
    """(t, A'(s t + e)) with t = A y."""
    return _run(A, "through", y, e, s)


def _plan(A: Any, kind: Kind, vectors: Any) -> Plan | None:
    plan = products.plan(as_torch(A), kind, getattr(torch, str(vectors), None))
    return None if plan is None or plan.waits else plan


def _run(A: Any, kind: Kind, y: Array, x: Array | None, s: float) -> tuple[Array, Array]:
    jax: Any = import_module("jax")
    plan = _plan(A, kind, y.dtype)
    assert plan is not None
    (m, n), (rows, width, members, teams, stages, _) = A.shape, plan
    sum_type = jax.numpy.result_type(A.dtype, y.dtype, jax.numpy.float32)  # A may be stored in half precision
    dots, sums = import_module("jax_triton").triton_call(
        A,
        y,
        y if x is None else x,
        jax.numpy.full(1, s, sum_type),
        kernel=independent,
        out_shape=[jax.ShapeDtypeStruct(shape, sum_type) for shape in ((members, m), (teams, n))],
        grid=teams * members,
        num_warps=plan.warps,
        row_stride=n,
        column_stride=1,
        m=m,
        n=n,
        width=width,
        s=1.0,
        KIND=kind,
        HAS_E=x is not None,
        S_ON_GPU=True,
        NARROW=plan.narrow,
        ROWS=rows,
        WIDTH=plan.span,
        MEMBERS=members,
        TEAMS=teams,
        STAGES=stages,
    )
    return dots.sum(0), sums.sum(0)
