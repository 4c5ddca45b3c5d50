"""Who answers: what a client must know of this installation before it can upload, seal or read."""

from __future__ import annotations

from importlib.metadata import version

from temporalio import activity

from activities.seal import public_key
from activities.world import World
from perdure.model.api import HELLO, Hello
from perdure.model.messages import Nothing


class Greeting:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=HELLO.name)
    async def hello(self, _: Nothing) -> Hello:
        return Hello(
            version=version("perdure"),
            installation=self.world.installation,
            public_key=public_key(self.world.private_key),
            blobs=self.world.blobs.url,
            code_limit=self.world.code_limit,
        )
