"""Study files: read strictly, checked whole, frozen."""

from evalkit.study.models import Limits, Risk, Router, RoutingStudy, Source, Tier
from evalkit.study.routing import override, read_study

__all__ = ["Limits", "Risk", "Router", "RoutingStudy", "Source", "Tier", "override", "read_study"]
