"""Who may speak to the page's server, and what it never says; over a real socket."""

import http.client
import importlib.util
import json
import re
from pathlib import Path

import pytest


def _load(name):
    place = Path(__file__).parent.parent / "browser" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load("made_page")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    found = made.Page(tmp_path_factory.mktemp("page"), [made.sample(row) for row in range(120)])
    yield found
    found.close()


class Client:
    def __init__(self, page):
        self.page, self.port, self.cookie = page, page.server.door.port, ""

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {"Host": f"127.0.0.1:{self.port}", **({"Cookie": self.cookie} if self.cookie else {})}
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request(
            method, path, body, {name: value for name, value in sent.items() if value is not None}
        )
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def enter(self):
        answer = self.ask("GET", "/" + self.page.server.new_link().rpartition("/")[2])
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.attributes = answer.headers["set-cookie"].lower()
        return self

    def post(self, action, values, **headers):
        own = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content_Type": "application/json",
            "X_Rlvr": "1",
            "Sec_Fetch_Site": "same-origin",
        }
        return self.ask("POST", f"/api/{action}", json.dumps(values), **{**own, **headers})


@pytest.fixture
def inside(page):
    return Client(page).enter()


def test_the_link_works_once(page):
    link = "/" + page.server.new_link().rpartition("/")[2]
    client = Client(page)
    assert client.ask("GET", link).status == 303
    assert client.ask("GET", link).status == 403
    assert b"one-time link" in client.ask("GET", link).body


def test_the_cookie_is_for_this_page_alone(inside):
    assert "httponly" in inside.attributes
    assert "samesite=strict" in inside.attributes


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/summary", "/api/sample/c0001", "/api/back"])
def test_nobody_enters_without_a_link(page, path):
    answer = Client(page).ask("GET", path)
    assert answer.status == 403
    assert b"prompt" not in answer.body


def test_a_guessed_cookie_does_not_enter(page):
    client = Client(page)
    client.cookie = f"{page.server.door.cookie}=guessed"
    assert client.ask("GET", "/api/state").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_name_for_this_address_is_refused(inside, host):
    assert inside.ask("GET", "/api/state", Host=host).status in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"X_Rlvr": None},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
    ids=str,
)
def test_a_key_from_another_page_is_refused(page, inside, headers):
    before = page.folder.labels().events
    current = page.server.view.state()["current"]
    values = {"id": current["id"], "verdict": "pass", "revision": current["revision"]}
    assert inside.post("judge", values, **headers).status == 403
    assert page.folder.labels().events == before


def test_a_key_without_a_session_is_refused(page, inside):
    inside.cookie = ""
    current = page.server.view.state()["current"]
    answer = inside.post("judge", {"id": current["id"], "verdict": "pass", "revision": 0})
    assert answer.status == 403
    assert page.folder.labels().of("ada", current["id"]) is None


@pytest.mark.parametrize(
    ("action", "values", "status"),
    [
        ("judge", {}, 422),
        ("judge", {"id": "c0001", "verdict": "maybe", "revision": 0}, 422),
        ("judge", {"id": "c0001", "verdict": "pass", "revision": "0"}, 422),
        ("judge", {"id": "nowhere", "verdict": "pass", "revision": 0}, 409),
        ("judge", [1], 400),
        ("note", {"id": "nowhere", "text": "x"}, 409),
        ("change", {"id": "nowhere", "verdict": "pass", "reason": "x", "revision": 0}, 409),
        ("explode", {}, 404),
    ],
)
def test_what_is_no_key_changes_nothing(page, inside, action, values, status):
    before = page.folder.labels().events
    answer = inside.post(action, values)
    assert answer.status == status
    assert "error" in json.loads(answer.body)
    assert page.folder.labels().events == before


def test_a_body_that_is_too_long(inside):
    assert inside.post("note", {"id": "c0001", "text": "x" * 70_000}).status == 403


def test_every_answer_carries_the_policy(page, inside):
    for answer in (inside.ask("GET", "/"), inside.ask("GET", "/app.js"), Client(page).ask("GET", "/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "trusted-types 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_only_loopback_is_listened_on(page):
    assert page.server.socket.getsockname()[0] == "127.0.0.1"


def test_the_page_holds_no_foreign_address_and_parses_no_markup(inside):
    for path in ("/", "/app.js", "/nodes.js", "/app.css"):
        text = inside.ask("GET", path).body.decode()
        assert set(re.findall(r"https?://[^\"'\s)]+", text)) <= {"http://www.w3.org/1998/Math/MathML"}
        for parser in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
        ):
            assert parser not in text


def test_a_sample_with_a_lone_surrogate_can_be_sent(tmp_path):
    samples = [made.sample(row, f"\ud800 {row} \udfff") for row in range(60)]
    page = made.Page(tmp_path, samples, scores=[score(one) for one in samples])
    try:
        answer = Client(page).enter().ask("GET", "/api/state")
        assert answer.status == 200
        assert b"U+D800" in answer.body
    finally:
        page.close()


def score(one):
    from rlvr.records.samples import ScoredSample

    return ScoredSample(completion_id=one.completion_id, outcome="wrong", total=0.0)
