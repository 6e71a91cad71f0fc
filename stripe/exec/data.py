"""Data for programs: random inputs from a seed, and tensors in .npz files.

A .npz file holds one array per tensor under the tensor's name. A tensor of a dtype that numpy's format does not know is
kept as its bits, unsigned integers under the name followed by the dtype, as `A@bf16` or `A@fp8e4m3`; fp32 under the
plain name is taken too, when all of it is exact in the dtype.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np

from stripe.exec.arith import Array
from stripe.exec.errors import ExecutionError
from stripe.exec.exactness import best_magnitude, takes_positive
from stripe.exec.layout import check_inputs
from stripe.ir import (
    DTYPES,
    Block,
    DType,
    Intrinsic,
    Load,
    Program,
    Refinement,
    Special,
    Store,
    StripeError,
    walk,
)
from stripe.output import writing

_FOREIGN = {dtype.array_type: dtype for dtype in DTYPES.values() if not dtype.in_numpy}
"""The dtypes that numpy's format does not know, by their names in arrays."""


def _bits(dtype: DType) -> np.dtype[np.generic]:
    """The unsigned integers that hold the bits of a dtype."""
    return np.dtype(f"u{dtype.bytes}")


_WITHIN_ONE = frozenset({"asin", "acos", "atanh"})


def random_inputs(
    program: Program, seed: int = 0, *, step: float = 1.0, signs: bool = False
) -> dict[str, Array]:
    """Inputs for `program` from `seed`: small integers, in a range that keeps float sums exact where that is possible.

    Indices of gather and scatter lie within range, states of the random generator are valid ones. Where the program
    takes logarithms, roots or quotients numbers are positive, or with `signs` no zeros; where it takes arc functions
    they are eighths within one. Other floats are multiples of `step`.
    """
    generator = np.random.default_rng(seed)
    ops = {s.op for _, block in walk(program.entry) for s in block.statements if isinstance(s, Intrinsic)}
    magnitude = best_magnitude(program)
    positive = takes_positive(program)
    roles = _roles(program)
    result: dict[str, Array] = {}
    for ref in program.inputs:
        role = roles.get(ref.name, _TensorUse())
        if role.state:
            values = generator.integers(16, 1 << 32, ref.logical_sizes, np.int64)
        elif role.size is not None:
            values = generator.integers(0, role.size, ref.logical_sizes, np.int64)
        elif ref.dtype.kind == "bool":
            values = generator.integers(0, 2, ref.logical_sizes, np.int64)
        elif ref.dtype.is_float and ops & _WITHIN_ONE:
            values = generator.integers(1 if positive else -7, 8, ref.logical_sizes, np.int64) / 8.0
        elif ref.dtype.is_float:
            most = int(magnitude / step)
            low = 1 if positive else -most
            values = generator.integers(low, most + 1, ref.logical_sizes, np.int64) * step
            if positive and signs:
                values = np.where(generator.integers(0, 2, ref.logical_sizes, np.int64) == 1, values, -values)
        else:
            low = 1 if positive else 0 if ref.dtype.kind == "uint" else -magnitude
            values = generator.integers(low, magnitude + 1, ref.logical_sizes, np.int64)
        result[ref.name] = np.asarray(values).astype(ref.dtype.numpy())
    return result


def extreme_inputs(program: Program, floats: Sequence[str], *, integers: bool = False) -> dict[str, Array]:
    """Random inputs of which half are at the rim of their dtype. `floats` names the values for tensors of floats: 0,
    inf and nan, `max` and `tiny`, with a sign; with `integers`, integers are the least and greatest of their dtype.
    """
    generator = np.random.default_rng(len(floats))
    roles = _roles(program)
    result = random_inputs(program, len(floats))
    for ref in program.inputs:
        dtype = ref.dtype.numpy()
        if ref.dtype.is_float and floats:
            limits = cast("Any", ml_dtypes.finfo(dtype))
            words = {"max": limits.max, "-max": limits.min, "tiny": limits.tiny, "-tiny": -limits.tiny}
            rim = [dtype.type(words.get(word, word)) for word in floats]
        elif integers and ref.dtype.kind in ("int", "uint") and ref.name not in roles:
            bits = 8 * ref.dtype.bytes
            rim = [0, (1 << bits) - 1] if ref.dtype.kind == "uint" else [-1 << bits - 1, (1 << bits - 1) - 1]
        else:
            continue
        chosen = np.asarray(rim, dtype)[generator.integers(0, len(rim), ref.logical_sizes)]
        half = generator.integers(0, 2, ref.logical_sizes, np.int64) == 1
        result[ref.name] = np.asarray(np.where(half, chosen, result[ref.name]), dtype)
    return result


@dataclass(slots=True)
class _TensorUse:
    """The contents of a tensor: indices below `size`, or the state of the random generator."""

    size: int | None = None
    state: bool = False


def _roles(program: Program) -> dict[str, _TensorUse]:
    """The roles of the entry's tensors, seen through blocks that copy or cast one tensor into another."""
    roles: dict[str, _TensorUse] = {}
    copies: dict[str, set[str]] = {}
    for statement, block, roots in _special_uses(program.entry, {}):
        if statement is None:
            for target, source in _copies(block, roots):
                copies.setdefault(target, set()).add(source)
        elif statement.op == "prng_step":
            roles.setdefault(roots[statement.inputs[0]], _TensorUse()).state = True
        else:
            indexed = block.ref(statement.inputs[0] if statement.op == "gather" else statement.outputs[0])
            role = roles.setdefault(roots[statement.inputs[1]], _TensorUse())
            role.size = min(indexed.sizes[0], role.size or indexed.sizes[0])
    pending = list(roles)
    while pending:
        target = pending.pop()
        for source in copies.get(target, ()):
            if source not in roles:
                roles[source] = roles[target]
                pending.append(source)
    return roles


def _special_uses(
    block: Block, outer: Mapping[str, str], depth: int = 0
) -> Iterator[tuple[Special | None, Block, dict[str, str]]]:
    """Each block (with None) and each special, with the entry's name for what each refinement of the block views."""
    roots = {
        ref.name: (ref.name if depth == 0 else f"{depth}.{ref.name}") if ref.is_alloc else outer[ref.source]
        for ref in block.refinements
    }
    yield None, block, roots
    for statement in block.statements:
        if isinstance(statement, Special):
            yield statement, block, roots
        elif isinstance(statement, Block):
            yield from _special_uses(statement, roots, depth + 1)


def _copies(block: Block, roots: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of tensors, the first of which the block fills with elements of the second as they are, or cast."""
    origin: dict[str, str] = {}
    for statement in block.statements:
        match statement:
            case Load(into, ref):
                origin[into] = roots[ref]
            case Intrinsic(into, "ident" | "cast", (value,)) if value in origin:
                origin[into] = origin[value]
            case Store(ref, value) if value in origin:
                yield roots[ref], origin[value]
            case _:
                pass


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Writes tensors as .npz, whole or not at all. Raises ConfigError when the file cannot be written."""
    stored: dict[str, Array] = {}
    for name, array in arrays.items():
        held = np.asarray(array)
        dtype = _FOREIGN.get(held.dtype.name)
        if dtype is not None:
            stored[f"{name}@{dtype}"] = np.ascontiguousarray(held).view(_bits(dtype))
        else:
            stored[name] = held
    with writing(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in stored.items():  # not np.savez: its keywords make some names impossible
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array of an archive as its header has it; `read` unpacks it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], Array]

    def stand_in(self, ref: Refinement) -> Array:
        """An array of the same shape and dtype without memory. fp32 may become the dtype of `ref` (`_narrowed`)."""
        narrow = not ref.dtype.in_numpy and self.dtype == np.float32
        dtype = ref.dtype.numpy() if narrow else self.dtype
        return np.broadcast_to(np.empty((), dtype), self.shape)


_HEADER = 1 << 14
"""Bytes that hold the header of each .npy file that numpy reads."""


@contextmanager
def stored_arrays(path: str | os.PathLike[str]) -> Generator[dict[str, StoredArray]]:
    """The arrays of a .npz file by the names of tensors, while it is open. Raises ExecutionError, here and inside,
    when it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(6)
            if not start.startswith((b"PK\x03\x04", b"PK\x05\x06", np.lib.format.MAGIC_PREFIX)):
                raise zipfile.BadZipFile  # it would look for the end of the file, and /dev/zero has none
            if start == np.lib.format.MAGIC_PREFIX:
                raise ExecutionError(
                    "the file holds one array without a name", path=str(path), hint="save it with numpy.savez"
                )
            with zipfile.ZipFile(stream) as archive:
                yield dict(_stored(archive, member, path) for member in archive.namelist())
    except StripeError:
        raise
    except Exception as error:  # noqa: BLE001 - numpy and the decompressors raise anything
        hint = "write it with numpy.savez, or with stripe-run --out"
        raise ExecutionError(_unreadable(error), path=str(path), hint=hint) from None


def _stored(archive: zipfile.ZipFile, member: str, path: str | os.PathLike[str]) -> tuple[str, StoredArray]:
    """A member of an archive with the name of its tensor."""
    name = member.removesuffix(".npy")
    with archive.open(member) as stream:
        start = BytesIO(stream.read(_HEADER))
    if start.getvalue()[:6] != np.lib.format.MAGIC_PREFIX:
        reason = f"cannot read tensors: '{name}' is no array"
        raise ExecutionError(reason, path=str(path), hint="write it with numpy.savez")
    version = np.lib.format.read_magic(start)
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read_header(start)
    if dtype.hasobject:
        raise ValueError(f"'{name}' is pickled")
    plain, _, suffix = name.rpartition("@")
    held = DTYPES.get(suffix)
    foreign = held.numpy() if held is not None and not held.in_numpy and dtype == _bits(held) else None

    def read() -> Array:
        with archive.open(member) as stream:
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)
        return array if foreign is None else array.view(foreign)

    return name if foreign is None else plain, StoredArray(shape, foreign or dtype, read)


def _unreadable(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"cannot read tensors: {error.strerror}"
    if isinstance(error, MemoryError):
        return "cannot read tensors: they do not fit into memory"
    encrypted = isinstance(error, RuntimeError) and "encrypted" in str(error)
    return (
        f"cannot read tensors: {'the file is encrypted' if encrypted else 'not a .npz file of plain arrays'}"
    )


def load_inputs(program: Program, path: str | os.PathLike[str]) -> dict[str, Array]:
    """The inputs of `program` from a .npz file, with names, dtypes and shapes checked; other arrays in it are ignored.

    Raises ExecutionError, which names the file and the fault."""
    with stored_arrays(path) as stored:
        wanted = [(ref, stored[ref.name]) for ref in program.inputs if ref.name in stored]
        try:
            # the headers tell what does not fit before anything is unpacked
            check_inputs(program, {ref.name: array.stand_in(ref) for ref, array in wanted})
            return check_inputs(program, {ref.name: _narrowed(ref, array.read()) for ref, array in wanted})
        except ExecutionError as error:
            has = ", ".join(stored) or "nothing"
            raise ExecutionError(
                error.reason, path=str(path), hint=error.hint, where=f"the file has {has}"
            ) from None


def _narrowed(ref: Refinement, array: Array) -> Array:
    """fp32 data for a tensor of a dtype that numpy lacks in that dtype, when nothing is lost; else the data."""
    if ref.dtype.in_numpy or array.dtype != np.float32:
        return array
    narrow = array.astype(ref.dtype.numpy())
    exact = np.array_equal(narrow.astype(np.float32), array, equal_nan=True)
    return narrow if exact else array
