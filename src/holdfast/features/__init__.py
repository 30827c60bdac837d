"""The rooms. To add one: a folder beside this file, its page in docs/features/, and one line here."""

from holdfast.core.feature import Feature
from holdfast.features import log

FEATURES: tuple[Feature, ...] = (log.FEATURE,)
