"""`gerd view`: a config, a dataset or events as a page on this machine, until Ctrl-C.

    GET  /                the page, and GET /page/NAME its style and scripts: the same for everybody
    GET  /api/start       what the page shows, as JSON
    POST /api/recording   a question as JSON; answered with the bytes that `answers` describes, or with JSON that says
                          what is wrong: {message, problems: [{path, line, message}]}
    POST /api/gif, html   the same question; answered with a file for the browser to save

Answers are made in a process of their own (`worker.py`), for a limited time and only while somebody waits for them.
Connections that send no whole request are dropped, and so are those that do not take their answer. Only this machine
can reach it, except with another `host`. Whoever asks `/api` must know the token, which is drawn anew each time and is
a part of the address that is printed and opened: other users of this machine do not. A page from elsewhere in the same
browser cannot ask anything: the Host of every request and the Origin of every question are checked. Nothing is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import secrets
import socket
import struct
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Any

from gerd.config.document import PlainData
from gerd.errors import ConfigError, GerdError, Problem
from gerd.page.answers import Editor, Shelf, page_files
from gerd.page.worker import GoneError, Worker
from gerd.storage.recordings import NOT_CHANGED, Recordings

if TYPE_CHECKING:
    from asyncio import BaseTransport
    from types import FrameType

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gerd.recording.events import Events

LOOPBACK = "127.0.0.1"
USUAL_PORTS = range(8350, 8370)  # the first that is free
NO_LINGERING = struct.pack("ii" if os.name == "posix" else "HH", 1, 0)  # of SO_LINGER: on, for no time
DEEPEST = 16  # levels of lists and objects in a question; those of the page have four
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
STRANGER = (
    "this page was opened without the token of the gerd view that is running: open the address that it has printed"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def serve(
    source: Path,
    events: Events | None = None,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    overrides: Sequence[str] = (),
    trust: bool = False,
    browser: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """Show the config or dataset at `source`, or the `events` in it, at http://host:port/ until Ctrl-C.

    `say` is told the address.
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise GerdError(f"gerd view needs the package {package}: pip install 'gerd-events[view]'")
    content = opened(source, overrides, trust) if events is None else Shelf(source.name, [events])
    with contextlib.closing(Worker(content)) as worker, listening(host, port) as bound:
        worker.ask("start")
        if isinstance(content, Editor):  # errors come now, and the kernels are compiled
            worker.ask("recording", {"text": content.text, "overrides": [], "index": 0, "member": 0})
        port = bound.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        if _is_address(host) and ipaddress.ip_address(host).is_unspecified:  # all interfaces
            name = socket.gethostname()
        token = new_token()
        address = f"http://{name}:{port}/?token={token}"
        say(f"{source}: look at {address} (Ctrl-C to stop)")
        if not _is_loopback(host):
            say(f"warning: whoever can reach {host} and knows this address can use this page, and it is not encrypted")
        if browser and _has_screen():
            opening = Timer(0.5, webbrowser.open, [address])
            opening.daemon = True
            opening.start()
        try:
            _server(worker, token, host).run(sockets=[bound])
        except KeyboardInterrupt:  # the way to end it
            say("stopped")


@contextlib.contextmanager
def running(content: Editor | Shelf, host: str = LOOPBACK) -> Iterator[str]:
    """Serve beside other work, at any free port of this machine: gives the address, and ends with the block."""
    token = new_token()
    with contextlib.closing(Worker(content)) as worker, listening(LOOPBACK, 0) as bound:
        worker.ask("start")  # it is ready when the first one asks
        server = _server(worker, token, host)
        thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{bound.getsockname()[1]}/?token={token}"
        finally:
            server.should_exit = True
            thread.join()


def new_token() -> str:
    """What whoever asks must know: 32 letters that nobody can guess."""
    return secrets.token_urlsafe(24)


def _server(worker: Worker, token: str, host: str) -> uvicorn.Server:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    limits = worker.limits
    often = min(limits.patience, limits.taking)

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        """Drops a connection on which no request is being answered, and none has come for long.

        And one whose other side has not taken all that was sent for long: what is not taken stays in memory.
        """

        def connection_made(self, transport: BaseTransport) -> None:
            super().connection_made(transport)
            self.last: Any = None
            self.waits: float | None = None  # since when something waits to be taken, as far as has been seen
            self.watch = self.loop.call_later(often, self.look)

        def look(self) -> None:
            now = self.loop.time()
            if not self.transport.get_write_buffer_size():
                self.waits = None
            elif self.waits is None:
                self.waits = now
            if self.waits is not None and now - self.waits >= limits.taking:
                ending = self.transport.get_extra_info("socket")
                ending.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING
                )  # what the system holds is dropped, too
                self.transport.abort()
            elif self.cycle is self.last and (self.cycle is None or self.cycle.response_complete):
                self.transport.close()
            self.last = self.cycle
            self.watch = self.loop.call_later(often, self.look)

        def connection_lost(self, error: Exception | None) -> None:
            self.watch.cancel()
            super().connection_lost(error)

    class Server(uvicorn.Server):
        """Ctrl-C ends what is being made, so that no answer is waited for."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            worker.close()
            super().handle_exit(sig, frame)

    settings = uvicorn.Config(
        application(worker, token, host), http=Impatient, log_level="warning", lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    return Server(settings)


def opened(source: Path, overrides: Sequence[str] = (), trust: bool = False) -> Editor | Shelf:
    """What to show, checked."""
    if source.is_dir():
        if overrides:
            raise GerdError(f"{source}: {NOT_CHANGED}")
        data = Recordings(source)
        _ = data.config  # is read now, and not by the first question
        return Shelf(source.resolve().name, data)
    return Editor.of(source, overrides, trust)


def listening(host: str, port: int | None, usual: range = USUAL_PORTS) -> socket.socket:
    """A socket that listens at `host` and `port`; without a port, at the first free one of the usual ones."""
    ports = usual if port is None else [port]
    try:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GerdError(f"host {host!r}: is no address of this machine: {reason}") from None
    for number in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere it would share a port that is in use
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((address[0], number))
            bound.listen()
            return bound
        except OSError as error:
            bound.close()
            reason = error.strerror or str(error)
    place = f"port {port}" if port is not None else f"ports {ports[0]} to {ports[-1]}"
    raise GerdError(f"{place} at {host}: cannot be used: {reason}; give another one with --port")


class _Routes:
    """What is answered to each request, by the worker or from the files of the page."""

    def __init__(self, worker: Worker, token: str):
        self.worker = worker
        self.token = token
        self.page = page_files()

    async def file(self, request: Request) -> Response:
        from starlette.responses import Response

        name = request.path_params.get("name", "index.html")
        if name not in self.page:
            return _said("there is no such page", 404)
        return Response(self.page[name], media_type=TYPES[Path(name).suffix])

    def _knows(self, request: Request) -> bool:
        """Whether a request has the token."""
        given = request.headers.get("authorization", "").encode()
        return secrets.compare_digest(given, f"Bearer {self.token}".encode())

    async def start(self, request: Request) -> Response:
        if not self._knows(request):
            return _said(STRANGER, 401)
        return await self._answered(request, "start")

    async def asked(self, request: Request) -> Response:
        if not self._knows(request):
            return _said(STRANGER, 401)
        body = bytearray()
        try:
            async with asyncio.timeout(self.worker.limits.patience):
                async for part in request.stream():
                    body += part
                    if len(body) > self.worker.limits.question_bytes:
                        return _said("the question is too long", 413)
        except TimeoutError:
            return _said("the question did not arrive", 408)
        try:
            question = json.loads(body)
            json.dumps(question, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        except (ValueError, RecursionError):
            return _said("the question is not JSON", 400)
        if _depth(question) > DEEPEST:
            return _said(f"the question is nested too deeply; allowed: {DEEPEST} levels", 400)
        return await self._answered(request, request.url.path.removeprefix("/api/"), question)

    async def _answered(self, request: Request, kind: str, question: PlainData = None) -> Response:
        """What the worker says, if the one who asks stays for it."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, Response

        gone = Event()
        answer = asyncio.ensure_future(run_in_threadpool(self.worker.ask, kind, question, gone))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=0.1)
                if await request.is_disconnected():
                    gone.set()
            result = answer.result()
        except GoneError:
            return _said("nobody waits for this answer", 499)
        except GerdError as error:
            return JSONResponse(as_json(error), 422)
        finally:
            gone.set()
        return JSONResponse(result) if kind == "start" else Response(result, media_type="application/octet-stream")


def _depth(data: PlainData) -> int:
    """How many lists and objects are inside each other, counted no farther than needed."""
    depth = 0
    level = [data]
    while depth <= DEEPEST and (level := [part for part in level if isinstance(part, dict | list)]):
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth


def application(worker: Worker, token: str, host: str = LOOPBACK) -> Starlette:
    """The web application, for a server that listens at `host`."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    answers = _Routes(worker, token)
    routes = [Route("/", answers.file), Route("/page/{name}", answers.file), Route("/api/start", answers.start)]
    routes += [Route(f"/api/{what}", answers.asked, methods=["POST"]) for what in ("recording", "gif", "html")]
    return Starlette(routes=routes, middleware=[Middleware(_Gate, host=host)])


def _said(message: str, status: int) -> Response:
    """A refusal in words, with its HTTP status."""
    from starlette.responses import JSONResponse

    return JSONResponse({"message": message}, status)


def as_json(error: GerdError) -> dict[str, object]:
    """An error as the page takes it: the fields at which something is wrong, or one message for all."""

    def described(problem: Problem) -> dict[str, object]:
        got = "" if problem.value is None else f"got {problem.value}: "
        return {"path": problem.path, "line": problem.line, "message": got + problem.message}

    problems = error.problems if isinstance(error, ConfigError) else ()
    return {"message": str(error), "problems": [described(problem) for problem in problems]}


class _Gate:
    """Lets through what this server's own page asks, and adds the headers that keep other pages out."""

    def __init__(self, app: ASGIApp, host: str):
        self.app = app
        self.host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers, MutableHeaders

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if not self._is_ours(headers.get("host", "")):
            await _said("this page is not served under that name", 421)(scope, receive, send_with_headers)
        elif origin is not None and origin != f"http://{headers['host']}":
            await _said("other pages may not ask this one", 403)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this machine; a foreign name may have been made to point here."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        if name in ("localhost", self.host.lower()) or _is_loopback(name):
            return True
        return not _is_loopback(self.host) and (_is_address(name) or name == socket.gethostname().lower())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _has_screen() -> bool:
    """Whether a browser with a window can be opened; one in the terminal would be in the way."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return "SSH_CONNECTION" not in os.environ
