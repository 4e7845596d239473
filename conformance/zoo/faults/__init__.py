"""What is broken on purpose: the notation of a fault, and wrong programs made of right ones.

A `Fault` names its subject and the requirements that it may be called by, and has the function that puts it in: by
replacing named functions, or by a mutant of a module's syntax tree. Nothing here knows a protocol, or how a fault is
found.
"""
