"""The order in which the definitions behind a read are made without recursion."""

from __future__ import annotations

from collections.abc import Iterator

from stripe.ir import Load, Store
from stripe.verify.proof.definitions import Definitions
from stripe.verify.proof.terms import Read


def reads_in_order(definitions: Definitions, read: Read) -> list[Read]:
    """The reads that lead to `read` through stores, each after those that lead to it: to be defined in this order
    where programs are deeper than Python's stack."""
    done: dict[Read, None] = {}
    seen = {read}
    under_way = [(read, _sources(definitions, read))]
    while under_way:
        current, sources = under_way[-1]
        following = next((source for source in sources if source not in seen), None)
        if following is None:
            done[current] = None
            under_way.pop()
        else:
            seen.add(following)
            under_way.append((following, _sources(definitions, following)))
    return list(done)


def _sources(definitions: Definitions, read: Read) -> Iterator[Read]:
    """The reads of the loads behind the stores, and of the operands of the specials, that write what `read`
    reads."""
    visible = set(read.writers)
    for writer in definitions.reaching.writers.get(read.buffer, ()):
        if writer.path not in visible:
            continue
        statements = writer.nest.block.statements
        match writer.statement:
            case Store(_, value):
                numbers = definitions.reaching.scalars_behind(writer.nest, value).values()
                paths = [(*writer.nest.path, n) for n in numbers if isinstance(statements[n], Load)]
            case _:
                paths = [writer.path]
        for access in (access for path in paths for access in definitions.reaching.by_path[path]):
            source = definitions.reaching.read(access) if not access.is_write else None
            if source is not None and not (
                source.buffer in definitions.known and definitions.reaching.is_final(source)
            ):
                yield source
