"""Cost: exact counts, the mapper, time on a machine by prices and by the event simulator, and reports."""
