"""evalkit: offline evidence for routing and reasoning-budget decisions."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
