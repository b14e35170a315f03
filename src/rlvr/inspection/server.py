"""The page's server: loopback only, one-time link, same origin, and nothing in it that a completion could steer.

What protects the reader's browser and the labels:

- it listens on 127.0.0.1 alone and answers only to its own ``Host`` (a foreign name that resolves here is refused);
- the link works once and leaves a cookie that other sites' requests do not carry; a new link comes on request;
- a change needs the cookie, this origin, JSON and a header that no form can send;
- the page builds every node itself from plain JSON; its policy forbids inline scripts and styles, evaluation, HTML
  parsing (trusted types), frames, forms and any address but its own.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, get_args

from rlvr.errors import InfrastructureError, RlvrError, UsageError
from rlvr.inspection.session import OutOfDate, Sitting
from rlvr.inspection.view import View
from rlvr.records.inspection import Attestation, Verdict

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
MOST_BODY_BYTES = 64 * 1024
OWN_HEADER = "x-rlvr"
ASSETS = {
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/nodes.js": ("nodes.js", "text/javascript; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
NEEDS_LINK = (
    "This page opens with its one-time link. Press Enter in the terminal where `rlvr inspect` runs: it prints a "
    "new one. Labels are kept.\n"
)


class Door:
    """Who may come in: one-time tokens and the session that each opens.

    Args:
        port: Port of the server; part of the cookie's name, since cookies do not tell ports apart.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = f"rlvr_{port}"
        self._tokens: set[str] = set()
        self._sessions: set[str] = set()
        self._lock = threading.Lock()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Values of ``Host`` that are this server."""
        return f"{ADDRESS}:{self.port}", f"localhost:{self.port}"

    def new_link(self) -> str:
        """Return an address that opens the page once."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._tokens.add(token)
        return f"http://{ADDRESS}:{self.port}/?token={token}"

    def redeem(self, token: str) -> str | None:
        """Exchange a token for a session; None when it is unknown or used."""
        with self._lock:
            if not any(hmac.compare_digest(token.encode(), known.encode()) for known in self._tokens):
                return None
            self._tokens.discard(token)
            session = secrets.token_urlsafe(24)
            self._sessions.add(session)
            return session

    def knows(self, session: str) -> bool:
        """Whether a cookie belongs to an open session."""
        return any(hmac.compare_digest(session.encode(), known.encode()) for known in self._sessions)


class Guard:
    """ASGI layer in front of everything: host, origin, body size, and the headers of every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is not ours; add the headers to every answer."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["method"], headers)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        if refusal:
            from starlette.responses import PlainTextResponse

            await PlainTextResponse(f"{refusal}\n", 403)(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)

    def _refusal(self, method: str, headers: Mapping[str, str]) -> str:
        if headers.get("host") not in self.door.hosts:
            return "not this host"
        if method in ("GET", "HEAD"):
            return ""
        if headers.get("origin") not in {f"http://{host}" for host in self.door.hosts}:
            return "not from this page"
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return "not from this page"
        if OWN_HEADER not in headers or not headers.get("content-type", "").startswith("application/json"):
            return "not from this page"
        if int(headers.get("content-length") or MOST_BODY_BYTES + 1) > MOST_BODY_BYTES:
            return "too long"
        return ""


def application(view: View, door: Door, finish: Callable[[], None]) -> Starlette:
    """Return the page's application.

    Args:
        view: What is shown.
        door: Who may come in.
        finish: Called when the reader says that the sitting is over.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    pages = Pages(view, door, finish)
    routes = [
        Route("/", pages.index),
        *[Route(path, pages.asset) for path in ASSETS],
        Route("/api/state", pages.state),
        Route("/api/summary", pages.summary),
        Route("/api/back", pages.back),
        Route("/api/sample/{identifier}", pages.sample),
        Route("/api/text/{identifier}", pages.text),
        Route("/api/{action}", pages.act, methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, door=door)
    return app


class Pages:
    """The routes; each sync one runs on a worker thread, so a slow one never blocks another."""

    def __init__(self, view: View, door: Door, finish: Callable[[], None]) -> None:
        self.view, self.door, self.finish = view, door, finish
        self.actions: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "judge": self._judge,
            "note": self._note,
            "change": self._change,
            "rescore": self._rescore,
            "finish": self._finish,
        }

    def index(self, request: Request) -> Response:
        """Open the page: redeem the link, or serve it to a session."""
        from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

        session = self.door.redeem(request.query_params.get("token", ""))
        if session:
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.door.cookie, session, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_known(request):
            return PlainTextResponse(NEEDS_LINK, 403)
        return HTMLResponse(_asset("index.html"))

    def asset(self, request: Request) -> Response:
        """Serve a script or the style sheet."""
        from starlette.responses import Response

        name, kind = ASSETS[request.url.path]
        return Response(_asset(name), media_type=kind)

    def state(self, request: Request) -> Response:
        """Where the reader is."""
        return self._answer(request, self.view.state)

    def summary(self, request: Request) -> Response:
        """What was read so far."""
        return self._answer(request, self._alone(self.view.summary))

    def back(self, request: Request) -> Response:
        """The sample read before this one."""
        return self._answer(request, self._alone(lambda: self.view.back(request.query_params.get("from"))))

    def sample(self, request: Request) -> Response:
        """One sample read before."""
        return self._answer(request, self._alone(lambda: self.view.opened(request.path_params["identifier"])))

    def text(self, request: Request) -> Response:
        """One completion in full."""
        raw = request.query_params.get("raw") == "1"
        identifier = request.path_params["identifier"]
        return self._answer(request, self._alone(lambda: self.view.text(identifier, raw=raw)))

    async def act(self, request: Request) -> Response:
        """Take a key: judge, note, change, rescore or finish."""
        from starlette.concurrency import run_in_threadpool

        action = self.actions.get(request.path_params["action"])
        body = await request.body()
        return await run_in_threadpool(self._act, request, action, body)

    def _act(
        self,
        request: Request,
        action: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None,
        body: bytes,
    ) -> Response:
        from starlette.responses import JSONResponse

        if action is None or len(body) > MOST_BODY_BYTES:
            return JSONResponse({"error": {"found": "no such key"}}, 404)
        try:
            values = json.loads(body or b"{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            return JSONResponse({"error": {"found": "not a JSON object"}}, 400)
        answer = self._answer(request, lambda: action(values))
        threading.Thread(target=self._warm, daemon=True).start()
        return answer

    def _answer(self, request: Request, make: Callable[[], Mapping[str, Any]]) -> Response:
        from starlette.responses import JSONResponse

        if not self._is_known(request):
            return JSONResponse({"error": {"code": "inspect.link", "found": NEEDS_LINK}}, 403)
        try:
            return JSONResponse(make())
        except OutOfDate as error:
            return JSONResponse({"error": error.as_dict(), "state": self.view.state()}, 409)
        except RlvrError as error:
            status = 500 if isinstance(error, InfrastructureError) else 422
            return JSONResponse({"error": error.as_dict()}, status)

    def _alone(self, make: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        """Keep another tab's key from changing the labels while they are read."""

        def made() -> Mapping[str, Any]:
            with self.view.sitting.lock:
                return make()

        return made

    def _is_known(self, request: Request) -> bool:
        return self.door.knows(request.cookies.get(self.door.cookie, ""))

    def _warm(self) -> None:
        try:
            self.view.warm()
        except RlvrError:
            return  # the state moved on while it was rendered ahead

    def _judge(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        identifier, verdict, revision = _text(values, "id"), _verdict(values), _number(values, "revision")
        return self._alone(lambda: self.view.judged(identifier, verdict, revision))()

    def _note(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        identifier = _text(values, "id")
        self.view.sitting.note(identifier, _text(values, "text"))
        return {"revision": self.view.sitting.revision(identifier)}

    def _change(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        identifier, reason = _text(values, "id"), _text(values, "reason")
        self.view.sitting.change(identifier, _verdict(values), reason, _number(values, "revision"))
        return {"reveal": self.view.revealed(identifier)}

    def _rescore(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        del values
        found = self.view.sitting.mend()
        return {
            "rescored": {**found._asdict(), "changed": len(found.changed)},
            "summary": self.view.summary(),
        }

    def _finish(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        del values
        found = self.view.sitting.close()
        self.finish()
        return {"passed": found.passed, "why": found.why}


def _asset(name: str) -> str:
    return resources.files("rlvr.inspection").joinpath("page", name).read_text("utf-8")


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values.get(name)
    if not isinstance(found, str):
        raise UsageError("inspect.request", f"{name} is {type(found).__name__}", expected="a text")
    return found.encode("utf-8", "replace").decode()


def _number(values: Mapping[str, Any], name: str) -> int:
    found = values.get(name)
    if not isinstance(found, int):
        raise UsageError("inspect.request", f"{name} is {type(found).__name__}", expected="a whole number")
    return found


def _verdict(values: Mapping[str, Any]) -> Verdict:
    for known in get_args(Verdict):
        if values.get("verdict") == known:
            verdict: Verdict = known
            return verdict
    raise UsageError("inspect.request", "no such verdict", expected="pass, fail or unsure")


class PageServer:
    """The running page.

    Args:
        sitting: The reader's sitting.
        mend_at: Where the rewards stand.
        port: 0 for any free one.

    Raises:
        InfrastructureError: ``inspect.port`` when the port is taken.
    """

    def __init__(self, sitting: Sitting, mend_at: list[str], port: int = 0) -> None:
        import uvicorn

        self.sitting = sitting
        self.socket = _listen(port)
        self.door = Door(self.socket.getsockname()[1])
        self.view = View(sitting, mend_at)
        app = application(self.view, self.door, self.stop)
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self.server: uvicorn.Server = uvicorn.Server(config)

    def new_link(self) -> str:
        """Return an address that opens the page once."""
        return self.door.new_link()

    def run(self) -> Attestation:
        """Serve until the reader finishes or the process is told to stop; returns the attestation."""
        threading.Thread(target=self.view.warm, daemon=True).start()
        self.server.run(sockets=[self.socket])
        return self.sitting.close()

    def stop(self) -> None:
        """Stop after the answer in hand."""
        self.server.should_exit = True


def _listen(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
    except OSError as error:
        found.close()
        raise InfrastructureError(
            "inspect.port",
            f"port {port} cannot be used: {error.strerror}",
            where=ADDRESS,
            fix="leave --port out: any free one is taken",
        ) from None
    found.listen(64)
    return found
