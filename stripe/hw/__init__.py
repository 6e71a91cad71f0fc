"""Hardware models: the schema, rendering of the Jinja templates, the graph of units and the routes through it."""
