"""How a pytest that a test starts gets the plugin of this checkout."""

from importlib.metadata import entry_points

PLUGIN = "fencepost.conformance.testing.plugin"


def plugin_arguments() -> tuple[str, ...]:
    """The arguments that load the plugin: none where the installed package does it."""
    installed = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
    return () if installed else ("-p", PLUGIN)
