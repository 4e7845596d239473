"""`fencepost pipeline`: the commands around the trace pipeline, and the reports of what it found.

What Spark does lives in `fencepost.traces.pipeline`; here is what people type and read.
"""
