"""Prices of candidates: a program through the rest of the pass list, then its simulated time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stripe.ir import Program, StripeError

if TYPE_CHECKING:
    from stripe.cost.time.price import Price
    from stripe.pipeline.manager import PassManager


class Pricing(Protocol):
    """A source of prices of programs that go through the rest of a pass list: a memo, or the store of a sweep."""

    def price(self, rest: PassManager, program: Program) -> Price:
        """The simulated price of `program` after the passes of `rest`. Raises StripeError."""
        ...


class PriceMemo:
    """The prices of one run, prices inside prices included: equal programs before equal entries are priced once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Program], Price | StripeError] = {}

    def price(self, rest: PassManager, program: Program) -> Price:
        """As `Pricing`; the managers `rest` are of the same list."""
        from stripe.cost.time.price import price_program

        assert rest.hardware is not None, "prices are those of a machine"
        key = (len(rest.entries), program)
        if key not in self._known:
            try:
                self._known[key] = price_program(rest.run(program), rest.hardware)
            except StripeError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, StripeError):
            raise found.with_traceback(None)
        return found
