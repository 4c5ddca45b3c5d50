"""What a run's specification holds sealed, or only names, opened for the agent that is about to be given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from activities.seal import unsealed
from activities.vault import Vault
from activities.world import World
from perdure.model.errors import CannotOpen
from perdure.spec.effective import EffectiveRun, Piece, Sealed, SecretRef, Value, pieces_of, secrets_of
from perdure.spec.environment import MAX_ENV, MAX_WORD, size
from perdure.store import secrets


@dataclass(frozen=True)
class Opened:
    """In the clear: goes to an agent and nowhere else."""

    env: Mapping[str, str] = field(repr=False)
    registry_username: str = field(default="", repr=False)
    registry_password: str = field(default="", repr=False)


async def opened(world: World, run: EffectiveRun) -> Opened:
    """Every value of a run, with its secrets as they are now.

    Raises:
        CannotOpen: secrets are missing, all of which are named; or a value was made for another key, or is none
            that a process can be given.
    """
    values = await _secrets(world, run)

    def plain(piece: Piece, what: str) -> str:
        match piece:
            case Sealed():
                return unsealed(world.private_key, piece.sealed, what)
            case SecretRef():
                return values[piece.secret]
            case _:
                return piece

    def whole(value: Value, what: str) -> str:
        texts = [plain(piece, what) for piece in pieces_of(value)]
        if sum(len(text.encode()) for text in texts) > MAX_WORD:
            raise CannotOpen(f"{what} is larger than 128 KiB with its secrets in it")
        if any("\0" in text for text in texts):
            raise CannotOpen(f"{what} has a NUL character, which no process can be given")
        return "".join(texts)

    env = {name: whole(value, f"the value of {name} in env") for name, value in run.env.items()}
    if sum(size(name, value) for name, value in env.items()) > MAX_ENV:
        raise CannotOpen("env is larger than 1 MiB with its secrets in it")
    auth = run.registry_auth
    if auth is None:
        return Opened(env)
    return Opened(
        env, whole(auth.username, "the registry's username"), whole(auth.password, "the registry's password")
    )


async def _secrets(world: World, run: EffectiveRun) -> dict[str, str]:
    """The run's secrets by name."""
    wanted, project = secrets_of(run), run.policy.project
    if not wanted:
        return {}
    async with world.database.transaction() as tx:
        found = await secrets.boxes(tx, project, wanted)
    missing = sorted(wanted - found.keys())
    if missing:
        which = f"the secret {missing[0]}" if len(missing) == 1 else f"the secrets {', '.join(missing)}"
        raise CannotOpen(f"it needs {which}, which project {project} does not have (any more)")
    vault = Vault(world.private_key)
    return {name: vault.unlock(project, name, box) for name, box in found.items()}
