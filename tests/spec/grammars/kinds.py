"""Whole configurations of every kind: right in themselves, whatever a version can honour of them.

What depends on the image (another architecture, another vendor's GPUs) is left to tests of its own.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.hardware import resources
from tests.spec.grammars.names import (
    absolute_paths,
    environments,
    group_names,
    pythons,
    references,
    resource_names,
    shells,
    tags,
    users,
    working_dirs,
)
from tests.spec.grammars.places import files, mounts, ports, repositories, service_ports
from tests.spec.grammars.policies import PLACEMENT, PROFILE, dependencies, signals
from tests.spec.grammars.said import Grammar, Said, as_is, joined, listed, mapped, meaning, some_of, words
from tests.spec.grammars.scalars import idle, memory, offable, switches, texts, wholes
from tests.spec.grammars.traffic import fixed_replicas, models, probes, rate_limits, replicas

_FEW = 6
_RESOURCES = resources(archs=("x86",), vendors=("nvidia",))
_COMMANDS = listed(texts(1), least=1)
_TRUE = meaning(True, True, "true", "on", "yes")

RUN: dict[str, Grammar] = PROFILE | {
    "name": resource_names,
    "privileged": switches(),
    "user": users(),
    "shell": shells,
    "working_dir": working_dirs,
    "home_dir": as_is(absolute_paths),
    "setup": listed(texts()),
    "registry_auth": mapped({"username": texts(), "password": texts()}),
    "env": environments(),
    "resources": _RESOURCES,
    "priority": wholes(0, 100),
    "volumes": listed(mounts(), most=1),
    "files": listed(files()),
    "repos": listed(repositories(), most=1),
    "single_branch": switches(),
    "stop_signal": signals(),
    "depends_on": dependencies(),
}
"""What may stand in every run, beside the source of its software."""

_IMAGE = mapped({"image": texts(1)})
_SOFTWARE = _IMAGE | mapped({}, {"python": pythons, "nvcc": switches()}) | mapped({"docker": _TRUE})
_TO_RUN = joined(_SOFTWARE, mapped({"commands": _COMMANDS})) | _IMAGE


def _of(kind: str, *parts: Grammar) -> Grammar:
    return joined(mapped({"type": words(kind)}), *parts)


def _named(groups: Grammar) -> Grammar:
    """Without names that stand for two."""

    def distinct(said: Said) -> bool:
        names = [group["name"] for group in said.written if "name" in group]
        return len(names) == len(set(names))

    return groups.filter(distinct)


def tasks() -> Grammar:
    """On one node, on several, or in groups of nodes."""
    alone = joined(_TO_RUN, mapped({}, {"nodes": wholes(1, 50), "ports": listed(ports()), "entrypoint": texts(1)}))
    group = {"name": group_names, "nodes": wholes(1, 9), "resources": _RESOURCES, "ports": listed(ports())}
    groups = mapped({"groups": _named(listed(mapped({"commands": _COMMANDS}, group), least=1))})
    return _of("task", some_of(RUN, _FEW), alone | joined(_SOFTWARE, groups))


def environments_to_work_in() -> Grammar:
    """With an IDE or without."""
    own = {
        "ide": words("vscode", "cursor", "zed"),
        "init": listed(texts()),
        "ports": listed(ports()),
        "inactivity_duration": offable(),
    }
    versioned = mapped({"ide": words("windsurf"), "version": words("1.106.0@8951cd3a")})
    return _of("dev-environment", some_of(RUN, _FEW), _SOFTWARE, some_of(own, 3) | versioned)


_SERVICE: dict[str, Grammar] = {
    "gateway": references() | _TRUE,
    "https": switches() | words("auto"),
    "auth": switches(),
    "strip_prefix": switches(),
    "model": models(),
    "probes": listed(probes(), most=1),
    "rate_limits": listed(rate_limits(), most=1),
}


def services() -> Grammar:
    """A number of replicas, a range, or groups of them."""
    fields = RUN | _SERVICE
    schedule = fields.pop("schedule")
    one = joined(_TO_RUN, replicas() | mapped({}) | joined(mapped({"schedule": schedule}), replicas(1)))
    alone = joined(
        _TO_RUN, fixed_replicas(), mapped({"gateway": meaning(False, False, "off")}, {"auth": switches()})
    )
    groups = _named(
        listed(
            joined(mapped({"commands": _COMMANDS}, {"name": group_names, "resources": _RESOURCES}), _counts()),
            least=1,
        )
    )
    several = st.sampled_from(["groups", "replicas"]).flatmap(lambda field: mapped({field: groups}))
    reached = joined(some_of(fields, _FEW), one | several)
    return _of("service", mapped({"port": service_ports()}), reached | joined(some_of(RUN, _FEW), alone))


def _counts() -> Grammar:
    """As of a service, under either name."""
    return st.builds(_renamed, replicas(), st.booleans())


def _renamed(said: Said, renamed: bool) -> Said:
    def change(found: dict[str, object]) -> dict[str, object]:
        return {"count" if renamed and key == "replicas" else key: value for key, value in found.items()}

    return Said(change(said.written), change(said.meaning))


def fleets() -> Grammar:
    """Of a backend, or of hosts."""
    common = {"name": resource_names, "placement": words("any", "cluster"), "blocks": wholes(1, 8) | words("auto")}
    cloud = joined(mapped({"nodes": fleet_nodes()}), some_of(PLACEMENT | {"resources": _RESOURCES}, 4))
    return _of("fleet", some_of(common, 3), cloud | _hosts())


def fleet_nodes() -> Grammar:
    """``2``, ``0..2``, ``2..``, ``..2``, or a mapping with a target."""

    def forms(low: int, more: int, most: int) -> Grammar:
        target, high = low + more, low + more + most
        return (
            meaning({"min": low, "max": low}, low, str(low))
            | meaning({"min": low, "max": high}, f"{low}..{high}", {"min": low, "max": high})
            | meaning({"min": low, "max": None}, f"{low}..", {"min": low})
            | meaning({"min": 0, "max": high}, f"..{high}", {"max": high})
            | meaning({"min": low, "target": target, "max": high}, {"min": low, "target": target, "max": high})
        )

    return st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).flatmap(lambda drawn: forms(*drawn))


def _hosts() -> Grammar:
    names = as_is(st.from_regex(r"[a-z][a-z0-9-]{2,12}", fullmatch=True))
    optional = {
        "user": texts(1),
        "port": wholes(1, 65535),
        "identity_file": as_is(absolute_paths),
        "blocks": wholes(1, 8) | words("auto"),
    }
    host = names.map(lambda said: Said(said.written, {"hostname": said.meaning})) | mapped(
        {"hostname": names}, optional
    )
    config = mapped(
        {"user": texts(1), "identity_file": as_is(absolute_paths), "hosts": listed(host, least=1, most=1)},
        {"port": wholes(1, 65535), "network": words("10.0.0.0/24", "192.168.1.7/16")},
    )
    return mapped({"ssh_config": config}, {"env": environments()})


def volumes() -> Grammar:
    """New, or there already."""
    common: dict[str, Grammar] = {"name": resource_names, "tags": tags()}
    kept = mapped({}, common)
    new = joined(mapped({"size": memory(1, 1000)}, {"auto_cleanup_duration": idle()}), kept)
    there = joined(mapped({"volume_id": texts(1)}), kept)
    cloud = joined(
        mapped({"backend": words("aws", "gcp"), "region": texts(1)}, {"availability_zone": texts(1)}), new | there
    )
    pods = joined(mapped({"backend": words("runpod"), "region": texts(1)}), new | there)
    claims = joined(
        mapped(
            {"backend": words("kubernetes")},
            {"region": texts(), "storage_class_name": texts(1), "read_only": switches()},
        ),
        new | joined(mapped({"claim_name": texts(1)}), kept),
    )
    return _of("volume", cloud | pods | claims)


def gateways() -> Grammar:
    """In a cloud that has them, with a certificate or none."""
    plain = mapped({"backend": words("aws", "gcp", "azure", "kubernetes"), "region": texts(1)})
    fields = {
        "name": resource_names,
        "default": switches(),
        "instance_type": texts(1),
        "domain": words("x.com", "${{ run.project_name }}.x.com"),
        "tags": tags(),
    }
    certificate = mapped({"certificate": mapped({"type": words("lets-encrypt")})}, {"replicas": wholes(1, 1)})
    none = mapped({"certificate": meaning(None, None)}, {"replicas": wholes(1, 3)})
    return _of("gateway", plain, some_of(fields, 3), certificate | none)


KINDS: dict[str, Grammar] = {
    "task": tasks(),
    "service": services(),
    "dev-environment": environments_to_work_in(),
    "fleet": fleets(),
    "volume": volumes(),
    "gateway": gateways(),
}


def profiles() -> Grammar:
    """A whole ``profiles.yml``."""
    one = joined(mapped({"name": texts(1)}, {"default": switches()}), some_of(PROFILE, _FEW))
    return mapped({"profiles": listed(one)})
