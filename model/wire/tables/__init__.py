"""The message schemas as text, one module a family; facts only, in the notation of `fencepost.model.wire.schema`."""
