"""All settings of a cluster: parse, change and list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from types import NoneType
from typing import Any, TypeVar

from trimtab.settings.brokers import DoubtSettings, FlappingSettings
from trimtab.settings.bundles import MergeSettings, SplitSettings
from trimtab.settings.migration import MigrationSettings
from trimtab.settings.planner import PlannerSettings
from trimtab.settings.plans import PlanSettings
from trimtab.settings.review import (
    BreakerSettings,
    ExplainSettings,
    LedgerSettings,
    ReplaySettings,
    ShadowSettings,
)
from trimtab.settings.rounds import PlacementSettings, RoundSettings, WeightSettings
from trimtab.settings.setting import InvalidSettings, Setting
from trimtab.settings.shedding import (
    AvgSettings,
    ThresholdSettings,
    TransferSettings,
    UniformSettings,
    UnloadSettings,
)
from trimtab.settings.spellings import KnownSettings, Value, accept
from trimtab.settings.windows import window_problems
from trimtab.settings.words import (
    BY_POSITIONS,
    IN_WORDS,
    NO_SHADOW,
    SHEDDING,
    SPLIT_ALGORITHMS,
)

G = TypeVar("G")


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
    plans: PlanSettings = field(default_factory=PlanSettings)
    migration: MigrationSettings = field(default_factory=MigrationSettings)
    own: tuple[tuple[str, Any], ...] = ()
    """Shedders that bring their own settings, each with an instance of its dataclass, or None where
    it has none: see `trimtab.shedding.DEFAULTS`."""

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Settings:
        """The defaults with ``values`` over them; see `changed`."""
        return cls().changed(values)

    def of(self, kind: type[G]) -> G:
        """The settings of the shedder that brings the class ``kind``; its defaults if there is no
        such shedder."""
        return next((each for _, each in self.own if type(each) is kind), kind())

    def changed(self, values: Mapping[str, object]) -> Settings:
        """These settings with ``values`` over them, by dotted name or Pulsar's key.

        Raises InvalidSettings with every problem found.
        """
        accepted, problems = self.read(values)
        changed = self.with_accepted(accepted)
        problems += contradictions(changed)
        if problems:
            raise InvalidSettings(problems)
        return changed

    def read(self, values: Mapping[str, object]) -> tuple[dict[str, Value], list[str]]:
        """``values`` by dotted name and in trimtab's units, and what is wrong with the others.

        Contradictions are not judged: they depend on all settings together.
        """
        known = self._known()
        problems: list[str] = []
        accepted: dict[str, Value] = {}
        for name, value in values.items():
            if name not in known.misspelt:
                accept(known, name, value, accepted, problems)
        current = self.dumped()
        for name in sorted(values.keys() & known.misspelt.keys()):
            path = known.misspelt[name]
            # Pulsar reads the old spelling while the correct one has its default.
            if path in accepted or current[path] == known.defaults[path]:
                accept(known, name, values[name], accepted, problems)
        return accepted, problems

    def path_of(self, name: str) -> str | None:
        """The dotted name of a setting by any of its spellings; None if there is no such one."""
        return self._known().path_of(name)

    def absence_of(self, name: str) -> str:
        """A sentence: no setting has this name, and which name was probably meant."""
        return self._known().absence_of(name)

    def dumped(self) -> dict[str, object]:
        """Every setting by dotted name, sorted; `changed` of it gives an equal value."""
        return {
            f"{group}.{name}": value
            for group, members in sorted(self.groups().items())
            for name, value in sorted(asdict(members).items())
        }

    def groups(self) -> dict[str, Any]:
        """The dataclass of each group of settings, by its name."""
        groups = {each.name: getattr(self, each.name) for each in fields(self)}
        own = groups.pop("own")
        return groups | {name: members for name, members in own if members is not None}

    def with_valid(self, values: Mapping[str, object]) -> Settings:
        """These settings with the valid ones of ``values``, which may contradict others."""
        return self.with_accepted(self.read(values)[0])

    def with_accepted(self, accepted: Mapping[str, object]) -> Settings:
        """These settings with values that `read` accepted; contradictions are not judged."""
        given: dict[str, dict[str, object]] = {}
        for path, value in accepted.items():
            group, name = path.split(".")
            given.setdefault(group, {})[name] = value
        groups = self.groups()
        changed = {group: replace(groups[group], **members) for group, members in given.items()}
        own = tuple((name, changed.pop(name, members)) for name, members in self.own)
        return replace(self, own=own, **changed)

    def _known(self) -> KnownSettings:
        return _known(tuple((name, type(each)) for name, each in self.own))


def catalogue(settings: Settings | None = None) -> Iterator[tuple[str, object, Setting]]:
    """Every setting: dotted name, default and properties; those that shedders bring, where
    ``settings`` has them."""
    settings = settings or Settings()
    for group, members in settings.groups().items():
        for member in fields(members):
            known: Setting = member.metadata["setting"]
            if known.bounds and set(SHEDDING) <= set(known.bounds):
                known = known._replace(bounds=(*known.bounds, *dict(settings.own)))
            yield f"{group}.{member.name}", member.default, known


def unread_spellings(conf: Mapping[str, object]) -> list[str]:
    """The keys in a Pulsar configuration that Pulsar does not read: of two spellings of one setting
    the correct one counts, unless it has its default."""
    found = []
    for _, default, known in catalogue():
        alias = known.alias
        if alias is None or alias.misspelt is None:
            continue
        if alias.misspelt in conf and alias.key in conf:
            kept = alias.convert(conf[alias.key]) == default
            found.append(alias.key if kept else alias.misspelt)
    return found


@cache
def _known(own: tuple[tuple[str, type], ...]) -> KnownSettings:
    brought = tuple((name, None if kind is NoneType else kind()) for name, kind in own)
    settings = {
        path: (type(default), known) for path, default, known in catalogue(Settings(own=brought))
    }
    aliased = [(path, known.alias) for path, (_, known) in settings.items() if known.alias]
    return KnownSettings(
        settings,
        Settings(own=brought).dumped(),
        {alias.key: path for path, alias in aliased}
        | {name: worded.path for name, worded in IN_WORDS.items()},
        {alias.misspelt: path for path, alias in aliased if alias.misspelt is not None},
    )


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
    yield from _split_contradictions(settings.split)
    for problem in window_problems(settings.plans.windows):
        yield f"plans.windows: {problem}"
    shadow = settings.shadow
    if shadow.shedding != NO_SHADOW and (shadow.shedding == "avg") != (shadow.placement == "avg"):
        yield "shadow.placement: avg placement and avg shedding go together or not at all"


def _split_contradictions(split: SplitSettings) -> Iterator[str]:
    supported = split.supported_algorithms()
    for word in supported:
        if word not in SPLIT_ALGORITHMS:
            yield f"split.supported: {word!r} is none of {', '.join(SPLIT_ALGORITHMS)}"
    if split.algorithm not in supported:
        yield f"split.algorithm: {split.algorithm} is not in split.supported"
    if split.algorithm == BY_POSITIONS:
        yield f"split.algorithm: {BY_POSITIONS} needs positions, which only an operator gives"
