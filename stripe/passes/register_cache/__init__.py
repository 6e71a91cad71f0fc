"""The pass register_cache: copies that stay in registers."""
