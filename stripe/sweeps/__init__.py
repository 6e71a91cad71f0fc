"""Co-design sweeps: design points of a machine, evaluated over networks; the store of results, and reports."""
