"""Connected components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Member = TypeVar("Member")


def connected(links: Iterable[Iterable[Member]]) -> list[list[Member]]:
    """The members of all links in groups that no link crosses, in the order in which they come first."""
    groups: list[list[Member]] = []
    for link in links:
        members = list(dict.fromkeys(link))
        touching = [group for group in groups if not set(group).isdisjoint(members)]
        if touching:
            touching[0][:] = dict.fromkeys(member for group in (*touching, members) for member in group)
            groups = [group for group in groups if all(group is not other for other in touching[1:])]
        elif members:
            groups.append(members)
    return groups
