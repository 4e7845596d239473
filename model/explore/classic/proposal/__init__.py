"""Two groups in lockstep: Kafka's coordinator and that of the proposal of client-side assignment get the same moves.

A search of their runs finds the shortest ones in which they differ. Coordinators and members are the functions of
`model/classic`; here are only the moves, and a network that keeps what it is told to keep.
"""
