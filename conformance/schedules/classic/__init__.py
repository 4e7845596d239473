"""Random schedules of the classic protocol: the Hypothesis state machine, its rules, and the interpreter of moves."""
