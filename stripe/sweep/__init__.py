"""Co-design sweeps: the search, the result store and the reports."""
