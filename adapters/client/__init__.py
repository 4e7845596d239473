"""The surroundings of a client under test: the bundled server with a script over it, a second member, and the
client's process.

Everything is recorded as a trace. Verdicts and schedules belong to others.
"""
