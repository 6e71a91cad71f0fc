"""Reports of a simulation: the JSON schema, tables, traces and pictures."""
