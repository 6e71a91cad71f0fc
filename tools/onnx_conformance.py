"""The conformance suite of onnx, case by case: `python -m tools.onnx_conformance [--engine interp] [--only PATTERN]`.

Each line of `--out FILE` is a case as JSON: `passed`, `bound` (passed with inputs that shapes depend on bound to their
values), `failed`, `unsupported`, or `fault` (an exception). `--engine onnxruntime` runs ONNX Runtime, also by a Python
that has no stripe. `tools.onnx_table` makes the table of docs/onnx-conformance.md from such files.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
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


def run_peer(case: TestCase) -> tuple[str, str]:
    """The status of a case in ONNX Runtime, and the reason."""
    import onnxruntime

    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
    except Exception as error:  # noqa: BLE001 - of the C++ core
        return "unsupported", " ".join(str(error).split())[:200]
    try:
        for inputs, outputs in case.data_sets:
            feeds = {
                info.name: array(value) for info, value in zip(session.get_inputs(), inputs, strict=False)
            }
            found = session.run(None, feeds)
            for info, expected, result in zip(case.model.graph.output, outputs, found, strict=False):
                if reason := difference(array(expected), np.asarray(result), case.rtol, case.atol):
                    return "failed", f"'{info.name}' {reason}"
    except Exception as error:  # noqa: BLE001 - of the C++ core
        return "failed", " ".join(str(error).split())[:200]
    return "passed", ""


def run_case(case: TestCase, engine: str) -> tuple[str, str]:
    """The status of a case, and the reason."""
    if engine == "onnxruntime":
        return run_peer(case)
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
    from stripe.onnx_backend import bound_values, compile_model

    try:
        return compile_model(case.model, engine), "passed"
    except StripeError:
        first = dict(zip(names, case.data_sets[0][0], strict=False))
        plain = {
            name: array(value) for name, value in first.items() if not isinstance(value, list | dict | None)
        }
        values = bound_values(case.model, plain)
        if not values or len(plain) < len(first):
            raise
        try:
            return compile_model(case.model, engine, values), "bound"
        except StripeError as second:
            raise second from None


def difference(expected: Any, found: Any, rtol: float, atol: float) -> str:
    """How an output differs, as the runner of onnx judges it; empty when it does not."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"is {found.shape} {found.dtype}, expected {expected.shape} {expected.dtype}"
    whole = expected.dtype.kind in "iub"
    wide, other = (expected, found) if whole else (expected.astype(np.float64), found.astype(np.float64))
    try:
        np.testing.assert_allclose(other, wide, rtol=rtol, atol=atol)
    except AssertionError as error:
        return "differs: " + " ".join(str(error).split())[:200]
    return ""


def main() -> int:
    """Runs the cases and prints how many have each status."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="c{cflags=-O0}")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    stream = options.out.open("w") if options.out else None
    for case in cases(options.kinds.split(","), options.only):
        started = time.process_time()
        status, reason = run_case(case, options.engine)
        operators = sorted(Counter(node.op_type for node in case.model.graph.node))
        row = {
            "kind": case.kind, "name": case.name, "status": status, "reason": reason, "static": is_static(case),
            "operators": operators, "seconds": round(time.process_time() - started, 3),
        }  # fmt: skip
        rows.append(row)
        if stream is not None:
            print(json.dumps(row), file=stream, flush=True)
        if status not in ("passed", "bound") and options.only:
            print(case.name, status, reason)
    for static in (True, False):
        print(
            "static" if static else "others",
            dict(Counter(row["status"] for row in rows if row["static"] == static)),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
