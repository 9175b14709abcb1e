"""Routing: from labelled items, outcomes and scores to one judged operating point. Pure computation, no IO."""
