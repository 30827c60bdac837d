"""The session a person means: the full id, else the one that begins like it, else the alias shown in lists."""

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ids import alias
from holdfast.core.ports import Doc, Reader, Ref, StateQuery
from holdfast.features.sessions.model import SESSION, head

MOST_CANDIDATES = 10
ALIASES_SEARCHED = 2000


def wanted(call: Call) -> Doc:
    """By `id`; without one the session of whoever asks, else the latest in the project, else the latest of all."""
    given = str(call.args.get("id") or "").strip()
    if given:
        return find(call.reader, given)
    own = call.reader.state(Ref(SESSION, call.session)) if call.session else None
    if own:
        return own
    for project in (call.project, ""):
        latest = call.reader.states(StateQuery(kind=SESSION, project=project, limit=1))
        if latest:
            return latest[0][1]
    raise CommandRefused("there is no session yet")


def find(reader: Reader, given: str) -> Doc:
    exact = reader.state(Ref(SESSION, given))
    if exact:
        return exact
    found = [doc for _, doc in reader.states(StateQuery(kind=SESSION, prefix=given, limit=MOST_CANDIDATES + 1))]
    found = found or [
        doc for _, doc in reader.states(StateQuery(kind=SESSION, limit=ALIASES_SEARCHED)) if alias(doc["id"]) == given
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandRefused(f"there is no session {head(given, 80)!r}", fix="See: holdfast sessions list --all")
    named = "; ".join(f"{doc['id']} ({doc['title'] or doc['state']})" for doc in found[:MOST_CANDIDATES])
    more = " …" if len(found) > MOST_CANDIDATES else ""
    raise CommandRefused(f"{head(given, 80)!r} may be {named}{more}", fix="Give more of the id.")
