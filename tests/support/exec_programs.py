"""Programs for the tests of engines, built from what matters in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stripe.ir import Program, parse_program, row_major, verify_structural


def checked(text: str) -> Program:
    """The program of `text`, structurally valid."""
    program = parse_program(text, "test.stripe")
    problems = [str(diagnostic) for diagnostic in verify_structural(program)]
    assert not problems, problems
    return program


def tensor(name: str, sizes: Sequence[int], dtype: str = "fp32") -> str:
    """`name[0, 0] dtype(sizes:strides)` of a row-major tensor."""
    dims = ", ".join(f"{d.size}:{d.stride}" for d in row_major(tuple(sizes)))
    return f"{name}[{', '.join('0' for _ in sizes)}] {dtype}({dims})"


Shapes = Mapping[str, tuple[Sequence[int], str]]


def program(body: str, *, inputs: Shapes, outputs: Shapes, temporaries: Shapes | None = None) -> Program:
    """A program whose main has `body` as its statements and sees all tensors under their names."""
    temporaries = temporaries or {}
    entry = [f"#user none new@0x00000000<[0]> {tensor(n, s, d)}" for n, (s, d) in inputs.items()]
    entry += [f"#user none new@0x00000000<[0]> {_out(n, s, d)}" for n, (s, d) in outputs.items()]
    main = [f"in<[0]> {tensor(n, s, d)}" for n, (s, d) in inputs.items()]
    main += [f"out<[0]> {_out(n, s, d)}" for n, (s, d) in outputs.items()]
    main += [f"none new@0x00000000<[0]> {_out(n, s, d)}" for n, (s, d) in temporaries.items()]
    newline = "\n"
    return checked(f"""0: #program block [] (
{newline.join(entry)}
) {{
  0: #main block [] ( // main
{newline.join(main)}
  ) {{
{body}
  }}
}}
""")


def _out(name: str, sizes: Sequence[int], dtype: str) -> str:
    return tensor(name, sizes, dtype).replace("] ", "]:assign ", 1)


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
    return program(
        body,
        inputs={name: ((count,), dtype) for name, dtype in inputs.items()},
        outputs={"O": ((count,), output)},
    )
