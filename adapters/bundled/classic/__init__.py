"""The bundled implementation: a group coordinator built like a server, and written apart from the model.

It takes requests and the time, and gives answers: no sockets, no clock, no randomness of its own. It shares nothing
with the model but the settings, so that holding one against the other means something. No verdict is made here, and
nothing here can be told to misbehave.
"""
