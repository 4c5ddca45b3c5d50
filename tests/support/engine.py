"""A container engine of our own: a real dockerd in a temporary folder, and images made from busybox.

It listens on a unix socket only. With ``bridge`` it lives in a network namespace of its own, so that published
ports and its bridge meet nobody else's. At the end nothing of it is left: containers, mounts, namespace, processes.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

PACKAGES = "docker.io containerd iptables iproute2 busybox-static"
BUSYBOX = Path("/bin/busybox")
START = 120.0
"""Seconds."""

PASSWD = "root:x:0:0:root:/root:/bin/sh\nbob:x:1234:1234:Bob:/home/bob:/bin/sh\n"
GROUP = "root:x:0:\nbob:x:1234:\nstaff:x:50:bob\n"


def require(programs: list[str], packages: str) -> None:
    """Fail where a program is missing: the tests of containers are never skipped."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} missing. As root: apt-get install -y {packages}")
    if os.geteuid() != 0:
        raise RuntimeError("A container engine of one's own needs root.")


class ContainerEngine:
    """A running dockerd. ``address`` is for ``DOCKER_HOST``."""

    def __init__(self, folder: Path, namespace: str | None):
        self.folder = folder
        self.namespace = namespace
        self.address = f"unix://{folder}/docker.sock"
        self.http = httpx.Client(
            transport=httpx.HTTPTransport(uds=f"{folder}/docker.sock"), base_url="http://engine", timeout=120
        )
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        folder = self.folder
        command = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
        command += ["-p", f"{folder}/pid", "-H", f"unix://{folder}/docker.sock", "--storage-driver=overlay2"]
        command += ["--iptables=false", "--ip6tables=false"]
        command += [f"--bridge={'pdr0' if self.namespace else 'none'}"]
        with (folder / "dockerd.log").open("ab") as log:
            self._daemon = subprocess.Popen(self.inside(command), stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START
        while not self._answers():
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd did not start:\n{(folder / 'dockerd.log').read_text()[-2000:]}")
            time.sleep(0.05)

    def inside(self, command: list[str]) -> list[str]:
        """A command, in the engine's network."""
        if self.namespace is None:
            return command
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "--", *command]

    def stop(self) -> None:
        """End its containers and the daemon."""
        if self._daemon is None:
            return
        if self._daemon.poll() is None:
            for container in self.containers():
                self.http.delete(f"/containers/{container['Id']}", params={"force": 1, "v": 1})
            self._daemon.send_signal(signal.SIGTERM)
            self._daemon.wait(60)
        self._daemon = None

    def kill(self) -> None:
        """kill -9 of the daemon; its containers run on until it is started again, which ends them."""
        assert self._daemon is not None
        pid = int((self.folder / "pid").read_text())
        os.kill(pid, signal.SIGKILL)
        self._daemon.wait(60)
        for helper in _processes(f"{self.folder}/exec/containerd/containerd.toml"):
            os.kill(helper, signal.SIGKILL)
        for stale in (self.folder / "pid", self.folder / "exec/containerd/containerd.pid"):
            stale.unlink(missing_ok=True)

    def containers(self) -> list[dict[str, Any]]:
        """All of them, running or not."""
        return self.http.get("/containers/json", params={"all": 1}).raise_for_status().json()

    def volumes(self) -> list[dict[str, Any]]:
        return self.http.get("/volumes").raise_for_status().json()["Volumes"] or []

    def inspect(self, container: str) -> dict[str, Any]:
        return self.http.get(f"/containers/{container}/json").raise_for_status().json()

    def make_image(
        self, name: str, *, changes: tuple[str, ...] = (), files: Mapping[str, bytes] | None = None
    ) -> str:
        """An image of busybox and what else is given, by importing its root filesystem; its name."""
        repository, _, tag = name.rpartition(":")
        params: list[tuple[str, str]] = [("fromSrc", "-"), ("repo", repository), ("tag", tag)]
        params += [("changes", change) for change in ("ENV PATH=/bin", *changes)]
        answer = self.http.post("/images/create", params=params, content=_root_filesystem(files or {}))
        assert answer.is_success, answer.text
        assert '"error"' not in answer.text, answer.text
        return name

    def push(self, name: str, auth: str) -> None:
        """Push an image, and forget it here."""
        repository, _, tag = name.rpartition(":")
        answer = self.http.post(
            f"/images/{repository}/push", params={"tag": tag}, headers={"X-Registry-Auth": auth}
        )
        assert answer.is_success, answer.text
        assert '"error"' not in answer.text, answer.text
        self.forget(name)

    def forget(self, name: str) -> None:
        """Delete an image."""
        self.http.delete(f"/images/{name}", params={"force": 1}).raise_for_status()

    def _answers(self) -> bool:
        try:
            return self.http.get("/_ping").is_success
        except httpx.TransportError:
            return False


@contextmanager
def container_engine(*, bridge: bool = False) -> Iterator[ContainerEngine]:
    """A dockerd, and the check that it leaves nothing."""
    require(["dockerd", "containerd", "runc", "docker-init", "ip", "nsenter", "busybox"], PACKAGES)
    folder = Path(tempfile.mkdtemp(prefix="pe", dir="/tmp"))
    namespace = f"pe{uuid4().hex[:8]}" if bridge else None
    engine = ContainerEngine(folder, namespace)
    try:
        if namespace:
            _make_namespace(namespace)
        engine.start()
        yield engine
        engine.stop()
    finally:
        _clear(engine)


def _make_namespace(name: str) -> None:
    inside = f"ip -n {name}"
    for command in (
        f"ip netns add {name}",
        f"{inside} link set lo up",
        f"{inside} link add name pdr0 type bridge",
        f"{inside} addr add 172.31.77.1/24 dev pdr0",
        f"{inside} link set pdr0 up",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)


def _clear(engine: ContainerEngine) -> None:
    """End whatever has the folder's name in its command line, unmount what is mounted below, delete the rest."""
    engine.http.close()
    folder = str(engine.folder)
    deadline = time.monotonic() + 60
    while left := _processes(folder):
        assert time.monotonic() < deadline, f"processes of the engine do not end: {left}"
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        target = line.split()[1]
        if target.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", target], check=True)
    if engine.namespace and Path(f"/run/netns/{engine.namespace}").exists():
        subprocess.run(["ip", "netns", "delete", engine.namespace], check=True)
    shutil.rmtree(folder)


def _processes(text: str) -> list[int]:
    """Living processes with a text in their command line, this one excepted."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            state = (path / "stat").read_bytes().rpartition(b")")[2].split()[0]
            if text.encode() in (path / "cmdline").read_bytes() and state != b"Z":
                found.append(int(path.name))
        except OSError:
            continue
    return found


def _root_filesystem(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder, mode in {"bin": 0o755, "etc": 0o755, "tmp": 0o1777, "root": 0o700}.items():
            _add(tar, folder, tarfile.DIRTYPE, mode)
        tar.add(BUSYBOX, "bin/busybox")
        for applet in applets:
            if applet != "busybox":
                _add(tar, f"bin/{applet}", tarfile.SYMTYPE, 0o777, link="busybox")
        for name, content in {"etc/passwd": PASSWD.encode(), "etc/group": GROUP.encode(), **files}.items():
            _add(tar, name, tarfile.REGTYPE, 0o644, content)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, content: bytes = b"", link: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.size, member.linkname = kind, mode, len(content), link
    tar.addfile(member, io.BytesIO(content))
