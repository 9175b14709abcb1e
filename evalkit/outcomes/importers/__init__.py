"""Turn other people's result files into outcomes: one column a model, a matrix, or one row an item and model."""
