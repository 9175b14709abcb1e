"""The study file for a bundle: byte for byte, or without the secrets that stand in it."""

from __future__ import annotations

import json
from pathlib import Path

from evalkit.errors import HIDDEN, Fault, InputError, redact
from evalkit.workflows.evidence_format import AnyStudy

__all__ = ["check_study", "read_bytes", "study_bytes"]


def check_study(study: AnyStudy) -> None:
    """Raises InputError where the study file holds a secret that cannot be taken out of a bundle."""
    study_bytes(study)


def read_bytes(path: Path) -> bytes:
    """The content of a file that a bundle takes in; InputError where it is gone."""
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read for the evidence bundle: {error.strerror or type(error).__name__}"
        fix = "put the file back, or leave the bundle out with --no-evidence"
        raise InputError(Fault(what, fix, file=str(path))) from None


def study_bytes(study: AnyStudy) -> bytes:
    """The study file byte for byte; where it holds a secret as text, with the secret hidden."""
    from evalkit.study.nodes import walk
    from evalkit.study.secrets import hide_secrets
    from evalkit.study.strict_yaml import load_yaml

    content = read_bytes(study.path)
    before = load_yaml(study.path)
    hidden, _ = hide_secrets(before)
    text = content.decode("utf-8-sig")
    if not hidden.secrets and redact(text) == text:
        return content
    shown = {} if hidden.root is None else {path: scalar.text for path, _, scalar in walk(hidden.root)}
    for path, secret in sorted(hidden.secrets.items(), key=lambda item: len(item[1]), reverse=True):
        kept = json.dumps(shown.get(path, HIDDEN), ensure_ascii=False)
        for quote in ('"', "'"):
            text = text.replace(f"{quote}{secret}{quote}", kept)
        text = text.replace(f": {secret}", f": {kept}").replace(secret, HIDDEN)
    lines = [line.partition("#") for line in text.splitlines(keepends=True)]
    text = "".join(head + (mark + redact(rest) if mark else "") for head, mark, rest in lines)
    _check_hidden(study, text)
    return text.encode("utf-8")


def _check_hidden(study: AnyStudy, text: str) -> None:
    """The study without its secrets must still say the same."""
    import tempfile

    from evalkit.study.nodes import plain
    from evalkit.study.secrets import hide_secrets
    from evalkit.study.strict_yaml import load_yaml

    said = hide_secrets(load_yaml(study.path))[0].root
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        again = hide_secrets(load_yaml(path))[0]
    if again.root is None or said is None or again.secrets or plain(again.root) != plain(said):
        what = "holds a secret as plain text that cannot be taken out of its copy in the evidence bundle"
        fix = "put it into an environment variable (os.environ/NAME), or leave the bundle out with --no-evidence"
        raise InputError(Fault(what, fix, file=str(study.path)))
