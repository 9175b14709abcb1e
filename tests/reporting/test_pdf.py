"""A report on paper through a real Chromium, and what is said without one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import signoff_examples as examples

from evalkit.errors import InputError
from evalkit.reporting.pdf import chromium, write_pdf
from evalkit.reporting.signoff import render_signoff_html


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "sign off & more.html"
    path.write_text(render_signoff_html(examples.reject()), encoding="utf-8")
    return path


def browser() -> Path:
    path = Path(os.environ.get("EVALKIT_CHROMIUM", "/usr/bin/chromium"))
    if not path.is_file():
        reason = f"needs Chromium at {path} (EVALKIT_CHROMIUM names another place)"
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.mark.browser
def test_the_page_is_printed_on_a4(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pdf"
    write_pdf(page, target, browser=browser())
    content = target.read_bytes()
    assert content.startswith(b"%PDF")
    boxes = re.findall(rb"/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)", content)
    # A4 is 210 mm x 297 mm, 595.3 x 841.9 points; browsers round to whole pixels.
    assert len(boxes) >= 2
    assert all(abs(float(w) - 595.3) < 1 and abs(float(h) - 841.9) < 1 for w, h in boxes)
    assert sorted(p.name for p in tmp_path.iterdir()) == [target.name, page.name]


def test_without_a_browser_it_says_how_to_get_one(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALKIT_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"(?s)none was found.*Fix: install Chromium"):
        write_pdf(page, tmp_path / "out.pdf")
    monkeypatch.setenv("EVALKIT_CHROMIUM", str(tmp_path / "nowhere\x1b"))
    with pytest.raises(InputError, match="is no program") as caught:
        chromium()
    assert "\x1b" not in str(caught.value)
    assert not (tmp_path / "out.pdf").exists()


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for a browser that fails")
def test_a_browser_that_fails_leaves_no_file_and_its_last_words(page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'first' >&2\necho 'no display \033[31m' >&2\nexit 21\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(InputError, match=r"wrote no PDF \(exit code 21\): no display") as caught:
        write_pdf(page, tmp_path / "out.pdf", browser=broken)
    assert "\x1b" not in str(caught.value)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    silent.chmod(0o755)
    with pytest.raises(InputError, match=r"wrote no PDF \(exit code 0\)"):
        write_pdf(page, tmp_path / "out.pdf", browser=silent)
    with pytest.raises(InputError, match="is not a file"):
        write_pdf(tmp_path / "none.html", tmp_path / "out.pdf", browser=silent)
    with pytest.raises(InputError, match="could not be started"):
        write_pdf(page, tmp_path / "out.pdf", browser=tmp_path)
    assert not (tmp_path / "out.pdf").exists()
