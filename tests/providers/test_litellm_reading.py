"""What is said of a call that raised inside LiteLLM."""

from __future__ import annotations

import pytest

from evalkit.providers.litellm_reading import failure_of
from evalkit.providers.wire import Exchange

TRACEBACK = 'Traceback (most recent call last):\n  File "/somewhere/site-packages/litellm/main.py", line 3, in x'


@pytest.mark.parametrize(
    "said", [f"Invalid response object {TRACEBACK}", f"Invalid response object\n\n{TRACEBACK}"]
)
def test_no_traceback_of_a_library_and_no_path_reaches_a_message(said: str) -> None:
    failure = failure_of(Exchange(), ValueError(said))
    assert "Invalid response object" in failure.message
    assert "Traceback" not in failure.message
    assert "site-packages" not in failure.message
