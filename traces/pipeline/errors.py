"""The error of the pipeline that its users can cause."""

from fencepost.model.errors import FencepostError


class PipelineError(FencepostError, ValueError):
    """The pipeline cannot do what was asked; the message is one line."""
