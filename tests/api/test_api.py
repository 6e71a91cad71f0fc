"""`import stripe`: its names, arguments and errors. (What each call does is shown, and run, in docs/python.md.)"""

from __future__ import annotations

import gc
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stripe
from stripe.garbage import collected_seldom

MATMUL = "function (A[M=8, K=4], B[K, N=16]) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
UNTYPED: Any = stripe
"""The package as callers without a type checker see it."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def matmul() -> stripe.Program:
    return stripe.parse(MATMUL, name="matmul")


def _modules_after(code: str) -> set[str]:
    script = (
        f"import sys, json\n{code}\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_import_is_light() -> None:
    heavy = {"numpy", "networkx", "islpy", "lark", "pydantic", "jinja2", "ml_dtypes", "rich"}
    assert not _modules_after("import stripe") & heavy
    assert not _modules_after("import stripe; stripe.Block, stripe.Program") & heavy


def test_each_name_loads_and_none_hides_a_package() -> None:
    packages = {module.name for module in pkgutil.iter_modules(stripe.__path__)}
    assert not packages & set(stripe.__all__)
    for name in stripe.__all__:
        assert getattr(stripe, name) is not None
    assert set(stripe.__all__) <= set(dir(stripe))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = UNTYPED.nothing


@pytest.mark.usefixtures("bad_passes")
def test_a_program_that_leaves_its_tensors_becomes_no_code(matmul: stripe.Program, tmp_path: Path) -> None:
    outside = stripe.run_passes(matmul, "dce,outside")
    reason = r"matmul: error: A\[1000, 1000\]: read out of bounds of \(8, 4\)\n  in kernel_0 \(0.0.0.0\) at"
    folder = tmp_path / "net"
    uses: list[Callable[[stripe.Program], object]] = [
        lambda program: stripe.translate(program, "c"),
        lambda program: stripe.write_folder(program, folder),
        stripe.compile,
        lambda program: stripe.compile(program, "c{openmp=true}"),
        lambda program: stripe.run(program, stripe.random_inputs(program), "c"),
    ]
    for use in uses:
        with pytest.raises(stripe.StripeError, match=reason):
            use(outside)
    assert not folder.exists()
    assert "1000 + m" in stripe.translate(outside, "stripe")
    assert "for (" in stripe.translate(outside, "c", verify="none")
    stripe.write_folder(outside, folder, verify="none")
    assert folder.exists()
    with pytest.raises(stripe.ConfigError, match="verify is 'exact'"):
        UNTYPED.translate(matmul, "c", verify="exact")


def test_each_function_stands_on_the_page() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    functions = {name for name in stripe.__all__ if name.islower() and callable(getattr(stripe, name))}
    assert functions - {"parse_affine", "pass_names", "walk"} <= set(re.findall(r"stripe\.(\w+)", page))


def test_texts_of_all_languages(matmul: stripe.Program, tmp_path: Path) -> None:
    for target, suffix in (("stripe", ".stripe"), ("json", ".json")):
        text = stripe.translate(matmul, target)
        assert stripe.parse(text) == matmul
        file = tmp_path / f"matmul{suffix}"
        file.write_text(text, "utf-8")
        assert stripe.read(file) == matmul
        assert stripe.read(str(file), language=target) == matmul


def test_shapes_of_a_tile_function() -> None:
    text = "function (A[M, K], B[K, N]) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
    program = stripe.parse(text, shapes={"A": (8, 4), "B": "4x16:fp16"})
    assert [ref.sizes for ref in program.inputs] == [(8, 4), (4, 16)]
    assert [ref.dtype.name for ref in program.inputs] == ["fp32", "fp16"]


def test_a_warning_about_the_source_is_a_warning_here() -> None:
    text = "function (A[M=8, K=4], B[N=16, K2=8]) -> (C) { C[m, n : M, N] = +(A[m, k] * B[n, k]); }"
    with pytest.warns(UserWarning, match="the index 'k' has 4 values"):
        stripe.parse(text, name="narrowed")


def test_passes_in_all_forms(matmul: stripe.Program, tmp_path: Path) -> None:
    tile = stripe.find_pass("autotile")
    spelled = "autotile{reqs=[contraction],inner_set=[mine],max_total_size=64}"
    path = tmp_path / "mine.json"
    options = {"reqs": ["contraction"], "inner_set": ["mine"], "max_total_size": 64}
    path.write_text(json.dumps({"passes": [{"name": "t", "autotile": options}]}), "utf-8")
    results = [
        stripe.run_passes(matmul, spelled),
        stripe.run_passes(matmul, [tile.model_validate(options)]),
        stripe.run_passes(matmul, path),
        stripe.run_passes(matmul, [str(path), "dce"]),
    ]
    assert all(result == results[0] for result in results)
    assert results[0] != matmul
    assert stripe.run_passes(matmul, "dce", verify="exact") is matmul


def test_remarks_have_the_name_of_their_entry(matmul: stripe.Program) -> None:
    heard: list[tuple[str, stripe.Remark]] = []
    stripe.run_passes(
        matmul, "mine:prune_indexes{reqs=[nothing]}", on_remark=lambda *said: heard.append(said)
    )
    assert [entry for entry, _ in heard] == ["mine"]


def test_a_loaded_model_does_not_vary(matmul: stripe.Program) -> None:
    machine = stripe.hardware("dsp_conv", SRAM_SIZE_KIB=64)
    assert machine.parameters["SRAM_SIZE_KIB"] == 64
    with pytest.raises(stripe.ConfigError, match="loaded"):
        stripe.run_passes(matmul, "dsp_conv", hardware=machine, SRAM_SIZE_KIB=32)
    with pytest.raises(stripe.ConfigError, match="loaded"):
        stripe.simulate(matmul, machine, SRAM_SIZE_KIB=32)


def test_a_program_by_hand_is_checked_first(matmul: stripe.Program) -> None:
    broken = stripe.Program(stripe.Block("empty"))
    for call in (
        lambda: stripe.run_passes(broken, "dce"),
        lambda: stripe.translate(broken, "c"),
        lambda: stripe.run(broken, {}),
        lambda: stripe.prove(matmul, broken),
        lambda: stripe.check(broken),
    ):
        with pytest.raises(stripe.StripeError, match="main"):
            call()


def test_an_unknown_assumption_is_named(matmul: stripe.Program) -> None:
    assert stripe.prove(matmul, matmul, assume="none")
    with pytest.raises(stripe.ConfigError, match="float-order"):
        stripe.prove(matmul, matmul, assume="luck")


def test_a_judgement_tells_all_assumptions(matmul: stripe.Program) -> None:
    packed = stripe.read(ROOT / "tests/golden/layout/pads_under_assumptions.stripe")
    assert stripe.prove(packed, packed).assumptions == ("float-order", "zero-sign", "finite")
    tiled = stripe.run_passes(matmul, "autotile{fixed={m:4,n:4,k:2}}")
    assert stripe.prove(matmul, tiled).assumptions == ("float-order",)
    assert stripe.prove(matmul, matmul).assumptions == ()
    assert stripe.prove(matmul, tiled, assume="none").assumptions == ()


def test_schedules_dependences_and_addresses_are_checked_as_the_commands_do() -> None:
    path = ROOT / "tests/golden/trust/dropped_dependence.stripe"
    wrong = stripe.read(path)
    right = stripe.parse(path.read_text("utf-8").replace("    3: #eltwise", "    3[2]: #eltwise"))
    assert stripe.prove(right, right).answer == "equal"
    found = stripe.prove(right, wrong)
    assert (found.answer, found.accepted) == ("different", False)
    assert "no dependence orders it after statement 2" in str(found)
    calls: list[Callable[[], object]] = [
        lambda: stripe.prove(wrong, right),
        lambda: stripe.check(wrong),
        lambda: stripe.run_passes(wrong, "dce"),
        lambda: stripe.run_passes(wrong, "dce", verify="exact"),
        lambda: stripe.translate(wrong, "c"),
    ]
    for call in calls:
        with pytest.raises(stripe.StripeError, match="no dependence orders it after statement 2"):
            call()
    assert stripe.run_passes(wrong, "dce", verify="none") is wrong


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: UNTYPED.run_passes(MATMUL, "dce"), "expected a Program, got str"),
        (lambda p: UNTYPED.run_passes(p, 3), "expected a pass list .* got int"),
        (lambda p: UNTYPED.run_passes(p, [3]), "expected a pass list .* got int"),
        (lambda p: UNTYPED.run_passes(p, "dce", hardware=3), "expected a hardware model, got int"),
        (lambda p: UNTYPED.prove(p, None), "expected a Program, got NoneType"),
        (lambda p: UNTYPED.translate(p, 3), "expected the name of a target, got int"),
        (lambda p: UNTYPED.run(p, [np.ones(3)]), "expected a mapping .* got list"),
        (lambda p: UNTYPED.run(p, {}, engine=3), "expected the name of an engine, got int"),
        (lambda p: UNTYPED.simulate(p, 3), "expected the name or path of a hardware model, got int"),
        (lambda _: UNTYPED.read(3), "expected the path of a file, got int"),
        (lambda _: UNTYPED.parse(b""), "expected the text of a program, got bytes"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_a_type_error(
    call: Callable[[stripe.Program], object], message: str, matmul: stripe.Program
) -> None:
    with pytest.raises(TypeError, match=message):
        call(matmul)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: UNTYPED.run_passes(p, "dsp_cnov"), "did you mean 'dsp_conv'"),
        (lambda p: UNTYPED.run_passes(p, "dce{x=1}"), "passes:1:5: .*unknown key 'x'"),
        (lambda p: UNTYPED.run_passes(p, "dce", verify="all"), "none, structural, exact"),
        (lambda p: UNTYPED.translate(p, "cc"), "unknown target 'cc'"),
        (lambda p: UNTYPED.translate(p, "ast"), "shows Tile sources"),
        (lambda p: UNTYPED.run(p, {}, engine="gpu"), "unknown engine 'gpu'"),
        (lambda _: UNTYPED.hardware("dsp"), "no hardware model called 'dsp'"),
        (lambda _: UNTYPED.read("x.onxx"), "the suffixes are .tile"),
        (lambda _: UNTYPED.parse("", language="tiel"), "did you mean 'tile'"),
    ],
)  # fmt: skip
def test_wrong_configuration_is_named(
    call: Callable[[stripe.Program], object], message: str, matmul: stripe.Program
) -> None:
    with pytest.raises(stripe.ConfigError, match=message):
        call(matmul)


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """Python's default thresholds of garbage collection."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_a_compile_hardly_collects_garbage(matmul: stripe.Program, usual: tuple[int, int, int]) -> None:
    seen: list[tuple[int, int, int]] = []
    stripe.run_passes(matmul, "dsp_conv", on_remark=lambda _name, _remark: seen.append(gc.get_threshold()))
    assert min(seen)[0] >= 100 * usual[0]
    assert gc.get_threshold() == usual
    with pytest.raises(stripe.ConfigError):
        stripe.run_passes(matmul, "nothing")
    assert gc.get_threshold() == usual


def test_collections_stay_rare_until_the_last_thread_has_left(usual: tuple[int, int, int]) -> None:
    with ExitStack() as second:
        with collected_seldom():
            second.enter_context(collected_seldom())
            rare = gc.get_threshold()
        assert gc.get_threshold() == rare != usual
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first", [0, 1 << 20])
@pytest.mark.usefixtures("usual")
def test_collections_that_are_off_or_rarer_stay_so(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with collected_seldom():
        assert gc.get_threshold()[0] == first
    assert gc.get_threshold()[0] == first


def test_a_report_reads_back_from_its_json(matmul: stripe.Program) -> None:
    report = stripe.simulate(stripe.run_passes(matmul, "dsp_conv"), "dsp_conv")
    assert stripe.SimulationReport.model_validate_json(report.model_dump_json()) == report
