"""The tables of a ledger, and how a file is known to be one."""

from __future__ import annotations

import sqlite3

__all__ = ["APPLICATION_ID", "SCHEMA", "USER_VERSION", "create"]

APPLICATION_ID = 0x65766B6C
"""`evkl`, in the header of every ledger: another program's database is never written to."""

USER_VERSION = 1
"""Version of the tables."""

SCHEMA = (
    """
    CREATE TABLE runs (
        run TEXT PRIMARY KEY,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        ended TEXT,
        about TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE manifest (
        field TEXT NOT NULL,
        value TEXT NOT NULL,
        recorded_at TEXT NOT NULL,
        number INTEGER PRIMARY KEY
    )
    """,
    """
    CREATE TABLE requests (
        key TEXT PRIMARY KEY,
        content TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE steps (
        item TEXT NOT NULL,
        candidate TEXT NOT NULL,
        sample INTEGER NOT NULL,
        purpose TEXT NOT NULL,
        step INTEGER NOT NULL,
        key TEXT NOT NULL,
        PRIMARY KEY (item, candidate, sample, purpose, step)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE attempts (
        key TEXT NOT NULL,
        number INTEGER NOT NULL,
        run TEXT NOT NULL,
        candidate TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('in_flight', 'reply', 'failure', 'abandoned')),
        kind TEXT,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        waited_s REAL NOT NULL,
        duration_s REAL,
        result TEXT,
        usage TEXT,
        billed TEXT,
        cost_usd TEXT,
        cost_reason TEXT,
        reserved_usd TEXT,
        paid INTEGER NOT NULL,
        UNIQUE (key, number)
    )
    """,
    """
    CREATE TABLE batches (
        token TEXT PRIMARY KEY,
        run TEXT NOT NULL,
        candidate TEXT NOT NULL,
        job TEXT NOT NULL,
        reserved_usd TEXT,
        open INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX attempts_state ON attempts (state) WHERE state IN ('in_flight', 'abandoned')",
)
"""`attempts.paid` is 0 where a recording answered, which costs nothing now. `usage` is as the provider gave it.
Money is decimal text."""


def create(connection: sqlite3.Connection) -> None:
    """All tables and the marks in the header, at once: a kill leaves an empty file or a whole ledger."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {USER_VERSION}")
    connection.execute("COMMIT")
