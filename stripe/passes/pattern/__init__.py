"""The pass pattern: terms with variables, the names of contractions, and the match."""
