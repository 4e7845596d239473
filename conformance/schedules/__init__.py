"""Random schedules: what a protocol adds to the engine in `conformance/run`, in a folder of its name."""
