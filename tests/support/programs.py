"""Programs by name, from `tests/programs`, and one builder for programs that parameters decide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from stripe.ir import Program, parse_program, row_major, verify_structural

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


def source(name: str) -> str:
    """The text of `tests/programs/NAME.stripe`."""
    return (PROGRAMS / f"{name}.stripe").read_text("utf-8")


def load(name: str) -> Program:
    """The program of `tests/programs/NAME.stripe`."""
    return parse_program(source(name), f"{name}.stripe")


MATMUL = source("matmul")
"""A matrix product; its index `one` is there for `prune_indexes` to drop."""


def checked(text: str) -> Program:
    """The program of `text`, structurally valid."""
    program = parse_program(text, "test.stripe")
    problems = [str(diagnostic) for diagnostic in verify_structural(program)]
    assert not problems, problems
    return program


def build(tensors: str, kernels: str, name: str = "test") -> Program:
    """A program from its tensors and the statements of its main, structurally valid.

    A tensor is `ROLE NAME dtype(SIZES)`, such as `in A i8(3 4)`, row-major; lines or `;` separate tensors. The role
    is `in`, `out`, `inout` or `tmp` (a buffer between kernels); a dtype left out is fp32: `in A 3 4`.
    """
    entry: list[str] = []
    main: list[str] = []
    for line in re.split(r"[;\n]\s*", tensors.strip()):
        role, tensor, sizes = line.split(maxsplit=2)
        dtype, _, sizes = sizes.rpartition("(")
        dims = row_major(tuple(int(size) for size in sizes.rstrip(")").split()))
        zeros = ", ".join("0" for _ in dims)
        stored = f"{dtype or 'fp32'}({', '.join(f'{dim.size}:{dim.stride}' for dim in dims)})"
        entry.append(
            f"    #{'tmp' if role == 'tmp' else 'user'} none new@0x00000000 {tensor}[{zeros}] {stored}"
        )
        agg = "" if role == "in" else ":assign"
        main.append(f"      {'inout' if role == 'tmp' else role} {tensor}[{zeros}]{agg} {stored}")
    text = "\n".join([
        f"0: #program block [] ( // {name}", *entry, ") {",
        "  0: #main block [] ( // main", *main, "  ) {", kernels, "  }", "}",
    ])  # fmt: skip
    return checked(text)


def elementwise(statements: str, count: int, inputs: Mapping[str, str], output: str) -> Program:
    """Loads each input vector X into $X, runs `statements`, and stores $O into the vector O of dtype `output`."""
    refs = [f"in<[0]> {name}[i] {dtype}(1:1)" for name, dtype in inputs.items()]
    lines = [f"${name} = load({name})" for name in inputs]
    lines += [line.strip() for line in statements.strip().splitlines()] + ["O = store($O)"]
    newline = "\n"
    body = f"""0: #kernel block [i:{count}] ( // elementwise
{newline.join(refs)}
out<[0]> O[i]:assign {output}(1:1)
) {{
{newline.join(f"{number}: {line}" for number, line in enumerate(lines))}
}}"""
    tensors = [*(f"in {name} {dtype}({count})" for name, dtype in inputs.items()), f"out O {output}({count})"]
    return build("\n".join(tensors), body)
