"""Cost of sessions: token use of every agent, summed as it is reported and priced on request."""

from holdfast.analysis.usage.events import KIND
from holdfast.analysis.usage.spending import SESSION_DAY
from holdfast.core.feature import Feature
from holdfast.core.kinds.agent_events import CompactEnded
from holdfast.core.kinds.check_events import GitActed
from holdfast.features.cost.settings import CostSettings
from holdfast.features.cost.state import keys, reduce, stream
from holdfast.features.cost.views import report_costs

FEATURE = Feature(
    name="cost",
    version=3,
    subscribed_kinds=frozenset((KIND, GitActed.KIND, CompactEnded.KIND)),
    keys=keys,
    reduce=reduce,
    documents=(SESSION_DAY,),
    stream=stream,
    settings=CostSettings,
    views={"report": report_costs},
)
