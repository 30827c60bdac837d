"""What sessions cost: token use of every agent, added up as it is told, and priced when somebody asks."""

from holdfast.analysis.usage.events import KIND
from holdfast.analysis.usage.spending import SESSION_DAY
from holdfast.core.feature import Feature
from holdfast.core.kinds.check_events import GitActed
from holdfast.features.cost.state import keys, reduce, stream
from holdfast.features.cost.views import report_costs

FEATURE = Feature(
    name="cost",
    version=2,
    subscribed_kinds=frozenset((KIND, GitActed.KIND)),
    keys=keys,
    reduce=reduce,
    documents=(SESSION_DAY,),
    stream=stream,
    views={"report": report_costs},
)
