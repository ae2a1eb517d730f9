"""The method, on arrays only: independent of data frames, estimators and plots."""
