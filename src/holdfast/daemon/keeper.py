"""Storing a batch whatever happens: a full disk is waited out, damage is mended, a poisonous event is kept apart."""

from collections.abc import Callable, Sequence

import msgspec

from holdfast.core.delivery import Delivery
from holdfast.core.engine import Engine, Outcome
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.daemon.log import Log
from holdfast.intake import unread

HELD_BYTES = 64 << 20


class Keeper:
    """Runs in the writer thread. `mend` puts a damaged store right and says whether to try again."""

    def __init__(self, engine: Callable[[], Engine], log: Log, mend: Callable[[StoreDamaged], bool]) -> None:
        self._engine, self._log, self._mend = engine, log, mend
        self._held: list[Delivery] = []
        self._held_bytes = 0
        self.refusing = ""

    def keep(self, batch: Sequence[Delivery]) -> list[Outcome] | None:
        try:
            outcomes = self._stored(batch)
            self.refusing = ""
            return outcomes
        except StoreUnavailable as error:
            self._hold(batch, error)
            return None

    def retry_held(self) -> None:
        """The hooks have spooled these too, if they could; the delivery key makes one event of both."""
        held, self._held, self._held_bytes = self._held, [], 0
        if held and self.keep(held) is not None:
            self._log("store.writable", taken=len(held))

    def _stored(self, batch: Sequence[Delivery]) -> list[Outcome]:
        try:
            return self._engine().handle(batch)
        except StoreDamaged as error:
            if not self._mend(error):
                raise StoreUnavailable(error.detail, where=error.where) from error
            return self._engine().handle(batch)
        except StoreUnavailable:
            raise
        except Exception as error:
            self._log.error("batch.failed", error, size=len(batch))
            return [self._alone(delivery) for delivery in batch]

    def _alone(self, delivery: Delivery) -> Outcome:
        try:
            return self._engine().handle([delivery])[0]
        except StoreUnavailable:
            raise
        except Exception as error:
            self._log.error("event.unreadable", error, key=delivery.key, agent=delivery.agent, hook=delivery.event)
            event = msgspec.structs.replace(unread(delivery, f"{type(error).__name__}: {error}"), body=delivery.body)
            return self._engine().handle([event])[0]

    def _hold(self, batch: Sequence[Delivery], error: StoreUnavailable) -> None:
        if not self.refusing:
            self._log.error("store.refuses", error)
        self.refusing = error.message
        for delivery in batch:
            if self._held_bytes + len(delivery.body) <= HELD_BYTES:
                self._held.append(msgspec.structs.replace(delivery, mode="tell"))
                self._held_bytes += len(delivery.body)
