"""Refusals of what layers of PyTorch cannot differentiate: gradients would be wrong, or missing without a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import recording
from saddlepoint.uses.layer.torch_build import built, each

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")
functorch: Any = getattr(torch._C, "_functorch", None)
FUNCTORCH_LEVEL: Callable[[], int | None] = getattr(functorch, "maybe_current_level", lambda: None)
IN_VMAP: Callable[[Any], bool] = getattr(functorch, "is_legacy_batchedtensor", lambda tensor: False)


def refuse_functorch() -> None:
    """Raise a ProblemError within a transformation of ``torch.func``."""
    if FUNCTORCH_LEVEL() is not None:
        raise ProblemError(
            "a layer of PyTorch was called within torch.func (vmap, grad, jvp); use in_dims of the layer for batches "
            "and backward() or torch.autograd.grad for gradients"
        )


def refuse_without_numbers(tensor: Any) -> None:
    """Raise a ProblemError if the tensor has no numbers, or not one for each entry."""
    if tensor.device.type == "meta":
        raise ProblemError(
            f"a layer was given a tensor of shape {tuple(tensor.shape)} on the device meta, which has no numbers; "
            "expected tensors on a CPU or a GPU"
        )
    if tensor.layout != torch.strided:
        raise ProblemError(
            f"a layer was given a tensor with the layout {tensor.layout}; expected dense tensors: give its values, and "
            "let build put them in their places"
        )


def refuse_forward_mode(tensor: Any) -> None:
    """Raise a ProblemError if the tensor has a tangent, for derivatives forwards."""
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(tensor).tangent is not None:
        raise ProblemError(
            "a layer was given a tensor with a tangent (torch.autograd.forward_ad); layers of PyTorch differentiate "
            "backwards only: use backward() or torch.autograd.grad, or result.jvp of solve"
        )


def refuse_second(vx: Any, vy: Any) -> None:
    """Raise a ProblemError if the gradient is computed to be differentiated again, or for many vectors at once."""
    if IN_VMAP(vx) or IN_VMAP(vy):
        raise ProblemError(
            "the gradient of a layer was asked for with many vectors at once (vectorize=True, is_grads_batched=True); "
            "ask for one after the other"
        )
    if torch.is_grad_enabled():
        raise ProblemError(
            "the gradient of a layer was asked for with create_graph=True; second derivatives through a solution are "
            "not implemented"
        )


def refuse_hidden(fields: Sequence[Any], known: Sequence[Any]) -> None:
    """Raise a ProblemError if the field depends on a tensor that requires gradients and is no argument of the layer.

    Args:
        fields: the parts of the field, with their record.
        known: the arguments of the layer, and the points at which the field was computed.
    """
    places = {part.data_ptr() for part in known if torch.is_tensor(part)}
    nodes, seen = [F.grad_fn for F in fields], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [following for following, _ in node.next_functions]
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.data_ptr() not in places:
            raise ProblemError(
                f"build of the layer uses a tensor of shape {tuple(leaf.shape)} that requires gradients and is no "
                "argument of the layer, which would return none for it; make it an argument, or detach it"
            )


def check_closure(layer: Layer, tensors: Sequence[Any], dims: Sequence[int | None] | None) -> None:
    """Refuse other tensors of ``build`` that require gradients, where no argument does: they would get none."""
    if not torch.is_grad_enabled() or any(getattr(tensor, "requires_grad", False) for tensor in tensors):
        return  # in the second case the gradient makes this check
    own = list(tensors) if dims is None else each(tensors, dims, 1)[0]
    with recording():
        f = built(layer, own)
        device = next(tensor.device for tensor in own if torch.is_tensor(tensor))
        zero = [torch.zeros(n, dtype=f.space.dtype, device=device) for n in f.shape]
        refuse_hidden([F for F in f.field(*zero) if getattr(F, "requires_grad", False)], [*own, *zero])


def refuse_unrecorded(wanted: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise a ProblemError if a tensor that requires a gradient has none: it would be missing without a word."""
    for tensor, slope in zip(wanted, found, strict=True):
        if slope is None:
            raise ProblemError(
                f"a layer was given a tensor of shape {tuple(tensor.shape)} that requires gradients, but the problem "
                "does not depend on it by operations that PyTorch records: build does not use it, or makes numbers of "
                "it by float(), item(), numpy() or detach(); use the tensor itself, or detach it before the call"
            )
