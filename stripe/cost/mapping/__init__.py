"""The mapper: tile sizes, residency and spatial unrolling of a loop nest on all levels of a machine, jointly.

The question: `problem` (nest and hierarchy), `hierarchy` (that of a hardware model). Mappings: `skeletons` (orders of
what memories hold), `splits` (divisors), `loop_mapping` (both, as loops). Their price: `terms` (a polynomial), `price`
(by an objective). The best: `search`, with `dominance`; `mapper` (a search for each nest, and for its parts).
"""
