"""Run the shell examples of the pages, and put what they print below them; --check only compares.

Blocks marked `sh` run in order: README.md in an empty folder, docs/getting-started.md where README.md left off,
other pages in a folder of their own. A `text` block that follows one is what it prints on stdout. Blocks that call
make are left out: they install and test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
# Pages that run one after the other, and the folder inside the first one's in which each starts.
SERIES = (
    (("README.md", "."), ("docs/getting-started.md", "first-study")),
    (("docs/methods.md", "."),),
    (("docs/routers.md", "."),),
)
BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?P<printed>\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def printed_by(code: str, folder: Path) -> str:
    """What a shell prints for `code`. Raises RuntimeError with all of it when it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(f"exit code {run.returncode} of\n{code}\n{run.stdout}\n{run.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in run.stdout.splitlines())


def with_output(text: str, folder: Path) -> str:
    """The page with every example run, and its output in place of what stood there."""

    def run(block: re.Match[str]) -> str:
        code = block["code"]
        if re.search(r"^make\b", code, re.MULTILINE):
            return block[0]
        printed = printed_by(code, folder)
        shown = f"\n```text\n{printed}```\n" if block["printed"] else ""
        return f"```sh\n{code}```\n{shown}"

    return BLOCK.sub(run, text)


def differing(write: bool) -> list[str]:
    """Run everything; the pages whose output differs (and, with `write`, are written anew)."""
    changed = []
    for series in SERIES:
        with tempfile.TemporaryDirectory() as folder:
            for name, start in series:
                page = REPO / name
                text = page.read_text(encoding="utf-8")
                new = with_output(text, Path(folder) / start)
                if new != text:
                    changed.append(name)
                    if write:
                        page.write_text(new, encoding="utf-8")
    return changed


def main() -> int:
    """Write or compare; 1 when a page differs."""
    check = sys.argv[1:] == ["--check"]
    changed = differing(write=not check)
    for name in changed:
        print(f"{name}: {'differs from what its examples print' if check else 'written'}", file=sys.stderr)
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
