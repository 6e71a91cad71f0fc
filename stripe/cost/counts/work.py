"""The work of kernels as measurements of speed are divided by it: operations, and bytes that have to be moved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.counts.transfers import own_accesses
from stripe.ir import Nest, Program
from stripe.poly import Access, PolyLimit, count_domain, count_points
from stripe.poly.access import element_names
from stripe.poly.sets import union


@dataclass(frozen=True, slots=True)
class KernelWork:
    """Operations, of which a multiply-add is two, and `of_bytes`, the multiply-adds of bytes among them.
    `bytes`: each element that the kernel reads from outside once, and each that it writes outside once."""

    name: str
    operations: int
    of_bytes: int
    bytes: int


def program_work(program: Program) -> tuple[KernelWork, ...]:
    """The work of each kernel of `main`, in order."""
    mains = Nest.root(program.entry).children()
    return tuple(_kernel_work(kernel) for _, main in mains for _, kernel in main.children())


def tensor_bytes(program: Program) -> int:
    """Bytes of the tensors that a program reads and writes."""
    return sum(ref.bytes for ref in (*program.inputs, *program.outputs))


def _kernel_work(kernel: Nest) -> KernelWork:
    leaves = list(kernel.walk())
    done = Operations.sum(point_operations(leaf.block).times(count_domain(leaf.domain)) for leaf in leaves)
    moved: dict[object, list[Access]] = defaultdict(list)
    for access in (access for leaf in leaves for access in own_accesses(leaf)):
        if len(access.buffer.path) < len(kernel.path):  # the buffer lives outside of the kernel
            moved[access.buffer, access.is_write].append(access)
    of_bytes = 2 * sum(count for (product, _), count in done.macs.items() if product.bytes == 1)
    return KernelWork(kernel.block.name, done.total, of_bytes, sum(map(_distinct_bytes, moved.values())))


def _distinct_bytes(accesses: list[Access]) -> int:
    """Bytes of the distinct elements of one buffer that some accesses touch; of all its elements where these cannot be
    counted."""
    first = accesses[0]
    held = first.nest.blocks[len(first.buffer.path) - 1].ref(first.buffer.name)
    try:
        names = element_names(len(first.index))
        return count_points(union((access.footprint for access in accesses), names)) * held.dtype.bytes
    except PolyLimit:
        return held.bytes
