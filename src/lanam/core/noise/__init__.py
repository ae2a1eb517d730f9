"""Noise models: missing inputs, heteroscedastic noise, the residual distribution."""
