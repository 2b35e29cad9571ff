"""The problems that ``build`` of a layer makes of tensors of PyTorch, one or a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.saddle import Saddle

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")


def built(layer: Layer, tensors: Any) -> Saddle:
    """The problem of these tensors."""
    versions = [version(tensor) for tensor in tensors]
    f = layer.build(*tensors)
    for k, (tensor, before) in enumerate(zip(tensors, versions, strict=True)):
        if version(tensor) != before:
            raise ProblemError(
                f"build of the layer writes into its argument {k}, of shape {tuple(tensor.shape)}; the layer calls "
                "build more than once, so that each call would make another problem: write into a clone() of it"
            )
    if not isinstance(f, Saddle):
        raise ProblemError(f"build of the layer returned a {type(f).__name__}; expected a Saddle")
    return f


def version(tensor: Any) -> int:
    """How often a tensor was written into; 0 for what has no such count."""
    return 0 if not torch.is_tensor(tensor) or tensor.is_inference() else int(tensor._version)


def each(tensors: Sequence[Any], dims: Sequence[int | None], size: int) -> list[list[Any]]:
    """The tensors of each problem of a batch."""
    return [
        [tensor if dim is None else tensor[k] for tensor, dim in zip(tensors, dims, strict=True)] for k in range(size)
    ]


def batch_size(tensors: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of problems of a batch."""
    shapes = [tuple(tensor.shape) for tensor, dim in zip(tensors, dims, strict=True) if dim == 0]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if len(sizes) != 1:
        raise ProblemError(f"the tensors of a batch have leading dimensions {sorted(sizes)}; expected one size")
    if sizes == {0}:
        raise ProblemError("a batch of a layer is empty or has no leading dimension; expected one problem at least")
    return int(sizes.pop())


def refuse_other_shapes(problems: Sequence[Saddle]) -> None:
    """Raise a ProblemError if the problems of a batch differ in their shapes."""
    for k, f in enumerate(problems):
        if f.shape != problems[0].shape:
            raise ProblemError(
                f"problem {k} of the batch of a layer has {f.shape[0]} x {f.shape[1]} variables, but problem 0 has "
                f"{problems[0].shape[0]} x {problems[0].shape[1]}; expected one shape, so call the layer for each shape"
            )
