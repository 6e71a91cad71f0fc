"""Libraries and compilers that compute the workloads: a module has `version()` and `prepare(workload, data, threads)`.

`prepare` gives a function that computes the result once, and one that gives the array of the last result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Prepared: TypeAlias = tuple[Callable[[], object], Callable[[], Any]]
