"""The conformance suite of onnx, case by case: `python -m tools.onnx_conformance [--engine interp] [--only PATTERN]`.

Each line of `--out FILE` is a case as JSON: `passed`, `bound` (passed with inputs that shapes depend on bound to their
values), `failed`, `unsupported`, or `fault` (an exception). `--engine onnxruntime` and `--engine emx-onnx-cgen` run
these, also by a Python that has no stripe. `tools.onnx_table` makes docs/onnx-conformance.md from such files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def cases(kinds: list[str], only: str) -> Iterator[TestCase]:
    """The cases of some kinds whose names match."""
    for kind in kinds:
        for case in load_model_tests(kind=kind):
            if re.search(only, case.name):
                yield case if case.model is not None else _read(case)


def _read(case: TestCase) -> TestCase:
    """A case with the model and the data of its folder."""
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = [
        tuple(
            [
                _value(data / f"{kind}_{place}.pb", info)
                for place, info in enumerate(infos)
                if (data / f"{kind}_{place}.pb").exists()
            ]
            for kind, infos in (("input", model.graph.input), ("output", model.graph.output))
        )
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return (
        case._replace(model=model, data_sets=sets)
        if hasattr(case, "_replace")
        else _replaced(case, model, sets)
    )


def _replaced(case: TestCase, model: Any, sets: Any) -> TestCase:
    import dataclasses

    return dataclasses.replace(case, model=model, data_sets=sets)


def _value(path: Path, info: onnx.ValueInfoProto) -> Any:
    if info.type.HasField("sequence_type"):
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(path.read_bytes())
        return onnx.numpy_helper.to_list(sequence)
    return onnx.numpy_helper.to_array(onnx.load_tensor(path))


def array(value: Any) -> Any:
    """A value of a case as an array: some are given as tensors of onnx."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def inputs_of(model: onnx.ModelProto) -> list[str]:
    """The names of the inputs that are no constants."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [info.name for info in model.graph.input if info.name not in constants]


def is_static(case: TestCase) -> bool:
    """Whether inputs and outputs are tensors of numbers or bools."""
    infos = (*case.model.graph.input, *case.model.graph.output)
    return all(
        info.type.HasField("tensor_type") and info.type.tensor_type.elem_type != onnx.TensorProto.STRING
        for info in infos
    )


Run = Callable[[list[Any]], Sequence[Any]]
"""Inputs to outputs, both in the order of the model."""


def prepare_onnxruntime(model: onnx.ModelProto) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [info.name for info in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs, strict=False)))


@cache
def _share_templates() -> None:
    """emx-onnx-cgen compiles all its templates anew for each model, which takes most of its time."""
    import jinja2

    codes: dict[str, Any] = {}
    compile_anew: Any = jinja2.Environment.compile

    def compile_once(self: Any, source: str, *rest: Any, **options: Any) -> Any:
        if source not in codes:
            codes[source] = compile_anew(self, source, *rest, **options)
        return codes[source]

    jinja2.Environment.compile = compile_once  # pyright: ignore[reportAttributeAccessIssue]


def prepare_emx(model: onnx.ModelProto) -> Run:
    from emx_onnx_cgen.onnx_backend import EmxOnnxCgenBackend

    _share_templates()
    prepared = EmxOnnxCgenBackend.prepare(model)
    return prepared.run


PEERS: dict[str, Callable[[onnx.ModelProto], Run]] = {
    "onnxruntime": prepare_onnxruntime,
    "emx-onnx-cgen": prepare_emx,
}
"""Other implementations by name."""


def run_peer(case: TestCase, peer: str) -> tuple[str, str]:
    """The status of a case in another implementation, and the reason."""
    try:
        run = PEERS[peer](case.model)
    except Exception as error:  # noqa: BLE001 - peers raise anything
        return "unsupported", " ".join(str(error).split())[:200]
    try:
        for inputs, outputs in case.data_sets:
            found = run([value if isinstance(value, list | None) else array(value) for value in inputs])
            for info, expected, result in zip(case.model.graph.output, outputs, found, strict=False):
                if reason := different(expected, result, case):
                    return "failed", f"'{info.name}' {reason}"
    except Exception as error:  # noqa: BLE001 - peers raise anything
        return "failed", " ".join(str(error).split())[:200]
    return "passed", ""


def different(expected: Any, found: Any, case: TestCase) -> str:
    """How a value differs from that expected, item by item where it is a sequence; empty when it does not."""
    if not isinstance(expected, list):
        return difference(array(expected), np.asarray(found), case.rtol, case.atol)
    if not isinstance(found, list) or len(found) != len(expected):
        return "is no sequence of the length expected"
    return next(filter(None, (different(a, b, case) for a, b in zip(expected, found, strict=True))), "")


def run_case(case: TestCase, engine: str) -> tuple[str, str]:
    """The status of a case, and the reason."""
    if engine in PEERS:
        return run_peer(case, engine)
    from stripe.ir import StripeError

    names = inputs_of(case.model)
    try:
        compiled, status = _compiled(case, names, engine)
        for inputs, outputs in case.data_sets:
            given = {name: array(value) for name, value in zip(names, inputs, strict=False)}
            found = compiled.run(given)
            for info, expected in zip(case.model.graph.output, outputs, strict=False):
                if reason := difference(array(expected), np.asarray(found[info.name]), case.rtol, case.atol):
                    return "failed", f"'{info.name}' {reason}"
        return status, ""
    except StripeError as error:
        return "unsupported", str(error).split("\n")[0]
    except Exception as error:  # noqa: BLE001 - a case must not end the run
        return "fault", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _compiled(case: TestCase, names: list[str], engine: str) -> tuple[Any, str]:
    from stripe.ir import StripeError
    from stripe.onnx_backend import compile_model

    try:
        return compile_model(case.model, engine), "passed"
    except StripeError:
        first = dict(zip(names, case.data_sets[0][0], strict=False))
        plain = {
            name: array(value) for name, value in first.items() if not isinstance(value, list | dict | None)
        }
        if len(plain) < len(first):
            raise
        return compile_model(case.model, engine, plain), "bound"


def difference(expected: Any, found: Any, rtol: float, atol: float) -> str:
    """How an output differs, as the runner of onnx judges it; empty when it does not."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"is {found.shape} {found.dtype}, expected {expected.shape} {expected.dtype}"
    if expected.dtype.kind in "OSU":
        return "" if (expected == found).all() else "differs"
    whole = expected.dtype.kind in "iub"
    wide, other = (expected, found) if whole else (expected.astype(np.float64), found.astype(np.float64))
    try:
        np.testing.assert_allclose(other, wide, rtol=rtol, atol=atol)
    except AssertionError as error:
        return "differs: " + " ".join(str(error).split())[:200]
    return ""


class TooLong(Exception):
    """A case that takes longer than the limit."""


def _stop(_: int, __: object) -> None:
    raise TooLong


def row_of(case: TestCase, engine: str, seconds: int) -> dict[str, Any]:
    """The outcome of a case, with processor time, that of compilers included."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    started = _used()
    try:
        status, reason = run_case(case, engine)
    except TooLong:
        status, reason = "failed", f"takes longer than {seconds} s"
    finally:
        signal.alarm(0)
    operators = sorted(Counter(node.op_type for node in case.model.graph.node))
    return {
        "kind": case.kind, "name": case.name, "status": status, "reason": reason, "static": is_static(case),
        "operators": operators, "seconds": round(_used() - started, 3),
    }  # fmt: skip


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


_found: list[TestCase] = []
"""The cases, which processes that are forked have as well."""


def _row(task: tuple[int, str, int]) -> dict[str, Any]:
    number, engine, seconds = task
    return row_of(_found[number], engine, seconds)


def main() -> int:
    """Runs the cases and prints how many have each status."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--engine", default="c{cflags=-O0}", help=f"an engine of stripe-run, or {', '.join(PEERS)}"
    )
    parser.add_argument("--only", default="", help="regular expression for the names of cases")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="that a case may take on the clock")
    options = parser.parse_args()
    _found.extend(cases(options.kinds.split(","), options.only))
    rows: list[dict[str, Any]] = []
    tasks = [(number, options.engine, options.seconds) for number in range(len(_found))]
    with (
        (options.out or Path(os.devnull)).open("w", encoding="utf-8") as stream,
        get_context("fork").Pool(options.jobs) as pool,
    ):
        for row in pool.imap(_row, tasks, chunksize=8):
            rows.append(row)
            print(json.dumps(row), file=stream, flush=True)
            if row["status"] not in ("passed", "bound") and options.only:
                print(row["name"], row["status"], row["reason"])
    for static in (True, False):
        print(
            "static" if static else "others",
            dict(Counter(row["status"] for row in rows if row["static"] == static)),
        )
    print(f"processor time: {sum(row['seconds'] for row in rows):.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
