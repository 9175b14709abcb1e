"""Who may talk to the page: a real process, spoken to by hand."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labelling_files import RISKS, TIERS, jsonl
from labelling_run import Page, arguments, environment, served

from evalkit.labelling.guard import MOST_BODY, POLICY

SET = ("items.jsonl", "--tiers", ",".join(TIERS), "--risk-classes", ",".join(RISKS), "--annotator", "ann")
GOOD = json.dumps({"index": 0, "after": 0, "tier": "mid", "risk": "low", "note": ""}).encode()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("guarded")
    jsonl(folder / "items.jsonl", [{"id": f"q{i}", "prompt": "x"} for i in range(3)])
    with served(folder, *SET) as page:
        yield page


def sent(page: Page, **change: str) -> dict[str, str]:
    headers = {
        "X-Evalkit-Token": page.token, "Content-Type": "application/json",
        "Origin": f"http://127.0.0.1:{page.port}",
    }  # fmt: skip
    return headers | {name.replace("_", "-"): value for name, value in change.items()}


def test_every_answer_forbids_what_is_not_its_own_and_is_not_kept(page: Page) -> None:
    for path in (f"/{page.token}/", f"/{page.token}/label.js", f"/{page.token}/nothing", "/api/state", "/"):
        _, headers, _ = page.ask("GET", path)
        assert headers["content-security-policy"] == POLICY
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not {"set-cookie", "server", "access-control-allow-origin"} & set(headers)
    for word in ("unsafe", "*", "http"):
        assert word not in POLICY


def test_the_page_is_there_with_its_token_only(page: Page) -> None:
    assert len(page.token) >= 32
    assert page.ask("GET", f"/{page.token}/")[0] == 200
    for path in ("/", "/wrong/", f"/{page.token[:-1]}/", f"/{page.token}x/", "/label.js", "//", "/%00/", "/api/"):
        assert page.ask("GET", path)[0] == 403, path
    for token in ("", "wrong", page.token[:-1], f"{page.token}x", page.token.upper() + "é"):
        assert page.ask("GET", "/api/state", headers={"X-Evalkit-Token": token})[0] == 403
    assert page.ask("GET", "/api/state")[0] == 403
    assert page.ask("GET", f"/{page.token}/api/state")[0] == 404  # a call has its token in the header


@pytest.mark.parametrize(
    "host",
    ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}", ""],
)
def test_another_name_that_leads_here_is_refused(page: Page, host: str) -> None:
    status, _, body = page.ask("GET", f"/{page.token}/", headers={"Host": host.format(port=page.port)})
    assert status in {400, 421}
    assert page.token.encode() not in body


def test_localhost_is_this_machine_too(page: Page) -> None:
    assert page.ask("GET", f"/{page.token}/", headers={"Host": f"localhost:{page.port}"})[0] == 200


@pytest.mark.parametrize(
    "change",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": "http://127.0.0.1:1"},
     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"X-Evalkit-Token": ""},
     {"X-Evalkit-Token": "wrong"}],
)  # fmt: skip
def test_nothing_is_changed_from_another_page_or_without_the_token(page: Page, change: dict[str, str]) -> None:
    assert page.ask("POST", "/api/decide", GOOD, sent(page) | change)[0] == 403
    assert page.api("state")["n"] == 0


def test_reading_from_another_origin_is_refused_too(page: Page) -> None:
    headers = {"X-Evalkit-Token": page.token, "Origin": "http://127.0.0.1:1"}
    assert page.ask("GET", "/api/item/0", headers=headers)[0] == 403
    assert page.ask("OPTIONS", "/api/decide", headers=sent(page, Origin="http://evil.example"))[0] == 403
    assert page.ask("OPTIONS", "/api/decide", headers=sent(page))[0] == 405


def test_a_request_has_its_size_whatever_its_headers_say(page: Page) -> None:
    big = b'{"note": "' + b"x" * MOST_BODY + b'"}'
    assert page.ask("POST", "/api/decide", big, sent(page))[0] == 413
    assert page.ask("POST", "/api/decide", b"", sent(page) | {"Content-Length": "99999999999"})[0] == 413
    with socket.create_connection(("127.0.0.1", page.port), timeout=20) as raw:
        head = "\r\n".join(
            f"{name}: {value}"
            for name, value in {
                "Host": f"127.0.0.1:{page.port}",
                "Transfer-Encoding": "chunked",
                **sent(page),
            }.items()
        )
        raw.sendall(f"POST /api/decide HTTP/1.1\r\n{head}\r\n\r\n".encode())
        raw.sendall(3 * (b"8000\r\n" + b"x" * 0x8000 + b"\r\n"))  # 96 KiB, and no end
        answer = raw.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert page.api("state")["n"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"\xff", 400), (b"[]", 400), (b'{"a": NaN}', 400), (b'{"index": 0, "index": 1}', 400),
     (b'{"note": "\\ud800"}', 400), (b"{" * 2000, 400), (b"{}", 422), (GOOD.replace(b"mid", b"huge"), 422),
     (GOOD.replace(b'"after": 0', b'"after": 7'), 409)],
)  # fmt: skip
def test_what_is_no_decision_says_so_and_changes_nothing(page: Page, body: bytes, status: int) -> None:
    got, headers, answer = page.ask("POST", "/api/decide", body, sent(page))
    assert got == status
    assert headers["content-type"] == "application/json"
    assert set(json.loads(answer)) == {"error"}
    assert page.api("state")["n"] == 0


def test_a_form_of_another_page_could_not_send_json(page: Page) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert page.ask("POST", "/api/decide", GOOD, sent(page) | {"Content-Type": kind})[0] == 415
    assert page.ask("GET", "/api/decide", headers=sent(page))[0] == 405


def test_an_item_that_is_not_there(page: Page) -> None:
    for place in ("3", "9" * 20, "9" * 5000, "-1", "x", "1.0", "%D9%A3", "0/"):
        assert page.ask("GET", f"/api/item/{place}", headers=sent(page))[0] == 404


def test_a_target_that_is_no_path_is_refused_as_any_other(page: Page) -> None:
    for method, target in (("OPTIONS", "*"), ("GET", "*"), ("CONNECT", "127.0.0.1:1"), ("GET", "http://x/")):
        status, headers, _ = page.ask(method, target, headers=sent(page))
        assert (status, headers["content-security-policy"]) == (403, POLICY), target


def test_the_address_without_its_last_slash_leads_to_the_page(page: Page) -> None:
    status, headers, _ = page.ask("GET", f"/{page.token}")
    assert (status, headers["location"]) == (307, f"/{page.token}/")


# The process


def test_it_listens_on_this_machine_only(page: Page) -> None:
    for address in {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}:
        if not str(address).startswith("127."):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((str(address), page.port), timeout=5)


def test_it_logs_nothing_and_ctrl_c_is_its_ordinary_end(tmp_path: Path) -> None:
    jsonl(tmp_path / "items.jsonl", [{"id": "q0", "prompt": "my number is 555-0199"}])
    with served(tmp_path, *SET) as page:
        page.ask("GET", f"/{page.token}/")
        page.ask("GET", "/wrong/")
        page.api("decide", json.loads(GOOD))
        code, out, err = page.stop()
        assert code == 0
        assert err == ""
        assert page.token not in out
        assert out.splitlines()[-2:] == [
            "1 of 1 decided, in items.ann.decisions.jsonl",
            "labels: evalkit label items.jsonl --tiers cheap,mid,top --risk-classes low,high --decisions "
            "items.ann.decisions.jsonl --export labels.jsonl",
        ]
    assert "555" not in (tmp_path / "items.ann.decisions.jsonl").read_text(encoding="utf-8")


def test_a_second_process_on_the_same_decisions_is_refused_and_so_is_a_port_in_use(tmp_path: Path) -> None:
    jsonl(tmp_path / "items.jsonl", [{"id": "q0", "prompt": "x"}])

    def other(*more: str) -> tuple[int, str]:
        run = subprocess.run(
            arguments(*SET, *more), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
        )
        return run.returncode, run.stderr

    with served(tmp_path, *SET) as page:
        code, said = other()
        assert (code, "another process writes it" in said) == (2, True)
        code, said = other("--out", "else.jsonl", "--port", str(page.port))
        assert (code, f"port {page.port} cannot be used" in said) == (2, True)
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("items.jsonl", "--annotator", "a"), "nothing says the tiers and risk classes"),
        (SET[:-2], "say who labels: --annotator NAME"),
        ((*SET[:-1], "a\x1b[31m"), "is no name"),
        ((*SET, "--lang", "de"), '"de" is no language of the page'),
        ((*SET, "--port", "70000"), "70000 is no port"),
        ((*SET, "--out", "items.jsonl"), "is a file that this run reads"),
        ((*SET, "--partial"), "name the labels to write"),
        ((*SET, "--replies", "none.jsonl"), "none.jsonl"),
        ((*SET, "--export", "x.jsonl"), "is for the page, and --export opens none"),
    ],
)
def test_what_cannot_be_done_is_one_line_without_a_traceback(
    tmp_path: Path, given: tuple[str, ...], says: str
) -> None:
    jsonl(tmp_path / "items.jsonl", [{"id": "q0", "prompt": "x"}])
    run = subprocess.run(
        arguments(*given), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2
    assert says in run.stderr
    assert "Fix: " in run.stderr
    assert "Traceback" not in run.stderr
    assert "\x1b" not in run.stderr
    assert (tmp_path / "items.jsonl").read_text(encoding="utf-8") == '{"id": "q0", "prompt": "x"}\n'
