"""Routers that evalkit can run itself: from an item to a score, fitted, frozen, and checked for leaks."""
