"""The pass fusion: which blocks to join, the plan of a join, and the joined nest.

From the options to the nest: `fusion` (options, and the loop over pairs), `candidates` (pairs of producer and
consumer), `legality` (the plan of a join, or the reason against it) with `reach` and `rings` (overlaps of tiles),
`priced` (whether a join pays), `build` (the nest), `remarks`.
"""
