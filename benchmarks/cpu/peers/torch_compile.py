"""PyTorch, compiled by TorchInductor, with constant weights (`freezing`)."""

from __future__ import annotations

from typing import Any

from benchmarks.cpu.peers import Prepared
from benchmarks.cpu.peers.torch_eager import build, called, torch
from benchmarks.cpu.workloads import Data, Workload


def version() -> str:
    return torch.__version__


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    function, inputs = build(workload, data, threads)
    torch._dynamo.reset()
    config: Any = torch._inductor.config
    config.freezing = True
    return called(torch.compile(function), inputs)
