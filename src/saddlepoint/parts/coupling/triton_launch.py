"""PyTorch and Triton where they are installed: compiling and launching kernels, and arrays of other libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

Tensor = Any


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


torch, triton = _optional("torch"), _optional("triton")
if not TYPE_CHECKING:
    tl = _optional("triton.language")


def available() -> bool:
    """Whether PyTorch, Triton and a CUDA GPU are available."""
    return torch is not None and triton is not None and bool(torch.cuda.is_available())


def jit(kernel: Callable[..., Any]) -> Any:
    """The kernel, compiled by Triton at its first call; the function itself without Triton."""
    return kernel if triton is None else triton.jit(kernel)


_launchers: dict[tuple[Any, ...], Any] = {}


def launch(kernel: Any, programs: int, arguments: tuple[Any, ...], **options: Any) -> None:
    """Launch on the GPU that holds the first argument.

    Triton inspects all arguments at every launch, which takes the host longer than everything else. The compiled kernel
    is therefore cached here by what Triton would find (as in its tutorial on softmax) and launched directly.
    """
    device = arguments[0].device.index
    key: list[Any] = [id(kernel), device]
    pointers = 0
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            key.append(argument.dtype)
            pointers |= argument.data_ptr()
        elif not isinstance(argument, float):  # floats are not compiled in
            key.append(argument)
    signature = tuple(key)
    launcher = _launchers.get(signature) if pointers % 16 == 0 else None
    with contextlib.nullcontext() if device == torch.cuda.current_device() else torch.cuda.device(device):
        if launcher is not None:
            launcher(*arguments)
            return
        compiled = kernel[(programs,)](*arguments, **options)
        if pointers % 16 == 0:
            _launchers[signature] = compiled[(programs, 1, 1)]


def as_torch(array: Any) -> Tensor:
    """The same memory as a torch tensor, for arrays of CuPy, JAX and every other library with DLPack.

    If their libraries are still computing the array, the GPU waits for it on torch's stream; the host does not wait.
    """
    return array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)


def like(tensor: Tensor, array: Any) -> Any:
    """The same memory as an array of the library of ``array``; the stream of that library waits for torch's.

    Keep the arrays that were passed to ``as_torch`` until then, since their library may reuse their memory when they
    are deleted. Do not write into a tensor that was passed to JAX, which assumes that its arrays never change.
    """
    if isinstance(array, torch.Tensor):
        return tensor
    known = hasattr(array, "__array_namespace__")
    library = array.__array_namespace__() if known else import_module(type(array).__module__.partition(".")[0])
    return library.from_dlpack(tensor)
