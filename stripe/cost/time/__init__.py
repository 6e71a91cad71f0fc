"""Time on a machine: the work of a statement, rates of units, contention, the event simulation."""
