"""What is added up: where a term is tabulated, its network, and its table."""
