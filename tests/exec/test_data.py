"""Random inputs, tensors in files, and the comparison of results."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stripe.exec.arith import Array
from stripe.exec.compare import EXACT, LOOSE, Tolerance, compare, tolerance_for
from stripe.exec.data import load_inputs, random_inputs, save_arrays
from stripe.exec.errors import ExecutionError
from stripe.exec.exactness import best_magnitude, order_free
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, ConfigError, Program
from stripe.tile import compile_tile
from tests.support.archives import load_arrays
from tests.support.programs import build, elementwise, load


def dot(size: int, dtype: str = "fp32", then: str = "") -> Program:
    return build(
        f"in A {dtype}({size}); in B {dtype}({size}); out O {dtype}(1)",
        f"""0: #kernel block [k:{size}] (
            in<[0]> A[k] {dtype}(1:1)
            in<[0]> B[k] {dtype}(1:1)
            out<[0]> O[0]:add {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: $b = load(B)
          2: $o = mul($a, $b)
          {then or "3: O = store($o)"}
        }}""",
    )


def test_random_inputs_come_from_the_seed() -> None:
    first, again, other = (random_inputs(dot(50), seed)["A"] for seed in (1, 1, 2))
    assert (first == again).all() and not (first == other).all()
    assert first.dtype == np.float32 and first.shape == (50,) and np.unique(first).size > 5


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("size", [3, 40, 230])
def test_sums_of_random_inputs_are_exact(size: int, dtype: str) -> None:
    built = dot(size, dtype)
    inputs = random_inputs(built, 0)
    exact = float(inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64))
    if order_free(built, best_magnitude(built)):
        assert float(interpret(built, inputs)["O"][0]) == exact
    assert (best_magnitude(built) < 8) == (dtype in ("fp16", "bf16") and size > 3)


def test_the_range_shrinks_with_the_depth() -> None:
    """A product of three, summed twice: 300 * 300 * 8^3 does not fit 24 bits."""
    built = load("exec/data/the_range_shrinks_with_the_depth")
    magnitude = best_magnitude(built)
    assert 300 * 300 * magnitude**3 <= 1 << 24
    assert magnitude == 4
    assert np.abs(random_inputs(built)["A"]).max() == magnitude


def test_positive_data_stay_in_the_range_in_which_sums_are_exact() -> None:
    """200 squares of 1 are exact in bf16, those of 1 and 2 are not."""
    text = "function (A[N=4, K=200]: bf16) -> (O) { S[i, j : N, 1] = +(A[i, k] * A[i, k]); O = A / sqrt(S); }"
    built = compile_tile(text, "norm")
    data = random_inputs(built)["A"].astype(np.float64)
    assert 1 <= data.min() < data.max() <= best_magnitude(built)
    assert tolerance_for(built) == LOOSE


def test_indices_states_and_domains() -> None:
    built = load("exec/data/indices_states_and_domains")
    index = random_inputs(built)["I"]
    assert index.min() == 0 and index.max() == 6
    built = load("exec/data/indices_states_and_domains_2")
    assert random_inputs(built)["S"].min() >= 16
    assert random_inputs(load("exec/data/indices_states_and_domains_3"))["A"].min() >= 1
    within = random_inputs(load("exec/data/indices_states_and_domains_4"))["A"]
    assert np.abs(within).max() < 1 and np.unique(within).size > 5
    quotient = random_inputs(load("exec/data/indices_states_and_domains_5"))
    assert quotient["B"].min() >= 1


def test_indices_are_seen_through_a_cast() -> None:
    built = load("exec/data/cast_index")
    index = random_inputs(built)["I"]
    assert 50 < index.max() < 100 and index.min() >= 0


@pytest.mark.parametrize("name", DTYPES)
def test_random_inputs_have_the_dtype(name: str) -> None:
    data = random_inputs(elementwise("$O = ident($A)", 64, {"A": name}, name))["A"]
    assert data.dtype == DTYPES[name].numpy() and np.unique(data.astype(np.float64)).size > 1


def test_files_keep_all_dtypes(tmp_path: Path) -> None:
    arrays = {
        f"{name}.x'": np.array([[0, 1], [1, 0]]).astype(dtype.numpy()) for name, dtype in DTYPES.items()
    }
    arrays["file"] = np.array(2.5)  # names that numpy.savez cannot take
    path = tmp_path / "data.npz"
    save_arrays(path, arrays)
    found = load_arrays(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and (found[name] == array).all()
    assert [p.name for p in tmp_path.iterdir()] == ["data.npz"]


def test_bf16_from_fp32_when_nothing_is_lost(tmp_path: Path) -> None:
    built = load("exec/data/bf16_from_fp32_when_nothing_is_lost")
    path = tmp_path / "data.npz"
    np.savez(path, A=np.array([1.5, 3], np.float32))
    assert load_inputs(built, path)["A"].dtype == DTYPES["bf16"].numpy()
    np.savez(path, A=np.array([1.5, 0.1], np.float32))
    with pytest.raises(ExecutionError, match="dtype float32, the program takes bf16"):
        load_inputs(built, path)


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    built = load("exec/data/files_that_do_not_fit")
    path = tmp_path / "data.npz"
    with pytest.raises(ExecutionError, match="No such file"):
        load_inputs(built, path)
    with pytest.raises(ExecutionError, match="Is a directory"):
        load_inputs(built, tmp_path)
    path.write_bytes(b"\x00\x01binary")
    with pytest.raises(ExecutionError, match=r"not a \.npz file"):
        load_inputs(built, path)
    np.savez(path, B=np.zeros(2, np.float32))
    with pytest.raises(ExecutionError) as caught:
        load_inputs(built, path)
    assert str(caught.value) == f"{path}: the file has B: error: input 'A' is missing\n  hint: it is fp32[2]"
    np.savez(path, A=np.array([object()]))
    with pytest.raises(ExecutionError, match="of plain arrays"):
        load_inputs(built, path)
    np.save(tmp_path / "one.npy", np.zeros(2))
    with pytest.raises(ExecutionError, match="one array without a name"):
        load_inputs(built, tmp_path / "one.npy")


def _archive_of(path: Path, array: Array, header: str, length: int | None = None) -> Path:
    """An archive with the tensor A, whose header tells of other sizes than its data has."""
    told = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {header}, }}\n".encode()
    start = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(told) if length is None else length)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A.npy", start + told + array.tobytes())
        archive.writestr("unused.npy", start + told)
    return path


def test_members_are_unpacked_only_where_shape_and_dtype_fit(tmp_path: Path) -> None:
    """Headers tell of gigabytes that are not there: reading them would fail."""
    built, path = load("exec/data/files_that_do_not_fit"), tmp_path / "data.npz"
    _archive_of(path, np.ones(2, np.float32), "(536870912,)")
    with pytest.raises(ExecutionError, match=r"'A' has the shape \[536870912\], the program takes \[2\]"):
        load_inputs(built, path)
    _archive_of(path, np.ones(2, np.int64), f"(2, {1 << 40})")
    with pytest.raises(ExecutionError, match="'A' has dtype int64, the program takes fp32"):
        load_inputs(built, path)
    _archive_of(path, np.ones(2, np.float32), f"({1 << 62}, {1 << 62})")
    with pytest.raises(ExecutionError, match=r"not a \.npz file of plain arrays"):
        load_inputs(built, path)
    _archive_of(path, np.ones(2, np.float32), "(2,)", length=(1 << 32) - 1)
    with pytest.raises(ExecutionError, match=r"not a \.npz file of plain arrays"):
        load_inputs(built, path)
    _archive_of(path, np.ones(2, np.float32), "(2,)")
    assert load_inputs(built, path)["A"].tolist() == [1, 1]  # the member that is not used has no data


def test_nothing_is_left_of_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        save_arrays(tmp_path / "nowhere" / "data.npz", {"A": np.zeros(2)})
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="a directory"):
        save_arrays(tmp_path / "folder", {"A": np.zeros(2)})
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_tolerance_follows_the_program() -> None:
    assert tolerance_for(dot(50)) == EXACT
    assert tolerance_for(dot(50), small_integers=False) == LOOSE
    assert tolerance_for(dot(50, "i32"), small_integers=False) == EXACT
    third = dot(50, then="3: $c = (fp32)0.3\n4: $d = mul($o, $c)\n5: O = store($d)")
    assert tolerance_for(third) == LOOSE
    half = dot(50, then="3: $c = (fp32)2.0\n4: $d = div($o, $c)\n5: O = store($d)")
    assert tolerance_for(half) == EXACT
    assert tolerance_for(load("exec/data/tolerance_follows_the_program")) == EXACT
    assert tolerance_for(load("exec/data/tolerance_follows_the_program_2")) == LOOSE


def test_comparison_is_exact_by_default() -> None:
    expected = {"O": np.array([[1, 2], [3, np.nan]], np.float32), "N": np.array([0.0], np.float32)}
    actual = {"O": expected["O"].copy(), "N": np.array([-0.0], np.float32)}
    assert compare(expected, actual) == []
    actual["O"][1, 0] = np.nextafter(np.float32(3), np.float32(4))
    actual["O"][0, 1] = 7
    (difference,) = compare(expected, actual)
    assert (difference.first, difference.count, difference.total, difference.max_error) == ((0, 1), 2, 4, 5.0)
    assert str(difference) == "'O'[0, 1] is 7.0, expected 2.0; 2 of 4 elements differ, by 5 at most"


def test_comparison_with_tolerance() -> None:
    expected = {"O": np.array([1.0, 1000.0, np.inf])}
    near = {"O": np.array([1.0 + 2**-50, 1000.0, np.inf])}
    assert compare(expected, near, Tolerance(relative=16)) == []
    assert compare(expected, near, Tolerance(relative=2)) != []
    assert compare(expected, {"O": np.array([1.0, 1000.0, -np.inf])}, LOOSE)[0].max_error == np.inf
    assert compare(expected, {"O": np.array([np.nan, 1000.0, np.inf])}, LOOSE)[0].first == (0,)
    half = {"O": np.array([100.0], np.float16)}
    assert compare(half, {"O": np.array([150.0], np.float16)}, LOOSE) != []


def test_integers_and_shapes_are_never_tolerated() -> None:
    ints = {"O": np.array([0, 255], np.uint8)}
    (difference,) = compare(ints, {"O": np.array([255, 255], np.uint8)}, LOOSE)
    assert difference.max_error == 255
    assert "dtype" in str(compare(ints, {"O": np.array([0, 255], np.int16)})[0])
    assert "shape" in str(compare(ints, {"O": np.zeros((1, 2), np.uint8)})[0])
    assert str(compare(ints, {})[0]) == "'O' is missing among the computed tensors"
    assert str(compare({}, ints)[0]) == "'O' is missing among the expected tensors"
