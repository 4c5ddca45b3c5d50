"""Ports, mounts, files and repositories."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.names import absolute_paths
from tests.spec.grammars.said import Grammar, as_is, mapped, meaning, words
from tests.spec.grammars.scalars import switches, wholes

_NUMBERS = st.integers(1, 65535)
_PART = st.from_regex(r"[a-zA-Z0-9_.-]{2,8}", fullmatch=True).filter(lambda part: set(part) != {"."})


def ports() -> Grammar:
    """``8000``, ``"8000"``, ``80:8000``, ``"*:8000"``, and mappings."""

    def forms(local: int, container: int) -> Grammar:
        same = {"container_port": container, "local_port": container}
        other = {"container_port": container, "local_port": local}
        free = {"container_port": container, "local_port": None}
        return (
            meaning(same, container, str(container), f"{container:_}")
            | meaning(
                other, f"{local}:{container}", f"{local}: {container}", other, {k: str(v) for k, v in other.items()}
            )
            | meaning(free, f"*:{container}", {"container_port": container})
        )

    return st.tuples(_NUMBERS, _NUMBERS).flatmap(lambda pair: forms(*pair))


def service_ports() -> Grammar:
    """Only the port of the container matters."""
    return st.tuples(_NUMBERS, _NUMBERS).flatmap(
        lambda pair: meaning(
            {"container_port": pair[1]}, pair[1], str(pair[1]), f"{pair[0]}:{pair[1]}", {"container_port": pair[1]}
        )
    )


def mounts() -> Grammar:
    """``volume:/path``, ``/host:/path``, and mappings."""
    volumes = st.from_regex(r"[a-z][a-z0-9-]{1,9}", fullmatch=True)

    def forms(volume: str, host: str, path: str) -> Grammar:
        network, instance = {"name": volume, "path": path}, {"instance_path": host, "path": path, "optional": False}
        untidy = f"{path}//." if path != "/" else "/."
        return meaning(network, f"{volume}:{path}", f"{volume}:{untidy}", dict(network)) | meaning(
            instance, f"{host}:{path}", {"instance_path": host, "path": untidy}
        )

    several = st.lists(volumes, min_size=1, max_size=3)
    return (
        st.tuples(volumes, absolute_paths, absolute_paths).flatmap(lambda parts: forms(*parts))
        | mapped({"name": as_is(several), "path": as_is(absolute_paths)})
        | mapped({"instance_path": as_is(absolute_paths), "path": as_is(absolute_paths), "optional": switches()})
    )


def files() -> Grammar:
    """``local``, ``local:container``, and mappings."""
    local = st.lists(_PART, min_size=1, max_size=3).map("/".join) | st.sampled_from([".", "..", "~/.ssh/id", "./x"])
    inside = local | absolute_paths

    def forms(here: str, there: str) -> Grammar:
        both = {"local_path": here, "path": there}
        drive = {"local_path": f"C:/{here}", "path": there}
        return (
            meaning({"local_path": here, "path": here}, here)
            | meaning(both, f"{here}:{there}", dict(both))
            | meaning(drive, f"C:/{here}:{there}", dict(drive))
        )

    return st.tuples(local, inside).flatmap(lambda pair: forms(*pair))


def repositories() -> Grammar:
    """A folder or a URL, with the place where it goes."""
    logins = st.sampled_from(["", "", "git@", "token@", "user:token@", "me:1234@", "user:to:k@en@"])
    hosts = st.sampled_from(["github.com", "h", "10.0.0.1", "[::1]", "[fe80::1:2]"])
    schemes, ports = st.sampled_from(["https", "http", "ssh", "git"]), st.sampled_from(["", "", ":22", ":8443"])
    long = st.builds("{}://{}{}{}/{}/{}".format, schemes, logins, hosts, ports, _PART, _PART)
    urls = long | st.builds("git@{}:{}/{}.git".format, hosts, _PART, _PART)
    folders = st.sampled_from([".", "..", "~/code"]) | st.lists(_PART, min_size=1, max_size=3).map("/".join)
    inside = absolute_paths | _PART | st.just("~/x")

    def forms(field: str, source: str, path: str) -> Grammar:
        other = {"local_path": "url", "url": "local_path"}[field]
        alone, both = {field: source, other: None, "path": "."}, {field: source, other: None, "path": path}
        return meaning(alone, source, {field: source}) | meaning(
            both, f"{source}:{path}", {field: source, "path": path}
        )

    sources = st.tuples(st.just("url"), urls) | st.tuples(st.just("local_path"), folders)
    short = st.tuples(sources, inside).flatmap(lambda parts: forms(*parts[0], parts[1]))
    return short | mapped(
        {"url": as_is(urls)},
        {
            "branch": as_is(_PART),
            "hash": as_is(st.from_regex("[0-9a-f]{40}", fullmatch=True)),
            "if_exists": words("error", "skip"),
        },
    )


def port_numbers() -> Grammar:
    return wholes(1, 65535)
