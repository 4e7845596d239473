"""Random schedules of consumers of a push coordinator.

Consumers join, pause, go on, consume and die, partitions come, coordinators lose their place: every move is drawn by
itself, and the judge says what came of them. Nothing about the engine belongs here.
"""
