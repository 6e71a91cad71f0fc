"""With workers, tests that share a run of the compiler run in one process."""

from __future__ import annotations

import pytest

from tests.support.compiled import EXAMPLES, of
from tests.support.sharing import unit

FUNCTION = "tests/test_shipped_lists.py::test_every_pass_is_proved"


@pytest.mark.parametrize("example", [of(path) for path in EXAMPLES])
def test_the_tests_of_an_example_are_one_unit(example: object, request: pytest.FixtureRequest) -> None:
    assert unit(request.node.nodeid) == request.node.callspec.id
    assert unit(f"{FUNCTION}[{request.node.callspec.id}-cpu]") == request.node.callspec.id


def test_other_tests_go_by_function() -> None:
    assert unit(f"{FUNCTION}[a-b]") == unit(FUNCTION) == FUNCTION
    assert unit("tests/test_cpu_list.py::test_a") == unit("tests/test_cpu_list.py::test_b[c]")
    assert unit("tests/frontends/test_onnx_dtypes.py::test_a") == unit(
        "tests/frontends/test_onnx_operators.py::test_b"
    )


def test_workers_take_units(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['tests.support.sharing']")
    pytester.makepyfile(
        "import pytest\n@pytest.mark.parametrize('x', range(3))\ndef test_x(x): pass\ndef test_y(): pass"
    )
    result = pytester.runpytest_inprocess("-n", "1", "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["scheduling tests via SharedWork"])
