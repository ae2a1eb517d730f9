"""Terms of the additive model: knots, networks, and linearised tables."""
