"""Exact access counts of a mapping: for each kernel and operand the elements that cross from one memory level to the
next.

A mapping is a nest of blocks: outer indices are outer loops, in the order in which they stand, indices tagged `spatial`
run at the same time on parallel units. An allocation located in a memory is what a level holds of an operand, its
transfer blocks tell its box. The rules are those of Timeloop, ZigZag and AccelForge (see docs/sim.md):

- a level gets a box anew when the box changes: all of it (`refetch`) or what it did not hold before (`keep`);
- an output box that leaves is written up, one that comes back is read down, a first visit reads nothing;
- an element that parallel units use in one step is read once from a memory that they share, and results that they add
  to one element are summed before they reach it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from math import prod

from stripe.cost.counts.energy import count_energy
from stripe.cost.counts.loops import Halo, entering
from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.counts.traffic import ARRAY, HeldBuffer, KernelCounts, Traffic
from stripe.cost.counts.transfers import Copies, Transfer, as_transfer, own_accesses
from stripe.cost.time.machine import check_locations
from stripe.hw.schema import HardwareModel
from stripe.ir import Agg, Block, Nest, Program, StripeError, walk
from stripe.ir.frozen import replace
from stripe.poly import (
    Access,
    PolyLimit,
    count_domain,
    count_points,
    count_touched,
    points_of,
)


def count_program(
    program: Program, halo: Halo = "refetch", hardware: HardwareModel | None = None
) -> tuple[KernelCounts, ...]:
    """The exact counts of each kernel of `main`; with `hardware` their energies too.

    Raises StripeError for a nest whose steps have no order (copies below constrained loops, copies that rearrange
    their elements), ConfigError for a location that the machine lacks.
    """
    if hardware is not None:
        check_locations(program.entry, hardware)
    outermost = next((ref.location.name for ref in program.entry.refinements if ref.location), "DRAM")
    main_memory = (hardware.main_memory if hardware else None) or outermost
    units = tuple(hardware.tx_units) if hardware else ()
    nest = Nest.root(program.entry)
    found: list[KernelCounts] = []
    for number, outer in nest.children():
        for inner, kernel in outer.children():
            counted = _Counter(kernel, halo, main_memory, units, hardware).count((0, number, inner))
            if hardware is not None:
                _check_fits(counted, hardware)
                compute, memories = count_energy(counted, hardware)
                counted = replace(
                    counted,
                    energy_pJ=compute + sum(memories.values()),
                    compute_pJ=compute,
                    memory_pJ=tuple(memories.items()),
                )
            found.append(counted)
    return tuple(found)


def _check_fits(counted: KernelCounts, hardware: HardwareModel) -> None:
    """Raises StripeError for copies that take more than all memories of a name have."""
    for name, held in counted.held:
        memory = hardware.mem_units.get(name)
        if memory is None or memory.is_cache or held <= memory.size * memory.count:
            continue
        units = f", {memory.count} of {memory.size:,}" if memory.count > 1 else ""
        reason = f"its copies take {held:,} bytes of {name}, which has {memory.size * memory.count:,}{units}"
        hint = "make its tiles smaller, or hold fewer operands there"
        raise StripeError(reason, where=f"kernel {counted.name}", hint=hint)


class _Counter:
    """Counts one kernel."""

    def __init__(
        self, kernel: Nest, halo: Halo, main_memory: str, units: Sequence[str], hardware: HardwareModel | None
    ) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self.halo: Halo = halo
        self.main_memory = main_memory
        self.units = units
        self.transfers: list[Transfer] = []
        self.leaves: list[Nest] = []
        self.rows: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 1])

    def count(self, path: tuple[int, ...]) -> KernelCounts:
        for nest in self.kernel.walk():
            transfer = as_transfer(nest, self.units)
            if transfer is not None:
                self.transfers.append(transfer)
            elif any(not isinstance(s, Block) for s in nest.block.statements):
                self.leaves.append(nest)
        self.copies = Copies(self.transfers)
        self.filled = {t.near.buffer for t in self.transfers if t.fills}
        try:
            for transfer in self.transfers:
                self._count_transfer(transfer)
            for leaf in self.leaves:
                reads: set[str] = set()  # a point reads an element once
                for access in own_accesses(leaf):
                    if access.is_write or access.ref not in reads:
                        self._count_access(leaf, access)
                    if not access.is_write:
                        reads.add(access.ref)
            operations = Operations.sum(
                point_operations(leaf.block).times(count_domain(leaf.domain)) for leaf in self.leaves
            )
            steps = sum(_steps(leaf) for leaf in self.leaves)
        except PolyLimit as limit:
            raise self._error(f"its counts have no closed form within reach: {limit}", None) from None
        block = self.kernel.block
        traffic = tuple(Traffic(*key, *numbers) for key, numbers in self.rows.items())
        buffers = tuple(
            HeldBuffer(ref.name, ref.location.name, ref.elements, ref.bytes * ref.copies, ref.offset)
            for _, inner in walk(block)
            for ref in inner.allocs
            if ref.location
        )
        return KernelCounts(
            block.name, path, operations, steps, traffic, tuple(_held(block).items()), buffers
        )

    def _add(self, access: Access, source: str, sink: str, read: int, written: int) -> None:
        operand = self.copies.root(access.buffer).name
        size = access.nest.block.ref(access.ref).dtype.bytes
        row = self.rows[operand, source, sink]
        row[0], row[1], row[2] = row[0] + read, row[1] + written, size

    def _memory(self, access: Access) -> str:
        """The name of the memory of an access; a buffer without a location lies in the main memory."""
        return access.nest.block.ref(access.ref).location.name or self.main_memory

    def _count_transfer(self, transfer: Transfer) -> None:
        holder = transfer.nest.blocks[-2]
        fixed = transfer.nest.prefix(transfer.nest.depth - 1)
        self._check_order(transfer, fixed)
        near, far = self._memory(transfer.near), self._memory(transfer.far)
        access = self.copies.rooted(transfer.far)
        if not self.copies.is_copy(transfer.near.buffer):
            reason = f"'{transfer.near.buffer}' in {holder.name} is no plain box of '{transfer.far.buffer}'"
            raise self._error(reason, "its transfer must move elements without rearranging them")
        spatial = _spatial_names(transfer.nest)
        loops = tuple(name for name in fixed if name not in spatial)
        apart = tuple(name for name in fixed if name in spatial)
        shared = entering(access, loops, self.halo)
        reader = self._per_position(access, far) or (access, ())
        held = self._per_position(access, near) or (access, apart)
        outer, single = (
            entering(needed, loops, self.halo, instances) if instances else shared
            for needed, instances in (reader, held)
        )
        if transfer.fills:
            self._add(access, far, near, outer, single)
            return
        self._add(access, near, far, single, outer)
        if transfer.aggregates and transfer.near.buffer not in self.filled:
            back, own = (count_touched(*needed) for needed in (reader, held))
            self._add(access, far, near, outer - back, single - own)

    def _per_position(self, access: Access, memory: str) -> tuple[Access, tuple[str, ...]] | None:
        """The access of the block that computes to the elements of a copy in `memory`, and the indices that number the
        instances of this memory: each holds what its position needs. None without such instances."""
        found = [(leaf, rooted) for leaf, rooted in self._used if rooted.buffer == access.buffer]
        instances = self._instances(found[0][0], memory) if len(found) == 1 else ()
        return (found[0][1], instances) if instances else None

    @cached_property
    def _used(self) -> list[tuple[Nest, Access]]:
        """The accesses of the blocks that compute, to the elements of tensors."""
        return [(leaf, self.copies.rooted(found)) for leaf in self.leaves for found in own_accesses(leaf)]

    def _instances(self, leaf: Nest, memory: str) -> tuple[str, ...]:
        """The names in the domain of the spatial indices along whose axes of the grid there is a memory each: those
        that the location of the leaf multiplies by strides of these axes."""
        place = leaf.block.location
        if self.hardware is None or place.name not in self.hardware.exec_units or not place.devices[-1].units:
            return ()
        along = self.hardware.memory(memory).along
        spatial = _spatial_names(leaf)
        number = place.subs(leaf.local).devices[-1].units[0]
        found: list[str] = []
        stride = 1
        for axis in self.hardware.exec_unit(place.name).grid:
            if axis.name in along:
                inside = range(stride, stride * axis.size)
                found += [n for n in sorted(number.names() & spatial) if number.coeff(n) in inside]
            stride *= axis.size
        return tuple(found)

    def _check_order(self, transfer: Transfer, fixed: Sequence[str]) -> None:
        outside = set(fixed)
        for block in transfer.nest.blocks[:-1]:
            if block.constraints:
                reason = f"block {block.name} holds copies, and constraints cut its loops"
                raise self._error(reason, "put constraints into the innermost block, or peel the edges off")
        for affine in transfer.near.index:
            if affine.names() & outside:
                reason = (
                    f"the transfer {transfer.block.name} moves a part of '{transfer.near.buffer}' at a time"
                )
                raise self._error(reason, "put it into the block that holds the copy")

    def _error(self, reason: str, hint: str | None) -> StripeError:
        return StripeError(reason, where=f"kernel {self.kernel.block.name}", hint=hint)

    def _count_access(self, leaf: Nest, access: Access) -> None:
        memory = self._memory(access)
        apart = self._instances(leaf, memory)
        steps = _per_step(leaf, access, apart)
        if not access.is_write:
            self._add(access, memory, ARRAY, steps, steps)
            return
        self._add(access, ARRAY, memory, steps, steps)
        if access.agg is Agg.ASSIGN or access.buffer in self.filled:
            return
        # an accumulation reads, but for the first of an element since it entered without a value
        inside = leaf.prefix(len(access.buffer.path) - 1)
        rooted = self.copies.rooted(access)
        if self.copies.is_copy(access.buffer):
            spatial = _spatial_names(leaf)
            inside = tuple(name for name in inside if name in spatial)
        first = count_touched(rooted, (*inside, *apart))
        self._add(access, memory, ARRAY, steps - first, 0)


def _spatial_names(nest: Nest) -> frozenset[str]:
    """The names in the domain of the indices that parallel units run."""
    return frozenset(
        f"{index.name}@{depth}"
        for depth, block in enumerate(nest.blocks)
        for index in block.iterated
        if index.is_spatial
    )


def _per_step(leaf: Nest, access: Access, apart: Sequence[str]) -> int:
    """Elements accessed, each once a step however many parallel units share it; copies of their own count apart, and
    so do the instances of a memory that the indices `apart` number."""
    domain = leaf.domain
    spatial = _spatial_names(leaf)
    outside = {*leaf.prefix(len(access.buffer.path) - 1), *apart}
    keys = tuple(name for name in domain.names if name not in spatial or name in outside)
    if len(keys) == len(domain.names):
        return count_domain(domain) * prod(access.sizes)
    return count_touched(access, keys)


def _steps(leaf: Nest) -> int:
    """The points of a leaf in time."""
    domain = leaf.domain
    spatial = _spatial_names(leaf)
    names = tuple(name for name in domain.names if name not in spatial)
    if not domain.constraints:
        return domain.volume(names)
    whole = len(names) == len(domain.names)
    return count_domain(domain) if whole else count_points(points_of(domain).onto(names))


def _held(block: Block) -> Counter[str]:
    """Bytes of the allocations in each memory: all of a nest together, the largest of blocks one after the other."""
    total: Counter[str] = Counter()
    for ref in block.allocs:
        total[ref.location.name] += ref.bytes
    inner: Counter[str] = Counter()
    for child in block.blocks:
        inner |= _held(child)
    total.update(inner)
    return total
