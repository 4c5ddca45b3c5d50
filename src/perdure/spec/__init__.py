"""What users write: the configuration language, from text to the effective specification.

::

    document = load_yaml(text, "train.yml")     # a dict that also knows where everything in it stands
    run = parse_run(document)                   # typed, as written
    effective = resolve(document, run_id=…, …)  # every value in force, or every mistake at once

``load_yaml`` gives a ``Document``: a plain mapping (it may be sent anywhere as JSON) with ``.lines``. Every
function here takes any mapping, and a Document's lines are found by themselves; for a copy of it pass ``lines=``.
``document.lines.locate(error)`` adds line and column to an error that came back from a worker.
"""

from perdure.spec.document import Document, Lines, load_yaml
from perdure.spec.models.profile import Profile
from perdure.spec.parsing import (
    Configuration,
    RunConfiguration,
    parse,
    parse_flags,
    parse_fleet,
    parse_profiles,
    parse_run,
)
from perdure.spec.refusals import not_yet
from perdure.spec.remarks import warnings
from perdure.spec.requirements import fleet_requirements, offer_requirements
from perdure.spec.resolving import resolve
from perdure.spec.rules import invalid
from perdure.spec.schema import KINDS, json_schema

__all__ = [
    "KINDS",
    "Configuration",
    "Document",
    "Lines",
    "Profile",
    "RunConfiguration",
    "fleet_requirements",
    "invalid",
    "json_schema",
    "load_yaml",
    "not_yet",
    "offer_requirements",
    "parse",
    "parse_flags",
    "parse_fleet",
    "parse_profiles",
    "parse_run",
    "resolve",
    "warnings",
]
