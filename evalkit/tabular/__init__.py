"""Strict tables: read CSV, JSONL, JSON and Parquet with the place of every record; write whole or not at all.

`read_table` reads; `resolve` and `Fields` turn columns into checked values; `Faults` gathers what is wrong;
`Fingerprint` hashes parsed content; `write_table` and `write_atomic` write. Import names from the modules: they
load numpy and pyarrow, which a quick command must not.
"""
