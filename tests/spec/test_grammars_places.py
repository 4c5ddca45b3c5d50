"""Ports, mounts, files and repositories: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from perdure.spec.grammar import mounts, ports
from tests.spec.support import refused, value


@pytest.mark.parametrize(
    ("written", "local", "container"),
    [
        (8000, 8000, 8000),
        ("8000", 8000, 8000),
        ("80:8000", 80, 8000),
        ("*:8000", None, 8000),
        ({"container_port": 80}, None, 80),
        ({"local_port": 1, "container_port": 80}, 1, 80),
        ("8_000", 8000, 8000),
        ("080:0443", 80, 443),
    ],
)
def test_ports(written: object, local: int | None, container: int) -> None:
    assert value(ports.Port, written) == {"container_port": container, "local_port": local}


@pytest.mark.parametrize("written", [0, 65536, "80:", ":80", "80:0", "a", "", 1.5, True, None, "1:2:3", "٣", {}])
def test_what_is_no_port(written: object) -> None:
    assert refused(ports.Port, written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("v:/p", {"name": "v", "path": "/p"}),
        ("v:/", {"name": "v", "path": "/"}),
        ("v:/p//q/", {"name": "v", "path": "/p/q"}),
        ({"name": ["a", "b"], "path": "/p"}, {"name": ("a", "b"), "path": "/p"}),
        ("/h:/p", {"instance_path": "/h", "path": "/p", "optional": False}),
        (
            {"instance_path": "/h", "path": "/p", "optional": True},
            {"instance_path": "/h", "path": "/p", "optional": True},
        ),
    ],
)
def test_mounts(written: object, meant: dict[str, object]) -> None:
    assert value(mounts.Mount, written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "v",
        "v:p",
        "v:/p:ro",
        ":/p",
        "v:",
        "./h:/p",
        "/h/../x:/p",
        {"name": "v", "path": "p"},
        {"name": "v", "path": "/p", "optional": True},
        {"instance_path": "rel", "path": "/p"},
        {"name": [], "path": "/p"},
        1,
        None,
        {},
    ],
)
def test_what_is_no_mount(written: object) -> None:
    assert refused(mounts.Mount, written)


@pytest.mark.parametrize(
    ("written", "local", "path"),
    [
        (".", ".", "."),
        (".:examples", ".", "examples"),
        ("~/.ssh/id", "~/.ssh/id", "~/.ssh/id"),
        ("C:/data:/data", "C:/data", "/data"),
        ("C:\\data:data", "C:\\data", "data"),
    ],
)
def test_files(written: str, local: str, path: str) -> None:
    assert value(mounts.FileItem, written) == {"local_path": local, "path": path}


@pytest.mark.parametrize(
    "written",
    [
        "a:b:c",
        "a:C:/y",
        "C:\\data",
        "",
        ":x",
        "a:",
        {"local_path": "a"},
        {"local_path": "", "path": "b"},
        {"local_path": "a", "path": ""},
        {"local_path": "a", "path": "C:/y"},
        1,
    ],
)
def test_what_is_no_file(written: object) -> None:
    assert refused(mounts.FileItem, written)


@pytest.mark.parametrize(
    ("written", "local", "url", "path"),
    [
        ("..", "..", None, "."),
        ("..:/my-repo", "..", None, "/my-repo"),
        ("a:~/x", "a", None, "~/x"),
        ("https://github.com/a/b", None, "https://github.com/a/b", "."),
        ("https://github.com/a/b:/x", None, "https://github.com/a/b", "/x"),
        ("https://h:8443/a/b", None, "https://h:8443/a/b", "."),
        ("https://h:8443/a/b:/x", None, "https://h:8443/a/b", "/x"),
        ("ssh://git@h:22/a", None, "ssh://git@h:22/a", "."),
        ("git@github.com:a/b.git", None, "git@github.com:a/b.git", "."),
        ("git@github.com:a/b.git:data/repo", None, "git@github.com:a/b.git", "data/repo"),
        ("git@h:22/a:x", None, "git@h:22/a", "x"),
        ("git@h:~me/r.git:~/x", None, "git@h:~me/r.git", "~/x"),
        ("git@[::1]:a/b:/x", None, "git@[::1]:a/b", "/x"),
        ("https://user:token@host/a", None, "https://user:token@host/a", "."),
        ("https://user:token@host:8443/a:/x", None, "https://user:token@host:8443/a", "/x"),
        ("https://user:to:k@en@host/a", None, "https://user:to:k@en@host/a", "."),
        ("https://user:1234@host/a", None, "https://user:1234@host/a", "."),
        ("https://[fe80::1]:8443/a:x", None, "https://[fe80::1]:8443/a", "x"),
        ("ssh://git@h:22/a:/x", None, "ssh://git@h:22/a", "/x"),
        ("https://h/a@b:/x", None, "https://h/a@b", "/x"),
        ("file:///srv/a.git:/x", None, "file:///srv/a.git", "/x"),
        ("C:/code:/x", "C:/code", None, "/x"),
        (".:data@v1.0/x", ".", None, "data@v1.0/x"),
    ],
)
def test_repositories(written: str, local: str | None, url: str | None, path: str) -> None:
    found = value(mounts.Repo, written)
    assert (found["local_path"], found["url"], found["path"]) == (local, url, path)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "a:",
        "a:~user/x",
        "a:b:c",
        "https://h:8443x/a/b:c",
        "https://h/a:",
        "user:token@host.com/a",
        {"local_path": "a", "path": "~user/r"},
        {"url": "u", "if_exists": "replace"},
    ],
)
def test_what_is_no_repository(written: object) -> None:
    assert refused(mounts.Repo, written)
