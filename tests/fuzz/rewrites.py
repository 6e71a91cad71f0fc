"""Rewrites that experts write by hand, with random sizes, and a broken twin of each.

The rewritten program is equal, for the proof, for the enumeration and in a run; the twin is different for all three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from stripe.ir import Program, parse_program
from stripe.tile import compile_tile
from stripe.verify.assumptions import Assumption
from stripe.verify.enumeration import decide
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.running import run_on_all
from stripe.verify.proof.witness import Different, Equal


@dataclass(frozen=True)
class Rewrite:
    """A program, a legitimate rewrite of it, and a wrong one."""

    before: str
    after: str
    twin: str

    def failures(self) -> list[str]:
        """The witnesses that are wrong about the rewrite or about its twin."""
        before, after, twin = (
            parse_program(text, name) if text.startswith("0:") else compile_tile(text, name, {})
            for name, text in (("before", self.before), ("after", self.after), ("twin", self.twin))
        )
        found = [f"rewrite: {wrong}" for wrong in _disagreeing(before, after, Equal)]
        return found + [f"twin: {wrong}" for wrong in _disagreeing(before, twin, Different)]


def _disagreeing(before: Program, after: Program, expected: type[Equal] | type[Different]) -> list[str]:
    answers = {"proof": prove_equal(before, after), "enumeration": decide(before, after)}
    found = [f"{name}: {verdict}" for name, verdict in answers.items() if not isinstance(verdict, expected)]
    run = run_on_all(before, after, frozenset(Assumption))
    if bool(run.failed) is (expected is Equal):
        found.append(f"run: {run}")
    return found


def im2col(random: Random) -> Rewrite:
    """A convolution as a product with a matrix of its windows."""
    x, k, c, o = (random.randint(2, 5) for _ in range(4))
    head = f"function (I[XI={x + k - 1}, C={c}], K[W={k}, C, O={o}]) -> (Q)"
    patches = f"P[x, {c}*k + c : {x}, {k * c}] = =(I[x + k, c]), k < {k};"
    weights = f"F[{c}*k + c, o : {k * c}, O] = =(K[k, c, o]);"
    product = f"Q[x, o : {x}, O] = +(P[x, j] * F[j, o]);"
    # The twin numbers windows and weights in different orders.
    other = f"F[{k}*c + k, o : {k * c}, O] = =(K[k, c, o]);"
    return Rewrite(
        f"{head} {{ Q[x, o : {x}, O] = +(I[x + k, c] * K[k, c, o]); }}",
        f"{head} {{ {patches} {weights} {product} }}",
        f"{head} {{ {patches} {other} {product} }}",
    )


def split_k(random: Random) -> Rewrite:
    """A product in parts of its reduction, which are summed afterwards."""
    m, n, parts, length = (random.randint(2, 5) for _ in range(4))
    head = f"function (A[M={m}, K={parts * length}], B[K, N={n}]) -> (C)"

    def split(count: int) -> str:
        part = f"P[s, i, j : {parts}, M, N] = +(A[i, {length}*s + q] * B[{length}*s + q, j]), q < {count};"
        return f"{head} {{ {part} C[i, j : M, N] = +(P[s, i, j]); }}"

    before = f"{head} {{ C[i, j : M, N] = +(A[i, k] * B[k, j]); }}"
    return Rewrite(before, split(length), split(length - 1))


def packed(random: Random) -> Rewrite:
    """A product whose first operand lies in panels of rows."""
    panels, rows, k, n = (random.randint(2, 4) for _ in range(4))
    head = f"function (A[M={panels * rows}, K={k}], B[K, N={n}]) -> (C)"

    def product(row: str) -> str:
        pack = f"P[p, k, r : {panels}, K, {rows}] = =(A[{rows}*p + r, k]), r < {rows};"
        return f"{head} {{ {pack} C[{rows}*p + r, j : M, N] = +(P[p, k, {row}] * B[k, j]), r < {rows}; }}"

    before = f"{head} {{ C[i, j : M, N] = +(A[i, k] * B[k, j]); }}"
    return Rewrite(before, product("r"), product(f"{rows - 1} - r"))


def separable_pooling(random: Random) -> Rewrite:
    """A maximum over windows, by rows and then by columns."""
    x, y = (random.randint(2, 5) for _ in range(2))
    w, h = (random.randint(2, 3) for _ in range(2))
    stride = random.randint(1, 2)
    head = f"function (I[X={stride * (x - 1) + w}, Y={y + h - 1}]) -> (O)"

    def pooled(width: int) -> str:
        rows = f"R[x, y : {x}, Y] = >(I[{stride}*x + i, y]), i < {width};"
        return f"{head} {{ {rows} O[x, y : {x}, {y}] = >(R[x, y + j]), j < {h}; }}"

    before = f"{head} {{ O[x, y : {x}, {y}] = >(I[{stride}*x + i, y + j]), i < {w}, j < {h}; }}"
    return Rewrite(before, pooled(w), pooled(w - 1))


_SQUARED = """0: #program block [] ( // squares
    #user none new@0x00000000<[0]> I[0, 0] fp32({steps}:{size}, {size}:1)
    #user none new@0x00000000<[0]> O[0, 0] fp32({steps}:{size}, {size}:1)
{halves}) {{
  0: #main block [] ( // main
      in<[0]> I[0, 0] fp32({steps}:{size}, {size}:1)
      out<[0]> O[0, 0]:assign fp32({steps}:{size}, {size}:1)
{views}  ) {{
{body}  }}
}}
"""
_STEP = """    {number}: #kernel block [{indices}] ( // {name}
        in<[0]> {source} fp32(1:{size}, 1:1)
        out<[0]> {target}:assign fp32(1:{size}, 1:1)
    ) {{
      0: $a = load({read})
{compute}    }}
"""


def double_buffering(random: Random) -> Rewrite:
    """Each step squares a row from one half of a buffer while the next row comes into the other half."""
    steps, size = random.randint(2, 6), random.randint(1, 5)

    def step(number: int, indices: str, source: str, target: str, *, squared: bool) -> str:
        write = target.partition("[")[0]
        compute = f"      1: {write} = store($a)\n"
        if squared:
            compute = f"      1: $b = mul($a, $a)\n      2: {write} = store($b)\n"
        return _STEP.format(
            number=number, indices=indices, name="square" if squared else "fetch", source=source,
            target=target, size=size, read=source.partition("[")[0], compute=compute,
        )  # fmt: skip

    def program(body: str, *, buffered: bool) -> str:
        halves = f"    #tmp none new@0x00000000<[0]> B[0, 0] fp32(2:{size}, {size}:1)\n" * buffered
        views = f"      inout<[0]> B[0, 0]:assign fp32(2:{size}, {size}:1)\n" * buffered
        return _SQUARED.format(steps=steps, size=size, halves=halves, views=views, body=body)

    def pipelined(ahead: int) -> str:
        x = f"x:{size}"
        lines = [step(0, x, "I[0, x]", "B[0, x]", squared=False)]
        for t in range(steps):
            if t + 1 < steps:
                half = (t + 1 + ahead) % 2
                lines.append(step(len(lines), x, f"I[{t + 1}, x]", f"B[{half}, x]", squared=False))
            lines.append(step(len(lines), x, f"B[{t % 2}, x]", f"O[{t}, x]", squared=True))
        return program("".join(lines), buffered=True)

    before = program(step(0, f"t:{steps}, x:{size}", "I[t, x]", "O[t, x]", squared=True), buffered=False)
    return Rewrite(before, pipelined(0), pipelined(1))


FAMILIES: dict[str, Callable[[Random], Rewrite]] = {
    rewrite.__name__: rewrite for rewrite in (im2col, split_k, packed, double_buffering, separable_pooling)
}


def check_rewrites(name: str, count: int, seed: int) -> list[str]:
    """The failures of `count` rewrites of a family, each with its seed."""
    found: list[str] = []
    for number in range(seed, seed + count):
        rewrite = FAMILIES[name](Random(f"{name}/{number}"))
        found += [f"{name} {number}: {failure}\n{rewrite}" for failure in rewrite.failures()]
    return found
