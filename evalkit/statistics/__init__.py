"""Pure statistics on arrays: bounds, thresholds with a guarantee, intervals and comparisons."""
