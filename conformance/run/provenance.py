"""Records where a report comes from, when its run starts: the options, the profile, the machine and the time."""

import os
import platform
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Machine, NamedBy, PlanRecord, ProfileRecord, Provenance


def name_target(address: str, implementation: Mapping[str, str], about: Mapping[str, str]) -> dict[str, str]:
    """The description of a target for reports: by what its profile says `about` it, else by what it says of itself, its
    `implementation`, else by its address."""
    if "name" not in about:
        return {"name": address, **implementation}
    said = {key: value for key, value in implementation.items() if key != "name"}
    return {
        "name": about["name"],
        **({"version": about["version"]} if "version" in about else {}),
        "address": address,
    } | said


def record_run(plan: Plan, profile: Profile, implementation: Mapping[str, str]) -> Provenance:
    """Where the report of a run that starts now, on a target that says this of itself, comes from."""
    named_by = NamedBy.TARGET if "name" in implementation else NamedBy.NOBODY
    return Provenance(
        started_now(),
        describe_machine(),
        record_plan(plan),
        None if profile == Profile() else record_profile(profile),
        NamedBy.PROFILE if "name" in profile.about else named_by,
        dict(profile.about),
    )


def record_judging() -> Provenance:
    """Where a report on recorded traces that is begun now comes from."""
    return Provenance(started_now(), describe_machine())


def record_plan(plan: Plan) -> PlanRecord:
    """The options of a run."""
    return PlanRecord(
        command=command_of(plan),
        only=plan.patterns,
        exclude=plan.excluded,
        smoke=plan.smoke,
        slow=plan.slow,
        intrusive=plan.intrusive,
        seed=plan.seed,
        schedules=plan.schedules,
        tours=plan.tours,
        max_failures=plan.max_failures,
        seconds=plan.seconds,
        shrink_seconds=plan.shrink_seconds,
    )


def record_profile(profile: Profile) -> ProfileRecord:
    """What a profile says of its target, without commands and secrets."""
    return ProfileRecord(
        dict(profile.deviations),
        tuple(sorted(profile.capabilities)),
        dict(sorted(profile.settings.items())),
        profile.overrides_broker,
    )


def command_of(plan: Plan) -> tuple[str, ...]:
    """The command line that makes this plan."""
    default = Plan(plan.target)
    words = ["fencepost", "test", *([plan.target] if plan.target else [])]
    values = {
        "--seed": (plan.seed, default.seed),
        "--schedules": (plan.schedules, plan.default_schedules),
        "--tours": (plan.tours, default.tours),
        "--max-failures": (plan.max_failures, default.max_failures),
        "--seconds": (plan.seconds, default.seconds),
        "--shrink-seconds": (plan.shrink_seconds, default.shrink_seconds),
        "--profile": (plan.profile, default.profile),
    }
    for option, (value, usual) in values.items():
        if value != usual and value is not None:
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    flags = {"--smoke": plan.smoke, "--slow": plan.slow, "--intrusive": plan.intrusive}
    words += [option for option, is_set in flags.items() if is_set]
    for option, patterns in (("--only", plan.patterns), ("--exclude", plan.excluded)):
        words += [option, *patterns] if patterns else []
    return tuple(words)


def started_now() -> str:
    """The time in UTC; that of SOURCE_DATE_EPOCH if this environment variable is set, for reports that can be compared
    byte by byte."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = int(seconds) if seconds.isdecimal() else int(time.time())
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def describe_machine() -> Machine:
    """This machine, and the job of GitHub or GitLab that the kit runs in."""
    ci, commit = "", ""
    if "GITHUB_RUN_ID" in os.environ:
        ci = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(_Variables())
        commit = os.environ.get("GITHUB_SHA", "")
    elif "CI_JOB_URL" in os.environ:
        ci, commit = os.environ["CI_JOB_URL"], os.environ.get("CI_COMMIT_SHA", "")
    return Machine(platform.python_version(), sys.platform, os.cpu_count() or 1, ci, commit)


class _Variables(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return os.environ.get(name, "")
