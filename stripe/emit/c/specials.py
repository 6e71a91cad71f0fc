"""The specials: gather, scatter and the random generator, as loops over whole views."""

from __future__ import annotations

from stripe.emit.c.boxes import box_element, box_loops
from stripe.emit.c.function import Function, View
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.intrinsics import cast, merge
from stripe.emit.c.scalars import from_memory, memory_literal, scalar_type, to_memory
from stripe.emit.c.scope import Scope
from stripe.ir import DTYPES, Affine, Agg, DType, Special


def emit_special(special: Special, scope: Scope, function: Function, helpers: Helpers) -> None:
    """Emits `special` on views of `scope`."""
    outputs = [scope.views[name] for name in special.outputs]
    inputs = [scope.views[name] for name in special.inputs]
    emitter = _SpecialEmitter(scope, function, helpers)
    function.line(f"// {', '.join(special.outputs)} = {special.op}({', '.join(special.inputs)})")
    if special.op == "gather":
        emitter.gather(outputs[0], inputs[0], inputs[1])
    elif special.op == "scatter":
        emitter.scatter(outputs[0], inputs[0], inputs[1])
    elif special.op == "prng_step":
        emitter.prng_step(outputs[0], outputs[1], inputs[0])
    else:
        raise AssertionError(f"no C for the special '{special.op}'")


class _SpecialEmitter:
    def __init__(self, scope: Scope, function: Function, helpers: Helpers) -> None:
        self.scope = scope
        self.function = function
        self.helpers = helpers

    def gather(self, out: View, data: View, index: View) -> None:
        """out[i…, j…] = data[clamp(index[i…]), j…]"""
        rank = len(index.sizes)
        with box_loops(out.sizes, self.scope, self.function) as at:
            row = self._row(index, at[:rank])
            last = data.sizes[0] - 1
            clamped = self.scope.names.child().take("row")
            self.function.line(f"const int64_t {clamped} = {self.helpers.need('clamp')}({row}, {last});")
            self.function.declare(clamped)
            value = self._load("value", data, (Affine.var(clamped), *at[rank:]))
            self._store(out, at, value, data.buffer.dtype)

    def scatter(self, out: View, updates: View, index: View) -> None:
        """out[index[i…], j…] += updates[i…, j…], from zero; rows outside are dropped."""
        dtype = out.buffer.dtype
        rank = len(index.sizes)
        with box_loops(out.sizes, self.scope, self.function) as at:
            element = self._element(out, at, write=True)
            self.function.line(f"{element} = {memory_literal(0, dtype)};")
        with box_loops(updates.sizes, self.scope, self.function) as at:
            row = self.scope.names.child().take("row")
            self.function.line(f"const int64_t {row} = {self._row(index, at[:rank])};")
            self.function.declare(row)
            with self.function.braces(f"if ({row} >= 0 && {row} < {out.sizes[0]})"):
                place = (Affine.var(row), *at[rank:])
                value = self._convert(self._load("value", updates, at), updates.buffer.dtype, dtype)
                old = self._load("old", out, place)
                self._store(out, place, merge(Agg.ADD, old, value, dtype, self.helpers), dtype)

    def prng_step(self, state: View, value: View, start: View) -> None:
        """Column j of the state makes the elements j, j + columns, … of the value, one step of the generator each."""
        line, u32 = self.function.line, DTYPES["u32"]
        columns = start.sizes[1]
        names = self.scope.names.child()
        word = [names.take(f"s{number}") for number in (1, 2, 3)]
        column, item = names.take("column"), names.take("item")
        self.function.declare(column, item)
        count = 1
        for size in value.sizes:
            count *= size
        with self.function.braces(f"for (int64_t {column} = 0; {column} < {columns}; ++{column})"):
            for row, name in enumerate(word):
                element = self._element(start, (Affine(row), Affine.var(column)))
                line(f"uint32_t {name} = {element};")
            head = f"for (int64_t {item} = {column}; {item} < {count}; {item} += {columns})"
            with self.function.braces(head):
                for name, (mask, up, low, down) in zip(word, _TAUS88, strict=True):
                    line(f"{name} = (({name} & {mask}u) << {up}) ^ ((({name} << {low}) ^ {name}) >> {down});")
                uniform = names.take("uniform")
                line(f"const float {uniform} = (float)({' ^ '.join(word)}) * 0x1p-32f;")
                self._store(value, _coordinates(item, value.sizes), uniform, DTYPES["fp32"])
            for row, name in enumerate(word):
                element = self._element(state, (Affine(row), Affine.var(column)), write=True)
                line(f"{element} = {to_memory(name, u32, self.helpers)};")

    def _row(self, index: View, at: tuple[Affine, ...]) -> str:
        """The int64_t value of an element of the index tensor."""
        element = self._element(index, at)
        dtype = index.buffer.dtype
        return f"{self.helpers.need('index_u64')}({element})" if dtype.name == "u64" else element

    def _element(self, view: View, at: tuple[Affine, ...], *, write: bool = False) -> str:
        return box_element(view, at, self.scope, self.function, self.helpers, write=write)

    def _load(self, wanted: str, view: View, at: tuple[Affine, ...]) -> str:
        dtype = view.buffer.dtype
        name = self.scope.names.child().take(wanted)
        text = from_memory(self._element(view, at), dtype, self.helpers)
        self.function.line(f"const {scalar_type(dtype)} {name} = {text};")
        return name

    def _convert(self, value: str, source: DType, target: DType) -> str:
        if source == target:
            return value
        name = self.scope.names.child().take("converted")
        self.function.line(
            f"const {scalar_type(target)} {name} = {cast(value, source, target, self.helpers)};"
        )
        return name

    def _store(self, view: View, at: tuple[Affine, ...], value: str, source: DType) -> None:
        """Stores an expression of `source`, converted, at coordinates of the view."""
        dtype = view.buffer.dtype
        element = self._element(view, at, write=True)
        name = self.scope.names.child().take("result")
        self.function.line(f"const {scalar_type(source)} {name} = {value};")
        stored = self._convert(name, source, dtype)
        self.function.line(f"{element} = {to_memory(stored, dtype, self.helpers)};")


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
