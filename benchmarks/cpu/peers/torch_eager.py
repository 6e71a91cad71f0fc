"""PyTorch, one operation after the other, images with channels last."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.cpu.networks import Network
from benchmarks.cpu.peers import Prepared, torch_network
from benchmarks.cpu.workloads import Data, Node, Workload

torch: Any = importlib.import_module("torch")


def version() -> str:
    return torch.__version__


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    function, inputs = build(workload, data, threads)
    return called(function, inputs)


def called(function: Callable[..., Any], inputs: list[Any]) -> Prepared:
    """Calls of a function on tensors, and its last result with channels last."""
    kept: list[Any] = [None]

    def run() -> None:
        with torch.inference_mode():
            kept[0] = function(*inputs)

    def result() -> Any:
        found = kept[0]
        return (found[0].permute(1, 2, 0) if found.ndim == 4 else found).contiguous().numpy()

    return run, result


def build(workload: Workload | Network, data: Data, threads: int) -> tuple[Callable[..., Any], list[Any]]:
    """The workload as a function of tensors, and the tensors."""
    torch.set_num_threads(threads)
    if isinstance(workload, Network):
        return torch_network.build(workload), [torch.from_numpy(array) for array in data.values()]
    names = list(data)
    images = any(node.op in ("conv", "depthwise", "maxpool") for node in workload.graph)
    values = [tensor(name, data[name], images=images) for name in names]

    def function(*given: Any) -> Any:
        found = dict(zip(names, given, strict=True))
        for node in workload.graph:
            found[node.out] = apply(node, [found[name] for name in node.inputs])
        return found[workload.output]

    return function, values


def tensor(name: str, array: Any, *, images: bool) -> Any:
    """An array as torch wants it: images and filters as four axes, in memory channels last."""
    made = torch.from_numpy(array)
    if not images:
        return made
    if name[0] in "KL":  # filters; those of 1x1 convolutions may have two axes
        made = made[None, None] if made.ndim == 2 else made
        made = made.unsqueeze(2) if made.ndim == 3 else made
        return made.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    if made.ndim == 1:
        return made.reshape(1, -1, 1, 1)
    return made.permute(2, 0, 1)[None].contiguous(memory_format=torch.channels_last)


def apply(node: Node, given: list[Any]) -> Any:
    """The result of an operation on tensors."""
    functional, settings = torch.nn.functional, node.settings
    moves = {"stride": settings.get("stride", 1), "padding": settings.get("pad", 0)}
    operations: dict[str, Any] = {
        "matmul": torch.matmul,
        "transposed": lambda a, b: torch.matmul(a, b.transpose(-1, -2)),
        "i8": torch._int_mm,
        "conv": lambda image, filters: functional.conv2d(image, filters, **moves),
        "depthwise": lambda image, filters: functional.conv2d(image, filters, groups=image.shape[1], **moves),
        "maxpool": lambda image: functional.max_pool2d(image, settings["size"], settings["stride"]),
        "add": torch.add,
        "relu": torch.relu,
        "scale": lambda x: x * settings["factor"],
        "softmax": lambda x: torch.softmax(x, -1),
        "layernorm": lambda x, scale, shift: functional.layer_norm(x, scale.shape, scale, shift),
    }
    return operations[node.op](*given)
