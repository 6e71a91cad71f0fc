"""The specials: gather, scatter and the random generator, as loops over whole areas."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from stripe.emit.c.intrinsics import cast, merge
from stripe.emit.c.writer import Writer
from stripe.emit.loops.plan import is_short
from stripe.emit.loops.scope import Area
from stripe.ir import DTYPES, Affine, Agg, DType, Special


def emit_special(special: Special, outputs: Sequence[Area], inputs: Sequence[Area], writer: Writer) -> None:
    """Emits `special` on areas. No output shares memory with an input."""
    writer.line(f"// {', '.join(special.outputs)} = {special.op}({', '.join(special.inputs)})")
    if special.op == "gather":
        _gather(outputs[0], inputs[0], inputs[1], writer)
    elif special.op == "scatter":
        _scatter(outputs[0], inputs[0], inputs[1], writer)
    elif special.op == "prng_step":
        _prng_step(outputs[0], outputs[1], inputs[0], writer)
    else:
        raise AssertionError(f"no C for the special '{special.op}'")


def _gather(out: Area, data: Area, index: Area, writer: Writer) -> None:
    """out[i…, j…] = data[clamp(index[i…]), j…]"""
    rank = len(index.sizes)
    with _elements(out.sizes, writer) as at:
        row = _row(index, at[:rank], writer)
        clamped = writer.let_index("row", f"{writer.helpers.need('clamp')}({row}, {data.sizes[0] - 1})")
        value = _load("value", data, (Affine.var(clamped), *at[rank:]), writer)
        _store(out, at, value, data.pointer.dtype, writer)


def _scatter(out: Area, updates: Area, index: Area, writer: Writer) -> None:
    """out[index[i…], j…] += updates[i…, j…], from zero; rows outside are dropped."""
    dtype = out.pointer.dtype
    rank = len(index.sizes)
    with writer.box(out.sizes) as at:
        element = writer.element(out, at, write=True)
        writer.line(f"{element} = {writer.memory_literal(0, dtype)};")
    with _elements(updates.sizes, writer) as at:
        row = writer.let_index("row", _row(index, at[:rank], writer))
        with writer.function.braces(f"if ({row} >= 0 && {row} < {out.sizes[0]})"):
            place = (Affine.var(row), *at[rank:])
            value = _convert(_load("value", updates, at, writer), updates.pointer.dtype, dtype, writer)
            old = _load("old", out, place, writer)
            _store(out, place, merge(Agg.ADD, old, value, dtype, writer), dtype, writer)


def _prng_step(state: Area, value: Area, start: Area, writer: Writer) -> None:
    """Column j of the state makes the elements j, j + columns, … of the value, one step of the generator each."""
    line, u32 = writer.line, DTYPES["u32"]
    word_type = writer.dialect.scalar_type(u32)
    count, columns = prod(value.sizes), start.sizes[1]
    names = writer.scope.names.child()
    words = [names.take(f"s{number}") for number in (1, 2, 3)]
    column, item = names.take("column"), names.take("item")
    writer.function.declare(column, item)
    with writer.function.loop(column, "0", str(columns), is_short=is_short(columns)):
        for row, name in enumerate(words):
            line(f"{word_type} {name} = {writer.element(start, (Affine(row), Affine.var(column)))};")
        short = is_short(-(-count // columns))
        with writer.function.loop(item, column, str(count), columns, is_short=short):
            for name, (mask, up, low, down) in zip(words, _TAUS88, strict=True):
                line(f"{name} = (({name} & {mask}u) << {up}) ^ ((({name} << {low}) ^ {name}) >> {down});")
            uniform = names.take("uniform")
            line(f"const float {uniform} = (float)({' ^ '.join(words)}) * 0x1p-32f;")
            _store(value, _coordinates(item, value.sizes), uniform, DTYPES["fp32"], writer)
        for row, name in enumerate(words):
            element = writer.element(state, (Affine(row), Affine.var(column)), write=True)
            line(f"{element} = {writer.stored(name, u32)};")


@contextmanager
def _elements(sizes: Sequence[int], writer: Writer) -> Generator[tuple[Affine, ...]]:
    """Loops over all elements, or a scope for the variables of the only one."""
    with ExitStack() as stack:
        if prod(sizes) == 1:
            stack.enter_context(writer.function.braces(""))
        yield stack.enter_context(writer.box(sizes))


def _row(index: Area, at: tuple[Affine, ...], writer: Writer) -> str:
    """The value of an element of the index tensor as an index."""
    element = writer.element(index, at)
    is_u64 = index.pointer.dtype.name == "u64"
    return f"{writer.helpers.need('index_u64')}({element})" if is_u64 else element


def _load(wanted: str, area: Area, at: tuple[Affine, ...], writer: Writer) -> str:
    dtype = area.pointer.dtype
    return writer.let(wanted, writer.loaded(writer.element(area, at), dtype), dtype, local=True)


def _convert(value: str, source: DType, target: DType, writer: Writer) -> str:
    if source == target:
        return value
    return writer.let("converted", cast(value, source, target, writer), target, local=True)


def _store(area: Area, at: tuple[Affine, ...], value: str, source: DType, writer: Writer) -> None:
    """Stores an expression of `source`, converted, at coordinates of the area."""
    dtype = area.pointer.dtype
    element = writer.element(area, at, write=True)
    stored = _convert(writer.let("result", value, source, local=True), source, dtype, writer)
    writer.line(f"{element} = {writer.stored(stored, dtype)};")


_TAUS88 = ((4294967294, 12, 13, 19), (4294967288, 4, 2, 25), (4294967280, 17, 3, 11))
"""L'Ecuyer's combined Tausworthe generator (Math. Comp. 65, 1996): mask, shift left, inner shift left, shift right."""


def _coordinates(item: str, sizes: tuple[int, ...]) -> tuple[Affine, ...]:
    """Where the element number `item` in row-major order of `sizes` lies."""
    coordinates: list[Affine] = []
    below = 1
    for size in reversed(sizes):
        whole = Affine.var(item).floordiv(below)
        coordinates.append(whole if len(coordinates) == len(sizes) - 1 else whole.mod(size))
        below *= size
    return tuple(reversed(coordinates))
