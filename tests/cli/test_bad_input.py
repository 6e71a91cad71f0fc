"""Every error that a user can cause: place, reason, suggestion and exit status, and nothing left behind by `-o`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from stripe.cli.start import opt as main
from stripe.cli.start import run
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True, slots=True)
class Bad:
    """A file that is wrong, and what is said about it. `place` is what follows the file's name."""

    name: str
    content: str | bytes
    place: str
    reason: str
    hint: str
    status: int = 1


def _tile(head: str, body: str) -> str:
    return f"function ({head}) -> (B) {{\n    {body}\n}}\n"


TILE = [
    Bad("syntax", _tile("A[N=4]", "B = A +;"), ":2:12", "unexpected ';'", "expected '('"),
    Bad("three", _tile("A[N=4]", "B[i : N] = +(A[i] * A[i] * A[i]);"), ":2:", "unexpected '*'", "combines two tensors"),
    Bad("difference", _tile("A[N=4]", "B[i : N] = +(A[i] - A[i]);"), ":2:", "unexpected '-'", "combines two tensors"),
    Bad("sum", _tile("A[N=4]", "B = +(A[i]);"), ":2:9", "unexpected '+'", "O[] = +(…) for a single number"),
    Bad("unclosed", "function (A[N=4]) -> (B) {\n  B = A;\n", ":2:9", "end", ""),
    Bad("unknown_name", _tile("A[N=4]", "B = AA + 1;"), ":2:9", "unknown name 'AA'", "did you mean 'A'?"),
    Bad("unknown_function", _tile("A[N=4]", "B = expp(A);"), ":2:9", "unknown function 'expp'", "did you mean 'exp'?"),
    Bad("unknown_dimension", _tile("A[N=4]", "B[i : M] = +(A[i]);"), ":2:11", "'M'", "known here: A, N"),
    Bad("twice", _tile("A[N=4]", "B = A + 1; B = A;"), ":2:16", "'B' is defined twice", "choose another"),
    Bad("no_output", _tile("A[N=4]", "C = A;"), ":1:23", "no statement defines the output 'B'", "add a statement"),
    Bad("rank", _tile("A[N=4]", "B[i : N] = +(A[i, i]);"), ":2:18", "'A' has rank 1", "one index polynomial"),
    Bad("size", _tile("A[N=4], C[N=5]", "B = A + C;"), ":1:21", "'N' is 4 elsewhere and 5 here", "use another name"),
    Bad("broadcast", _tile("A[N=4], C[M=5]", "B = A + C;"), ":2:9", "do not broadcast", "or are 1"),
    Bad("dtype", _tile("A[N=4]: fp33", "B = A;"), ":1:19", "unknown dtype 'fp33'", "did you mean 'fp32'?"),
    Bad("dtype_of_operation", _tile("A[N=4]: fp32", "B = A & 3;"), ":2:9", "'&' does not take fp32", "as_int"),
    Bad("no_shape", _tile("A[N]", "B = A;"), ":1:13", "size of dimension 'N' is not known", "--shape A=64"),
    Bad("unbounded", _tile("A[N=4]", "B[i : N] = +(A[i] * A[0*k]);"),
        ":2:5", "index 'k' is not bounded", "add a constraint"),
    Bad("empty", _tile("A[N=4]", "B[i : N] = +(A[i + 10]);"), ":2:5", "no point satisfies", "check the offsets"),
    Bad("multiple", _tile("A[N=4, M=3]", "B[i : N] = =(A[i, j]);"),
        ":2:5", "assigns B[0] more than once", "aggregate with"),
    Bad("non_affine", _tile("A[N=4]", "B[i : N] = +(A[i * i]);"),
        ":2:24", "product of two indices is not affine", "sums of"),
    Bad("huge", _tile("A[N=4294967296, M=4294967296]", "B = A;"), ":1:11", "18446744073709551616 elements", "2^63"),
    Bad("deep", _tile("A[N=4]", f"B = {'(' * 10_000}A{')' * 10_000};"), ":2:", "nested too deeply", "200 deep"),
    Bad("empty_file", "\n", "", "the file is empty", "a Tile function"),
    Bad("binary", b"\x7fELF\x00\x00\x01", "", "this is a binary file", "is text"),
    Bad("latin1", _tile("A[N=4]", "B = A; // caf").encode() + b"\xe9",
        ":4:1", "not UTF-8: byte 0xe9", "save it as UTF-8"),
]  # fmt: skip


def _stripe(old: str, new: str) -> str:
    assert old in MATMUL
    return MATMUL.replace(old, new)


STRIPE = [
    Bad("syntax", _stripe("block [] ( // mm", "block [ ( // mm"), ":1:", "unexpected '(", "expected"),
    Bad("character", _stripe("#main", "#m;ain"), ":6:", "unexpected character ';'", "expected"),
    Bad("early_end", MATMUL[: len(MATMUL) // 2], ":", "end of the file", "expected"),
    Bad("index", _stripe("A[i, k]", "A[i, kk]"), ":12:17:", "the unknown index 'kk'", "k"),
    Bad("refinement", _stripe("load(A)", "load(AA)"), ":", "unknown refinement 'AA'", "did you mean 'A'?"),
    Bad("source", _stripe("in<[0]> A[i, k]", "in<[0]> A = D[i, k]"), ":12:17:", "views 'D'", "known"),
    Bad("scalar", _stripe("mul($A, $B)", "mul($A, $BB)"), ":", "'$BB' is used before its definition", "'B'"),
    Bad("twice", _stripe("i:8, j:4", "i:8, i:4"), ":", "index 'i' is defined 2 times", "rename all but one"),
    Bad("intrinsic", _stripe("mul(", "mull("), ":18:15", "unknown intrinsic 'mull'", "did you mean 'mul'?"),
    Bad("range", _stripe("i:8,", "i:99999999999999999999,"), ":", "'i' reaches 99999999999999999998", "2^62"),
    Bad("far", _stripe("A[i, k]", "A[i, 9223372036854775807 + k]"), ":", "the access of 'A' reaches", "2^62"),
    Bad("wide", _stripe("0x00000000", "0xfffffffffffffff0"), ":", "the address of 'A' reaches", "2^62"),
    Bad("strides", _stripe("A[i, k] fp32(1:6, 1:1)", "A[i, k] fp32(1:7, 1:1)"),
        ":12:17:", "the strides of 'A' differ", "those of its source are 6, 1"),
    Bad("rank", _stripe("A[i, k] fp32(1:6, 1:1)", "A[i] fp32(1:6)"), ":12:17:", "has 1 dimensions, its source 2", ""),
    Bad("dtype", _stripe("A[i, k] fp32", "A[i, k] fp16"), ":12:17:", "'A' is fp16, its source fp32", "cast"),
    Bad("unknown_dtype", _stripe("A[i, k] fp32", "A[i, k] fp33"), ":12:", "unknown dtype 'fp33'", "fp32"),
    Bad("direction", _stripe("in<[0]> A[i, k]", "out<[0]> A[i, k]:add"), ":12:18:", "only reads", "inout"),
    Bad("store_dtype", _stripe("$C = mul($A, $B)", "$C = cmp_lt($A, $B)"), ":", "stores bool into fp32", ""),
    Bad("range", _stripe("i:8", "i:0"), ":11:61:", "index 'i' has range 0", "at least 1"),
    Bad("non_affine", _stripe("A[i, k]", "A[i, i*k]"), ":12:", "", ""),
    Bad("no_main", _stripe("#main ", ""), ":", "0 blocks tagged main", "exactly one"),
    Bad("deep", "0: block [] (\n" + "(" * 10_000, ":2:200", "nested too deeply", "200 deep"),
    Bad("empty_file", "", "", "the file is empty", "a Tile function"),
    Bad("binary", b"0: #program\x00\x00", "", "this is a binary file", "is text"),
]  # fmt: skip

CONFIG = [
    Bad("syntax", '{ "passes": [ }', ":1:15", "expected a value", "", 2),
    Bad("unknown_key", '{ "pases": [] }', ":1:3: $.pases", "unknown key 'pases'", "did you mean 'passes'?", 2),
    Bad("missing", '{ "hardware": "dsp_conv" }', ":1:1: $", "the key 'passes' is missing", '"passes"', 2),
    Bad("no_name", '{ "passes": [ { "dce": {} } ] }', ": $.passes[0]", "the key 'name' is missing", "name", 2),
    Bad("pass_typo", '{ "passes": [ { "name": "x", "fusoin": {} } ] }',
        ": $.passes[0].fusoin", "unknown pass 'fusoin'", "did you mean", 2),
    Bad("option_typo", '{ "passes": [ { "name": "x", "dce": { "rqs": [] } } ] }',
        ": $.passes[0].dce.rqs", "unknown key 'rqs'", "did you mean 'reqs'?", 2),
    Bad("type", '{ "passes": [ { "name": "x", "dce": { "reqs": 3 } } ] }',
        ": $.passes[0].dce.reqs", "expected a list, found 3", "", 2),
    Bad("undefined", '{ "passes": [\n{{ SIZE }} ] }', ":2", "'SIZE' is not defined", "-D SIZE=VALUE", 2),
    Bad("template", '{ "passes": [\n\n{% endfor %} ] }', ":3", "endfor", "", 2),
    Bad("python", '{ "passes": [\n{{ "".__class__ }} ] }', ":2", "reaches for Python", "", 2),
    Bad("binary", b"\x00\x01\x02", "", "binary", "", 2),
    Bad("latin1", b'{ "passes": [] } // caf\xe9', "", "UTF-8", "", 2),
]  # fmt: skip

_MACHINE = """{ "clock_mhz": 1, "mem_units": { "M": { "size_KiB": 1 } }, "exec_units": { "E": {"ops_per_cycle": 1} }"""

HARDWARE = [
    Bad("syntax", '{ "clock_mhz": }', ":1:16", "expected a value", "", 2),
    Bad("missing", "{}", ":1:1: $", "the key 'clock_mhz' is missing", "'clock_mhz' has no default, give it a value", 2),
    Bad("unknown_key", '{ "clock_mhz": 1, "mem_unit": {} }',
        ": $.mem_unit", "unknown key 'mem_unit'", "did you mean 'mem_units'?", 2),
    Bad("type", '{ "clock_mhz": "fast" }', ": $.clock_mhz", "expected a number, found 'fast'",
        "'clock_mhz': clock that all cycles are counted in, MHz", 2),
    Bad("negative", '{ "clock_mhz": 1,\n "mem_units": { "M": { "size_KiB": -1 } } }',
        ":2", "must be more than 0, not -1", "'size_KiB': ", 2),
    Bad("no_unit", f'{_MACHINE},\n "buses": [ {{ "sources": ["N[0]"], "sinks": ["M[0]"], "bytes_per_cycle": 1 }} ] }}',
        ":2", "N", "M", 2),
    Bad("template", '{ "clock_mhz":\n{{ CLOCK * 2 }} }', ":2", "'CLOCK' is not defined", "-D CLOCK=VALUE", 2),
]  # fmt: skip


def _ids(table: list[Bad]) -> list[str]:
    return [bad.name for bad in table]


def _check(bad: Bad, path: Path, arguments: list[str], capsys: Capture) -> None:
    """One message with place, reason and suggestion; the right status; no output, whole or in part."""
    target = path.parent / "product"
    assert main([*arguments, "-o", str(target)]) == bad.status
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *rest = captured.err.splitlines()
    place, _, reason = first.partition(": error: ")
    assert place.startswith(str(path))
    assert bad.place.lstrip(":") in place
    assert bad.reason in reason
    assert bad.hint in "\n".join(rest)
    assert not bad.hint or "  hint: " in captured.err
    assert "Traceback" not in captured.err
    assert "internal fault" not in captured.err
    assert max(map(len, captured.err.splitlines())) < 400
    assert not target.exists()
    assert [other.name for other in path.parent.iterdir() if other.name.startswith(".")] == []


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("bad", TILE, ids=_ids(TILE))
def test_tile(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    path = _write(tmp_path, f"{bad.name}.tile", bad.content)
    _check(bad, path, [str(path)], capsys)


@pytest.mark.parametrize("bad", STRIPE, ids=_ids(STRIPE))
def test_stripe(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    path = _write(tmp_path, f"{bad.name}.stripe", bad.content)
    _check(bad, path, [str(path)], capsys)


@pytest.mark.parametrize("bad", CONFIG, ids=_ids(CONFIG))
def test_pass_list(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    program = _write(tmp_path, "mm.stripe", MATMUL)
    path = _write(tmp_path, f"{bad.name}.json.j2", bad.content)
    _check(bad, path, [str(program), "--config", str(path)], capsys)


@pytest.mark.parametrize("bad", HARDWARE, ids=_ids(HARDWARE))
def test_hardware_model(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    program = _write(tmp_path, "mm.stripe", MATMUL)
    path = _write(tmp_path, f"{bad.name}.json.j2", bad.content)
    _check(bad, path, [str(program), "--hw", str(path)], capsys)


PLACES = """\
0: #program block [] ( // bad
    #user none new@0x00000000 A[0, 0] fp32(8:6, 6:1)
    in C = C[0] fp32(8:1)
) {
  0: #main block [] ( // main
      in A[0, 0] fp32(8:6, 6:1)
      out C[0]:assign fp32(8:1)
  ) {
    0: #kernel block [i:8, k:6, k:0, p = z] ( // kernel_0
        - i + m >= 0
        in A[i, kk] fp32(1:6, 1:1)
        #hot in<DRAM[0]> B = A[i, k] fp32(1:6, 1:1)
        out C[i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: $x = load(X)
      2: $A = load_index(q)
    }
  }
}
const K fp32(4) = "00"
"""


def test_what_is_wrong_in_stripe_is_shown_at_its_own_place(tmp_path: Path, capsys: Capture) -> None:
    path = _write(tmp_path, "places.stripe", PLACES)
    assert main([str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    found = [
        (*line.removeprefix(f"{path}:").split(":")[:2], line.rpartition("error: ")[2])
        for line in lines
        if line.startswith(str(path))
    ]
    assert found == [
        ("3", "8", "'C' of the entry is no allocation"),
        ("3", "8", "'C' views 'C', which the block outside does not have"),
        ("7", "11", "'C' writes 'C', which the block outside only reads"),
        ("9", "33", "index 'k' is defined 2 times"),
        ("9", "33", "index 'k' has range 0"),
        ("9", "38", "index 'p' is passed 'z', which the block outside does not have"),
        ("10", "9", "constraint '-i + m >= 0' uses the unknown index 'm'"),
        ("11", "12", "the access of 'A' uses the unknown index 'kk'"),
        ("12", "26", "'B' is located in DRAM[0], its source in nowhere"),
        ("16", "7", "unknown refinement 'X'"),
        ("17", "7", "scalar 'A' is defined 2 times"),
        ("17", "7", "load_index uses the unknown index 'q'"),
        ("21", "7", "constant 'K' has no allocation"),
    ]


def test_a_number_beyond_64_bits_is_shown_at_its_own_place(tmp_path: Path, capsys: Capture) -> None:
    text = MATMUL.replace("A[i, k]", "A[9223372036854775807*i, k]")
    path = _write(tmp_path, "large.stripe", text)
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(
        f"{path}:12:17: block kernel_0: error: the access of 'A' reaches"
    )


def test_a_list_for_a_machine_that_does_not_exist(tmp_path: Path, capsys: Capture) -> None:
    program = _write(tmp_path, "mm.stripe", MATMUL)
    path = _write(tmp_path, "one_line.json", '{ "passes": [], "hardware": "dsp_cnv" }')
    assert main([str(program), "--config", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"{path}: $.hardware: error: there is no hardware model called 'dsp_cnv'\n")


def test_a_list_for_a_machine_whose_file_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    program = _write(tmp_path, "mm.stripe", MATMUL)
    path = _write(tmp_path, "one_line.json", '{ "passes": [], "hardware": "models/m.json" }')
    assert main([str(program), "--config", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"{path}: $.hardware: error: there is no file '{tmp_path / 'models' / 'm.json'}'\n"
        "  hint: a path starts at the folder of the pass list\n"
    )


@pytest.mark.parametrize("name", ["x.tile", "x.stripe"])
def test_a_directory(name: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).mkdir()
    assert main([str(tmp_path / name)]) == 1
    assert (
        capsys.readouterr().err
        == f"{tmp_path / name}: error: this is a directory\n  hint: name one file in it\n"
    )


def test_a_missing_file_and_the_nearest_name(tmp_path: Path, capsys: Capture) -> None:
    _write(tmp_path, "matmul.tile", MATMUL)
    assert main([str(tmp_path / "matmull.tile")]) == 1
    err = capsys.readouterr().err
    assert "no such file" in err
    assert f"did you mean '{tmp_path / 'matmul.tile'}'?" in err
    assert main([str(tmp_path / "no" / "x.tile")]) == 1
    assert f"there is no folder '{tmp_path / 'no'}' either" in capsys.readouterr().err
    assert main(["a\0b.tile"]) == 1
    assert "no file name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason", "hint"),
    [
        ([], "no INPUT is given", "name a .tile, .stripe, .onnx or .json file"),
        (["{mm}", "{mm}"], "unexpected argument", "one input"),
        (["{mm}", "--emitt", "c"], "unknown option '--emitt'", "did you mean '--emit'?"),
        (["{mm}", "--emit", "jason"], "--emit:1:1: error: unknown target 'jason'", "did you mean 'json'?"),
        (["{mm}", "--emit", "tile"], "--emit tile shows Tile, and the input is Stripe", ".tile"),
        (["{mm}", "--emit"], "--emit needs a value", "write --emit TARGET"),
        (["{mm}", "-o", ""], "argument -o: the name is empty", "--help"),
        (["{mm}", "--dump-dir", ""], "argument --dump-dir: the name is empty", "--help"),
        ([""], "argument INPUT: the name is empty", "--help"),
        (["{mm}", "--verify", "exakt"], "did you mean 'exact'?", ""),
        (["{mm}", "--schema", "confg"], "did you mean 'config'?", ""),
        (["{mm}", "--input-format", "tiel"], "did you mean 'tile'?", ""),
        (["{mm}", "--passes", "dcee"], "unknown pass 'dcee'", "did you mean 'dce'?"),
        (
            ["{mm}", "--passes", "dce", "--print-ir-after", "dc"],
            "no pass 'dc' runs here",
            "did you mean 'dce'?",
        ),
        (
            ["{mm}", "--config", "dsp_con"],
            "there is no pass list called 'dsp_con'",
            "did you mean 'dsp_conv'?",
        ),
        (["{mm}", "--config", "{dir}/none.json"], "there is no such file", ""),
        (["{mm}", "--config", "{dir}/."], "directory", ""),
        (
            ["{mm}", "--hw", "dsp_cnv"],
            "there is no hardware model called 'dsp_cnv'",
            "did you mean 'dsp_conv'?",
        ),
        (
            ["{mm}", "--passes", "dce,mine:autotile{{memory=SRAN}}", "--hw", "dsp_conv"],
            "pass 'mine' (autotile): error: the machine 'dsp_conv' has no memory 'SRAN'",
            "did you mean 'SRAM'?",
        ),
        (
            ["{mm}", "--passes", "autotile{{fixed={{x:0}}}}"],
            "$.autotile.fixed.x: error: must be at least 1, not 0",
            "",
        ),
        (["{mm}", "-D", "X=1"], "-D X=1 has nothing to set", "--hw or --config"),
        (
            ["{mm}", "--hw", "dsp_conv", "-D", "NUM_SRAN=1"],
            "no parameter 'NUM_SRAN'",
            "did you mean 'NUM_SRAM'?",
        ),
        (["{mm}", "--hw", "dsp_conv", "-D", "NUM_SRAM=many"], "NUM_SRAM", ""),
        (["{mm}", "--hw", "dsp_conv", "-D", "NUM_SRAM"], "is no definition", "NAME=VALUE"),
        (["{mm}", "--shape", "A=3"], "--shape is for Tile inputs", "leave --shape out"),
        (["{mm}.txt"], "the suffix '.txt' is unknown", "--input-format"),
        (
            ["{mm}.caffe"],
            "the suffix '.caffe' is unknown",
            "say --input-format tile or --input-format stripe",
        ),
        (["{mm}", "-o", "{dir}"], "this is a directory", "name a file"),
        (["{mm}", "-o", "{dir}/none/x"], "there is no folder '", "make it first"),
        (["{mm}", "--run-reproducer", "{mm}"], "expected", ""),
    ],
)
def test_wrong_usage(arguments: list[str], reason: str, hint: str, tmp_path: Path, capsys: Capture) -> None:
    program = _write(tmp_path, "mm.stripe", MATMUL)
    _write(tmp_path, "mm.stripe.txt", MATMUL)
    _write(tmp_path, "mm.stripe.caffe", MATMUL)
    words = [word.format(mm=program, dir=tmp_path) for word in arguments]
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err
    assert hint in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("A=4xfp32", "cannot read the shape 'A=4xfp32'"),
        ("A=4:fp33", "unknown dtype 'fp33'"),
        ("A", "cannot read the shape"),
        ("X=4", "X"),
        ("A=99999999999999999999", "a size in the shape of 'A' is too large"),
        ("A==-1e400", "too large"),
    ],
)
def test_wrong_shapes(shape: str, reason: str, tmp_path: Path, capsys: Capture) -> None:
    path = _write(tmp_path, "open.tile", _tile("A[N]", "B = A;"))
    assert main([str(path), "--shape", shape]) == 2
    assert reason in capsys.readouterr().err
    assert main([str(path), "--shape", "A=4", "--shape", "A=5"]) == 2
    assert "--shape gives 'A' twice" in capsys.readouterr().err


EVIL = '*/ int evil(void) { return system("rm"); } /* ??/ \\'


def test_numbers_of_thousands_of_digits(tmp_path: Path, capsys: Capture) -> None:
    path = _write(tmp_path, "mm.stripe", MATMUL)
    for option in ("--random", "--bench"):
        assert run([str(path), option, "9" * 5000]) == 2
        assert f"argument {option}: a number of 5000 digits is too large" in capsys.readouterr().err


def test_hostile_names_cannot_inject_c(tmp_path: Path, capsys: Capture) -> None:
    source = _tile("A[N=4]", "[[pid(evil)]] B[i : N] = +(A[i] * A[i]);")
    path = _write(tmp_path, 'a*⁄ "; int x; ??⁄\\.tile', source)
    assert main([str(path), "--emit", "c"]) == 0
    assert run([str(path), "--engine", "c", "--compare", "interp"]) == 0
    capsys.readouterr()
    text = MATMUL.replace("// kernel_0", f"// {EVIL}\n        // {EVIL}").replace("// mm", f"// {EVIL}")
    text = text.replace("#kernel ", f"#kernel #pid={json.dumps(EVIL)} ")
    hostile = _write(tmp_path, "evil.stripe", text)
    assert main([str(hostile), "--emit", "c"]) == 0
    code = capsys.readouterr().out
    assert all(line.lstrip().startswith("//") for line in code.splitlines() if 'system("' in line)
    assert run([str(hostile), "--engine", "c", "--compare", "interp"]) == 0
