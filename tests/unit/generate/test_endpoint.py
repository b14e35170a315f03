"""Sampling from an OpenAI-compatible server: a real one on loopback, well and unwell."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.generate.endpoint import EndpointGenerator
from rlvr.records.samples import Message


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.answer(body, self.headers)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def completion(text, *, reason="stop", tokens=3):
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1},
    }


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setattr("rlvr.generate.endpoint.RETRIES", 1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.asked = []

    def start(answer):
        def kept(body, headers):
            server.asked.append((body, headers))
            return answer(body, len(server.asked))

        server.answer = kept
        generator = EndpointGenerator(
            f"http://127.0.0.1:{server.server_port}/v1", "m", concurrency=4, timeout=10
        )
        return generator, server.asked

    yield start
    server.shutdown()
    server.server_close()
    thread.join()


def ask(generator, prompts=("a", "b", "c"), count=2, **options):
    settings = {"temperature": 0.7, "max_tokens": 9, "seed": 4, **options}
    return generator.generate(
        [[Message(role="user", content=one)] for one in prompts], count=count, **settings
    )


def test_every_prompt_gets_its_own_completions_in_order(serve):
    generator, asked = serve(lambda body, _: (200, completion(body["messages"][-1]["content"] * 2)))
    done = []
    found = ask(generator, progress=done.append)
    assert [[one.text for one in row] for row in found] == [["aa"] * 2, ["bb"] * 2, ["cc"] * 2]
    assert sum(done) == 6
    bodies = [body for body, _ in asked]
    assert {(one["model"], one["temperature"], one["max_tokens"], one["top_p"]) for one in bodies} == {
        ("m", 0.7, 9, 1.0)
    }
    assert len({one["seed"] for one in bodies}) == 6
    again, _ = serve(lambda body, _: (200, completion("x")))
    ask(again)
    assert sorted(one["seed"] for one, _ in asked[6:]) == sorted(one["seed"] for one in bodies)


def test_the_cap_and_missing_usage_are_read(serve):
    plain = completion(None, reason="length")
    del plain["usage"]
    generator, _ = serve(lambda body, number: (200, plain))
    (row,) = ask(generator, ["a"], count=1)
    assert (row[0].text, row[0].tokens, row[0].truncated) == ("", -1, True)


def test_a_refusal_that_passes_is_tried_again(serve):
    generator, asked = serve(
        lambda body, number: (
            (429, {"error": {"message": "slow down"}}) if number == 1 else (200, completion("ok"))
        )
    )
    assert ask(generator, ["a"], count=1)[0][0].text == "ok"
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "answer", "kind", "code", "needle"),
    [
        (401, {"error": {"message": "bad key"}}, ConfigError, "endpoint.key", "OPENAI_API_KEY"),
        (404, {"error": {"message": "no model m"}}, ConfigError, "endpoint.request", "no model m"),
        (400, {"error": {"message": "too long"}}, ConfigError, "endpoint.request", "too long"),
        (500, {"error": {"message": "broken"}}, InfrastructureError, "endpoint.failed", "500"),
        (200, {"choices": []}, InfrastructureError, "endpoint.answer", "without a completion"),
        (200, b"<html>proxy</html>", InfrastructureError, "endpoint.", "127.0.0.1"),
    ],
)
def test_what_is_wrong_is_named(serve, status, answer, kind, code, needle):
    generator, _ = serve(lambda body, number: (status, answer))
    with pytest.raises(kind) as caught:
        ask(generator, ["a", "b"], count=1)
    assert caught.value.code.startswith(code)
    assert needle in caught.value.message()


def test_nobody_there(monkeypatch):
    monkeypatch.setattr("rlvr.generate.endpoint.RETRIES", 0)
    generator = EndpointGenerator("http://127.0.0.1:9/v1", "m", concurrency=1, timeout=2)
    with pytest.raises(InfrastructureError) as caught:
        ask(generator, ["a"], count=1)
    assert caught.value.code == "endpoint.unreachable"
    assert "kept" in caught.value.fix


def test_the_key_comes_from_the_named_variable(serve, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-1")
    _, asked = serve(lambda body, number: (200, completion("x")))
    serve_generator, _ = serve(lambda body, number: (200, completion("x")))
    own = EndpointGenerator(serve_generator.base_url, "m", api_key_variable="MY_KEY", concurrency=1)
    ask(own, ["a"], count=1)
    assert asked[-1][1]["Authorization"] == "Bearer secret-1"
