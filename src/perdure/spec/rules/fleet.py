"""Rules of fleets: of cloud instances, or of hosts that are reached over SSH."""

from __future__ import annotations

from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.rules.base import Problem, Problems, Rules, looks_at, twice

_OF_CLOUDS = (
    "reservation",
    "resources",
    "backends",
    "regions",
    "availability_zones",
    "instance_types",
    "spot_policy",
    "retry",
    "max_price",
    "idle_duration",
    "tags",
    "backend_options",
)
"""Fields that say which instances are made, and how: hosts are there already."""


@looks_at("nodes", "ssh_config")
def a_fleet_is_made_or_there_already(fleet: FleetConfiguration) -> Problems:
    if fleet.nodes is None and fleet.ssh_config is None:
        hint = "say how many instances there are to be, nodes: 0..4, or which hosts there are, ssh_config"
        yield Problem("nodes", "is missing, and so is ssh_config", hint)
    if fleet.nodes is not None and fleet.ssh_config is not None:
        hint = "leave one out: nodes are made in a cloud, and the hosts of ssh_config are there already"
        yield Problem("nodes", "is given together with ssh_config", hint)


@looks_at("ssh_config", *_OF_CLOUDS)
def hosts_are_as_they_are(fleet: FleetConfiguration) -> Problems:
    for field in _OF_CLOUDS:
        written = field in fleet.model_fields_set and getattr(fleet, field) is not None
        if fleet.ssh_config is not None and written:
            yield Problem(field, "is not for a fleet with ssh_config: its hosts are as they are", "leave it out")


@looks_at("ssh_config", "nodes", "env")
def only_hosts_have_an_environment(fleet: FleetConfiguration) -> Problems:
    if fleet.ssh_config is None and fleet.env:
        yield Problem("env", "is only for a fleet with ssh_config", "give env in the runs")


@looks_at("ssh_config.hosts[].internal_ip", "ssh_config.network")
def addresses_inside_are_found_in_one_way(fleet: FleetConfiguration) -> Problems:
    if fleet.ssh_config is None:
        return
    with_address = [index for index, host in enumerate(fleet.ssh_config.hosts) if host.internal_ip is not None]
    if not with_address:
        return
    if fleet.ssh_config.network is not None:
        message = f"is given together with internal_ip of ssh_config.hosts[{with_address[0]}]"
        yield Problem("ssh_config.network", message, "leave network out, or internal_ip of all hosts")
    for index in range(len(fleet.ssh_config.hosts)):
        if index not in with_address:
            message = f"is missing, and ssh_config.hosts[{with_address[0]}] has one"
            yield Problem(f"ssh_config.hosts[{index}].internal_ip", message, "give it for all hosts, or for none")


_LOGIN = {"user": "ubuntu", "identity_file": "~/.ssh/id_ed25519"}
"""What a login takes, each with an example."""


@looks_at(*(f"{owner}.{field}" for owner in ("ssh_config", "ssh_config.hosts[]") for field in _LOGIN))
def each_host_can_be_logged_in_to(fleet: FleetConfiguration) -> Problems:
    if fleet.ssh_config is None:
        return
    for field, example in _LOGIN.items():
        lacking = [i for i, host in enumerate(fleet.ssh_config.hosts) if getattr(host, field) is None]
        if getattr(fleet.ssh_config, field) is not None or not lacking:
            continue
        if len(lacking) == len(fleet.ssh_config.hosts):
            yield Problem(f"ssh_config.{field}", "is missing", f"such as {field}: {example}")
            continue
        for index in lacking:
            hint = f"give it here, or for all hosts: ssh_config.{field}"
            yield Problem(f"ssh_config.hosts[{index}].{field}", "is missing", hint)


@looks_at("ssh_config.port", "ssh_config.hosts[].hostname", "ssh_config.hosts[].port")
def each_host_is_there_once(fleet: FleetConfiguration) -> Problems:
    if fleet.ssh_config is None:
        return
    shared = fleet.ssh_config.port or 22
    for index, first in twice([f"{host.hostname}:{host.port or shared}" for host in fleet.ssh_config.hosts]):
        yield Problem(f"ssh_config.hosts[{index}]", f"is the same as ssh_config.hosts[{first}]", "leave it out")


FLEET = Rules[FleetConfiguration](
    at_submission=(
        a_fleet_is_made_or_there_already,
        hosts_are_as_they_are,
        only_hosts_have_an_environment,
        addresses_inside_are_found_in_one_way,
        each_host_can_be_logged_in_to,
        each_host_is_there_once,
    )
)
