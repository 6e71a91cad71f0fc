"""The pass autotile: the search of tile sizes by exact footprints, by a machine or by the original's weights."""
