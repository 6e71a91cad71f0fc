"""Plans of loops, in no language: order, bounds, parallel loops, accumulators, hints, and the memory of buffers."""
