"""`python -m evalkit` is the command `evalkit`."""

from __future__ import annotations

import sys

from evalkit.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
