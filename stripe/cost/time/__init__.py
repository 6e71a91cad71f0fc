"""Time on a machine, in cycles.

A program: `simulate` (its statements as tasks), `contention` (the events), `occupancy` (of buffers), `price` (for
searches). A statement by itself: `workload`, as a tree of `pieces`; what moves by `operands`, `caches` and `machine`
(routes), what computes by `rates`, `stencils`, `lanes`, `arrays` and `cores`, on several units by `parts`; loops over
tiles by `pipeline`, `turns` and `uneven`; `tally` sums up, `statement` is the result. Tiles of many sizes at once, for
the search of autotile: `tiles`, from `tile_moves`, `tile_unit` and `tile_core`.
"""
