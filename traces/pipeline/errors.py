"""What a person can mend."""


class PipelineError(ValueError):
    """The pipeline cannot do what was asked; the message is one line."""
