"""What sessions cost: token use of every agent, added up as it is told, and priced when somebody asks."""

from holdfast.core.feature import Feature
from holdfast.features.cost.state import SESSION_DAY, keys, reduce, stream
from holdfast.features.cost.views import report
from holdfast.usage.events import KIND

FEATURE = Feature(
    name="cost",
    subscribed_kinds=frozenset((KIND,)),
    keys=keys,
    reduce=reduce,
    documents=(SESSION_DAY,),
    stream=stream,
    views={"report": report},
)
