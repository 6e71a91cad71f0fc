"""Domains, footprints, dependences and races of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Buffer,
    Constraint,
    Domain,
    Index,
    Nest,
    parse_affine,
    parse_program,
    print_program,
)
from stripe.poly import (
    accesses,
    bounds,
    count_accesses,
    count_domain,
    count_elements,
    deps,
    feasible,
    footprints,
    implied,
    operation_limit,
    overlap,
    race,
    reduce_constraints,
    simplify_affine,
    simplify_block,
    statement_deps,
    tighten,
    untouched,
    view_box,
)
from stripe.poly.single_writes import single_writes
from tests.poly.programs import conv
from tests.support.programs import load, source


def kernel(number: int) -> Nest:
    return Nest.root(conv()).enter(number)


def test_a_domain_is_counted_with_its_constraints() -> None:
    assert count_domain(kernel(0).domain) == (3 * 16 - 2) ** 2 * 32 * 8


def test_footprints_are_exact() -> None:
    found = footprints(kernel(0))
    image, weights, out = (found[Buffer((), name)] for name in "IKT")
    assert (image.elements_read, image.elements_written) == (16 * 16 * 32, 0)
    assert weights.elements_read == 3 * 3 * 32 * 8
    assert out.elements_written == 16 * 16 * 8
    assert image.box == ((0, 15), (0, 15), (0, 31))
    assert count_accesses(image.reads[0]) == (3 * 16 - 2) ** 2 * 32 * 8


def test_a_strided_window_leaves_holes() -> None:
    block = kernel(1).block
    ref = block.ref("T")
    strided = replace(
        block,
        indices=(Index("x", 4), Index("y", 4), Index("c", 8)),
        refinements=(replace(ref, access=tuple(map(parse_affine, ("3*x", "x + 2*y", "c")))), block.ref("O")),
    )
    found = footprints(strided)[Buffer((), "T")]
    assert (found.elements_read, found.box) == (4 * 4 * 8, ((0, 9), (0, 9), (0, 7)))


def test_a_block_whose_constraint_never_holds_touches_nothing() -> None:
    block = kernel(1).block
    closed = replace(block, constraints=(*block.constraints, Constraint(Affine(-1))))
    found = footprints(closed)[Buffer((), "T")]
    assert (found.elements_read, found.box) == (0, None)
    scalar = replace(block, refinements=(replace(block.ref("T"), access=(), dims=()), block.ref("O")))
    for constraint, box in ((Affine(-1), None), (Affine(0), ())):
        ran = footprints(replace(scalar, constraints=(Constraint(constraint),)))[Buffer((), "T")]
        assert (ran.elements_read, ran.box) == (int(box is not None), box)


def test_the_box_of_a_view_is_what_is_touched_through_it() -> None:
    nest = Nest.root(conv())
    assert view_box(nest, "I") == ((0, 15), (0, 15), (0, 31))
    assert view_box(nest.enter(0), "I") == ((0, 0), (0, 0), (0, 0))


def test_dependences_between_kernels() -> None:
    assert statement_deps(conv()) == ((), (0,))
    assert statement_deps(conv().statements[1]) == ((), (0,), (1,))  # type: ignore[arg-type]


def test_dependences_need_common_elements() -> None:
    """Two kernels that write two halves of a buffer, and one that reads the second half."""
    main = conv()
    second = main.statements[1]
    assert isinstance(second, Block)
    low = replace(second, indices=(Index("c", 8), Index("x", 8), Index("y", 16)))
    shifted = replace(
        low, refinements=tuple(replace(r, access=(r.access[0] + 8, *r.access[1:])) for r in low.refinements)
    )
    reads = replace(
        shifted,
        refinements=(
            replace(shifted.ref("O"), dir=main.ref("I").dir, name="T"),
            replace(shifted.ref("T"), dir=main.ref("O").dir, name="O", agg=Agg.ASSIGN),
        ),
    )
    both = replace(main, statements=(low, shifted, reads))
    assert statement_deps(both) == ((), (), (1,))


def test_dependences_that_follow_from_others_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    common = deps._Use.common  # pyright: ignore[reportPrivateUsage]

    def counted(earlier: Any, later: Any) -> Any:
        asked.append((earlier.statement, later.statement))
        return common(earlier, later)

    monkeypatch.setattr("stripe.poly.deps._Use.common", counted)
    chain = replace(conv(), statements=conv().statements[1:] * 6)
    assert statement_deps(chain) == ((), (0,), (1,), (2,), (3,), (4,))
    assert asked == [(n - 1, n) for n in range(1, 6)]
    asked.clear()
    assert statement_deps(chain, reduced=False)[-1] == (0, 1, 2, 3, 4)
    assert len(asked) == 15


def test_overlap_of_an_access_with_itself() -> None:
    image, weights, _ = accesses(kernel(0))
    assert overlap(image, image).equals(image.footprint)
    assert weights.footprint.box() == {"e%0": (0, 2), "e%1": (0, 2), "e%2": (0, 31), "e%3": (0, 7)}


def test_a_race_is_two_points_with_one_element() -> None:
    write = accesses(kernel(0))[2]
    assert race(write, write) is None  # merges by one aggregation may meet
    assigned = replace(write, agg=Agg.ASSIGN)
    found = race(assigned, assigned)
    assert found is not None
    first, second = found
    assert all(first[n] == second[f"{n}'"] for n in ("x@1", "y@1", "co@1"))
    assert any(first[n] != second[f"{n}'"] for n in ("ci@1", "kx@1", "ky@1"))


def test_untouched_elements() -> None:
    write = accesses(kernel(1))[1]
    assert untouched((16, 16, 8), [write]).is_empty
    assert untouched((17, 16, 8), [write]).box() == {"e%0": (16, 16), "e%1": (0, 15), "e%2": (0, 7)}


DOMAIN = Domain.of({"x": (0, 15), "k": (0, 2), "t": (0, 3)})


def texts(affines: tuple[Affine, ...] | None) -> list[str] | None:
    return None if affines is None else [str(a) for a in affines]


def test_constraints_that_follow_are_dropped() -> None:
    given = ("x + 2", "x + k - 1", "2*x + 2*k - 1", "17 - x - k", "20 - x - k")
    assert texts(reduce_constraints(tuple(map(parse_affine, given)), DOMAIN)) == ["-1 + k + x"]
    assert reduce_constraints((parse_affine("x - 9"), parse_affine("8 - x")), DOMAIN) is None
    both = (parse_affine("x - t"), parse_affine("t - k"), parse_affine("x - k"))
    assert texts(reduce_constraints(both, DOMAIN)) == ["-t + x", "-k + t"]


def test_bounds_are_exact() -> None:
    narrowed = DOMAIN.with_constraints((parse_affine("3 - x - k"),))
    assert bounds(parse_affine("x + 2*k"), DOMAIN) == (0, 19)
    assert bounds(parse_affine("x + 2*k"), narrowed) == (0, 5)
    assert bounds(parse_affine("(3*x) mod 4"), Domain.of({"x": (0, 2)})) == (0, 3)
    assert tighten(narrowed) == {"x": (0, 3), "k": (0, 2), "t": (0, 3)}
    assert implied(parse_affine("5 - x - k"), narrowed)
    assert not implied(parse_affine("2 - x - k"), narrowed)
    assert not feasible(narrowed.with_constraints((parse_affine("x - 4"),)))


def test_floors_and_remainders_that_do_nothing_disappear() -> None:
    def simpler(text: str) -> str:
        return str(simplify_affine(parse_affine(text), DOMAIN))

    assert simpler("floor((4*x + t)/4)") == "x"
    assert simpler("(4*x + t) mod 4") == "t"
    assert simpler("(x + 3) mod 32") == "3 + x"
    assert simpler("floor((x + k)/32) + t") == "t"
    assert simpler("(x + k) mod 7") == str(parse_affine("(x + k) mod 7"))


def test_a_block_is_simplified_under_the_blocks_outside() -> None:
    nest = kernel(0)
    block = nest.block
    more = replace(block, constraints=(*block.constraints, Constraint(parse_affine("x + kx + 1"))))
    outer = replace(conv(), statements=(more,))
    simplified = simplify_block(Nest.root(outer).enter(0))
    assert simplified == block
    assert simplify_block(nest) is block
    never = replace(block, constraints=(Constraint(parse_affine("x - 16")),))
    assert simplify_block(Nest.root(replace(conv(), statements=(never,))).enter(0)) is None


NESTED = source("poly/blocks/nested")


def test_indices_that_are_passed_in_are_followed() -> None:
    program = parse_program(NESTED, "nested.stripe")
    found = footprints(program.entry)
    assert found[Buffer((0,), "B")].elements_written == 15
    alone = Nest.root(program.main.statements[0].statements[0], (), {"x": (0, 3)})  # type: ignore[union-attr]
    assert alone.domain.names == ("x@out", "x@0")
    assert count_domain(alone.domain) == 15


def test_elements_with_one_point_each_are_counted_as_points() -> None:
    """To write this set of elements without the indices takes isl minutes."""
    read = accesses(kernel(1))[0]
    ranges = {"a": (0, 4), "b": (0, 4), "c": (0, 3), "d": (0, 4)}
    index = (
        "2*b + 3*c + 2*d + 2*((1 + a) mod 2) + ((1 + floor((1 + a)/2)) mod 3) + ((2 + a + floor(b/2)) mod 3)"
        " + floor(b/2)",
        "2*d - 2*a - 2*b - floor((1 + b)/3)",
        "3*b - c + d",
    )
    nest = replace(read.nest, domain=Domain.of(ranges))
    mixed = replace(read, nest=nest, index=tuple(map(parse_affine, index)))
    with operation_limit(500_000):
        assert count_elements(mixed) == 5 * 5 * 4 * 5
    reshaped = tuple(map(parse_affine, ("floor((4*a + c)/7)", "(4*a + c) mod 7", "b")))
    assert count_elements(replace(mixed, index=reshaped)) == 5 * 5 * 4


def test_a_sum_over_a_free_index_needs_no_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """All values of `k` contribute to the same elements; where one value is left, the store is alone."""
    monkeypatch.setattr("stripe.poly.single_writes.Relation.from_points", pytest.fail)
    entry = load("matmul").entry
    assert list(single_writes(entry)) == []
    monkeypatch.undo()
    text = print_program(load("matmul"))
    one = parse_program(text.replace("// kernel_0\n", "// kernel_0\n 0 - k >= 0\n"))
    assert [access.ref for access in single_writes(one.entry)] == ["C"]
