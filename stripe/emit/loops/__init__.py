"""Plans of loops, in no language: order, bounds, parallel loops, accumulators, hints, and the memory of buffers.

`plan` (the plan of a block) from `scope` (names, indices and buffers around), `order` (of the loops, and which run in
parallel), `bounds`, `tiles` and `transposes` (loops that become straight code), `accumulators`, `hints`; `memory` and
`registers` (of allocations), `products` (those that sums take).
"""
