"""Many small programs as one, so that a C compiler runs once for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from stripe.ir import Block, ConstantBuffer, Program, Refinement, Tags

Arrays = Mapping[str, npt.NDArray[Any]]


def merge(programs: Sequence[Program]) -> Program:
    """One program that runs all of `programs`; tensor T of number n is called `n_T` with a letter before."""
    entry: list[Refinement] = []
    outside: list[Refinement] = []
    kernels: list[Block] = []
    constants: list[ConstantBuffer] = []
    for number, program in enumerate(programs):
        names = {ref.name: prefixed(number, ref.name) for ref in program.entry.refinements}
        entry += [replace(ref, name=names[ref.name]) for ref in program.entry.refinements]
        constants += [replace(constant, name=names[constant.name]) for constant in program.constants]
        main = program.main
        views = {ref.name: prefixed(number, ref.name) for ref in main.refinements}
        outside += [
            replace(ref, name=views[ref.name], source=names.get(ref.source, "")) for ref in main.refinements
        ]
        for kernel in main.blocks:
            refs = tuple(replace(ref, source=views.get(ref.source, "")) for ref in kernel.refinements)
            kernels.append(replace(kernel, refinements=refs))
    body = Block("main", refinements=tuple(outside), statements=tuple(kernels), is_main=True)
    whole = Block("batch", refinements=tuple(entry), statements=(body,), tags=Tags.of("program"))
    return Program(whole, tuple(constants))


def prefixed(number: int, name: str) -> str:
    return f"n{number}_{name}"


def merge_arrays(arrays: Sequence[Arrays]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of each program under their names in the merged one."""
    return {prefixed(n, name): array for n, group in enumerate(arrays) for name, array in group.items()}


def split_arrays(arrays: Arrays, count: int) -> list[dict[str, npt.NDArray[Any]]]:
    """The inverse of `merge_arrays`."""
    groups: list[dict[str, npt.NDArray[Any]]] = [{} for _ in range(count)]
    for name, array in arrays.items():
        number, _, plain = name[1:].partition("_")
        groups[int(number)][plain] = array
    return groups
