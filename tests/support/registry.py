"""A container registry of our own: a real docker-registry with one user, on a port of 127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from tests.support.engine import require

PACKAGES = "docker-registry apache2-utils"
START = 120.0
"""Seconds."""

CONFIG = """
version: 0.1
log: {{level: warn}}
storage:
  filesystem: {{rootdirectory: {folder}/data}}
http: {{addr: "{host}"}}
auth:
  htpasswd: {{realm: test, path: {folder}/htpasswd}}
"""


@dataclass(frozen=True)
class Registry:
    """``host`` is how image names begin."""

    host: str
    username: str = "ada"
    password: str = "lovelace"

    @property
    def auth(self) -> str:
        """The engine's header for it."""
        login = {"username": self.username, "password": self.password, "serveraddress": self.host}
        return base64.urlsafe_b64encode(json.dumps(login).encode()).decode()


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry that wants a login."""
    require(["docker-registry", "htpasswd"], PACKAGES)
    folder = Path(tempfile.mkdtemp(prefix="pr", dir="/tmp"))
    one = Registry(f"127.0.0.1:{free_port()}")
    users = subprocess.run(
        ["htpasswd", "-Bbn", one.username, one.password], capture_output=True, text=True, check=True
    )
    (folder / "htpasswd").write_text(users.stdout)
    (folder / "config.yml").write_text(CONFIG.format(folder=folder, host=one.host))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["docker-registry", "serve", f"{folder}/config.yml"], stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait(one, process, folder / "log")
        yield one
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that the system gives to nobody who does not ask for it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _wait(one: Registry, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            if httpx.get(f"http://{one.host}/v2/", trust_env=False).status_code == httpx.codes.UNAUTHORIZED:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"docker-registry did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


class Gate:
    """A way to a registry that lets ``limit`` bytes of it through, and the rest once it is opened."""

    def __init__(self, registry: Registry, limit: int):
        self.limit = limit
        self.passed = 0
        self._opened = threading.Event()
        self._target = registry.host
        gate = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                gate.serve(self.request)

        self._server = _Server(("127.0.0.1", 0), Connection)
        self.registry = replace(registry, host=f"127.0.0.1:{self._server.server_address[1]}")

    def open(self) -> None:
        """Let everything through from now on."""
        self._opened.set()

    def __enter__(self) -> Gate:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        self._server.shutdown()
        self._server.server_close()

    def serve(self, client: socket.socket) -> None:
        """One connection, to its end."""
        host, _, port = self._target.rpartition(":")
        with socket.create_connection((host, int(port))) as registry, contextlib.suppress(OSError):
            threading.Thread(target=_pump, args=(client, registry), daemon=True).start()
            while chunk := registry.recv(1 << 16):
                self.passed += len(chunk)
                if self.passed > self.limit:
                    self._opened.wait()
                client.sendall(chunk)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(1 << 16):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
