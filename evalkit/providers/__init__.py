"""Calls to models: requests, replies and failures as values, and the providers that make them."""
