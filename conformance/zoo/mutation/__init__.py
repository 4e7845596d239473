"""Wrong programs made of right ones: mutants of a module's source, copies of modules, and patches of named functions.

Nothing here knows a protocol, or how a wrong program is found out.
"""
