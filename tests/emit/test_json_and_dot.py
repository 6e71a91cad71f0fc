"""Programs as JSON follow the schema that is exported, and lose nothing; pictures name every block."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from stripe.emit.dot import block_graph
from stripe.ir import Program, parse_program, walk
from stripe.ir.text.json_ir import ProgramJson, program_json
from stripe.tile import compile_tile

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.tile"))

EVERYTHING = """\
0: #program block [] ( // every kind
    #user none new@0x00000000<DRAM[0]> I[0] i32(8:1)
    #user none new@0x00000000<DRAM[0]> D[0] fp32(8:1)
    #const none new@0x00000000<DRAM[0]> T[0] fp32(2:1)
    #user none new@0x00000040<A[1]/B[2, 3]> O[0] fp32(8:1)
    #user none new@0x00000000<DRAM[0]> G[0] fp32(8:1)
) {
  0: #main block [] ( // main
      in<DRAM[0]> I[0] i32(8:1)
      in<DRAM[0]> D[0] fp32(8:1)
      in<DRAM[0]> T[0] fp32(2:1)
      out<A[1]/B[2, 3]> O[0]:assign fp32(8:1)
      out<DRAM[0]> G[0]:assign fp32(8:1)
  ) {
    0: #kernel #scale=0.5 #pid="x \\"y\\"" block [i:8, #hot j:2] ( // kernel_0
        // a comment
        1 - j >= 0
        in<DRAM[0]> T[floor(i/4)] fp32(1:1)
        out<A[1]/B[2, 3]> O[4*(i mod 2) + floor(i/2)]:max fp32({1:1})
    ) {
      0: block [k = 2*i + j] ( // inner
          in<DRAM[0]> T[0] fp32(1:1)
          out<A[1]/B[2, 3]> O[0]:max fp32({1:1})
      ) {
        0: $t = load(T)
        1: $i = load_index(k)
        2: $f = cast($i, fp32)
        3: $n = (fp32)-inf
        4[0, 3]: #fast $m = max($t, $n)
        5: O = store($m)
      }
    }
    1[0]: G = gather(D, I)
  }
}
const T fp32(2) = "0000803f00000040"
"""


def _check(program: Program) -> ProgramJson:
    """The JSON of a program, read back from text, and strictly what the schema says."""
    text = json.dumps(program_json(program), allow_nan=False)
    return TypeAdapter(ProgramJson).validate_json(text, strict=True)


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_examples_follow_the_schema(example: Path) -> None:
    program = compile_tile(example.read_text("utf-8"), str(example), {})
    assert _check(program)["entry"]["name"] == example.stem


def test_every_kind_of_node() -> None:
    made = _check(parse_program(EVERYTHING))
    main = made["entry"]["statements"][0]
    assert main["kind"] == "block"
    kernel, gather = main["statements"]
    assert kernel["kind"] == "block"
    assert gather["kind"] == "special"
    assert (gather["op"], gather["outputs"], gather["inputs"], gather["deps"]) == (
        "gather",
        ["G"],
        ["D", "I"],
        [0],
    )
    assert kernel["tags"] == {"kernel": None, "pid": 'x "y"', "scale": 0.5}
    assert kernel["indices"][1] == {"name": "j", "range": 2, "affine": None, "tags": {"hot": None}}
    assert kernel["refinements"][1]["bank_dim"] == 0
    assert [device["name"] for device in kernel["refinements"][1]["location"]] == ["A", "B"]
    inner = kernel["statements"][0]
    assert inner["kind"] == "block"
    assert inner["indices"][0]["affine"] is not None
    assert [statement["kind"] for statement in inner["statements"]] == [
        "load", "load_index", "intrinsic", "constant", "intrinsic", "store",
    ]  # fmt: skip
    infinite = inner["statements"][3]
    assert infinite["kind"] == "constant"
    assert infinite["value"] == "-inf"
    assert made["constants"] == [{"name": "T", "dtype": "fp32", "sizes": [2], "data": "0000803f00000040"}]


def test_the_picture_has_every_block_and_quotes_names() -> None:
    program = parse_program(EVERYTHING)
    text = block_graph(program)
    assert text.count("{") == text.count("}")
    for path, _ in walk(program.entry):
        assert f'"cluster_{":".join(map(str, path))}"' in text
    assert '"0:0:1" [label="gather", shape=oval];' in text
    assert '"0:0.D" -> "0:0:1";' in text
    assert '"0:0:1" -> "0:0.G";' in text
