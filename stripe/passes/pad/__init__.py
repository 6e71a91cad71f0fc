"""The pass pad: the conditions under which padding keeps the meaning, and the rewrite."""
