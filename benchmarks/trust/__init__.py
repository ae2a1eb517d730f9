"""Can predictions and intervals be trusted: few rows, wide tables, outliers, other seeds, other orders."""
