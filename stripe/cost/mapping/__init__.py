"""The mapper: tile sizes, residency and spatial unrolling of a loop nest on all levels of a machine, jointly.

From a machine to plans: `problem` (nest and hierarchy), `hierarchy` (that of a hardware model), `mapper` (a search for
each nest, and for its parts), `splits` (divisors), `terms` (the price as a polynomial), `search`.
"""
