"""Runs the golden tests under LLVM's `lit`, one process per command: `.venv/bin/lit -v tests/golden`.

pytest runs the same files in process (tests/support/golden.py); keep the two in step.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import lit.formats

_here = Path(__file__).resolve().parent

config.name = "stripe-opt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".tile", ".stripe", ".test"]
config.excludes = ["Inputs", "proof", "whole"]
config.test_source_root = str(_here)
config.test_exec_root = str(_here.parents[1] / "build" / "lit")
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), config.environment["PATH"]])
config.substitutions.append((r"\bFileCheck\b", "filecheck"))
