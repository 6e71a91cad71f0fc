"""The report of a sweep: one HTML page that works offline."""
