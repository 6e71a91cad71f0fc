"""Runs the conformance suite of onnx: `python -m tools.onnx_conformance [--engine c] [--only PATTERN] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")


def similar(expected, found, rtol: float, atol: float) -> str:
    expected = np.asarray(expected)
    found = np.asarray(found)
    if expected.shape != found.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype != found.dtype:
        return f"dtype {found.dtype}, expected {expected.dtype}"
    try:
        if expected.dtype == object:
            np.testing.assert_array_equal(found, expected)
        else:
            wide = expected.dtype.kind not in "iub"
            e, f = (expected.astype(np.float64), found.astype(np.float64)) if wide else (expected, found)
            np.testing.assert_allclose(f, e, rtol=rtol, atol=atol)
    except AssertionError as error:
        return "differs: " + " ".join(str(error).split())[:200]
    return ""


def run_case(case, engine: str) -> tuple[str, str]:
    from stripe.ir import StripeError
    from stripe.onnx_backend import bound_values, compile_model

    names = None
    try:
        sets = case.data_sets
        model = case.model
        how = "passed"
        try:
            compiled = compile_model(model, engine)
        except StripeError as error:
            constants = {t.name for t in model.graph.initializer}
            names = [i.name for i in model.graph.input if i.name not in constants]
            given = dict(zip(names, sets[0][0]))
            if not all(isinstance(v, np.ndarray) or np.isscalar(v) for v in given.values()):
                return "unsupported", str(error).split("\n")[0]
            values = bound_values({n: np.asarray(v) for n, v in given.items()})
            if not values:
                return "unsupported", str(error).split("\n")[0]
            try:
                compiled = compile_model(model, engine, values)
            except StripeError:
                return "unsupported", str(error).split("\n")[0]
            how = "bound"
        constants = {t.name for t in model.graph.initializer}
        names = [i.name for i in model.graph.input if i.name not in constants]
        for inputs, outputs in sets:
            found = compiled.run({n: np.asarray(v) for n, v in zip(names, inputs)})
            for info, expected in zip(model.graph.output, outputs):
                reason = similar(expected, found[info.name], case.rtol, case.atol)
                if reason:
                    return "failed", f"'{info.name}' {reason}"
        return how, ""
    except StripeError as error:
        return "failed", str(error).split("\n")[0]
    except Exception as error:  # noqa: BLE001
        return "fault", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="interp")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--kinds", default="node,simple,pytorch-converted,pytorch-operator")
    options = parser.parse_args()
    from onnx.backend.test.loader import load_model_tests

    rows = []
    for kind in options.kinds.split(","):
        for case in load_model_tests(kind=kind):
            if options.only and not re.search(options.only, case.name):
                continue
            if case.model is None:
                import onnx

                case = load_files(case)
            started = time.perf_counter()
            status, reason = run_case(case, options.engine)
            operators = Counter(node.op_type for node in case.model.graph.node)
            rows.append(
                {
                    "kind": kind,
                    "name": case.name,
                    "status": status,
                    "reason": reason,
                    "operators": list(operators),
                    "seconds": round(time.perf_counter() - started, 3),
                }
            )
            if options.only:
                print(case.name, status, reason)
    counts = Counter((row["kind"], row["status"]) for row in rows)
    print(dict(counts), Counter(row["status"] for row in rows), f"{sum(r['seconds'] for r in rows):.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0


def load_files(case):
    import dataclasses
    import onnx
    from onnx import numpy_helper

    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):

        def read(prefix, infos):
            found = []
            for place, info in enumerate(infos):
                path = data / f"{prefix}_{place}.pb"
                if not path.exists():
                    continue
                tensor = onnx.TensorProto()
                if info.type.HasField("sequence_type"):
                    found.append([])
                    continue
                tensor.ParseFromString(path.read_bytes())
                found.append(numpy_helper.to_array(tensor))
            return found

        sets.append((read("input", model.graph.input), read("output", model.graph.output)))
    return (
        dataclasses.replace(case, model=model, data_sets=sets)
        if dataclasses.is_dataclass(case)
        else case._replace(model=model, data_sets=sets)
    )


if __name__ == "__main__":
    sys.exit(main())
