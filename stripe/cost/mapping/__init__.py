"""The mapper: tile sizes, residency and spatial unrolling of a loop nest on all levels of a machine, jointly."""
