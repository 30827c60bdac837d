import functools

LIMIT = 3
NAMES = {
    "a": 1,
}


@functools.cache
def load(path):
    """Read it."""
    return open(path)


class Engine:
    """Turns."""

    speed = 1

    def start(self):
        return self.speed

    async def stop(self): ...
