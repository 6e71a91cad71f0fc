"""Random Tile programs through random pass lists: interpreter before and after, compiled C and the proof must agree."""
