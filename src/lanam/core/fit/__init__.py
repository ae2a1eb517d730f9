"""The stages of a fit, readable as a script."""
