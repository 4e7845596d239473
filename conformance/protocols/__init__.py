"""The description of the default protocol for runs, replays and reports."""
