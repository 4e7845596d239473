"""The judge of clients: it follows a client through a trace with what the client was told, and holds every request
against the client's requirements.

Pure, and without a clock: the trace has the times. What a protocol asks of a client is in the folder of its name.
"""
