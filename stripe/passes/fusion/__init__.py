"""The pass fusion: which blocks to join, the plan of a join, and the joined nest."""
