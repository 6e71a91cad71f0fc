"""The bridge to isl: domains, access relations, footprints, counts, dependences. Nothing else imports islpy."""
