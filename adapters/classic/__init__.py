"""The bundled implementation: a group coordinator built like a server, and written apart from the model.

It takes requests and the time, and returns responses: no sockets, no clock, no randomness of its own. It shares only
the settings with the model, so that comparing the two is meaningful. No verdict is made here, and there are no fault
switches.
"""
