"""The client's half of the protocol as pure functions on frozen values.

`member.py` is the proved member, with nothing but what safety needs. The modules beside it are the reference client
around it: `dispatch.handle_input` takes a client and an input, and the rules in
`fencepost.model.classic.catalogue.client` have a row for each of its branches.
Assignors and draining have packages of their own, and are handed in. No module here has a clock, a socket or chance.
"""
