"""An editor, as far as a language server can tell: speaks LSP to it over its standard streams."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class LanguageServer:
    """The YAML language server, with one schema for all files of a pattern.

    Args:
        program: its command line, without ``--stdio``.
        schemas: of the setting ``yaml.schemas``: the path of a schema, and for which files it is.
    """

    def __init__(self, program: list[str], folder: Path, schemas: dict[str, list[str]]):
        self._folder, self._schemas, self._number = folder, schemas, 0
        self._diagnostics: dict[str, list[dict[str, Any]]] = {}
        self._process = subprocess.Popen(
            [*program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

        self._limit = threading.Timer(120, self._process.kill)
        """A server that says nothing more must not keep the tests waiting."""

    def __enter__(self) -> Self:
        self._limit.start()
        capabilities = {
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}, "completion": {"completionItem": {}}},
            "workspace": {"configuration": True},
        }
        start = {"processId": None, "rootUri": self._folder.as_uri(), "capabilities": capabilities}
        self.call("initialize", start)
        self._tell("initialized", {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._limit.cancel()
        self._process.kill()
        self._process.wait()

    def open(self, name: str, text: str) -> str:
        uri = (self._folder / name).as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def diagnostics(self, name: str, text: str) -> list[tuple[int, str]]:
        """Line (from 1) and message of each that it publishes for a file that was not open before."""
        uri = self.open(name, text)
        while uri not in self._diagnostics:
            self._take(self._receive())
        return [(one["range"]["start"]["line"] + 1, one["message"]) for one in self._diagnostics[uri]]

    def completions(self, name: str, text: str) -> list[str]:
        """What it offers at the end of a text."""
        answer = self.call("textDocument/completion", self._at_end(name, text))
        items = answer["items"] if isinstance(answer, dict) else answer
        return [item["label"] for item in items]

    def hover(self, name: str, text: str) -> str:
        """What it says about the last thing of a text."""
        answer = self.call("textDocument/hover", self._at_end(name, text, 1))
        contents = answer["contents"] if answer else ""
        return contents["value"] if isinstance(contents, dict) else str(contents)

    def _at_end(self, name: str, text: str, before: int = 0) -> dict[str, Any]:
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1]) - before}
        return {"textDocument": {"uri": self.open(name, text)}, "position": position}

    def call(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "workspace/configuration":
            yaml = {
                "schemas": self._schemas,
                "validate": True,
                "completion": True,
                "hover": True,
                "schemaStore": {"enable": False},
            }
            settings = [yaml if item.get("section") == "yaml" else {} for item in params["items"]]
            self._send({"id": message["id"], "result": settings})
        elif method == "textDocument/publishDiagnostics":
            self._diagnostics[params["uri"]] = params["diagnostics"]
        elif "id" in message and method:
            self._send({"id": message["id"], "result": None})

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                length = int(value)
        if not length:
            raise RuntimeError("the language server has ended")
        return json.loads(self._process.stdout.read(length))
