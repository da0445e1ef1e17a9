"""A device that this machine does not have, whose tensors cannot hold float64, as those of Apple's `mps` cannot.

Inside of `Pretend()` tensors that are made on it or sent to it lie in the memory of the CPU, but say that they are not
there: they mix with no tensors of the CPU, become numpy arrays only after `.cpu()`, and are an error with float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "meta"  # the only name besides `cpu` with which PyTorch built for a CPU lets tensors be indexed


class There(Tensor):
    """A tensor on the device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> There:
        if held.dtype == torch.float64:
            raise TypeError("the device has no float64")
        result = Tensor._make_wrapper_subclass(cls, held.shape, strides=held.stride(), dtype=held.dtype, device=DEVICE)  # type: ignore[attr-defined]
        result.held = held
        return result

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: outside of Pretend()")


class Pretend(TorchDispatchMode):
    """While it lasts, there is such a device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        there = any(isinstance(part, There) for part in tree_leaves((args, kwargs)))
        if there and func is not torch.ops.aten._to_copy.default and list(_here(args)):
            raise RuntimeError(f"{func}: got tensors on {DEVICE} and on the CPU")
        if kwargs.get("device") is not None:
            there = torch.device(kwargs["device"]).type == DEVICE
            kwargs["device"] = torch.device("cpu") if there else kwargs["device"]
        elif there and kwargs.get("dtype") == torch.float64:
            raise TypeError("the device has no float64")
        made = func(*tree_map(_held, args), **tree_map(_held, kwargs))
        if func._schema.is_mutable:  # in place
            return args[0]
        return tree_map(lambda part: There(part) if there and isinstance(part, Tensor) else part, made)


def _held(part: Any) -> Any:
    return part.held if isinstance(part, There) else part


def _here(args: Any) -> Iterator[Tensor]:
    """Tensors of the CPU, but for single numbers."""
    tensors = (part for part in tree_leaves(args) if isinstance(part, Tensor))
    return (tensor for tensor in tensors if not isinstance(tensor, There) and tensor.ndim)
