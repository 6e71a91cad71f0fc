"""The pass pattern: tags for blocks of a structure.

From the options to the tags: `pattern` (options, the match), `terms` (patterns with variables and their syntax),
`contraction_kinds` (the names of contractions).
"""
