"""Stores a batch whatever happens: waits out a full disk, repairs damage, isolates a poisonous event."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.agents.intake import cap_body, unread_event
from holdfast.analysis.redact import redact as redact_by_default
from holdfast.core.decision import Delivery
from holdfast.core.engine import Engine, Outcome
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.transaction import Transaction
from holdfast.daemon.ingest.log import Log

# In bytes of bodies. Beyond that the hooks' own spool must do.
RETRY_BYTES = 64 << 20

Redact = Callable[[bytes], tuple[bytes, int]]
Way = Callable[[Engine, Sequence[Delivery]], list[Outcome]]


def _handle_batch(engine: Engine, batch: Sequence[Delivery]) -> list[Outcome]:
    return engine.handle(batch)


class StoreGuard:
    """Runs on the writer thread. `repair` fixes a damaged store and returns whether to retry."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        log: Log,
        repair: Callable[[StoreDamaged], bool],
        redact: Redact = redact_by_default,
    ) -> None:
        # `repair` is public, because the pipeline calls it when replaying the journal meets damage.
        self._engine, self._log, self.repair, self._redact = engine, log, repair, redact
        self._retry_buffer: list[Delivery] = []
        self._retry_bytes = 0
        self.refusing = ""

    def commit(self, batch: Sequence[Delivery], way: Way = _handle_batch) -> list[Outcome] | None:
        try:
            outcomes = self._stored(batch, way)
            self.refusing = ""
            return outcomes
        except StoreUnavailable as error:
            self._refuse(error)
            # Kept although the hooks spool as well: some of them cannot write their spool either.
            self.hold_in_memory(batch)
            return None

    @property
    def has_retries(self) -> bool:
        """Whether deliveries wait in memory for the store."""
        return bool(self._retry_buffer)

    def store_applied(self, transaction: Transaction | None, answered: Sequence[Delivery]) -> bool:
        """Write what these were answered by. False: not now. What cannot be written as applied is applied again."""
        engine = self._engine()
        try:
            if transaction and transaction is engine.open_transaction:  # else damage was mended meanwhile
                engine.commit(transaction, durable=False)
                return True
        except StoreUnavailable as error:
            self._refuse(error)
            return False
        except StoreDamaged as error:
            # What was applied rests on documents that the repair may have changed.
            engine.discard()
            self.repair(error)
        except Exception as error:
            engine.discard()
            self._log.error("batch.failed", error, size=len(answered))
        return self.commit(answered) is not None

    def retry_buffered(self) -> None:
        """The hooks spooled these too, if they could; the delivery key makes one event of both."""
        held, self._retry_buffer, self._retry_bytes = self._retry_buffer, [], 0
        if held and self.commit(held) is not None:
            self._log("store.writable", taken=len(held))

    def _stored(self, batch: Sequence[Delivery], way: Way) -> list[Outcome]:
        try:
            return way(self._engine(), batch)
        except StoreDamaged as error:
            # After a repair the whole batch is retried, one delivery at a time, below.
            if not self.repair(error):
                raise StoreUnavailable(error.detail, where=error.where) from error
        except StoreUnavailable:
            raise
        except Exception as error:
            self._log.error("batch.failed", error, size=len(batch))
        # One by one, so that a single bad event doesn't take the others with it.
        return [self._alone(delivery) for delivery in batch]

    def _alone(self, delivery: Delivery) -> Outcome:
        """Store it as it is, then as unreadable, at last as the bare fact that it came. A start must not fail for one
        event."""
        problem = ""
        for plainer in (_as_it_is, self._unread, _that_it_came):
            try:
                return self._engine().handle([plainer(delivery, problem)])[0]
            except StoreUnavailable:
                raise
            except StoreDamaged as error:
                raise StoreUnavailable(error.detail, where=error.where) from error
            except Exception as error:
                # The message may quote half a surrogate pair, which no store accepts.
                problem = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
                self._log.error("event.unreadable", error, key=delivery.key, agent=delivery.agent, hook=delivery.event)
        raise StoreUnavailable(f"event {delivery.key} cannot be stored in any form: {problem}")

    def _unread(self, delivery: Delivery, problem: str) -> Delivery | Event:
        return msgspec.structs.replace(unread_event(delivery, problem), **_safe_body_fields(delivery, self._redact))

    def hold_in_memory(self, batch: Sequence[Delivery]) -> None:
        """Hold in memory until the store is available."""
        for delivery in batch:
            if self._retry_bytes + len(delivery.body) <= RETRY_BYTES:
                self._retry_buffer.append(delivery.unanswered())
                self._retry_bytes += len(delivery.body)

    def _refuse(self, error: StoreUnavailable) -> None:
        # Once per outage, not at every attempt.
        if not self.refusing:
            self._log.error("store.refuses", error)
        self.refusing = error.message


def _as_it_is(delivery: Delivery, _problem: str) -> Delivery | Event:
    return delivery


def _that_it_came(delivery: Delivery, problem: str) -> Delivery | Event:
    # `ascii`: the problem itself may contain what could not be stored.
    return Event(key=delivery.key, kind="unknown", at=delivery.at, data={"problem": ascii(problem)[:500]})


def _safe_body_fields(delivery: Delivery, redact: Redact) -> dict[str, Any]:
    """Redacted and cut like any other; if even that fails, only length and hash are kept."""
    body = delivery.body
    if delivery.cleaned:
        return {"body": body, "body_size": delivery.whole, "body_hash": delivery.digest}
    try:
        stored_body, _, digest = cap_body(redact(body)[0])
        return {"body": stored_body, "body_size": len(body), "body_hash": digest}
    except Exception:
        return {"body_size": len(body), "body_hash": hashlib.sha256(body).hexdigest()}
