"""The history of a job in a consistent region. Nothing here judges what its operators do."""
