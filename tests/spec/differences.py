"""Where a configuration means something else here than in dstack, or has another verdict, and why.

The tests read these tables, and fail on an entry that nothing needs, or that the page for users does not have.
"""

from __future__ import annotations

PAGE: dict[str, tuple[str, str]] = {
    "numbers in base 60, octal numbers, `3.10`": (
        "as above",
        "a configuration should mean what its author sees",
    ),
    "`cpu: 4:8`, `gpu: 1:2`": (
        "refused; ranges are `4..8`",
        "dstack reads them as 248 and 62",
    ),
    "days of the week in `cron`": (
        "0 and 7 are Sunday, five fields",
        "every other cron counts so; dstack's 0 is Monday",
    ),
    "`last`, `2nd fri` and the like in `cron`": (
        "refused, with what to write",
        "standard cron does not have them",
    ),
    "`backends: [ssh]`": (
        "a second name for `remote`",
        "it is what people write",
    ),
    "a login or a port in a URL under `repos`": (
        "belongs to the URL",
        "dstack cuts `https://host:8443/a` at the second colon",
    ),
    "a negative delay of `scaling`, an empty path in `files`": (
        "refused",
        "they mean nothing",
    ),
    "a `name` of one letter": (
        "allowed",
        "nothing is gained by a second one",
    ),
    'where dstack ends in a traceback (tags that are lists, `"80:"` as a port)': (
        "a sentence and a line",
        "a mistake should be explained",
    ),
    "`dstack: true`": (
        "read, and refused at submission",
        "nothing inside a run reaches the control plane",
    ),
    "`$$`": (
        "one `$`, once, everywhere",
        "dstack halves it once here, twice there, and nowhere in `init`",
    ),
    '`env: {"A B": x}`, `{"A=B": x}`': (
        "refused; `A-B` and `1A` are not",
        "a process cannot be given `A=B`, and a shell does not pass on `A B`",
    ),
    "`${{ … }}` in a field where none is resolved, such as `image`": (
        "refused",
        "dstack takes it for the text it is",
    ),
    "more than 1,000 references in `env` or in `registry_auth`; a login over 128 KiB": (
        "refused",
        "a small file would make much of itself",
    ),
    "secrets named with a dash or a digit in front": (
        "can be referred to",
        "there is no reason that they could not",
    ),
    "`resources` that you do not write": (
        "required in clouds, preferred on machines of your own",
        "a laptop with 72 GB of free disk should run hello",
    ),
    "`preset`": (
        "refused in one sentence",
        "it is not supported",
    ),
    "a run that goes on, changed and applied again with `-y`": (
        "refused: `--force` stops it and starts the new one",
        "`-y` answers for submitting; hours of work should not end for that",
    ),
    "`repos` of a folder": (
        "the tree as it is, without `.git`",
        "what runs is what you see; its history is often larger than it",
    ),
    "the shell of `commands`": (
        "`-c`, not `-i -c`: it reads no `~/.bashrc`",
        "an interactive bash ignores SIGTERM, so that nothing could stop gracefully",
    ),
}
"""What differs, what it is here, and why: the table of docs/configuration.md."""

KEPT = "kept as it is written: it means the same"

VERDICTS: dict[str, str] = {
    "resources: {cpu: 4:8}": "`cpu: 4:8`, `gpu: 1:2`",
    "resources: {gpu: 1:2}": "`cpu: 4:8`, `gpu: 1:2`",
    'files: [""]': "a negative delay of `scaling`, an empty path in `files`",
    'schedule: {cron: "0 8 * * 7"}': "days of the week in `cron`",
    "backends: [ssh]": "`backends: [ssh]`",
    "scale_up_delay: -5}": "a negative delay of `scaling`, an empty path in `files`",
    "name: g\ndefault: true": "a `name` of one letter",
}
"""By the end of a recorded configuration, the row of the page that says why its verdict is another."""

VALUES: dict[str, str] = {
    'repos: ["ssh://git@h:22/a"]': "a login or a port in a URL under `repos`",
    "replicas: ..4\nscaling: {metric: rps, target: 1}": KEPT,
    'repos: ["https://h:8443/a/b"]': "a login or a port in a URL under `repos`",
}
"""By the end of a recorded configuration, the row of the page that says why its value is another."""

FIELDS: dict[str, str] = {
    "stop_grace": "ours",
    "stop_signal": "ours",
    "timezone": "ours, of a schedule",
    "max_attempts": "ours, of retry",
    "backoff": "ours, of retry",
    "on_exit_codes": "ours, of retry",
    "scope": "ours, of retry",
    "max_cost": "ours",
    "deadline": "ours",
    "depends_on": "ours",
    "notify": "ours",
    "groups": "kept apart from replicas, under the name that was written",
    "replicas": "of a group: kept apart from count, under the name that was written",
    "target": "left out there where it is not written",
    "ssh_key": "filled in by its client",
    "entrypoint": "a development environment has none",
}
"""That only one side has; where it has a value, the other side would have to have it, too."""
