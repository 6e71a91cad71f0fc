"""Front ends: the languages in which programs come, each a row of `stripe.frontends.registry`."""
