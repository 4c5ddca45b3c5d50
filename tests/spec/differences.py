"""Where a configuration means something else here than in dstack, or has another verdict, and why.

The tests read this table, and fail on an entry that nothing needs. Keys are the end of a recorded configuration, or
the name of a field.
"""

from __future__ import annotations

VERDICTS: dict[str, str] = {
    "resources: {cpu: 4:8}": "4:8 is no number to the base of 60, and no range",
    "resources: {gpu: 1:2}": "1:2 is no number to the base of 60, and no range",
    'files: [""]': "an empty path is nothing",
    'schedule: {cron: "0 8 * * 7"}': "standard cron: 7 is Sunday",
    "backends: [ssh]": "ssh is a second name for remote",
    "scale_up_delay: -5}": "a delay cannot be negative",
    "name: g\ndefault: true": "a name may have one letter",
}

VALUES: dict[str, str] = {
    'repos: ["ssh://git@h:22/a"]': "the port belongs to the URL",
    "replicas: ..4\nscaling: {metric: rps, target: 1}": "without a lower end, which is zero: kept as it is written",
    'repos: ["https://h:8443/a/b"]': "the port belongs to the URL",
}

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
