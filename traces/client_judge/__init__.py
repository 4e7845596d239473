"""The judge of clients: it follows the knowledge of a client through a trace, and holds every request against the
client's requirements.

Pure, and without a clock: the trace has the times. The checks of a protocol are in the folder of its name.
"""
