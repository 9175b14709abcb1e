"""Verifiers of a cascade: how good a tier's reply looks without knowing the right answer.

Each takes replies and, where it reads the request, items without reference, label, risk and metadata, and gives
one score an item: the higher, the more a reply looks good enough (`higher_means: cheap_is_enough`).
"""
