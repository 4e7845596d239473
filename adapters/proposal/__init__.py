"""The bundled coordinator in the dialect of the proposal of client-side assignment, and its messages on the wire.

Only what differs from `bundled/classic`: a generation is stored before JoinGroup is answered, and its synchronization
goes on after a restart; the leader may assign anew without a rejoin, or hand an error to those who wait.
"""
