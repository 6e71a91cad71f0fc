"""The table of mutants for the manual: `python -m tests.verify.mutant_table > docs/mutants.md`."""

from __future__ import annotations

from collections import Counter, defaultdict

from stripe.ir import Program, verify_structural
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from tests.support.running import run_both
from tests.verify.mutate import mutants
from tests.verify.pairs import pairs
from tests.verify.pass_pairs import pass_pairs

SEEDS = (0, 1, 2, 3, 4, 5)
COLUMNS = ("different", "of these runs differ", "equal", "of these runs differ ", "unknown", "invalid IR")

HEAD = """# Mutants of correct rewrites

Each correct rewrite in `tests/verify/pairs.py` (written by hand) and `pass_pairs.py` (made by passes) proves equal.
Each is then broken in one place, in every way that `tests/verify/mutate.py` knows, and compared with the original
again. A mutant that is *different* has a witness; *equal* are those whose change has no effect (a bound that another
implies, say). Both are confirmed by running original and mutant on six sets of small integers: no mutant that is
called equal runs differently. A *different* one with equal results is wrong in itself (it reads an unwritten element,
or races), hides behind the data, or is equal by an algebra that is more than the reassociation of one sum. Written by
`python -m tests.verify.mutant_table`.
"""


def main() -> None:
    """Prints the page."""
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    by_rewrite: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in [*pairs(), *pass_pairs()]:
        for mutant in mutants(pair.after):
            columns = _columns(pair.before, mutant.program)
            by_kind[mutant.kind].update(columns)
            by_rewrite[pair.name].update(columns)
    print(HEAD)
    for title, table in (("mistake", by_kind), ("rewrite", by_rewrite)):
        print(f"| {title} | {' | '.join(column.strip() for column in COLUMNS)} |")
        print(f"|---|{'---:|' * len(COLUMNS)}")
        total: Counter[str] = Counter()
        for name, counts in sorted(table.items()):
            total += counts
            print(_row(name, counts))
        print(_row("all", total), end="\n\n")


def _row(name: str, counts: Counter[str]) -> str:
    return f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |"


def _columns(before: Program, after: Program) -> list[str]:
    """The columns that a mutant counts in."""
    if verify_structural(after):
        return ["invalid IR"]
    verdict = prove_equal(before, after)
    differs = bool(run_both(before, after, SEEDS))
    if isinstance(verdict, Different):
        return ["different", *(["of these runs differ"] if differs else [])]
    if isinstance(verdict, Equal):
        return ["equal", *(["of these runs differ "] if differs else [])]
    return ["unknown"]


if __name__ == "__main__":
    main()
