"""The paper's solver and curvature: Adam, Kronecker factors, block posteriors."""
