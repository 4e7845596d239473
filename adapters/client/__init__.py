"""What a client under test meets: the bundled server with a script over it, a second member, and the client's process.

Everything is recorded as a trace. What the client may send, and when which fault happens, is decided elsewhere.
"""
