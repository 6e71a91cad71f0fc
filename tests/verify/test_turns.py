"""Buffers that share bytes take turns: what the sweep over addresses finds is what looking at each pair finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Program, parse_program
from stripe.verify.machine.interference import Interference, Placed
from stripe.verify.machine.schedule import check_placement


@dataclass(frozen=True)
class Buffer:
    address: int
    size: int
    users: frozenset[tuple[int, int]]  # kernels of main, and which of the two blocks in each
    tag: str
    in_main: bool


@dataclass(frozen=True)
class Case:
    deps: tuple[frozenset[int], ...]
    buffers: tuple[Buffer, ...]
    repeated: int  # how often each kernel runs its two blocks

    def text(self) -> str:
        """A program whose kernels store into the buffers."""

        def views(names: Sequence[tuple[str, int]]) -> list[str]:
            return [f"inout<M[0]> {name}[0]:assign i8({size}:1)" for name, size in names]

        def allocations(in_main: bool) -> list[str]:
            return [
                f"#placed #{b.tag} none new@{b.address:#010x}<M[0]> B{n}[0] i8({b.size}:1)"
                for n, b in enumerate(self.buffers)
                if b.in_main is in_main
            ]

        outer = [(f"B{n}", b.size) for n, b in enumerate(self.buffers) if not b.in_main]
        lines = ["0: #program block [] ( // p", *allocations(False), ") {", "0: #main block [] ( // main"]
        lines += [*views(outer), *allocations(True), ") {"]
        for kernel, deps in enumerate(self.deps):
            used = {n: b.size for n, b in enumerate(self.buffers) if kernel in {k for k, _ in b.users}}
            index = f"[i:{self.repeated}]" if self.repeated > 1 else "[]"
            lines += [f"{kernel}{sorted(deps) or ''}: #kernel block {index} ( // k{kernel}"]
            lines += [*views([(f"B{n}", size) for n, size in used.items()]), ") {"]
            for part in range(2):
                inside = [n for n in used if (kernel, part) in self.buffers[n].users]
                lines += [f"{part}: block [] ( // b", *views([(f"B{n}", used[n]) for n in inside]), ") {"]
                lines += [
                    "0: $c = (i8)1",
                    *(f"{at}: B{n} = store($c)" for at, n in enumerate(inside, 1)),
                    "}",
                ]
            lines += ["}"]
        return "\n".join([*lines, "}", "}", ""])

    def sharing(self) -> set[tuple[str, str]]:
        """Pairs of buffers with common bytes of which neither is done before the other begins, by definition."""
        after: list[set[int]] = []  # for each kernel those that it waits for
        for deps in self.deps:
            after.append(set(deps).union(*(after[dep] for dep in deps)))

        def before(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
            return self.repeated == 1 and a < b if a[0] == b[0] else a[0] in after[b[0]]

        found: set[tuple[str, str]] = set()
        uses = [[(*user, number) for user in b.users] for number, b in enumerate(self.buffers)]
        for (m, one), (n, two) in combinations(enumerate(self.buffers), 2):
            apart = one.address + one.size <= two.address or two.address + two.size <= one.address
            turns = any(all(before(a, b) for a in uses[x] for b in uses[y]) for x, y in ((m, n), (n, m)))
            if not apart and ("user" in (one.tag, two.tag) or not turns):
                found.add((f"B{m}", f"B{n}"))
        return found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kernels = draw(st.integers(1, 5))
    deps = [frozenset[int]()]
    for kernel in range(1, kernels):
        some = st.frozensets(st.integers(0, kernel - 1))
        deps.append(draw(st.one_of(st.just(frozenset({kernel - 1})), some)))
    users = st.frozensets(st.tuples(st.integers(0, kernels - 1), st.integers(0, 1)), max_size=3)
    tags = st.sampled_from(["tmp", "tmp", "tmp", "user"])
    buffer = st.builds(Buffer, st.integers(0, 8), st.integers(1, 6), users, tags, st.booleans())
    return Case(tuple(deps), tuple(draw(st.lists(buffer, min_size=1, max_size=6))), draw(st.integers(1, 2)))


@pytest.mark.long
@settings(max_examples=300)
@given(case=cases())
def test_the_sweep_finds_what_pairs_find(case: Case) -> None:
    found = check_placement(parse_program(case.text()))
    names = {tuple(sorted(str(d).split("'")[1::2][:2])) for d in found}
    assert names == {tuple(sorted(pair)) for pair in case.sharing()}
    assert len(found) == len(names)


def in_turn(count: int) -> Program:
    """As many buffers, each for one kernel of a chain, all at one address."""
    deps = (frozenset[int](), *(frozenset({n}) for n in range(count - 1)))
    buffers = (Buffer(0, 4, frozenset({(n, 0), (n, 1)}), "tmp", False) for n in range(count))
    return parse_program(Case(deps, tuple(buffers), 1).text())


def test_each_buffer_is_compared_with_its_neighbours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Placed] = []
    precedes = Interference._precedes  # pyright: ignore[reportPrivateUsage]

    def counting(interference: Interference, first: Placed, second: Placed) -> bool:
        compared.append(first)
        return precedes(interference, first, second)

    monkeypatch.setattr(Interference, "_precedes", counting)
    assert check_placement(in_turn(60)) == []
    assert 59 <= len(compared) <= 2 * 60
