"""The capabilities of a target that is described: which it has, why, and what would give it the others."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType

from fencepost.adapters.target import Description, SettingOrigin
from fencepost.conformance.results import SettingFact, TargetFacts
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement
from fencepost.traces.events import CLASSIC

MAX_TESTABLE_SIZE = 12
"""The largest group.max.size that a run fills."""
MAX_CLEANUP_PERIOD_MS = 60_000
"""The longest period of the clean-up pass that a run waits for."""

SETTINGS_OF_CAPABILITY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "size-limit": ("max_group_size",),
        "resize": ("max_group_size",),
        "initial-delay": ("initial_rebalance_delay",),
        "no-initial-delay": ("initial_rebalance_delay",),
        "session-bounds": ("min_session_timeout",),
        "metadata-limit": ("max_offset_metadata",),
        "retention": ("offsets_retention", "retention_check_interval"),
    }
)
"""The settings without whose values a capability is of no use."""


def _settings_line(line: str) -> str:
    return f" ([settings] {line}, where the broker does not tell)"


REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "restart": "[target] start = 'COMMAND', with keeps_storage = false if a start forgets everything",
        "second-node": "a cluster of several nodes (Metadata names one)",
        "graceful-move": "[target] move = 'COMMAND {group}', on a cluster of several nodes",
        "resize": "[capabilities] offers = ['resize']",
        "size-limit": f"a group.max.size of at most {MAX_TESTABLE_SIZE}{_settings_line('max_group_size = N')}",
        "initial-delay": f"a group.initial.rebalance.delay.ms above 0{_settings_line('initial_rebalance_delay = MS')}",
        "no-initial-delay": f"a group.initial.rebalance.delay.ms of 0{_settings_line('initial_rebalance_delay = 0')}",
        "session-bounds": "[settings] min_session_timeout = MS and max_session_timeout = MS",
        "metadata-limit": "[settings] max_offset_metadata = N",
        "retention": f"an offsets.retention.check.interval.ms of at most {MAX_CLEANUP_PERIOD_MS}"
        f"{_settings_line('retention_check_interval = MS and offsets_retention = MS')}",
        "transactions": "InitProducerId, TxnOffsetCommit and EndTxn, which it does not offer",
        "intrusive": "--intrusive, or [target] start = 'COMMAND'",
        "slow": "--slow",
    }
)
"""The lines of a profile, or the option, that switch a capability on; those of settings tell what the broker has."""

TELLING = frozenset(SettingOrigin) - {SettingOrigin.UNLIMITED, SettingOrigin.NOT_TOLD}
"""The origins of values that are worth showing."""


def offered_capabilities(
    description: Description, declared: Iterable[str], *, slow: bool, intrusive: bool = False
) -> frozenset[str]:
    """The capabilities of a target: the declared ones, and those that follow from its description, without those that
    need a setting which nobody told and no probe measured.

    `slow` permits long waits; on virtual time every wait is short. `intrusive` permits requests that a faulty broker
    may carry out on groups of others; on virtual time there are none.
    """
    settings = description.settings
    virtual = description.clock == "virtual"
    found = set(declared)
    follows = {
        "restart": description.can_restart,
        "second-node": len(description.brokers) > 1,
        "graceful-move": description.can_move,
        "size-limit": settings.max_group_size <= MAX_TESTABLE_SIZE,
        "initial-delay": settings.initial_rebalance_delay > 0,
        "no-initial-delay": settings.initial_rebalance_delay == 0,
        "session-bounds": description.origin_of("max_session_timeout") is not SettingOrigin.NOT_TOLD,
        "metadata-limit": True,
        "retention": virtual or settings.retention_check_interval <= MAX_CLEANUP_PERIOD_MS,
        "transactions": {"InitProducerId", "TxnOffsetCommit", "EndTxn"} <= set(description.versions),
        "slow": slow or virtual,
        "intrusive": intrusive or virtual,
    }
    found |= {name for name, holds in follows.items() if holds}
    return frozenset(name for name in found if description.knows(*SETTINGS_OF_CAPABILITY.get(name, ())))


def describe_facts(description: Description, offered: Collection[str]) -> TargetFacts:
    """What is known about a target with these capabilities, for the head of its report."""
    if description.protocol != CLASSIC:
        origin = SettingOrigin.KIT if description.clock == "virtual" else SettingOrigin.PROFILE
        limits = {name: SettingFact(value, origin) for name, value in description.limits.items()}
        return TargetFacts(limits, dict(sorted(description.versions.items())), (), {}, description.remarks)
    values = asdict(description.settings)
    settings = {
        name: SettingFact(values[name] if (origin := description.origin_of(name)) in TELLING else None, origin)
        for name in values
    }
    return TargetFacts(
        settings=settings,
        apis=dict(sorted(description.versions.items())),
        capabilities=tuple(name for name in CAPABILITIES if name in offered),
        off={name: REMEDIES[name] for name in CAPABILITIES if name not in offered},
        remarks=description.remarks,
    )


def requirements_not_told(requirements: Iterable[Requirement], description: Description) -> frozenset[str]:
    """The ids of the requirements that depend on a setting which is not known."""
    return frozenset(
        requirement.id
        for requirement in requirements
        for need in requirement.needs
        if not description.knows(*SETTINGS_OF_CAPABILITY.get(need, ()))
    )
