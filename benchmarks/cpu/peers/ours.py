"""The list `cpu` with `--hw native`, compiled by the C compiler that `STRIPE_BENCH_CC` names."""

from __future__ import annotations

import os

from benchmarks.cpu.networks import Network
from benchmarks.cpu.peers import Prepared
from benchmarks.cpu.workloads import Data, Workload
from stripe.api.compiling import run_passes
from stripe.api.reading import read
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.toolchain import find_compiler, identity
from stripe.tile import compile_tile

CC = os.environ.get("STRIPE_BENCH_CC")


def version() -> str:
    return identity(find_compiler(CC), False).splitlines()[0]


def prepare(workload: Workload | Network, data: Data, threads: int) -> Prepared:
    network = isinstance(workload, Network)
    program = read(workload.path) if network else compile_tile(workload.tile, workload.key, {})
    program = run_passes(program, "cpu", hardware="native")
    built = compile_program(program, CompileOptions(CC, openmp=threads > 1, threads=threads))
    call, outputs = built.bind(data)
    return call, lambda: next(iter(outputs().values()))
