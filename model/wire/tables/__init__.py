"""The message schemas as text, one module for each family, in the notation of `fencepost.model.wire.schema`."""
