"""Side effects, thin: everything that a workflow or a client may ask a worker to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from activities.doctor import Doctor
from activities.fleets import Fleets
from activities.hello import Greeting
from activities.instance_rows import InstanceRows
from activities.instances import Instances
from activities.jobs import Starting
from activities.logs import Watching
from activities.placement import Placement
from activities.plan import Planning
from activities.reading import Reading
from activities.reads import Reads
from activities.recall import Recall
from activities.runs import Runs
from activities.secrets import Secrets
from activities.stopping import Stopping
from activities.sweeping import Sweeping
from activities.telling import Telling
from activities.world import World

ROOMS: tuple[Callable[[World], Any], ...] = (
    Runs,
    Recall,
    Placement,
    InstanceRows,
    Fleets,
    Reads,
    Telling,
    Secrets,
    Doctor,
    Starting,
    Watching,
    Stopping,
    Instances,
    Greeting,
    Reading,
    Planning,
    Sweeping,
)


def implementations(world: World) -> list[Callable[..., Any]]:
    """Every activity there is, bound to this world. Worker assembly checks them against their declarations."""
    return [step for room in ROOMS for step in steps_of(room(world))]


def steps_of(room: object) -> list[Callable[..., Any]]:
    """The methods of an object that are activities (``activity.defn`` marks them)."""
    names = [
        name for name in dir(type(room)) if hasattr(getattr(type(room), name), "__temporal_activity_definition")
    ]
    return [getattr(room, name) for name in names]
