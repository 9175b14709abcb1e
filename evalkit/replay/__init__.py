"""Collects replies of models: what to call, the ledger that keeps them, and a run that spends no more than it may."""
