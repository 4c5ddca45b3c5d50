"""What a hostile or broken file can hold, and a program that reads such files under limits.

Run as a program it reads every text of one family and prints, as JSON, what went wrong with it::

    python -m tests.spec.hostile floods
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perdure import spec
from perdure.cli.validate import validate_all
from perdure.model.errors import InvalidConfiguration
from perdure.spec.document import MAX_BYTES
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import CloudVolume, Gateway
from tests.spec.support import fixtures, resolve

SECONDS = 1.0
"""Of a processor, for one text of any kind up to the largest."""

MEGABYTES = 200
"""Of memory, for the whole process."""

LONGEST = 60_000
"""Characters of all that is said about one text, hints included."""

SECRETS = [
    *(f"secret-{number}" for number in range(300)),
    *(
        "a" * (number % 7) + "ab" * 15 + bin(number)[2:].replace("1", "a").replace("0", "b")
        for number in range(2000)
    ),
    *("ab" * 94 + bin(number)[2:].replace("1", "a").replace("0", "b").zfill(12) for number in range(2000)),
]
"""Of the project."""

ARGUMENTS = ("x" * 120_000,)
"""After ``--``."""

SEALED = {f"{letter}{number}": "Ym94" for letter in "VW" for number in range(5_000)}
"""Values from a user's machine; only half of them are asked for."""

Named = Iterator[tuple[str, bytes]]

BASES: dict[type[BaseModel], str] = {
    Task: "type: task\ncommands: [x]",
    Service: "type: service\nport: 80\nimage: i",
    DevEnvironment: "type: dev-environment",
    FleetConfiguration: "type: fleet\nnodes: 1",
    CloudVolume: "type: volume\nbackend: aws\nregion: r\nsize: 1GB",
    Gateway: "type: gateway\nbackend: aws\nregion: r",
}
"""The least that a configuration of each kind says."""

TOKENS = [
    *("\0", "\x1b[2J", "\ufeff", "\u2028", "\t", "\r", "é", "😀", "---\n", "...\n", "%YAML 9.9\n"),
    *("&a ", "*a", "&a [*a]", "<<: *a", "!!python/object:os.system ", "!x ", "? ", "? [", "|\n", ">9\n", "@", "`"),
    *("{" * 50, "[" * 120, "- " * 50, "}", "]", "'", '"', ": ", ":\n", "#", ",", "\\", "\n\n", " " * 300),
    *("9" * 400, "-0", "1e999", ".inf", "0x1F", "1:2:3", "..", "true", "null", "~"),
    *("${{", "$${{ x }}", "${{ a.b }}", "$", "a" * 5000, "a." * 500, "[0]" * 500, "A=" * 500),
]


def mutations(count: int = 800, seed: int = 7) -> Named:
    """Published configurations, each damaged in up to four places."""
    dice = random.Random(seed)
    files = sorted((fixtures() / "configs").glob("*.yml"))
    for number in range(count):
        file = dice.choice(files)
        text = file.read_bytes()
        for _ in range(dice.randint(1, 4)):
            text = dice.choice(_DAMAGES)(text, dice)
        yield f"{file.name} damaged, {number} of seed {seed}", text[:MAX_BYTES]


def _replace(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) + 1)
    return text[:at] + bytes([dice.randrange(256)]) + text[at + 1 :]


def _insert(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(TOKENS).encode() + text[at:]


def _cut(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) + 1)
    return text[:at] + text[at + dice.randint(1, 40) :]


def _value(text: bytes, dice: random.Random) -> bytes:
    """Another value behind some name."""
    lines = text.split(b"\n")
    at = dice.randrange(len(lines))
    name, colon, _ = lines[at].partition(b":")
    if colon:
        lines[at] = name + b": " + dice.choice(TOKENS).encode()
    return b"\n".join(lines)


def _repeat(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    at = dice.randrange(len(lines))
    return b"\n".join(lines[:at] + lines[at : at + dice.randint(1, 4)] * dice.choice([2, 3, 2000]) + lines[at:])


def _shift(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    at = dice.randrange(len(lines))
    lines[at] = b" " * dice.randint(1, 5) + lines[at] if dice.random() < 0.6 else lines[at].lstrip()
    return b"\n".join(lines)


_DAMAGES = [_replace, _insert, _insert, _cut, _value, _value, _repeat, _shift]


def floods() -> Named:
    """Every field of every kind with as much of the wrong thing as fits, unless little of it is told the same."""
    seen: set[str] = set()
    for model, base in BASES.items():
        for field in sorted(model.model_fields.keys() - seen - {"type"}):
            lines = [line for line in base.split("\n") if not line.startswith(f"{field}:")]
            for what, flood in FLOODS.items():
                little, much = ("\n".join([*lines, f"{field}: {flood(size)}"]) for size in (3, 9_000))
                if _looks_inside(little, field):
                    yield f"{model.__name__}.{field}: {what}", much.encode()
        seen |= model.model_fields.keys()


FLOODS: dict[str, Callable[[int], str]] = {
    "texts": lambda size: f"[{'a:b:c/d,' * size * 2}]",
    "mappings": lambda size: f"[{'{a: 1,name: x},' * (size // 3)}]",
    "keys": lambda size: "{" + ",".join(f"k{n}: x" for n in range(size)) + "}",
    "a long text": lambda size: "'" + "a:1,/" * size * 5 + "'",
}


def _looks_inside(text: str, field: str) -> bool:
    """Whether more is said about a value than that it is of another kind."""
    try:
        spec.parse(spec.load_yaml(text))
    except InvalidConfiguration as error:
        return any(one.path != field for one in error.errors)
    return True


CROWDS = {
    "commands with a reference each": "type: task\ncommands: [" + "'${{ run.args }} $$'," * 9_000 + "]",
    "unknown references": "type: task\ncommands: [" + "'${{ no.such }}'," * 9_000 + "]",
    "variables": "type: task\ncommands: [x]\nenv: {" + "".join(f"V{n}: $$x," for n in range(9_000)) + "}",
    "supplied variables": "type: task\ncommands: [x]\nenv: [" + "".join(f"V{n}," for n in range(5_000)) + "]",
    "unknown secrets": "type: task\ncommands: [x]\nenv: {"
    + "".join(f"V{n}: '${{{{ secrets.s{n} }}}}'," for n in range(6_000))
    + "}",
    **{
        f"unknown secrets of {size} characters": "type: task\ncommands: [x]\nenv: {"
        + "".join(f"V{n}: '${{{{ secrets.{'ba' * (size // 2 - 5)}{n:010} }}}}'," for n in range(1_000))
        + "}"
        for size in (36, 160)
    },
    "a login of large variables": f"type: task\nimage: i\nenv: {{A: '{'y' * 100_000}', B: b}}\nregistry_auth: "
    + "{username: u, password: '"
    + "${{ env.A }}" * 4_000
    + "'}",
    "a login of small variables": "type: task\nimage: i\nenv: {B: b}\nregistry_auth: {username: u, password: '"
    + "${{ env.B }}" * 15_000
    + "'}",
    "a variable of many secrets": "type: task\nimage: i\nenv: {B: '" + "x${{ secrets.secret-1 }}" * 10_000 + "'}",
    "one command of many arguments": "type: task\nimage: i\nentrypoint: x\ncommands: ['"
    + "${{ run.args }} " * 10_000
    + "']",
    "groups of one name": "type: task\ngroups: [" + "{name: a, commands: [x]}," * 4_900 + "]",
    "groups that refer to each other": "type: task\ngroups: ["
    + "".join(f"{{commands: ['${{{{ groups[{n + 1}].nodes[0].IP_ADDRESS }}}}']}}," for n in range(2_500))
    + "]",
    "replica groups": "type: service\nport: 80\nreplicas: [" + "{count: 1, image: i, router: {}}," * 3_900 + "]",
    "rate limits": "type: service\nport: 80\nimage: i\nrate_limits: [" + "{rps: 1}," * 9_000 + "]",
    "probes": "type: service\nport: 80\nimage: i\nprobes: [" + "{type: http}," * 9_000 + "]",
    "ports": "type: task\ncommands: [x]\nports: [" + "'80:80'," * 19_000 + "]",
    "volumes": "type: task\ncommands: [x]\nvolumes: [" + "'/a:/b'," * 19_000 + "]",
    "dependencies": "type: task\ncommands: [x]\ndepends_on: [" + "run-a," * 19_000 + "]",
    "notices": "type: task\ncommands: [x]\nnotify: [" + "{url: 'https://h'}," * 6_000 + "]",
    "pauses": "type: task\ncommands: [x]\nretry: {backoff: [" + "5s," * 19_000 + "]}",
    "hosts": "type: fleet\nssh_config: {user: u, identity_file: k, hosts: ["
    + "{hostname: h, internal_ip: 10.0.0.1},h," * 4_500
    + "]}",
    "tags": "type: fleet\nnodes: 1\ntags: {" + "".join(f"t{n}: x," for n in range(9_900)) + "}",
    "aliases": "type: task\ncommands: [x]\nx: &a {k: [1, 2, 3]}\nenv: {"
    + "".join(f"V{n}: *a," for n in range(3_000))
    + "}",
    "merges": "type: task\ncommands: [x]\nenv:\n  A: &a {B: x}\n" + "  <<: *a\n" * 9_000,
    "profiles": "profiles: [" + "{name: p, default: true}," * 6_000 + "]",
}


def crowds() -> Named:
    """Much of what is right in itself, for rules that compare each with each."""
    return ((name, text.encode()) for name, text in CROWDS.items())


def submissions(text: bytes) -> Iterator[dict[str, Any]]:
    """What comes with it."""
    yield {}
    if b"run.args" in text:
        yield {"arguments": ARGUMENTS}
    if b"env: [V0" in text:
        yield {"sealed": SEALED}


def read(text: bytes, folder: Path) -> str:
    """Everything that is said about it: as ``perdure validate`` shows it, and as a worker answers."""
    file = folder / "hostile.yml"
    file.write_bytes(text)
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        if validate_all([str(file)], profile=None, no_profile=True, json=False) == 0:
            for options in submissions(text):
                try:
                    resolve(spec.load_yaml(text), secrets=SECRETS, **options)
                except InvalidConfiguration as error:
                    print(error)
    return out.getvalue()


def main(family: str, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    faults: list[str] = []
    slowest, largest = (0.0, ""), 0
    for name, text in FAMILIES[family]():
        began = time.process_time()
        try:
            told = read(text, folder)
        except Exception:  # noqa: BLE001 (whatever it is, it is a fault)
            faults.append(f"{name}: {traceback.format_exc(limit=-3)}")
            continue
        seconds = time.process_time() - began
        slowest = max(slowest, (seconds, name))
        largest = max(largest, len(told))
        if seconds > SECONDS:
            faults.append(f"{name}: took {seconds:.2f} s")
        if len(told) > LONGEST:
            faults.append(f"{name}: {len(told)} characters are said about it")
    memory = _most_memory()
    if memory > MEGABYTES:
        faults.append(f"took {memory} MB of memory")
    print(json.dumps({"faults": faults, "slowest": slowest, "longest": largest, "memory": memory}))


def _most_memory() -> int:
    """In MB, of this program alone: the maximum that Linux tells of a process begins with its parent's (seen)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024**2
    (most,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(most.split()[1]) // 1024


FAMILIES: dict[str, Callable[[], Named]] = {"mutations": mutations, "floods": floods, "crowds": crowds}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1], Path(folder))
