"""The pass subgroup: the search of shapes for a subgroup of lanes, and the rewrite."""
