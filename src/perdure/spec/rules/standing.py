"""Rules of volumes and gateways."""

from __future__ import annotations

from perdure.spec.models.standing import Acm, CloudVolume, Gateway, KubernetesVolume, LetsEncrypt, VolumeFields
from perdure.spec.rules.base import Problem, Problems, Rules, looks_at

# ── volumes ───────────────────────────────────────────────────────────────────────────────────────────────────


@looks_at("size", "volume_id")
def a_volume_is_made_or_there_already(volume: CloudVolume) -> Problems:
    if volume.size is None and volume.volume_id is None:
        hint = "give a size for a new volume, or the volume_id of one that is there"
        yield Problem("size", "is missing, and so is volume_id", hint)


@looks_at("size", "claim_name")
def a_claim_is_made_or_there_already(volume: KubernetesVolume) -> Problems:
    if volume.size is None and volume.claim_name is None:
        hint = "give a size for a new claim, or the claim_name of one that is there"
        yield Problem("size", "is missing, and so is claim_name", hint)


@looks_at("auto_cleanup_duration", "volume_id", "claim_name")
def what_was_there_already_is_not_cleaned_up(volume: VolumeFields) -> Problems:
    field = "volume_id" if isinstance(volume, CloudVolume) else "claim_name"
    kept = volume.auto_cleanup_duration in (None, "off", 0)
    if getattr(volume, field, None) is not None and not kept:
        hint = "leave it out, and delete the volume yourself"
        yield Problem("auto_cleanup_duration", f"is given together with {field}: what is not ours is kept", hint)


CLOUD_VOLUME = Rules[CloudVolume](
    always=(a_volume_is_made_or_there_already,),
    at_submission=(what_was_there_already_is_not_cleaned_up,),
)
KUBERNETES_VOLUME = Rules[KubernetesVolume](
    always=(a_claim_is_made_or_there_already,),
    at_submission=(what_was_there_already_is_not_cleaned_up,),
)

# ── gateways ──────────────────────────────────────────────────────────────────────────────────────────────────

_BACKENDS = ("aws", "azure", "gcp", "kubernetes")
_WITH_PRIVATE_ONES = ("aws", "gcp")
MAX_REPLICAS = 3


@looks_at("backend")
def a_gateway_is_where_gateways_can_be(gateway: Gateway) -> Problems:
    if gateway.backend not in _BACKENDS:
        yield Problem("backend", f"is {gateway.backend}, which has no gateways", f"one of {', '.join(_BACKENDS)}")


@looks_at("public_ip", "backend")
def a_private_gateway_is_where_they_can_be(gateway: Gateway) -> Problems:
    if not gateway.public_ip and gateway.backend in _BACKENDS and gateway.backend not in _WITH_PRIVATE_ONES:
        message = f"is false, and gateways of {gateway.backend} are always public"
        yield Problem("public_ip", message, f"private ones can be had of {' and '.join(_WITH_PRIVATE_ONES)}")


@looks_at("certificate", "public_ip", "replicas")
def lets_encrypt_reaches_the_one_gateway(gateway: Gateway) -> Problems:
    if not isinstance(gateway.certificate, LetsEncrypt):
        return
    said = "certificate" in gateway.model_fields_set
    whose = "the certificate is" if said else "the certificate is, unless you say otherwise,"
    if not gateway.public_ip:
        message = f"is false, and {whose} of Let's Encrypt, which must reach the gateway"
        yield Problem("public_ip", message, "write certificate: null for plain HTTP, or one of type acm")
    if (gateway.replicas or 1) > 1:
        message = f"is {gateway.replicas}, and {whose} of Let's Encrypt, which gives it to one"
        yield Problem("replicas", message, "write certificate: null for plain HTTP, or one of type acm")


@looks_at("certificate.type", "backend")
def acm_is_of_aws(gateway: Gateway) -> Problems:
    if isinstance(gateway.certificate, Acm) and gateway.backend != "aws":
        message = f"is of type acm, which is of aws, and the gateway is of {gateway.backend}"
        yield Problem("certificate", message, "leave it out, or write certificate: {type: lets-encrypt}")


@looks_at("replicas")
def a_gateway_has_few_replicas(gateway: Gateway) -> Problems:
    if (gateway.replicas or 1) > MAX_REPLICAS:
        yield Problem("replicas", f"is {gateway.replicas}: at most {MAX_REPLICAS} are possible")


GATEWAY = Rules[Gateway](
    at_submission=(
        a_gateway_is_where_gateways_can_be,
        a_private_gateway_is_where_they_can_be,
        lets_encrypt_reaches_the_one_gateway,
        acm_is_of_aws,
        a_gateway_has_few_replicas,
    )
)
