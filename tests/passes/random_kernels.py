"""Random programs of two to five kernels: windows, products, transposes, fills, floors and remainders."""

from __future__ import annotations

from hypothesis import strategies as st

from stripe.ir import Block
from tests.passes.kernels import Sizes, kernel

Made = tuple[list[Block], dict[str, Sizes], list[str]]


@st.composite
def programs(draw: st.DrawFn) -> Made:
    """Two to five kernels on vectors and matrices, each reading what some earlier one (or nobody) wrote."""
    shapes: dict[str, Sizes] = {"I": (draw(st.integers(4, 9)), draw(st.integers(2, 4)))}
    kernels: list[Block] = []
    tensors = ["I"]
    for number in range(draw(st.integers(2, 5))):
        source = draw(st.sampled_from(tensors[-3:]))
        name = f"T{number}"
        kernels += draw(st.sampled_from(KINDS))(draw, name, source, shapes)
        tensors.append(name)
    read = {ref.source for block in kernels for ref in block.inputs}
    outputs = [name for name in tensors[1:] if name not in read or draw(st.integers(0, 4)) == 0]
    return kernels, shapes, outputs


def _pointwise(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    rows, columns = shapes[name] = shapes[source]
    others = [other for other in shapes if shapes[other] == shapes[source] and other != name]
    other = draw(st.sampled_from(others))
    return [
        kernel(f"{name}[i,j] = assign add({source}[i,j], {other}[i,j])", {"i": rows, "j": columns}, shapes)
    ]


def _transposed(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    rows, columns = shapes[source]
    shapes[name] = (columns, rows)
    return [kernel(f"{name}[j,i] = assign neg({source}[i,j])", {"i": rows, "j": columns}, shapes)]


def _broadcast(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    """A sum over rows, as wide as before."""
    rows, columns = shapes[name] = shapes[source]
    return [
        kernel(f"{name}[i,j] = add ident({source}[i,k])", {"i": rows, "j": columns, "k": columns}, shapes)
    ]


def _window(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    rows, columns = shapes[source]
    taps, step = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pad = draw(st.integers(0, min(1, taps - 1)))  # each window has an element of the source
    count = max(1, (rows + 2 * pad - taps) // step + 1)
    shapes[name] = (count, columns)
    at = f"{step}*x + k - {pad}"
    return [
        kernel(
            f"{name}[x,c] = {draw(st.sampled_from(['add', 'max']))} ident({source}[{at},c])",
            {"c": columns, "k": taps, "x": count},
            shapes,
            where=[at, f"{rows - 1} - {step}*x - k + {pad}"],
        )
    ]


def _matmul(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    rows, columns = shapes[source]
    width = draw(st.integers(1, 4))
    weights = f"W{name}"
    shapes[weights] = (columns, width)
    shapes[name] = (rows, width)
    text = f"{name}[m,n] = add mul({source}[m,k], {weights}[k,n])"
    return [kernel(text, {"k": columns, "m": rows, "n": width}, shapes)]


def _spread(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    """Every second element of the result is written, others are filled by an initialising block."""
    rows, columns = shapes[source]
    shapes[name] = (2 * rows, columns)
    fill = f"{name}[2*x+1,c] = assign neg({source}[x,c])"
    text = f"{name}[2*x,c] = add mul({source}[x,c], {source}[x,c])"
    sizes = {"c": columns, "x": rows}
    return [kernel(fill, sizes, shapes, name=f"init_{name}", tags=["init"]), kernel(text, sizes, shapes)]


def _scattered(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    """A transposed convolution: windows of the output overlap."""
    rows, columns = shapes[source]
    shapes[name] = (rows + 1, columns)
    text = f"{name}[x+k,c] = add ident({source}[x,c])"
    return [kernel(text, {"c": columns, "k": 2, "x": rows}, shapes)]


def _shifted(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    rows, columns = shapes[source]
    by = draw(st.integers(0, min(3, rows - 1)))
    shapes[name] = (rows - by, columns)
    sizes = {"i": rows - by, "j": columns}
    return [kernel(f"{name}[i,j] = assign relu({source}[i+{by},j])", sizes, shapes)]


def _folded(draw: st.DrawFn, name: str, source: str, shapes: dict[str, Sizes]) -> list[Block]:
    """Reads through a floor and a remainder."""
    rows, columns = shapes[source]
    shapes[name] = (rows * columns, 1)
    text = f"{name}[i,0] = assign ident({source}[floor(i/{columns}), i mod {columns}])"
    if columns == 1:
        text = f"{name}[i,0] = assign ident({source}[i,0])"
    return [kernel(text, {"i": rows * columns}, shapes)]


KINDS = [
    _pointwise, _transposed, _broadcast, _window, _window, _matmul, _spread, _scattered, _shifted, _folded,
]  # fmt: skip
