"""The pass register_cache: copies that stay in registers, in `register_cache`."""
