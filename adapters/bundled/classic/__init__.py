"""The bundled implementation: a group coordinator built like a server, independently of the model.

It takes requests and the time, and returns responses: no sockets, no clock, no randomness of its own. It shares with
the model only settings and error codes, so that checking one against the other has a meaning. Verdicts and switches for
faults never belong here.
"""
