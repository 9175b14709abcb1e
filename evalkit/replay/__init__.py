"""Collects replies of models: what to call, the ledger that keeps them, a run that spends no more than it may."""
