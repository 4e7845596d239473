"""Ways to reach an implementation: the bundled coordinator, the Kafka wire, the server, the recorder.

Adapters take requests and record events of the trace format. Verdicts never belong here.
"""
