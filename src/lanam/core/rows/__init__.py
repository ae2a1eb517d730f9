"""All that is asked of rows: tables of them, summaries, sums, the log-likelihood as a quadratic."""
