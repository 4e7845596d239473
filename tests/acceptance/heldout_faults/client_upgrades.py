"""Rolling upgrades of clients: versions of requests and lists of protocols that differ between members."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play

FAMILY = FaultFamily("rolling upgrade of clients")


@FAMILY.add(
    "GEN-09",
    "GEN-11",
    source="plausible",
    edits=[
        Edit(
            "group.Group.select_protocol",
            "candidates = self.candidates()",
            "candidates = self.candidates()\n    if self.protocol in candidates:\n        return self.protocol",
        )
    ],
)
async def old_protocol_outlasts_the_upgrade(play: Play) -> None:
    """The selected protocol is kept for as long as all members still offer it, whatever they prefer by now."""
    upgraded, old = play.member("A", protocols=(("q", b""), ("p", b""))), play.member("B", protocols=(("p", b""),))
    await play.form(upgraded, old)
    old.protocols = upgraded.protocols
    play.rejoin(upgraded, old)


@FAMILY.add(
    "LEAVE-20",
    "STATIC-29",
    source="plausible; KIP-345 read wrongly",
    edits=[
        Edit(
            "leaving.Leaving.remove_entry",
            "self._rounds.remove_member(group, group.members[member_id])",
            "if instance_id is None and group.members[member_id].is_static:\n"
            "        return Error.NONE\n"
            "    self._rounds.remove_member(group, group.members[member_id])",
        )
    ],
)
async def old_leave_of_a_static_member_is_ignored(play: Play) -> None:
    """A LeaveGroup of a version without instance ids is confirmed for a static member, which stays."""
    member = play.member("S", instance="i")
    await play.form(member)
    member.leave(version=2)
    member.heartbeat()
