"""Runs: what is played against a target, from one scenario to a whole run that leads to a report.

Here are scenarios with their context, the engines of random schedules, the runner, replays and the interface of a
protocol to them. No protocol is known here: what one adds is handed in. How verdicts are derived is in
`conformance/analysis`.
"""
