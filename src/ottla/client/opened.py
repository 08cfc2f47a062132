"""What all clients have in common: they are started and closed, and `async with` does both."""

from abc import ABC, abstractmethod
from typing import Self


class Opened(ABC):
    """A client that is open inside of `async with`."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    @abstractmethod
    async def start(self) -> None:
        """Find the cluster."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way, and close all connections."""
