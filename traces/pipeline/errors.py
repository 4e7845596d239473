"""The error that the pipeline reports to its user."""


class PipelineError(ValueError):
    """The pipeline cannot run a command; the message is one line."""
