"""How noisy rows are: where values are missing, by column, and of which distribution."""
