"""Reasoning budgets: from outcomes of a ladder of arms to the least costly one that meets every limit. No IO."""
