"""The target `library`: a folder of C sources, with weights, build files and an example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version as installed_version
from typing import ClassVar, Literal

from pydantic import Field, field_validator
from typing_extensions import override

from stripe.emit.c.names import sanitize
from stripe.emit.c.options import LOCAL_ARRAY_BYTES, COptions, OpenMP, Reorder, StackBytes
from stripe.emit.library.build import build_files
from stripe.emit.library.header import header
from stripe.emit.library.sources import emit_sources
from stripe.emit.library.weights import Weights
from stripe.emit.loops.memory import ALIGNMENT
from stripe.emit.targets import FolderTarget
from stripe.exec.layout import constant_array, to_flat
from stripe.ir import (
    Block,
    Location,
    Program,
    Refinement,
    is_row_major,
    live_ranges,
    peak_bytes,
    rewrite_blocks,
    with_entry,
    with_main,
    with_statements,
)
from stripe.passes.base import LocationSpec, PassContext, Remark
from stripe.passes.memory_placement.memory_placement import MemoryPlacement
from stripe.pipeline.fault import InternalFault
from stripe.verify.machine.schedule import check_placement

_ARENA = "main"
_SIGNATURE = "a library by stripe-opt"


class LibraryTarget(FolderTarget):
    """A folder to ship: C that runs in the caller's memory, its weights, build files and an example."""

    target_name: ClassVar[str] = "library"
    unchecked: ClassVar[bool] = True

    name: str = Field(
        default="net", pattern="^[a-z][a-z0-9]{0,31}$",
        description="beginning of the names of files, functions and macros",
    )  # fmt: skip
    weights: Literal["file", "object", "c"] = Field(
        default="file", description="weights in a file that is mapped into memory, in an object, or as C"
    )
    openmp: OpenMP = False
    reorder: Reorder = False
    stack_bytes: StackBytes = LOCAL_ARRAY_BYTES

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name == "example" or any(sanitize(word) != word for word in (name, f"{name}_x")):
            raise ValueError(f"'{name}' has a meaning of its own in C or in the folder")
        return name

    @property
    @override
    def mark(self) -> str:
        return f"{self.name}.h"

    @property
    @override
    def signature(self) -> str:
        return _SIGNATURE

    @property
    @override
    def owned(self) -> tuple[str, ...]:
        return (f"{self.name}_kernels_*.c", f"{self.name}_weights.*", f"{self.name}.weights")

    @override
    def files(self, program: Program, say: Callable[[str], None] | None = None) -> Mapping[str, bytes]:
        version = installed_version("stripe-opt")

        def listen(remark: Remark) -> None:
            if say is not None:
                say(f"remark: {self.target_name}: {remark}\n")

        placed = placed_in_order(program, PassContext(None, listen))
        weights = Weights.of(_constants(placed), str(replace(placed.entry, name="")))
        linked = bool(weights.slots) and self.weights != "file"
        options = COptions(
            openmp=self.openmp, reorder=self.reorder, stack_bytes=self.stack_bytes, constants="arguments"
        )
        title = f"{program.name or 'program'}: {_SIGNATURE} {version}"
        sources = emit_sources(placed, self.name, options, title)
        files = dict(sources.files(weights, linked))
        if linked and self.weights == "c":
            lines = [f"// {sources.title}", "", f'#include "{self.name}_internal.h"', ""]
            lines += [*weights.as_c(f"{self.name}_weights_data"), ""]
            files[f"{self.name}_weights.c"] = "\n".join(lines)
        files[f"{self.name}.h"] = header(sources, weights, linked, version, lower_bound(placed))
        way = self.weights if weights.slots else ""
        files |= dict(build_files(sources, tuple(files), weights=way, openmp=self.openmp))
        found = {name: text.encode() for name, text in files.items()}
        if weights.slots and self.weights != "c":
            found[f"{self.name}.weights"] = weights.data
        return found


def _constants(program: Program) -> Iterator[tuple[str, str, bytes]]:
    """Name, description and bytes of each constant, its elements where the strides of its buffer put them."""
    for constant in program.constants:
        ref = program.entry.ref(constant.name)
        data = constant.data
        if not is_row_major(ref.sizes, ref.strides):
            flat = to_flat(ref, constant_array(constant))
            data = flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
        yield constant.name, f"{ref.dtype} {ref.sizes} {ref.strides}", data


def placed_in_order(program: Program, context: PassContext) -> Program:
    """The program with its buffers between kernels in one arena, for a processor that runs the kernels in order.

    Addresses in the memories of a machine are left out: the arena is memory of the processor that runs the C. Raises
    InternalFault where the independent checker of placements finds an overlap.
    """
    statements = program.main.statements
    chain = [replace(statement, deps=(n - 1,) if n else ()) for n, statement in enumerate(statements)]
    entry = with_main(program.entry, lambda main: with_statements(main, chain))
    bare = rewrite_blocks(entry, lambda block: _without_addresses(block, arena=block.is_main))
    ready = with_entry(program, _without_addresses(bare, arena=True))
    placement = MemoryPlacement(reqs=(), locs=(LocationSpec(name=_ARENA),), alignment=ALIGNMENT)
    placed = placement.run(ready, context)
    if found := check_placement(placed):
        raise InternalFault("buffers of the arena overlap", tuple(map(str, found)))
    return placed


def _without_addresses(block: Block, *, arena: bool) -> Block:
    """`block` without addresses; its buffers, unless kept, in the arena if it has one."""

    def bare(ref: Refinement) -> Refinement:
        if not ref.is_alloc:
            return ref
        location = Location.of(_ARENA) if arena and not ref.is_kept else Location()
        return replace(ref, location=location, offset=None, copies=1, pitch=None, bank_dim=None)

    return replace(block, refinements=tuple(map(bare, block.refinements)))


def lower_bound(program: Program) -> int:
    """Bytes of the arena below which no placement goes: the most that is alive at one kernel."""
    return peak_bytes([live for live in live_ranges(program.entry) if live.ref.location])
