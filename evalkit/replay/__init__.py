"""Collects replies of models: what to call, the ledger that keeps them, and the run that spends no more than it may."""
