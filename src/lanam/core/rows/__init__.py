"""Statistics of rows: tables in chunks, summaries, sums, the log-likelihood as a quadratic."""
