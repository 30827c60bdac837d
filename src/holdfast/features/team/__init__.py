"""The team's decisions on this machine, with or without the network; forwarding is `holdfast_team`."""

from functools import partial

from holdfast.core.authority import Authority, Who, person
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_table
from holdfast.features.team.policy import can_decide, decide, derive
from holdfast.features.team.state import DOCUMENTS, NEWS_KINDS, SUBSCRIBED_KINDS, keys, reduce

_table = partial(lazy_table, __name__)

COMMANDS = {
    "join": person("joining a team"),
    "leave": person("leaving a team"),
    "receive": Authority(Who.FORWARDER, "taking in what the team decided"),
    "locate": Authority(Who.FORWARDER, "naming projects to the team"),
}

FEATURE = Feature(
    name="team",
    version=2,
    documents=DOCUMENTS,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    can_decide=can_decide,
    decide=decide,
    refuses=lambda _settings: True,
    decides_on=NEWS_KINDS | {"tool.started"},
    derive=derive,
    derives_from=NEWS_KINDS,
    commands=_table("commands", "COMMANDS", COMMANDS),
    authority=COMMANDS,
    views=_table("commands", "VIEWS", ("status",)),
)
