"""Pass lists, the pass manager and its instrumentation."""
