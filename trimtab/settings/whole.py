"""All settings of a cluster: parse, change and list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Final, cast

from trimtab.settings.brokers import DoubtSettings, FlappingSettings
from trimtab.settings.bundles import MergeSettings, SplitSettings
from trimtab.settings.planner import PlannerSettings
from trimtab.settings.review import (
    BreakerSettings,
    ExplainSettings,
    LedgerSettings,
    ReplaySettings,
    ShadowSettings,
)
from trimtab.settings.rounds import PlacementSettings, RoundSettings, WeightSettings
from trimtab.settings.setting import InvalidSettings, Setting, problem_of, wrong_type
from trimtab.settings.shedding import (
    AvgSettings,
    ThresholdSettings,
    TransferSettings,
    UniformSettings,
    UnloadSettings,
)
from trimtab.settings.words import NO_SHADOW


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a cluster's rounds."""

    round: RoundSettings = field(default_factory=RoundSettings)
    threshold: ThresholdSettings = field(default_factory=ThresholdSettings)
    uniform: UniformSettings = field(default_factory=UniformSettings)
    avg: AvgSettings = field(default_factory=AvgSettings)
    transfer: TransferSettings = field(default_factory=TransferSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    unload: UnloadSettings = field(default_factory=UnloadSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    split: SplitSettings = field(default_factory=SplitSettings)
    merge: MergeSettings = field(default_factory=MergeSettings)
    weights: WeightSettings = field(default_factory=WeightSettings)
    doubt: DoubtSettings = field(default_factory=DoubtSettings)
    flapping: FlappingSettings = field(default_factory=FlappingSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    shadow: ShadowSettings = field(default_factory=ShadowSettings)
    explain: ExplainSettings = field(default_factory=ExplainSettings)

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Settings:
        """The defaults with ``values`` over them; see `changed`."""
        return cls().changed(values)

    def changed(self, values: Mapping[str, object]) -> Settings:
        """These settings with ``values`` over them, by dotted name or Pulsar's key.

        Raises InvalidSettings with every problem found.
        """
        problems: list[str] = []
        accepted: dict[str, object] = {}
        for name, value in values.items():
            if name not in _MISSPELT:
                _accept(name, value, accepted, problems)
        current = self.dumped()
        for name in values.keys() & _MISSPELT.keys():
            path = _MISSPELT[name]
            # Pulsar reads the old spelling while the correct one has its default.
            if accepted.get(path, current[path]) == _DEFAULTS.dumped()[path]:
                accepted.pop(path, None)
                _accept(name, values[name], accepted, problems)
        changed = self._with(accepted)
        problems += contradictions(changed)
        if problems:
            raise InvalidSettings(problems)
        return changed

    def dumped(self) -> dict[str, object]:
        """Every setting by dotted name, sorted; `parse` of it gives an equal value."""
        groups = cast(dict[str, dict[str, object]], asdict(self))
        return {
            f"{group}.{name}": value
            for group, members in sorted(groups.items())
            for name, value in sorted(members.items())
        }

    def _with(self, accepted: Mapping[str, object]) -> Settings:
        groups: dict[str, dict[str, object]] = {}
        for path, value in accepted.items():
            group, name = path.split(".")
            groups.setdefault(group, {})[name] = value
        return replace(
            self,
            **{
                group: replace(getattr(self, group), **members) for group, members in groups.items()
            },
        )


def catalogue() -> Iterator[tuple[str, object, Setting]]:
    """Every setting: dotted name, default and properties."""
    for group in fields(Settings):
        for member in fields(getattr(_DEFAULTS, group.name)):
            yield f"{group.name}.{member.name}", member.default, member.metadata["setting"]


_DEFAULTS: Final = Settings()
_TYPES: Final = {path: (type(default), known) for path, default, known in catalogue()}
_ALIASES: Final = {
    known.alias.key: path for path, (_, known) in _TYPES.items() if known.alias is not None
}
_MISSPELT: Final = {
    known.alias.misspelt: path
    for path, (_, known) in _TYPES.items()
    if known.alias is not None and known.alias.misspelt is not None
}


def _accept(name: str, value: object, accepted: dict[str, object], problems: list[str]) -> None:
    """Add ``value`` to ``accepted`` under its path, or add to ``problems`` why not."""
    path = name if name in _TYPES else _ALIASES.get(name) or _MISSPELT.get(name)
    if path is None:
        problems.append(f"{name}: no such setting{_nearest(name)}")
        return
    kind, known = _TYPES[path]
    problem = wrong_type(value, kind)
    if problem is None:
        if path != name and known.alias is not None:
            value = known.alias.convert(value)
        problem = problem_of(value, kind, known)
    if problem is not None:
        problems.append(f"{name}: {problem}")
    elif path in accepted and accepted[path] != value:
        problems.append(f"{name}: {path} is given twice, as {accepted[path]!r} and {value!r}")
    else:
        accepted[path] = float(cast(float, value)) if kind is float else value


def _nearest(name: str) -> str:
    near = get_close_matches(name, [*_TYPES, *_ALIASES], n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def contradictions(settings: Settings) -> Iterator[str]:
    """Yield the contradictions between settings that are each within their bounds."""
    if settings.avg.low_threshold > settings.avg.high_threshold:
        yield "avg.low_threshold: must not be above avg.high_threshold"
    if settings.round.forget < settings.round.silence:
        yield "round.forget: must not be below round.silence"
    if settings.flapping.longest_delay < settings.flapping.first_delay:
        yield "flapping.longest_delay: must not be below flapping.first_delay"
    # Pulsar refuses to start otherwise: AvgShedder's placement reads what its shedding decided.
    if (settings.round.shedding == "avg") != (settings.round.placement == "avg"):
        yield "round.placement: avg placement and avg shedding go together or not at all"
    shadow = settings.shadow
    if shadow.shedding != NO_SHADOW and (shadow.shedding == "avg") != (shadow.placement == "avg"):
        yield "shadow.placement: avg placement and avg shedding go together or not at all"
