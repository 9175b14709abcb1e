"""Refuse files in the environment that Python would run at every start and that nobody expects.

A `.pth` file whose line begins with `import`, a `sitecustomize` or a `usercustomize` module runs in each process,
before any code of ours. Malicious releases have used the first. Run it with `python -I -S`, so that looking does
not run them; it needs nothing but the standard library.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# The files that may be there, with every line they may hold.
EXPECTED: dict[str, frozenset[str]] = {
    # setuptools: keeps `import distutils` working on Pythons that lost it
    "distutils-precedence.pth": frozenset(
        {
            "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local';"
            " enabled and __import__('_distutils_hack').add_shim();"
        }
    ),
}
CUSTOMIZE = ("sitecustomize", "usercustomize")
# What setuptools writes for our own editable install.
EDITABLE = re.compile(r"__editable__\.evalkit-[\w.+]+\.pth")
FINDER = re.compile(r"import (__editable___evalkit_\w+_finder); \1\.install\(\)")


def unexpected(folder: Path, checkout: Path) -> list[str]:
    """What is wrong with the startup files of the site-packages `folder`, one line a fault.

    Our own editable install may add the `checkout` to the search path, by itself or through setuptools' finder.
    """
    faults = []
    for file in sorted(folder.iterdir()):
        if file.suffix == ".pth":
            if file.name not in EXPECTED and not EDITABLE.fullmatch(file.name):
                faults.append(f"{file.name}: unexpected startup file")
                continue
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if EDITABLE.fullmatch(file.name):
                    fits = line == str(checkout) or FINDER.fullmatch(line)
                else:
                    fits = line.strip() in EXPECTED[file.name]
                if line.strip() and not fits:
                    faults.append(f"{file.name}: unexpected line: {line[:160]!r}")
        elif file.name.split(".")[0] in CUSTOMIZE:
            faults.append(f"{file.name}: runs at every start of Python")
    return faults


def main() -> int:
    """Look at the environment this Python belongs to; 1 when something is there that should not be."""
    # Without site (-S) Python does not know that it stands in a virtual environment: its own place tells.
    library = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    folder = Path(sys.executable).parent.parent / library
    faults = unexpected(folder, Path.cwd()) if folder.is_dir() else [f"no such folder: {folder}"]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(
            "Fix: find out which package brought it (pip show -f), and do not start Python in this environment.",
            file=sys.stderr,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
