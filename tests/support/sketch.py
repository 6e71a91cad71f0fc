"""Sketches of blocks in the docstrings of passes: the block before is completed to a program, the block after is a
pattern of the result.

A sketch is Stripe text that leaves out what does not matter: `…` is any body, the type of an element is fp32, a store
assigns, a location is unknown, a buffer that no line allocates belongs to the program and is as large as the accesses.
Before and after stand side by side with `=>` between them, or one above the other with `=>` on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stripe.ir import ConstantBuffer, Program, parse_affine, parse_program

_VIEW = re.compile(
    r"(?P<tags>(#\S+ )*)(?P<dir>inout|in|out|none new(@(0x\w+|…))?)(?P<loc><[^>]*>)? ?"
    r"(?P<name>[\w.]+)(?P<source> = [\w.]+)?\[(?P<access>[^\]]*)\](?P<bank>#\d+)?(?P<agg>:\w+)?"
    r"( ?(?P<dtype>[a-z]+\d+)?\((?P<dims>[^)]*)\))?"
)
_HEAD = re.compile(
    r"(\d+(?P<deps>\[[\d, ]*\])?: )?(?P<tags>(#\S+ )*)block(?P<loc><[^ ]*>)? \[(?P<indices>[^\]]*)\] ?\("
)


@dataclass(slots=True)
class _View:
    text: re.Match[str]
    access: list[str]

    @property
    def source(self) -> str:
        return self.text["source"].removeprefix(" = ") if self.text["source"] else self.text["name"]

    @property
    def is_alloc(self) -> bool:
        return self.text["dir"].startswith("none")


@dataclass(slots=True)
class _Block:
    head: re.Match[str]
    constraints: list[str] = field(default_factory=list[str])
    views: list[_View] = field(default_factory=list[_View])
    blocks: list[_Block] = field(default_factory=list["_Block"])
    lines: list[str] = field(default_factory=list[str])

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        pairs = (re.fullmatch(r"(?:#\S+ )*([\w.]+)(?::(\d+)| = .*)", i) for i in _split(self.head["indices"]))
        return {pair[1]: (0, int(pair[2] or 1) - 1) for pair in pairs if pair is not None}


def sides(docstring: str) -> tuple[str, str, str]:
    """The options, as JSON, and the blocks before and after that a docstring shows."""
    blocks = re.finditer(r"(?:^[ ]{4}.*\n|^\s*\n)+", docstring + "\n", re.MULTILINE)
    block = next(found for found in blocks if "=>" in found[0])
    options = re.findall(r"`(\{[^`]*\})`:\s*\Z", docstring[: block.start()])
    lines = block[0].strip("\n").splitlines()
    row = next(number for number, line in enumerate(lines) if "=>" in line)
    if lines[row].strip() == "=>":
        before, after = lines[:row], lines[row + 1 :]
    else:
        column = lines[row].index("=>")
        before, after = [line[:column] for line in lines], [line[column + 2 :] for line in lines]
    return options[-1] if options else "{}", "\n".join(before), "\n".join(after)


def completed(sketch: str) -> Program:
    """The program of a sketch: its blocks are the kernels of main, its free buffers belong to the program."""
    buffers, blocks = _read(sketch)
    program = parse_program(_program(buffers, blocks))
    const = [ref for ref in program.entry.allocs if "const" in ref.words]
    data = (ConstantBuffer(ref.name, ref.dtype, ref.sizes, bytes(ref.bytes)) for ref in const)
    return replace(program, constants=tuple(data))


def fits(pattern: str, text: str) -> str:
    """The first part of the pattern that the text of a program lacks after the parts before it; empty where it fits."""
    rest = _normal(text)
    for part in _parts(_normal(pattern)):
        place = rest.find(part)
        if place < 0:
            return part
        rest = rest[place + len(part) :]
    return ""


def _normal(text: str) -> str:
    text = re.sub(r" // .*", "", text)
    text = (
        re.sub(r"new@(0x\w+|…)", "new", text)
        .replace("<[0]>", "")
        .replace(":assign", "")
        .replace(" fp32(", " (")
    )
    return re.sub(r" +", " ", text)


def _parts(pattern: str) -> Iterator[str]:
    for line in pattern.splitlines():
        for part in re.split(r"…|(?<=\() | \)|\) \{| \{|\} ", line):
            yield from (piece.strip() for piece in _split(part) if piece.strip(" (){}"))


def _split(text: str) -> list[str]:
    """The items of a list, whose commas stand outside of brackets."""
    items, depth, start = list[str](), 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            items.append(text[start:place].strip())
            start = place + 1
    return [item for item in (*items, text[start:].strip()) if item]


def _read(text: str) -> tuple[list[_View], list[_Block]]:
    """The buffers and the blocks of a list of statements."""
    text = re.sub(r" // .*", "", text)
    buffers: list[_View] = []
    blocks: list[_Block] = []
    place = 0
    for head in _HEAD.finditer(text):
        if head.start() < place:
            continue
        buffers += _views(text[place : head.start()])
        end = _closing(text, head.end() - 1)
        block = _Block(head)
        for item in (part for line in text[head.end() : end].splitlines() for part in _split(line)):
            if item.endswith(">= 0"):
                block.constraints.append(item)
            block.views += _views(item)
        place = end + 1
        body = re.compile(r"\s*\{").match(text, place)
        if body is not None:
            end = _closing(text, body.end() - 1)
            inside = text[body.end() : end]
            inner, block.blocks = _read(inside)
            block.views += inner
            if not block.blocks:
                lines = (line.strip() for line in inside.splitlines())
                block.lines = [line for line in lines if line.strip("… ")]
            place = end + 1
        blocks.append(block)
    return [*buffers, *_views(text[place:])], blocks


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "({[") - (text[place] in ")}]")
        if depth == 0:
            return place
    return len(text)


def _views(text: str) -> list[_View]:
    return [_View(found, _split(found["access"])) for found in _VIEW.finditer(text)]


def _program(buffers: Sequence[_View], blocks: Sequence[_Block]) -> str:
    uses: dict[str, list[tuple[_View, _Block]]] = {}
    for block in blocks:
        for view in block.views:
            if not view.is_alloc:
                uses.setdefault(view.source, []).append((view, block))
    given = {buffer.text["name"]: buffer for buffer in buffers}
    allocs: list[str] = []
    seen: list[str] = []
    strides: dict[str, list[int]] = {}
    for name in [*given, *(name for name in uses if name not in given)]:
        views = uses.get(name, [])
        dims = _dims(given[name].text["dims"]) if name in given else _hull(views)
        typed = [given[name]] if name in given else [view for view, _ in views]
        dtype = next((view.text["dtype"] for view in typed if view.text["dtype"]), "fp32")
        shape = f"{dtype}({', '.join(f'{size}:{stride}' for size, stride in dims)})"
        zeros = ", ".join("0" for _ in dims)
        directions = {view.text["dir"] for view, _ in views}
        reads, writes = bool(directions & {"in", "inout"}), bool(directions & {"out", "inout"})
        loc = (given[name].text["loc"] if name in given else views[0][0].text["loc"]) or "<[0]>"
        tags = given[name].text["tags"] if name in given else ""
        tags = tags or ("#tmp " if reads and writes else "#user ")
        allocs.append(f"    {tags}none new@0x00000000{loc} {name}[{zeros}] {shape}")
        way = "inout" if reads and writes else "out" if writes else "in"
        agg = ":assign" if writes else ""
        seen.append(f"      {way}{loc} {name}[{zeros}]{agg} {shape}")
        strides[name] = [stride for _, stride in dims]
    body = [_text(block, str(number), "    ", strides) for number, block in enumerate(blocks)]
    main = ["  0: #main block [] ( // main", *seen, "  ) {", *body, "  }"]
    return "\n".join(["0: #program block [] ( // p", *allocs, ") {", *main, "}", ""])


def _dims(text: str) -> list[tuple[int, int]]:
    pairs = (item.split(":") for item in _split(text))
    return [(int(size), int(stride)) for size, stride in pairs]


def _hull(views: Sequence[tuple[_View, _Block]]) -> list[tuple[int, int]]:
    """The dimensions of a buffer: as large as all accesses, with the strides of a view, else row-major."""
    rank = len(views[0][0].access)
    sizes = [1] * rank
    strides: list[int] | None = None
    for view, block in views:
        dims = _dims(view.text["dims"]) if view.text["dims"] else [(1, 0)] * rank
        strides = [stride for _, stride in dims] if view.text["dims"] else strides
        for dim, access in enumerate(view.access):
            high = parse_affine(access).bounds(block.ranges)[1]
            sizes[dim] = max(sizes[dim], high + dims[dim][0])
    if strides is None:
        strides = [1] * rank
        for dim in reversed(range(rank - 1)):
            strides[dim] = strides[dim + 1] * sizes[dim + 1]
    return list(zip(sizes, strides, strict=True))


def _text(block: _Block, number: str, indent: str, outside: Mapping[str, list[int]]) -> str:
    own: dict[str, list[int]] = {}
    head = block.head
    lines = [
        f"{indent}{number}{head['deps'] or ''}: {head['tags']}block{head['loc'] or ''} [{head['indices']}] ("
    ]
    lines += [f"{indent}    {constraint}" for constraint in block.constraints]
    for view in block.views:
        text = view.text
        strides = [stride for _, stride in _dims(text["dims"])] if text["dims"] else outside[view.source]
        own[text["name"]] = strides
        dims = text["dims"] or ", ".join(f"1:{stride}" for stride in strides)
        agg = text["agg"] or ("" if text["dir"] == "in" or view.is_alloc else ":assign")
        way = "none new@0x00000000" if view.is_alloc else text["dir"]
        left = f"{text['tags']}{way}{text['loc'] or '<[0]>'} {text['name']}{text['source'] or ''}"
        lines.append(
            f"{indent}    {left}[{text['access']}]{text['bank'] or ''}{agg} {text['dtype'] or 'fp32'}({dims})"
        )
    lines.append(f"{indent}) {{")
    if block.blocks:
        lines += [_text(inner, str(place), indent + "  ", own) for place, inner in enumerate(block.blocks)]
    else:
        lines += [f"{indent}  {line}" for line in block.lines or _body(block)]
    return "\n".join([*lines, f"{indent}}}"])


def _body(block: _Block) -> list[str]:
    """A product of all that is read, stored everywhere."""
    inputs = [view.text["name"] for view in block.views if view.text["dir"] in ("in", "inout")]
    outputs = [view.text["name"] for view in block.views if view.text["dir"] in ("out", "inout")]
    lines = [f"${name} = load({name})" for name in inputs] or ["$one = (fp32)1.0"]
    value = f"${inputs[0]}" if inputs else "$one"
    for place, name in enumerate(inputs[1:]):
        lines.append(f"$p{place} = mul({value}, ${name})")
        value = f"$p{place}"
    lines += [f"{name} = store({value})" for name in outputs]
    return [f"{number}: {line}" for number, line in enumerate(lines)]
