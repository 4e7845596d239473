"""The moves of classic schedules: one function each, registered under the move's kind with the options it takes.

Every move can be made in every state, whatever the target responds. What makes a good schedule does not belong here.
"""
